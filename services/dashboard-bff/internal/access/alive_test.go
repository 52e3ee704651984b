package access_test

import (
	"context"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access/accesstest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
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
		if err := r.Guard.Alive(context.Background(), who); err != nil {
			t.Errorf("%s: got %v, want the session alive", who.Method, err)
		}
	}
	p.Distrust()
	for _, who := range callers {
		err := r.Guard.Alive(context.Background(), who)
		if federated := who.Method != caller.Password; federated != (err != nil) {
			t.Errorf("%s after the trust file changed: got %v, want an error: %v", who.Method, err, federated)
		}
	}
}

func TestWhatOutlivesItsRequestEndsByIdleness(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	a, b := f.Replica(accesstest.Options{Federation: &accesstest.Provider{}}), f.Replica(accesstest.Options{Federation: &accesstest.Provider{}})
	a.AddSignIn()
	cookie := accesstest.Cookie(a.Do("POST", "/test/sign-in", f.Person(caller.Admin)).Want(204, "").Response)
	var who caller.Caller
	a.Server.Echo.GET("/test/who", func(c echo.Context) error {
		who = caller.From(c)
		return c.NoContent(204)
	}, a.Guard.Require(caller.Viewer))
	a.Do("GET", "/test/who", nil, cookie).Want(204, "")
	const most = 2*time.Hour - time.Minute // of the two hours that a session may be idle
	f.Advance(most)
	if err := b.Guard.Touch(context.Background(), who); err != nil {
		t.Fatalf("a request within the idle time: got %v, want the session alive", err)
	}
	f.Advance(most)
	for name, r := range map[string]*accesstest.Replica{"the replica of the request": b, "another": a} {
		if err := r.Guard.Alive(context.Background(), who); err != nil {
			t.Errorf("%s, within the idle time of that request: got %v, want the session alive", name, err)
		}
	}
	f.Advance(2 * time.Minute) // Alive was no activity
	for name, check := range map[string]func(context.Context, caller.Caller) error{"Alive": a.Guard.Alive, "Touch": b.Guard.Touch} {
		if err := check(context.Background(), who); !fault.InvalidToken.Has(err) {
			t.Errorf("%s after the idle time: got %v, want 401 invalid_token", name, err)
		}
	}
}
