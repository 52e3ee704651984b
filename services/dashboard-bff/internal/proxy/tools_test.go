package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

func TestTicketOpensAToolOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.Tracker, func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, "tool ", r.Header.Get("Cookie")) })
	url := b.ticket(upstream.Tracker)
	if !strings.HasPrefix(url, b.tools.URL+"/api/proxy-ticket/") {
		t.Fatalf("ticket %q; want one on %s", url, b.tools.URL)
	}
	wantProblem(t, do(t, http.MethodPost, url, ""), 405, "method_not_allowed") // none of these spends it
	if a := do(t, http.MethodHead, url, ""); a.status != 405 {
		t.Errorf("HEAD: %d; want 405", a.status)
	}
	a := do(t, http.MethodGet, url, "")
	if a.status != 303 || a.header.Get("Location") != "/api/proxy/tracker/" {
		t.Fatalf("%d %s; want 303 to the tool", a.status, a.header.Get("Location"))
	}
	c := (&http.Response{Header: a.header}).Cookies()[0]
	if !c.HttpOnly || c.Path != "/api/proxy/tracker/" || c.SameSite != http.SameSiteLaxMode || c.Name != "platform_tools_tracker" || c.MaxAge <= 0 || c.Domain != "" || len(c.Value) > 2000 {
		t.Errorf("cookie %+v; want HttpOnly, for the tracker's path alone, with a life", c)
	}
	if a := (&visit{b, c}).get("/api/proxy/tracker/"); a.status != 200 || a.body != "tool " {
		t.Errorf("%d %q; want the tool, without the cookie upstream", a.status, a.body)
	}
	wantProblem(t, do(t, http.MethodGet, url, ""), 401, "invalid_token")
	wantProblem(t, do(t, http.MethodGet, b.tools.URL+"/api/proxy-ticket/nonsense", ""), 401, "invalid_token")
}

func TestTicketLivesThirtySeconds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.Tracker, func(http.ResponseWriter, *http.Request) {})
	url := b.ticket(upstream.Tracker)
	var left time.Duration
	if err := b.pool.QueryRow(t.Context(), "select expires_at - now() from proxy_tickets").Scan(&left); err != nil || left > 30*time.Second || left < 25*time.Second {
		t.Errorf("%v left, %v; want 30 s", left, err)
	}
	if _, err := b.pool.Exec(t.Context(), "update proxy_tickets set expires_at = now()"); err != nil {
		t.Fatal(err)
	}
	wantProblem(t, do(t, http.MethodGet, url, ""), 401, "invalid_token")
}

func TestStoredTicketsHelpNobody(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.Tracker, func(http.ResponseWriter, *http.Request) {})
	url := b.ticket(upstream.Tracker)
	var digest, sealed []byte
	if err := b.pool.QueryRow(t.Context(), "select ticket_digest, grant_sealed from proxy_tickets").Scan(&digest, &sealed); err != nil {
		t.Fatal(err)
	}
	if ticket := strings.TrimPrefix(url, b.tools.URL+ticketRoot); bytes.Contains(digest, []byte(ticket)) || bytes.Contains(sealed, []byte("local:admin")) {
		t.Error("the row holds the ticket or its grant in the clear")
	}
	if _, err := b.proxy.openGrant(string(sealed), purposeCookie+"tracker"); err == nil {
		t.Error("a ticket's grant opens as a cookie; want another purpose refused")
	}
}

func TestTicketsAreForKnownConfiguredServicesButTheControlPlane(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for body, want := range map[string]string{
		`{"service":"control_plane"}`: "422 validation_failed", `{"service":"nonsense"}`: "422 validation_failed", `{}`: "422 validation_failed", `{"service":"tracker","x":1}`: "422 validation_error",
		`{"service":"tracker"}`: "503 service_not_configured",
	} {
		a := b.send(http.MethodPost, "/api/proxy-ticket", body, "Content-Type", "application/json")
		if got := fmt.Sprint(a.status, " ", a.problem(t).Kind.Code); got != want {
			t.Errorf("%s: %s; want %s", body, got, want)
		}
	}
	b.behind(upstream.ControlPlane, func(http.ResponseWriter, *http.Request) {
		t.Error("the control plane was reached from the tools origin")
	})
	b.behind(upstream.Tracker, func(http.ResponseWriter, *http.Request) {})
	v := b.enter(upstream.Tracker)
	wantProblem(t, v.get("/api/proxy/control_plane/health"), 404, "unknown_service")
	wantProblem(t, do(t, http.MethodGet, b.tools.URL+"/x", "", "Referer", b.tools.URL+"/api/proxy/control_plane/"), 404, "not_found")
}

