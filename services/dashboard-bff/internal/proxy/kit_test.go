package proxy

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/sealing"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// settings are configuration values that a test changes while the proxy runs.
type settings struct {
	mu     sync.Mutex // guards values
	values map[string]string
}

func (s *settings) Value(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[key]
}

func (s *settings) set(key, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = value
}

// bench is a proxy on both its origins, with the services a test puts behind it.
type bench struct {
	t         testing.TB
	proxy     *Proxy
	pool      *pgxpool.Pool
	settings  *settings
	dashboard *httptest.Server
	tools     *httptest.Server
	upstreams upstream.Config

	mu     sync.Mutex // guards all below
	who    caller.Caller
	alive  error
	stepUp error
	off    bool
	asked  []string // actions that needed a step-up
}

var (
	admin  = caller.Caller{Subject: "local:admin", Tenant: "default", Role: caller.Admin, Method: caller.SSO, SessionID: "s1"}
	viewer = caller.Caller{Subject: "local:viewer", Tenant: "default", Role: caller.Viewer, Method: caller.SSO, SessionID: "s2"}
)

// newBench starts a proxy; options change its configuration.
func newBench(t testing.TB, options ...func(*bench, *Config)) *bench {
	t.Helper()
	b := &bench{t: t, settings: &settings{values: map[string]string{}}, who: admin}
	url := testenv.Migrated(t, "proxy", func(ctx context.Context, url string) error {
		return postgres.Migrate(ctx, url, store.Schema, store.Migrations(), outbox.Migrations())
	})
	var err error
	if b.pool, err = postgres.Open(t.Context(), url, store.Schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.pool.Close)
	b.dashboard, b.tools = httptest.NewUnstartedServer(nil), httptest.NewUnstartedServer(nil)
	cfg := Config{
		Pool: b.pool, Alive: b.isAlive, Touch: b.isAlive, StepUp: b.judgeStepUp, Log: slog.New(slog.DiscardHandler),
		Enabled:   func(context.Context, caller.Caller) bool { b.mu.Lock(); defer b.mu.Unlock(); return !b.off },
		PublicURL: "http://" + b.dashboard.Listener.Addr().String(), ToolsURL: "http://" + b.tools.Listener.Addr().String(),
		OperatorTenants: []string{"default"}, Keys: testKeys(t),
	}
	b.upstreams = upstream.Config{Settings: b.settings}
	for _, o := range options {
		o(b, &cfg)
	}
	if cfg.Upstreams, err = upstream.New(b.upstreams); err != nil {
		t.Fatal(err)
	}
	if b.proxy, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	srv := service.New(service.Options{Name: "t", BodyLimits: map[string]int64{"/api/proxy/:service/*": b.proxy.cfg.MaxBody}})
	srv.Echo.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			b.mu.Lock()
			caller.Set(c, b.who)
			b.mu.Unlock()
			return next(c)
		}
	})
	srv.Echo.Any("/api/proxy/:service", b.proxy.Forward)
	srv.Echo.Any("/api/proxy/:service/*", b.proxy.Forward)
	srv.Echo.POST("/api/proxy-ticket", b.proxy.CreateTicket)
	b.dashboard.Config.Handler = srv.Echo
	b.dashboard.Start()
	b.tools.Config.Handler = b.proxy.Tools()
	b.tools.Start()
	t.Cleanup(func() {
		b.proxy.Close()
		b.tools.CloseClientConnections()
		b.tools.Close()
		b.dashboard.CloseClientConnections()
		b.dashboard.Close()
	})
	return b
}

