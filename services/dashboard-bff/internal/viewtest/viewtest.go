// Package viewtest runs the handlers of views against services that replay real answers.
//
// The answers in testdata are recorded, not written: with VIEWTEST_RECORD set, calls that are not recorded yet go to a
// running platform and their answers are added.
//
//	eval "$(platform env)"
//	VIEWTEST_RECORD=1 go test -p 1 ./internal/...
package viewtest

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/compose"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// Timeout of each source in tests: long enough for a busy machine.
const Timeout = time.Second

// Kit is a set of services with clients for them.
type Kit struct {
	T            testing.TB
	Tracker      *Upstream
	Serving      *Upstream
	ControlPlane *Upstream
	Clients      *upstream.Clients
	Pool         *compose.Pool
}

// settings are the addresses of the services.
type settings map[string]string

// Value implements upstream.Settings.
func (s settings) Value(key string) string { return s[key] }

// New starts the three services.
func New(t testing.TB) *Kit {
	t.Helper()
	k := &Kit{
		T: t, Tracker: newUpstream(t, "tracker", "TRACKING_URI", ""), Serving: newUpstream(t, "serving", "SERVING_URL", "SERVING_TOKEN"),
		ControlPlane: newUpstream(t, "control_plane", "CONTROL_PLANE_URL", "CONTROL_PLANE_TOKEN"),
	}
	var err error
	k.Clients, err = upstream.New(upstream.Config{Settings: settings{
		"tracker_url": k.Tracker.URL, "serving_url": k.Serving.URL, "control_plane_url": k.ControlPlane.URL, "control_plane_token": "token",
	}})
	if err != nil {
		t.Fatal(err)
	}
	k.Pool = NewPool(t, Timeout, time.Now)
	return k
}

// NewPool returns a pool that ends with the test.
func NewPool(t testing.TB, timeout time.Duration, now func() time.Time) *compose.Pool {
	t.Helper()
	if recording() {
		timeout = 10 * time.Second
	}
	p, err := compose.New(compose.Config{Timeout: timeout, Log: slog.New(slog.DiscardHandler), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Viewer returns the default caller of tests.
func Viewer() caller.Caller {
	return caller.Caller{Subject: "local:viewer", Tenant: "default", Role: caller.Viewer, Method: caller.Password}
}

// Answer is a handler's response.
type Answer struct {
	t      testing.TB
	Status int
	Header http.Header
	Body   []byte
}

// Request of a handler.
type Request struct {
	Who     caller.Caller // default Viewer
	Method  string        // default GET
	Route   string        // with parameters, such as /model/:name
	Path    string        // with a query
	Body    string
	Header  http.Header
	Handler echo.HandlerFunc
}

// Do sends a request through a router, as the service would.
func Do(t testing.TB, r Request) Answer {
	t.Helper()
	e := echo.New()
	e.HTTPErrorHandler = problem.Handler(slog.New(slog.DiscardHandler))
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	if r.Who == (caller.Caller{}) {
		r.Who = Viewer()
	}
	e.Add(r.Method, r.Route, func(c echo.Context) error {
		caller.Set(c, r.Who)
		return r.Handler(c)
	})
	rec := httptest.NewRecorder()
	req := httptest.NewRequest(r.Method, r.Path, strings.NewReader(r.Body))
	for name, values := range r.Header {
		req.Header[name] = values
	}
	if r.Body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	e.ServeHTTP(rec, req)
	return Answer{t, rec.Code, rec.Header(), rec.Body.Bytes()}
}

// Get reads a view that has to answer 200.
func Get(t testing.TB, h echo.HandlerFunc, route, path string) Answer {
	t.Helper()
	a := Do(t, Request{Route: route, Path: path, Handler: h})
	if a.Status != http.StatusOK {
		t.Fatalf("%s: %d %s; want 200", path, a.Status, a.Body)
	}
	return a
}

// Doc returns the answer's object.
func (a Answer) Doc() map[string]any {
	a.t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(a.Body, &doc); err != nil {
		a.t.Fatalf("body %q: %v", a.Body, err)
	}
	return doc
}

// At returns a member by its path, such as "registry.rows.0.name"; nil if there is none.
func (a Answer) At(path string) any {
	a.t.Helper()
	var at any = a.Doc()
	for name := range strings.SplitSeq(path, ".") {
		switch v := at.(type) {
		case map[string]any:
			at = v[name]
		case []any:
			i := -1
			if _, err := fmt.Sscan(name, &i); err != nil || i < 0 || i >= len(v) {
				return nil
			}
			at = v[i]
		default:
			return nil
		}
	}
	return at
}

// Want compares members with what they have to be, as JSON.
func (a Answer) Want(members map[string]any) {
	a.t.Helper()
	for path, want := range members {
		if diff := cmp.Diff(normalize(a.t, want), a.At(path)); diff != "" {
			a.t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

// WantPartial compares the names of the sources that gave no answer.
func (a Answer) WantPartial(names ...string) {
	a.t.Helper()
	var want any
	if len(names) > 0 {
		want = names
	}
	a.Want(map[string]any{"_partial": want})
}

// WantProblem compares an answer with a problem document's status and code.
func (a Answer) WantProblem(status int, code string) {
	a.t.Helper()
	if got := a.At("code"); a.Status != status || got != code {
		a.t.Errorf("got %d %v: %s; want %d %s", a.Status, got, a.Body, status, code)
	}
}

// Find returns the element of a list whose member has a value; the test ends without one.
func (a Answer) Find(list, member string, value any) map[string]any {
	a.t.Helper()
	all, _ := a.At(list).([]any)
	for _, element := range all {
		if row, ok := element.(map[string]any); ok && row[member] == value {
			return row
		}
	}
	a.t.Fatalf("%s has no element with %s = %v: %s", list, member, value, a.Body)
	return nil
}

// normalize turns a Go value into what decoding its JSON gives.
func normalize(t testing.TB, v any) any {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
