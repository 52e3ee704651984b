package access_test

import (
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access/accesstest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
)

func TestRefusalsAreCountedByCode(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	r, _ := newReplica(f, accesstest.Options{})
	r.Do("GET", "/test/view", nil).Want(401, "unauthenticated")
	r.Do("GET", "/test/view", nil, accesstest.Bearer("x")).Want(401, "invalid_token")
	r.Do("POST", "/test/admin", nil, accesstest.Bearer(r.SignIn(caller.Viewer))).Want(403, "role_required")
	tryLogin(r, "wrong", "192.0.2.1").Want(401, "invalid_password")
	text := string(r.Do("GET", "/metrics", nil).Body)
	for _, want := range []string{"unauthenticated\"} 1", "invalid_token\"} 1", "role_required\"} 1", "invalid_password\"} 1", "csrf_refused\"} 0"} {
		if line := `dashboard_requests_refused_total{code="` + want; !strings.Contains(text, line) {
			t.Errorf("/metrics lacks %s", line)
		}
	}
}
