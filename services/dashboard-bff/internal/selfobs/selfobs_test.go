package selfobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/selfobs"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/viewtest"
)

func TestMain(m *testing.M) { testenv.Main(m) }

type settings map[string]string

func (s settings) Value(key string) string { return s[key] }

func openPool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	url := testenv.Migrated(t, "dashboard-selfobs", func(ctx context.Context, url string) error {
		return postgres.Migrate(ctx, url, store.Schema, outbox.Migrations(), store.Migrations())
	})
	pool, err := postgres.Open(t.Context(), url, store.Schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func healthy(context.Context) error { return nil }

func newSelf(t *testing.T, pool *pgxpool.Pool, requests *selfobs.Requests, urls settings, checks map[string]func(context.Context) error) *selfobs.Self {
	t.Helper()
	clients, err := upstream.New(upstream.Config{Settings: urls, AssistantURL: urls["assistant_url"]})
	if err != nil {
		t.Fatal(err)
	}
	s, err := selfobs.New(selfobs.Parts{Clients: clients, Requests: requests, Pool: pool, Log: slog.New(slog.DiscardHandler), Checks: checks})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// services answer 200 at these paths alone.
func services(t *testing.T, paths ...string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, p := range paths {
			if r.URL.Path == p {
				return
			}
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(func() {
		s.Close()
		service.HTTPClient(0).CloseIdleConnections()
	})
	return s.URL
}

func TestStatusListsDependenciesInOrder(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	url := services(t, "/livez", "/health", "/api/health")
	all := settings{"control_plane_url": url, "serving_url": url, "tracker_url": url, "orchestrator_url": url + "/api", "assistant_url": url}
	checks := map[string]func(context.Context) error{"postgres": pool.Ping, "nats": healthy, "coordinator": healthy, "session_store": healthy}
	got := viewtest.Get(t, newSelf(t, pool, selfobs.NewRequests(), all, checks).Status, "/s", "/s")
	var names []any
	for _, d := range got.At("dependencies").([]any) {
		d := d.(map[string]any)
		names = append(names, d["name"])
		if _, ok := d["latencyMs"].(float64); d["status"] != "up" || !ok {
			t.Errorf("%v, want it up with its latency", d)
		}
	}
	want := []any{"postgres", "nats", "coordinator", "session_store", "control_plane", "inference", "tracker", "orchestrator", "assistant"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("dependencies (-want +got):\n%s", diff)
	}
	got.Want(map[string]any{"status": "up"})
}

func TestStatusIsDegradedWhenADependencyIsDown(t *testing.T) {
	t.Parallel()
	url := services(t, "/health")
	checks := map[string]func(context.Context) error{
		"nats": func(context.Context) error { return errors.New("no servers") }, "coordinator": healthy,
		"session_store": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, "postgres": healthy,
	}
	got := viewtest.Get(t, newSelf(t, openPool(t), selfobs.NewRequests(), settings{"tracker_url": url, "serving_url": url}, checks).Status, "/s", "/s")
	got.Want(map[string]any{"status": "degraded"})
	statuses := map[string]any{}
	for _, d := range got.At("dependencies").([]any) {
		d := d.(map[string]any)
		statuses[d["name"].(string)] = d["status"]
	}
	want := map[string]any{"postgres": "up", "nats": "down", "coordinator": "up", "session_store": "down", "inference": "down", "tracker": "up"}
	if diff := cmp.Diff(want, statuses); diff != "" {
		t.Errorf("statuses (-want +got): what is not configured is no dependency\n%s", diff)
	}
}

func TestUnknownCheckIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	clients, err := upstream.New(upstream.Config{Settings: settings{}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = selfobs.New(selfobs.Parts{
		Clients: clients, Requests: selfobs.NewRequests(), Pool: openPool(t), Log: slog.New(slog.DiscardHandler),
		Checks: map[string]func(context.Context) error{"tracker": healthy},
	})
	if err == nil || !strings.Contains(err.Error(), "tracker") {
		t.Errorf("got %v, want an error that names the check", err)
	}
}

// serve sends requests through the middleware of requests, with the service's error handler outside it.
func serve(t *testing.T, requests *selfobs.Requests, paths ...string) {
	t.Helper()
	e := echo.New()
	e.HTTPErrorHandler = problem.Handler(slog.New(slog.DiscardHandler))
	e.Use(requests.Middleware)
	e.GET("/ok", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	e.GET("/stream", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	e.GET("/livez", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	e.GET("/limited", func(echo.Context) error { return problem.RateLimited.New("Later.") })
	e.GET("/failed", func(echo.Context) error { return errors.New("broken") })
	for _, path := range paths {
		e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
	}
}

func TestMetricsCountTheLastRequests(t *testing.T) {
	t.Parallel()
	requests := selfobs.NewRequests("/stream")
	self := newSelf(t, openPool(t), requests, settings{}, map[string]func(context.Context) error{"postgres": healthy})
	got := viewtest.Get(t, self.Status, "/s", "/s")
	got.Want(map[string]any{"metrics": map[string]any{
		"requests": 0, "errors": 0, "clientErrors": 0, "rateLimitHits": 0, "latencyMs": map[string]any{"count": 0, "p50": nil, "p95": nil},
	}})
	serve(t, requests, "/ok", "/ok", "/stream", "/livez", "/limited", "/failed", "/nosuch")
	got = viewtest.Get(t, self.Status, "/s", "/s")
	got.Want(map[string]any{"metrics.requests": 6, "metrics.errors": 1, "metrics.clientErrors": 2, "metrics.rateLimitHits": 1, "metrics.latencyMs.count": 5})
	if p95, ok := got.At("metrics.latencyMs.p95").(float64); !ok || p95 < 0 {
		t.Errorf("p95 is %v, want a duration", got.At("metrics.latencyMs.p95"))
	}
	paths := make([]string, 1500)
	for i := range paths {
		paths[i] = "/ok"
	}
	serve(t, requests, paths...)
	viewtest.Get(t, self.Status, "/s", "/s").Want(map[string]any{"metrics.requests": 1000, "metrics.errors": 0})
}

// facts returns the audit records in the outbox.
func facts(t *testing.T, pool *pgxpool.Pool) []map[string]any {
	t.Helper()
	rows, err := pool.Query(t.Context(), "select payload from outbox where namespace = 'audit' order by seq")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []map[string]any
	for rows.Next() {
		var raw []byte
		var fact map[string]any
		if err := rows.Scan(&raw); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &fact); err != nil {
			t.Fatal(err)
		}
		out = append(out, fact)
	}
	return out
}

func act(t *testing.T, s *selfobs.Self, body string) viewtest.Answer {
	t.Helper()
	who := caller.Caller{Subject: "idp-a:1001", Tenant: "acme", Role: caller.Viewer}
	return viewtest.Do(t, viewtest.Request{Who: who, Method: http.MethodPost, Route: "/a", Path: "/a", Body: body, Handler: s.Action})
}

func TestActionIsAuditedUnderTheRoleWithThePrincipalInItsDetails(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	self := newSelf(t, pool, selfobs.NewRequests(), settings{}, map[string]func(context.Context) error{"postgres": healthy})
	got := act(t, self, `{"action":"report.export","target":"view:registry","details":"as CSV"}`)
	got.Want(map[string]any{"audited": true})
	all := facts(t, pool)
	if len(all) != 1 {
		t.Fatalf("%d facts, want 1", len(all))
	}
	for member, want := range map[string]any{
		"tenant": "acme", "actor": "viewer", "action": "ui.report.export", "target": "view:registry", "outcome": "ok", "source": "dashboard",
		"details": map[string]any{"principal": "idp-a:1001", "details": "as CSV"},
	} {
		if diff := cmp.Diff(want, all[0][member]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", member, diff)
		}
	}
}

func TestActionThatTheDatabaseRefusesIsNotAudited(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	self := newSelf(t, pool, selfobs.NewRequests(), settings{}, map[string]func(context.Context) error{"postgres": healthy})
	if _, err := pool.Exec(t.Context(), "alter table outbox rename to gone"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	got := act(t, self, `{"action":"x","target":"y"}`)
	got.Want(map[string]any{"audited": false})
	if got.Status != 200 || time.Since(began) > 10*time.Second {
		t.Errorf("%d after %s, want 200 soon", got.Status, time.Since(began))
	}
}

func TestActionRefusesWhatItCannotRecord(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	self := newSelf(t, pool, selfobs.NewRequests(), settings{}, map[string]func(context.Context) error{"postgres": healthy})
	for _, body := range []string{
		`{}`, `{"action":"","target":"x"}`, `{"action":"Has Blanks","target":"x"}`, `{"action":"x","target":""}`, `{"action":"x","target":"y","more":1}`,
		`{"action":"x","target":"` + strings.Repeat("y", 257) + `"}`, `{"action":"x","target":"y","details":"` + strings.Repeat("z", 4001) + `"}`,
	} {
		if got := act(t, self, body); got.Status != 422 {
			t.Errorf("%.60s: %d %s, want 422", body, got.Status, got.Body)
		}
	}
	if n := len(facts(t, pool)); n != 0 {
		t.Errorf("%d facts recorded, want none", n)
	}
}
