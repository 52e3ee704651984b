package access_test

import (
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access/accesstest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/session"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// signIn begins a browser session as single sign-on does and returns what sends its cookie.
func signIn(t *testing.T, r *accesstest.Replica, d session.Data) accesstest.Request {
	t.Helper()
	return accesstest.Cookie(r.Do("POST", "/test/sign-in", d).Want(http.StatusNoContent, "").Response)
}

// pass is a handler that counts what reached it.
type pass struct{ reached int }

func (p *pass) handle(c echo.Context) error {
	p.reached++
	return c.JSON(http.StatusOK, map[string]string{"sub": caller.From(c).Subject})
}

// newReplica starts a replica with the test routes: a view, a write, and one of each further rule.
func newReplica(f *accesstest.Fleet, o accesstest.Options) (*accesstest.Replica, *pass) {
	r, p := f.Replica(o), &pass{}
	r.AddSignIn()
	e, g := r.Server.Echo, r.Guard
	e.GET("/test/view", p.handle, g.Require(caller.Viewer))
	e.Match([]string{"POST", "PUT", "PATCH", "DELETE"}, "/test/write", p.handle, g.Require(caller.Viewer))
	e.POST("/test/admin", p.handle, g.Require(caller.Admin))
	e.GET("/test/admin", p.handle, g.Require(caller.Admin))
	e.GET("/test/search", p.handle, g.Require(caller.Viewer, access.Limit(access.Search)))
	e.POST("/test/comments", p.handle, g.Require(caller.Viewer, access.Limit(access.Comments)))
	e.POST("/test/flag", p.handle, g.Require(caller.Admin, access.StepUp(access.FlagWrite)))
	e.POST("/test/unlisted", p.handle, g.Require(caller.Admin, access.StepUp("nothing.listed")))
	e.PUT("/test/config", p.handle, g.Require(caller.Admin, access.OperatorTenant(), access.StepUpAll(func(c echo.Context) []string {
		if c.QueryParam("secret") == "true" {
			return []string{access.ConfigSecret}
		}
		return nil
	})))
	e.GET("/test/sso", p.handle, g.Public(access.SSO))
	e.GET("/test/providers", p.handle, g.Public(access.Providers))
	return r, p
}
