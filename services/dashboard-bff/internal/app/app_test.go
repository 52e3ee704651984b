package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/app"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// logBuffer is a log that may be read while it is written.
type logBuffer struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// replica is a running process of the dashboard, wired as in production, without a broker.
type replica struct {
	t          *testing.T
	url, tools string
	log        *logBuffer
}

// start runs a process on the database at url; environ replaces settings.
func start(t *testing.T, url string, environ ...string) *replica {
	t.Helper()
	cfg, err := app.LoadConfig(append([]string{
		"PLATFORM_DATABASE_URL=" + url, "EVENT_PUBLISHER=log", "EVENT_RELAY_ENABLED=false", "DRAIN_DELAY=0s",
		"DASHBOARD_VIEWER_PASSWORD=viewer-of-the-tests", "DASHBOARD_ADMIN_PASSWORD=admin-of-the-tests",
		"DASHBOARD_JWT_SECRET=a-secret-of-the-tests-with-more-than-32-bytes",
		"DASHBOARD_SECRET_KEY=MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlBQkNERUY=",
	}, environ...))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []*net.Listener{&cfg.Listener, &cfg.ToolsListener} {
		if *l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	r := &replica{t: t, url: "http://" + cfg.Listener.Addr().String(), tools: "http://" + cfg.ToolsListener.Addr().String(), log: &logBuffer{}}
	cfg.PublicURL, cfg.ToolsURL = r.url, r.tools // LoadConfig has made them of the default addresses
	if err := app.Migrate(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx, cfg, slog.New(slog.NewJSONHandler(r.log, nil))) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the process ended with %v", err)
		}
	})
	return r
}

// client follows no redirect.
var client = &http.Client{
	Timeout: 20 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// do sends a request and returns the response with its body read; pairs are headers.
func (r *replica) do(method, address, body string, pairs ...string) (*http.Response, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		req.Header.Set(pairs[i], pairs[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res, string(raw)
}

// signIn returns the header value of a session.
func (r *replica) signIn(password string) string {
	r.t.Helper()
	var made api.Login
	r.decode(&made, "POST", "/api/auth/login", `{"password": "`+password+`"}`)
	return "Bearer " + made.Token
}

// decode sends a request that must succeed.
func (r *replica) decode(dst any, method, path, body string, pairs ...string) {
	r.t.Helper()
	res, got := r.do(method, r.url+path, body, pairs...)
	if res.StatusCode != http.StatusOK {
		r.t.Fatalf("%s %s: got %d %s, want 200", method, path, res.StatusCode, got)
	}
	if err := json.Unmarshal([]byte(got), dst); err != nil {
		r.t.Fatal(err)
	}
}

func TestNoSnapshotTokenIsLogged(t *testing.T) {
	t.Parallel()
	r := start(t, testenv.Postgres(t))
	viewer := r.signIn("viewer-of-the-tests")
	var made api.SnapshotToken
	r.decode(&made, "POST", "/api/v1/collab/snapshot", `{"view": {"a": 1}}`, "Authorization", viewer)
	var got api.Snapshot
	r.decode(&got, "GET", "/api/v1/collab/snapshot/"+made.Token, "", "Authorization", viewer)
	if !got.Found {
		t.Errorf("got %+v, want the snapshot", got)
	}
	r.do("GET", r.url+"/api/v1/collab/snapshot/"+made.Token, "")                 // 401
	r.do("GET", r.url+"/api/v1/collab/snapshot/"+made.Token+"/x", "")            // 404
	r.do("GET", r.url+"/snapshot/"+made.Token, "", "Accept", "text/html")        // the page
	r.do("GET", r.url+"/snapshot/"+made.Token, "", "Accept", "application/json") // 404
	if log := r.log.String(); strings.Contains(log, made.Token) {
		t.Errorf("the log holds the token %s:\n%s", made.Token, log)
	}
}

func TestANewPasswordEndsTheSessionsOfTheToolsOrigin(t *testing.T) {
	t.Parallel()
	tracker := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(tracker.Close)
	database := testenv.Postgres(t)
	before := start(t, database, "TRACKING_URI="+tracker.URL)
	var ticket api.Ticket
	before.decode(&ticket, "POST", "/api/proxy-ticket", `{"service": "tracker"}`, "Authorization", before.signIn("admin-of-the-tests"))
	entered, _ := before.do("GET", ticket.Url, "")
	cookie, _, _ := strings.Cut(entered.Header.Get("Set-Cookie"), ";")
	if res, body := before.do("GET", before.tools+"/api/proxy/tracker/", "", "Cookie", cookie); res.StatusCode != 200 {
		t.Fatalf("got %d %s, want 200", res.StatusCode, body)
	}
	for change, want := range map[string]int{
		"DASHBOARD_VIEWER_PASSWORD=another-of-the-tests": 200, // not the admin's
		"DASHBOARD_ADMIN_PASSWORD=another-of-the-tests":  401,
		"DASHBOARD_LOCAL_TENANT=another":                 401,
	} {
		after := start(t, database, "TRACKING_URI="+tracker.URL, "DASHBOARD_OPERATOR_TENANTS=default,another", change)
		if res, body := after.do("GET", after.tools+"/api/proxy/tracker/", "", "Cookie", cookie); res.StatusCode != want {
			t.Errorf("%s: got %d %s, want %d", change, res.StatusCode, body, want)
		}
	}
}
