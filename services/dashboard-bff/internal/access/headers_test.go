package access_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access"
)

const wantPolicy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

func newHeaderServer(publicURL string) *service.Server {
	s := service.New(service.Options{Name: "dashboard", OpenAPI: api.Document, AllowedHosts: []string{"dashboard.test"}})
	access.AddHeaders(s.Echo, publicURL)
	ok := func(c echo.Context) error { return c.String(200, "x") }
	s.Echo.GET("/api/view", ok)
	s.Echo.GET("/api/token", ok, access.NoStore)
	s.Echo.GET("/ofrep/v1/x", ok)
	s.Echo.GET("/page", ok)
	s.Echo.GET("/api/panic", func(echo.Context) error { panic("x") })
	return s
}

func TestEveryResponseHasTheSecurityHeaders(t *testing.T) {
	t.Parallel()
	s := newHeaderServer("https://dashboard.test")
	for _, c := range []struct {
		path, host, cache string
		status            int
		policy            string
	}{
		{"/api/view", "dashboard.test", "private, no-cache", 200, wantPolicy},
		{"/ofrep/v1/x", "dashboard.test", "private, no-cache", 200, wantPolicy},
		{"/api/token", "dashboard.test", "no-store", 200, wantPolicy},
		{"/page", "dashboard.test", "no-store", 200, wantPolicy},
		{"/api/absent", "dashboard.test", "private, no-cache", 404, wantPolicy},
		{"/api/panic", "dashboard.test", "private, no-cache", 500, wantPolicy},
		{"/livez", "dashboard.test", "no-store", 200, wantPolicy},
		{"/api/view", "evil.test", "no-store", 421, "default-src 'none'"}, // refused before anything else is checked
	} {
		q := httptest.NewRequest("GET", c.path, nil)
		q.Host = c.host
		w := httptest.NewRecorder()
		s.Echo.ServeHTTP(w, q)
		if w.Code != c.status {
			t.Errorf("%s at %s: %d; want %d", c.path, c.host, w.Code, c.status)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": c.policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": c.cache,
			"Strict-Transport-Security": "max-age=31536000",
		} {
			if got := w.Header().Values(name); len(got) != 1 || got[0] != want {
				t.Errorf("%s at %s: %s %q; want %q once", c.path, c.host, name, got, want)
			}
		}
		permissions := w.Header().Get("Permissions-Policy")
		for feature := range strings.SplitSeq(permissions, ", ") {
			if !strings.HasSuffix(feature, "=()") {
				t.Errorf("Permissions-Policy %q; want every feature off", permissions)
			}
		}
	}
}

func TestNoHSTSOnHTTP(t *testing.T) {
	t.Parallel()
	q := httptest.NewRequest("GET", "/api/view", nil)
	q.Host = "dashboard.test"
	w := httptest.NewRecorder()
	newHeaderServer("http://127.0.0.1:8099").Echo.ServeHTTP(w, q)
	if got := w.Header().Get("Strict-Transport-Security"); got != "" {
		t.Errorf("Strict-Transport-Security %q; want none", got)
	}
}

func TestReferencePagesKeepThePolicyTheyWorkUnder(t *testing.T) {
	t.Parallel()
	s := newHeaderServer("https://dashboard.test")
	for _, path := range []string{"/docs", "/redoc", "/docs/swagger-ui-bundle.js"} {
		q := httptest.NewRequest("GET", path, nil)
		q.Host = "dashboard.test"
		w := httptest.NewRecorder()
		s.Echo.ServeHTTP(w, q)
		if got := w.Header().Get("Content-Security-Policy"); w.Code != 200 || !strings.Contains(got, "style-src 'self' 'sha256-") {
			t.Errorf("%s: %d, policy %q; want 200 and the styles of the page", path, w.Code, got)
		}
		if got := w.Header().Get("Cross-Origin-Opener-Policy"); got != "same-origin" {
			t.Errorf("%s: Cross-Origin-Opener-Policy %q; want same-origin", path, got)
		}
	}
}
