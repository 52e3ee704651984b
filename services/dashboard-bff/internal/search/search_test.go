package search_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/compose"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/docs"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/search"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

var (
	viewer = caller.Caller{Subject: "idp-a:ann", Tenant: "a", Role: caller.Viewer}
	admin  = caller.Caller{Subject: "idp-a:bob", Tenant: "a", Role: caller.Admin}
)

// settings are the addresses of the stand-ins.
type settings map[string]string

func (s settings) Value(key string) string { return s[key] }

// neighbours are control plane and tracker with one of everything, and what goes wrong with them.
type neighbours struct {
	mu    sync.Mutex
	calls map[string]int    // guarded by mu, by path
	fail  map[string]string // guarded by mu, by path: hang, or a status
}

const (
	job      = `{"id":"J-77","scheduler":"mock","cluster":"alps","model":"JPCP","dataset":null,"state":"RUNNING","partition":null,"resources":{},"timing":{},"exitCode":null,"flowRunId":null,"trackerRunId":null,"updated_at":"2026-01-01T00:00:00Z","updated_by":"x"}`
	approval = `{"id":"01a2056a-1b02-7672-a210-cb5acf3f34e9","kind":"retrain","origin":"ci","model_id":"JPCP","dataset_name":null,"status":"pending","commit_sha":"abc","commit_msg":"Tune the depth\n\nmore","changed_files":[],"tenant":"TENANT","requested_by":"ci","resolved_by":null,"requested_at":"2026-01-01T00:00:00Z","resolved_at":null,"prefect_run_id":null,"reject_reason":null,"promotion_id":null,"expires_at":null,"updated_at":"2026-01-01T00:00:00Z","updated_by":"x"}`
	entry    = `{"v":1,"tenant":"TENANT","seq":1,"event_id":"01a2056a-1b02-7672-a210-cb5acf3f34e8","ts":"2026-01-02T03:04:05.000006Z","source":"control-plane","actor":"idp-a:bob","action":"approval.approved","target":"model:JPCP","outcome":"ok","request_id":null,"details":{},"prev_hash":"","hash":""}`
)

func (n *neighbours) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	n.calls[r.URL.Path]++
	fail := n.fail[r.URL.Path]
	n.mu.Unlock()
	switch fail {
	case "hang":
		<-r.Context().Done()
		return
	case "fault":
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	// The stand-in leaks another tenant's rows on purpose: the dashboard filters again.
	both := func(row string) string {
		return strings.ReplaceAll(row, "TENANT", "a") + "," + strings.ReplaceAll(strings.ReplaceAll(row, "TENANT", "b"), "JPCP", "JPCP-foreign")
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/jobs":
		_, _ = io.WriteString(w, `{"items":[`+job+`],"next_cursor":null}`)
	case "/approvals":
		_, _ = io.WriteString(w, `[`+both(approval)+`]`)
	case "/audit/events":
		_, _ = io.WriteString(w, `{"items":[`+both(entry)+`],"next_cursor":null,"count":2}`)
	default:
		_, _ = io.WriteString(w, `{"registered_models":[{"name":"JPCP"},{"name":"a/odd name"}]}`)
	}
}

func (n *neighbours) set(path, how string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fail[path] = how
}

func (n *neighbours) count(path string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.calls[path]
}

const sourceTimeout = 600 * time.Millisecond

// bench is a search among neighbours.
type bench struct {
	*neighbours
	search *search.Search
}