func TestNeitherOriginTakesTheOthersCredential(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.Tracker, func(http.ResponseWriter, *http.Request) {})
	b.behind(upstream.Orchestrator, func(http.ResponseWriter, *http.Request) {})
	v := b.enter(upstream.Tracker)
	for name, value := range map[string]string{"Authorization": "Bearer anything", "Cookie": "__Host-platform_session=id.secret; platform_session=id.secret", "X-PLATFORM-IDP": "idp-a"} {
		wantProblem(t, do(t, http.MethodGet, b.tools.URL+"/api/proxy/tracker/", "", name, value), 401, "unauthenticated")
	}
	// The dashboard's guards know no such cookie; the handler then has no caller, whatever the cookie contains.
	wantProblem(t, b.as(caller.Caller{}).send(http.MethodGet, "/api/proxy/tracker/", "", "Cookie", v.cookie.Name+"="+v.cookie.Value), 401, "unauthenticated")
	// A cookie opens its own service alone, and no changed one.
	for _, cookie := range []string{"platform_tools_orchestrator=" + v.cookie.Value, "platform_tools_orchestrator=x", "platform_tools_orchestrator="} {
		wantProblem(t, do(t, http.MethodGet, b.tools.URL+"/api/proxy/orchestrator/", "", "Cookie", cookie), 401, "unauthenticated")
	}
	changed := v.cookie.Value[:40] + "A" + v.cookie.Value[41:]
	if changed != v.cookie.Value {
		wantProblem(t, do(t, http.MethodGet, b.tools.URL+"/api/proxy/tracker/", "", "Cookie", "platform_tools_tracker="+changed), 401, "unauthenticated")
	}
}