func testKeys(t testing.TB) *sealing.Keys {
	t.Helper()
	keys, err := sealing.ParseKeys(service.Secret(base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789ABCDEF"))))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func (b *bench) isAlive(context.Context, caller.Caller) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.alive
}

func (b *bench) judgeStepUp(_ context.Context, _ caller.Caller, action string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, action)
	return b.stepUp
}

// as changes the caller.
func (b *bench) as(who caller.Caller) *bench {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.who = who
	return b
}

// behind puts a service behind the proxy.
func (b *bench) behind(s upstream.Service, h http.HandlerFunc) *httptest.Server {
	b.t.Helper()
	srv := httptest.NewServer(h)
	b.t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	b.settings.set(string(s)+"_url", srv.URL)
	return srv
}

// client neither follows redirects nor decodes bodies.
var client = &http.Client{
	Timeout:       30 * time.Second,
	Transport:     &http.Transport{DisableCompression: true, DisableKeepAlives: true, ExpectContinueTimeout: 10 * time.Second},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// answer is a response that was read.
type answer struct {
	status int
	header http.Header
	body   string
}

// problem decodes a problem document.
func (a answer) problem(t testing.TB) *problem.Error {
	t.Helper()
	return problem.Decode(&http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(strings.NewReader(a.body))})
}

// send sends a request to the dashboard's origin; pairs are headers.
func (b *bench) send(method, path, body string, pairs ...string) answer {
	b.t.Helper()
	return do(b.t, method, b.dashboard.URL+path, body, pairs...)
}

func do(t testing.TB, method, url, body string, pairs ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		r.Header.Add(pairs[i], pairs[i+1])
	}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(raw)}
}

// wantProblem fails unless the answer is a problem of that status and code.
func wantProblem(t testing.TB, a answer, status int, code string) {
	t.Helper()
	if p := a.problem(t); a.status != status || p.Kind.Code != code {
		t.Errorf("%d %s %q; want %d %s", a.status, p.Kind.Code, p.Detail, status, code)
	}
}

// fact is an audit fact in the outbox.
type fact struct {
	Tenant    string         `json:"tenant"`
	Actor     string         `json:"actor"`
	Action    string         `json:"action"`
	Target    string         `json:"target"`
	Outcome   string         `json:"outcome"`
	RequestID string         `json:"request_id"`
	Details   map[string]any `json:"details"`
}

// facts returns the audit facts so far.
func (b *bench) facts() []fact {
	b.t.Helper()
	rows, err := b.pool.Query(b.t.Context(), "select payload from outbox where namespace = 'audit' order by id")
	if err != nil {
		b.t.Fatal(err)
	}
	defer rows.Close()
	var out []fact
	for rows.Next() {
		var raw []byte
		var f fact
		if err := rows.Scan(&raw); err != nil {
			b.t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &f); err != nil {
			b.t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

// withServingToken configures SERVING_TOKEN.
func withServingToken(token string) func(*bench, *Config) {
	return func(b *bench, _ *Config) { b.upstreams.ServingToken = service.Secret(token) }
}

// visit is a browser on the tools origin.
type visit struct {
	b      *bench
	cookie *http.Cookie
}

// ticket asks the dashboard for an address on the tools origin.
func (b *bench) ticket(s upstream.Service) string {
	b.t.Helper()
	a := b.send(http.MethodPost, "/api/proxy-ticket", `{"service":"`+string(s)+`"}`, "Content-Type", "application/json")
	var issued struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal([]byte(a.body), &issued); err != nil || a.status != http.StatusOK {
		b.t.Fatalf("ticket for %s: %d %s; want 200", s, a.status, a.body)
	}
	return issued.URL
}

// enter opens a service on the tools origin.
func (b *bench) enter(s upstream.Service) *visit {
	b.t.Helper()
	a := do(b.t, http.MethodGet, b.ticket(s), "")
	cookies := (&http.Response{Header: a.header}).Cookies()
	if a.status != http.StatusSeeOther || len(cookies) != 1 {
		b.t.Fatalf("enter %s: %d %s with %d cookies; want 303 with one", s, a.status, a.body, len(cookies))
	}
	return &visit{b, cookies[0]}
}

func (v *visit) send(method, path, body string, pairs ...string) answer {
	v.b.t.Helper()
	return do(v.b.t, method, v.b.tools.URL+path, body, append(pairs, "Cookie", v.cookie.Name+"="+v.cookie.Value)...)
}

func (v *visit) get(path string) answer { v.b.t.Helper(); return v.send(http.MethodGet, path, "") }

// modTime is that of files that services serve.
var modTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func valid(doc string) bool { return json.Valid([]byte(doc)) }
