package access_test

import (
	"context"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access/accesstest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
)

// The tools origin knows the caller of a request that is long over, and no credential.
func TestWhatOutlivesItsRequestEndsWithTheTrustInItsProvider(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	p := &accesstest.Provider{}
	bearer := caller.Caller{
		Subject: "idp-a:1", Tenant: accesstest.Tenant, Role: caller.Viewer, Method: caller.IDPBearer, Provider: "idp-a", SessionID: "t", ExpiresAt: f.Now().Add(3600e9),
	}
	p.Know("t", bearer)
	r := f.Replica(accesstest.Options{Federation: p})
	r.AddSignIn()
	cookie := accesstest.Cookie(r.Do("POST", "/test/sign-in", f.Person(caller.Admin)).Want(204, "").Response)
	var who caller.Caller
	r.Server.Echo.GET("/test/who", func(c echo.Context) error {
		who = caller.From(c)
		return c.NoContent(204)
	}, r.Guard.Require(caller.Viewer))
	var callers []caller.Caller
	for _, how := range []accesstest.Request{cookie, accesstest.Bearer("t"), accesstest.Bearer(r.SignIn(caller.Admin))} {
		r.Do("GET", "/test/who", nil, how).Want(204, "")
		callers = append(callers, who)
		if err := r.Guard.Alive(context.Background(), who.SessionID, who); err != nil {
			t.Errorf("%s: got %v, want the session alive", who.Method, err)
		}
	}
	p.Distrust()
	for _, who := range callers {
		err := r.Guard.Alive(context.Background(), who.SessionID, who)
		if federated := who.Method != caller.Password; federated != (err != nil) {
			t.Errorf("%s after the trust file changed: got %v, want an error: %v", who.Method, err, federated)
		}
	}
}