func TestToolsSessionEndsWithTheDashboards(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.Tracker, func(http.ResponseWriter, *http.Request) {})
	v, url := b.enter(upstream.Tracker), b.ticket(upstream.Tracker)
	b.mu.Lock()
	b.alive = fault.InvalidToken.New("Signed out.")
	b.mu.Unlock()
	wantProblem(t, v.get("/api/proxy/tracker/"), 401, "invalid_token")
	wantProblem(t, do(t, http.MethodGet, url, ""), 401, "invalid_token")
	b.mu.Lock()
	b.alive = nil
	b.mu.Unlock()
	short := admin
	short.ExpiresAt = time.Now().Add(time.Hour)
	v = b.as(short).enter(upstream.Tracker)
	if v.cookie.MaxAge > 3600 || v.cookie.MaxAge < 3590 {
		t.Errorf("Max-Age %d; want the session's hour", v.cookie.MaxAge)
	}
	expired, err := b.proxy.keys.Seal("p", `{"until":"2020-01-01T00:00:00Z"}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.proxy.openGrant(expired, "p"); err == nil {
		t.Error("an expired grant opens; want it refused")
	}
}

func TestToolsSessionHasTheRoleOfTheTicket(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.Orchestrator, func(http.ResponseWriter, *http.Request) {})
	v := b.as(viewer).enter(upstream.Orchestrator)
	if a := v.get("/api/proxy/orchestrator/"); a.status != 200 {
		t.Errorf("reading: %d %s; want 200", a.status, a.body)
	}
	wantProblem(t, v.send(http.MethodPost, "/api/proxy/orchestrator/x", "{}", "Sec-Fetch-Site", "same-origin"), 403, "role_required")
}

func TestToolsOriginServesNothingElse(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.Tracker, func(_ http.ResponseWriter, r *http.Request) {})
	v := b.enter(upstream.Tracker)
	for _, path := range []string{"/", "/api/auth/me", "/api/config", "/livez", "/metrics", "/index.html", "/api/v1/overview"} {
		wantProblem(t, v.get(path), 404, "not_found")
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.tools.URL+"/api/proxy/tracker/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example"
	r.AddCookie(v.cookie)
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 421 {
		t.Errorf("foreign Host: %d; want 421", res.StatusCode)
	}
	wantProblem(t, v.get("/api/proxy/tracker/..%252fx"), 400, "bad_proxy_path")
	if a := v.get("/api/proxy/tracker?x=1"); a.status != 308 || a.header.Get("Location") != "/api/proxy/tracker/?x=1" {
		t.Errorf("without a slash: %d %q; want 308 to the same with it", a.status, a.header.Get("Location"))
	}
}

func TestCallsFromTheRootFindTheToolOfTheirPage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, tc := range []struct {
		path, referer string
		want          string
	}{
		{"/ui-settings?x=1", b.tools.URL + "/api/proxy/orchestrator/runs?a=/b", "/api/proxy/orchestrator/ui-settings?x=1"},
		{"/assets/a%2Fb.js", b.tools.URL + "/api/proxy/tracker/", "/api/proxy/tracker/assets/a%2Fb.js"},
		{"/x", b.tools.URL + "/elsewhere", ""}, {"/x", b.dashboard.URL + "/api/proxy/tracker/", ""}, {"/x", b.tools.URL + ".evil.example/api/proxy/tracker/", ""}, {"/x", "", ""},
	} {
		a := do(t, http.MethodPost, b.tools.URL+tc.path, "{}", "Referer", tc.referer)
		if tc.want == "" {
			wantProblem(t, a, 404, "not_found")
		} else if a.status != 307 || a.header.Get("Location") != tc.want {
			t.Errorf("%s from %s: %d %q; want 307 %q", tc.path, tc.referer, a.status, a.header.Get("Location"), tc.want)
		}
	}
	wantProblem(t, do(t, http.MethodGet, b.tools.URL+"/..%2fx", "", "Referer", b.tools.URL+"/api/proxy/tracker/"), 400, "bad_proxy_path")
}

func TestScriptIsolation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.Tracker, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("t"))
		_, _ = io.WriteString(w, "<script>alert(1)</script>")
	})
	v := b.enter(upstream.Tracker)
	for _, media := range []string{"text/html", "application/xhtml+xml", "image/svg+xml", "text/xml", "application/rss+xml", "", "multipart/x-mixed-replace", "text/plain"} {
		path := "/api/proxy/tracker/x?t=" + escape(media)
		a := b.send(http.MethodGet, path, "")
		if got := a.header.Get("Content-Security-Policy"); got != "sandbox allow-forms allow-popups" || a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%q on the dashboard's origin: %v; want the sandbox, nosniff and no frame", media, a.header)
		}
		a = v.get(path)
		if got := a.header.Get("Content-Security-Policy"); strings.Contains(got, "sandbox") || !strings.Contains(got, "default-src 'self'") || !strings.Contains(got, "frame-ancestors 'self'") {
			t.Errorf("%q on the tools origin: policy %q; want scripts of that origin only", media, got)
		}
	}
}

func TestSecretsStayOutOfTheLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	b := newBench(t, func(_ *bench, c *Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	b.behind(upstream.Tracker, func(http.ResponseWriter, *http.Request) {})
	url := b.ticket(upstream.Tracker)
	a := do(t, http.MethodGet, url, "")
	c := (&http.Response{Header: a.header}).Cookies()[0]
	(&visit{b, c}).get("/api/proxy/tracker/?token=hidden")
	b.tools.Close() // so that nothing writes to the log any more
	text := log.String()
	if !strings.Contains(text, "/api/proxy/tracker/") {
		t.Errorf("log %q; want the request in it", text)
	}
	for _, secret := range []string{strings.TrimPrefix(url, b.tools.URL+ticketRoot), c.Value, "hidden"} {
		if strings.Contains(text, secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}

func TestNewRefusesMissingAndWrongParts(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{}); err == nil || !strings.Contains(err.Error(), "Upstreams, Pool, Alive, Touch, StepUp, Enabled, Log, Keys") {
		t.Errorf("%v; want all missing parts named", err)
	}
	good := newBench(t).proxy.cfg
	for name, change := range map[string]func(*Config){
		"PublicURL": func(c *Config) { c.PublicURL = "dashboard" }, "ToolsURL": func(c *Config) { c.ToolsURL = "http://x/path" }, "own origin": func(c *Config) { c.ToolsURL = c.PublicURL },
		"Keys": func(c *Config) { c.Keys = nil },
	} {
		cfg := good
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v; want an error about %s", err, name)
		}
	}
}

func TestServeToolsStopsInOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.proxy.ServeTools(ctx, ln) }()
	if a := do(t, http.MethodGet, "http://"+ln.Addr().String()+"/x", ""); a.status != 404 {
		t.Errorf("%d %s; want 404", a.status, a.body)
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("%v; want nil after a stop that was asked for", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("still serving after 10 s")
	}
}
