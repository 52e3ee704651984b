package sites_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mlp-platform/platform/services/standalone/internal/sites"
)

func TestGuard(t *testing.T) {
	t.Parallel()
	h := sites.Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), []string{"tracker"},
		func(w http.ResponseWriter, _ *http.Request, reason string) {
			http.Error(w, reason, http.StatusForbidden)
		})
	for _, tt := range []struct {
		method, host, origin string
		status               int
	}{
		{"GET", "127.0.0.1:14200", "", 200},
		{"GET", "[::1]:14200", "", 200},
		{"GET", "LocalHost", "", 200},
		{"GET", "Tracker:15000", "", 200},
		{"GET", "evil.example:14200", "", 403},
		{"GET", "localhost.evil.example", "", 403},
		{"GET", "127.0.0.1.evil.example", "", 403},
		{"GET", "", "", 403},
		{"POST", "127.0.0.1:14200", "", 200},
		{"POST", "127.0.0.1:14200", "http://127.0.0.1:14200", 200},
		{"POST", "127.0.0.1:14200", "http://127.0.0.1:9", 403},
		{"POST", "127.0.0.1:14200", "https://evil.example", 403},
		{"POST", "evil.example", "http://evil.example", 403}, // rebound: same origin, but not our name
	} {
		r := httptest.NewRequest(tt.method, "/", nil)
		r.Host = tt.host
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.status {
			t.Errorf("%s from %q to host %q: %d, want %d", tt.method, tt.origin, tt.host, w.Code, tt.status)
		}
	}
}