func newBench(t *testing.T, edit func(*search.Config)) *bench {
	t.Helper()
	n := &neighbours{calls: map[string]int{}, fail: map[string]string{}}
	server := httptest.NewServer(n)
	t.Cleanup(server.Close)
	clients, err := upstream.New(upstream.Config{Settings: settings{"control_plane_url": server.URL, "tracker_url": server.URL, "control_plane_token": "t"}})
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "docs/jpcp.md"), []byte("# All about JPCP\n\n## Train JPCP & more\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	library, err := docs.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { library.Close() })
	pool, err := compose.New(compose.Config{Timeout: sourceTimeout, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	cfg := search.Config{
		Pool: pool, Upstream: clients, Docs: library,
		Alerts: func(context.Context, caller.Caller) ([]api.Alert, error) {
			return []api.Alert{{Id: "drift:JPCP", Title: "JPCP drifts"}}, nil
		},
	}
	if edit != nil {
		edit(&cfg)
	}
	s, err := search.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{n, s}
}

func (b *bench) get(who caller.Caller, query string) *httptest.ResponseRecorder {
	e := echo.New()
	e.HTTPErrorHandler = problem.Handler(slog.New(slog.NewTextHandler(io.Discard, nil)))
	e.GET("/api/v1/search", func(c echo.Context) error {
		caller.Set(c, who)
		return b.search.FindEntries(c)
	})
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/search?"+query, nil))
	return w
}

func (b *bench) find(t *testing.T, who caller.Caller, text string) api.SearchView {
	t.Helper()
	w := b.get(who, url.Values{"q": {text}}.Encode())
	var v api.SearchView
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code != http.StatusOK {
		t.Fatalf("got %d %s (%v), want 200", w.Code, w.Body, err)
	}
	return v
}

func TestEverySourceIsFoundAndEveryAddressIsARoute(t *testing.T) {
	t.Parallel()
	got := newBench(t, nil).find(t, admin, "jpcp").Search
	want := []api.SearchResult{
		{Kind: "model", Id: "JPCP", Label: "JPCP", Url: "/models/JPCP", Score: 100, Source: "tracker"},
		{Kind: "alert", Id: "drift:JPCP", Label: "JPCP drifts", Url: "/alerts?id=drift%3AJPCP", Score: 80, Source: "alerts"},
		{Kind: "job", Id: "J-77", Label: "JPCP on alps, RUNNING", Url: "/facility?cluster=alps&job=J-77", Score: 80, Source: "scheduler"},
		{Kind: "approval", Id: "01a2056a-1b02-7672-a210-cb5acf3f34e9", Label: "JPCP: Tune the depth (retrain, pending)", Url: "/approvals?id=01a2056a-1b02-7672-a210-cb5acf3f34e9", Score: 80, Source: "approvals"},
		{Kind: "page", Id: "docs/jpcp.md", Label: "All about JPCP", Url: "/documents?path=docs%2Fjpcp.md", Score: 60, Source: "docs"},
		{Kind: "heading", Id: "docs/jpcp.md#train-jpcp--more", Label: "Train JPCP & more", Url: "/documents?path=docs%2Fjpcp.md#train-jpcp--more", Score: 60, Source: "docs"},
		{Kind: "audit", Id: "01a2056a-1b02-7672-a210-cb5acf3f34e8", Label: "approval.approved model:JPCP by idp-a:bob", Url: "/audit?action=approval.approved&actor=idp-a%3Abob&since=2026-01-02T03%3A04%3A05.000006Z&until=2026-01-02T03%3A04%3A05.000007Z", Score: 60, Source: "audit"},
	}
	if diff := cmp.Diff(want, got.Results); diff != "" || got.Count != len(want) || got.Query != "jpcp" {
		t.Errorf("query %q, count %d; results -want +got:\n%s", got.Query, got.Count, diff)
	}
	for source, group := range got.Groups {
		for _, r := range group {
			if r.Source != source {
				t.Errorf("%s is in the group %s", r.Source, source)
			}
		}
	}
	if len(got.Groups) != 6 || len(got.Groups["docs"]) != 2 {
		t.Errorf("got groups %v, want one of each of six sources", got.Groups)
	}
}

func TestNamesAreEscapedInAddresses(t *testing.T) {
	t.Parallel()
	got := newBench(t, nil).find(t, viewer, "a/odd name").Search.Results
	if len(got) != 1 || got[0].Url != "/models/a%2Fodd%20name" {
		t.Errorf("got %+v, want the one model at /models/a%%2Fodd%%20name", got)
	}
}

func TestAuditIsForAdminsAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	got := b.find(t, viewer, "approval.approved")
	if _, asked := got.Sources["audit"]; asked || got.Search.Count != 0 || b.count("/audit/events") != 0 {
		t.Errorf("got %+v after %d calls; want nothing from the ledger, and no call", got, b.count("/audit/events"))
	}
	b.find(t, admin, "approval.approved") // which shares its answer
	if got := b.find(t, viewer, "approval.approved"); got.Search.Count != 0 {
		t.Errorf("after an admin's search a viewer got %+v, want nothing", got.Search.Results)
	}
}

func TestAnotherTenantsRowsAreFilteredAgain(t *testing.T) {
	t.Parallel()
	if got := newBench(t, nil).find(t, admin, "foreign").Search; got.Count != 0 {
		t.Errorf("got %+v, want nothing of tenant b", got.Results)
	}
}

func TestAnswersAreSharedByTenantAndSource(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	var asking sync.WaitGroup
	for _, text := range []string{"jpcp", "jpcp", "other", "x"} {
		asking.Go(func() { b.get(viewer, "q="+text) })
	}
	asking.Wait()
	if n := b.count("/jobs"); n != 1 {
		t.Errorf("%d calls for four searches of one tenant, want 1", n)
	}
	other := viewer
	other.Tenant = "b"
	b.find(t, other, "jpcp")
	if n := b.count("/jobs"); n != 2 {
		t.Errorf("%d calls after another tenant's search, want 2", n)
	}
}

func TestFailedSourcesAreNamedAndTheRestAnswers(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *search.Config) {
		c.Alerts = func(context.Context, caller.Caller) ([]api.Alert, error) { return nil, errors.New("no inbox") }
	})
	b.set("/jobs", "hang")
	b.set("/approvals", "fault")
	got := b.find(t, viewer, "jpcp")
	states := map[string]string{}
	for name, s := range got.Sources {
		states[name] = string(s.Status)
	}
	want := map[string]string{"alerts": "error", "approvals": "error", "docs": "ok", "scheduler": "timeout", "tracker": "ok"}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("_sources -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"alerts", "approvals", "scheduler"}, got.Partial); diff != "" || got.AsOf == nil {
		t.Errorf("_as_of %v; _partial -want +got:\n%s", got.AsOf, diff)
	}
	if got.Search.Count == 0 {
		t.Error("got nothing, want what the others found")
	}
	// The timeout is paid once.
	began := time.Now()
	b.find(t, viewer, "jpcp")
	if took := time.Since(began); took >= sourceTimeout || b.count("/jobs") != 1 {
		t.Errorf("the next search took %s and %d calls, want neither time-out nor call", took, b.count("/jobs"))
	}
}

func TestSourceThatPanicsFailsAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *search.Config) {
		c.Alerts = func(context.Context, caller.Caller) ([]api.Alert, error) { panic("boom") }
	})
	if got := b.find(t, viewer, "jpcp"); len(got.Partial) != 1 || got.Partial[0] != "alerts" || got.Search.Count == 0 {
		t.Errorf("got partial %v, %d results; want alerts alone missing", got.Partial, got.Search.Count)
	}
}

func TestBlankQueryAsksNobody(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for _, query := range []string{"", "q=", "q=%20%09", "limit=5"} {
		w := b.get(viewer, query)
		var v api.SearchView
		if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code != http.StatusOK || v.Search.Count != 0 || v.Search.Results == nil || v.Search.Groups == nil {
			t.Errorf("%q: got %d %s, want empty results", query, w.Code, w.Body)
		}
	}
	if n := b.count("/jobs"); n != 0 {
		t.Errorf("%d calls, want none", n)
	}
}

func TestLimitCutsResultsAndGroups(t *testing.T) {
	t.Parallel()
	w := newBench(t, nil).get(admin, "q=jpcp&limit=2")
	var v api.SearchView
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	if v.Search.Count != 2 || len(v.Search.Results) != 2 || len(v.Search.Groups) != 2 {
		t.Errorf("got %+v, want two results in their two groups", v.Search)
	}
}

func TestInvalidSearchesAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for query, status := range map[string]int{
		"q=" + strings.Repeat("%C3%A9", 200): 200, "q=" + strings.Repeat("x", 201): 422, "q=a&limit=0": 422, "q=a&limit=101": 422, "q=a&limit=100": 200,
		"q=a&limit=x": 422, "q=a&q=b": 422, "q=a&kind=model": 422, "q=%ff": 422, "q=%zz": 422,
	} {
		if w := b.get(viewer, query); w.Code != status {
			t.Errorf("%.40s: got %d %s, want %d", query, w.Code, w.Body, status)
		}
	}
}

func TestNewRefusesMissingParts(t *testing.T) {
	t.Parallel()
	if _, err := search.New(search.Config{}); err == nil || !strings.Contains(err.Error(), "Pool, Upstream, Docs, Alerts") {
		t.Errorf("got %v, want the four missing parts", err)
	}
}
