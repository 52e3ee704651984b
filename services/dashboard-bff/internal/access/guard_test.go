package access_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access/accesstest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
)

func TestRoleMatrix(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	r, _ := newReplica(f, accesstest.Options{Federation: &accesstest.Provider{}})
	viewer, admin := accesstest.Bearer(r.SignIn(caller.Viewer)), accesstest.Bearer(r.SignIn(caller.Admin))
	cookieViewer, cookieAdmin := signIn(t, r, f.Person(caller.Viewer)), signIn(t, r, f.Person(caller.Admin))
	proof := accesstest.Header("X-PLATFORM-CSRF", "1")
	nobody := func(*http.Request) {}
	for _, c := range []struct {
		name, method, path string
		how                []accesstest.Request
		status             int
		code               string
	}{
		{"nobody views", "GET", "/test/view", []accesstest.Request{nobody}, 401, "unauthenticated"},
		{"viewer views", "GET", "/test/view", []accesstest.Request{viewer}, 200, ""},
		{"admin views", "GET", "/test/view", []accesstest.Request{admin}, 200, ""},
		{"cookie views", "GET", "/test/view", []accesstest.Request{cookieViewer}, 200, ""},
		{"nobody writes", "POST", "/test/write", []accesstest.Request{nobody}, 401, "unauthenticated"},
		{"viewer writes", "POST", "/test/write", []accesstest.Request{viewer}, 200, ""},
		{"cookie writes without proof", "POST", "/test/write", []accesstest.Request{cookieViewer}, 403, "csrf_refused"},
		{"cookie writes with proof", "POST", "/test/write", []accesstest.Request{cookieViewer, proof}, 200, ""},
		{"nobody does an admin's act", "POST", "/test/admin", []accesstest.Request{nobody}, 401, "unauthenticated"},
		{"viewer does an admin's act", "POST", "/test/admin", []accesstest.Request{viewer}, 403, "role_required"},
		{"viewer reads an admin's page", "GET", "/test/admin", []accesstest.Request{viewer}, 403, "role_required"},
		{"admin does an admin's act", "POST", "/test/admin", []accesstest.Request{admin}, 200, ""},
		{"viewer's cookie, an admin's act", "POST", "/test/admin", []accesstest.Request{cookieViewer, proof}, 403, "role_required"},
		{"admin's cookie without proof", "POST", "/test/admin", []accesstest.Request{cookieAdmin}, 403, "csrf_refused"},
		{"admin's cookie with proof", "POST", "/test/admin", []accesstest.Request{cookieAdmin, proof}, 200, ""},
		{"absent route", "GET", "/test/absent", []accesstest.Request{nobody}, 404, "not_found"},
		{"absent method", "DELETE", "/test/admin", []accesstest.Request{nobody}, 405, "method_not_allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := r.Do(c.method, c.path, nil, c.how...).Want(c.status, c.code)
			want := ""
			if c.status == 401 {
				want = `Bearer realm="dashboard"`
			}
			if got := a.Header.Get("WWW-Authenticate"); got != want {
				t.Errorf("WWW-Authenticate %q; want %q", got, want)
			}
		})
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	p := &accesstest.Provider{}
	r, _ := newReplica(f, accesstest.Options{Federation: p})
	p.Know("opaque", caller.Caller{Subject: "idp-a:7", Tenant: "default", Role: caller.Viewer, Method: caller.IDPBearer, Provider: "idp-a",
		SessionID: "digest", ExpiresAt: f.Now().Add(time.Hour)})
	signed := "eyJhbGciOiJSUzI1NiJ9.e30.c2ln" // alg RS256
	p.Know(signed, caller.Caller{Subject: "idp-a:8", Tenant: "default", Role: caller.Viewer, Method: caller.IDPBearer, Provider: "idp-a",
		SessionID: "digest8", ExpiresAt: f.Now().Add(time.Hour)})
	cookie, good := signIn(t, r, f.Person(caller.Viewer)), r.SignIn(caller.Viewer)
	none := "eyJhbGciOiJub25lIn0." + strings.Split(good, ".")[1] + "."
	for _, c := range []struct {
		name   string
		how    []accesstest.Request
		status int
		who    string // sub, or the problem's code
	}{
		{"dashboard token", []accesstest.Request{accesstest.Bearer(good)}, 200, "local:viewer"},
		{"scheme in another case", []accesstest.Request{accesstest.Header("Authorization", "bEARER  "+good)}, 200, "local:viewer"},
		{"provider's signed token", []accesstest.Request{accesstest.Bearer(signed)}, 200, "idp-a:8"},
		{"provider's opaque token", []accesstest.Request{accesstest.Bearer("opaque")}, 200, "idp-a:7"},
		{"unknown opaque token", []accesstest.Request{accesstest.Bearer("other")}, 401, "invalid_token"},
		{"alg none goes to the provider", []accesstest.Request{accesstest.Bearer(none)}, 401, "invalid_token"},
		{"cookie", []accesstest.Request{cookie}, 200, "idp-a:1001"},
		{"good bearer beats the cookie", []accesstest.Request{accesstest.Bearer(good), cookie}, 200, "local:viewer"},
		{"bad bearer beats the cookie", []accesstest.Request{accesstest.Bearer(good + "x"), cookie}, 401, "invalid_token"},
		{"empty bearer beats the cookie", []accesstest.Request{accesstest.Header("Authorization", "Bearer"), cookie}, 401, "invalid_token"},
		{"another scheme does not", []accesstest.Request{accesstest.Header("Authorization", "Basic eDp5"), cookie}, 200, "idp-a:1001"},
		{"two bearers", []accesstest.Request{accesstest.Bearer(good), func(q *http.Request) { q.Header.Add("Authorization", "Bearer "+good) }}, 401, "invalid_token"},
		{"huge bearer", []accesstest.Request{accesstest.Bearer(strings.Repeat("x", 20<<10))}, 401, "invalid_token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := r.Do("GET", "/test/view", nil, c.how...)
			if got := a.Text("sub") + a.Text("code"); a.Code != c.status || got != c.who {
				t.Errorf("%d %q; want %d %q", a.Code, got, c.status, c.who)
			}
			if a.Code == 401 && !strings.HasPrefix(a.Header.Get("WWW-Authenticate"), "Bearer ") {
				t.Errorf("WWW-Authenticate %q; want a Bearer challenge", a.Header.Get("WWW-Authenticate"))
			}
		})
	}
}

func TestWithoutAProviderItsCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	before, _ := newReplica(f, accesstest.Options{Federation: &accesstest.Provider{}})
	cookie := signIn(t, before, f.Person(caller.Admin))
	after, _ := newReplica(f, accesstest.Options{})
	after.Do("GET", "/test/view", nil, cookie).Want(401, "provider_untrusted")
	after.Do("GET", "/test/view", nil, accesstest.Bearer("eyJhbGciOiJSUzI1NiJ9.e30.c2ln")).Want(401, "invalid_token")
}

func TestADistrustedProvidersSessionsAre401AtOnce(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	p := &accesstest.Provider{}
	r, _ := newReplica(f, accesstest.Options{Federation: p})
	cookie := signIn(t, r, f.Person(caller.Admin))
	r.Do("GET", "/test/view", nil, cookie).Want(200, "")
	p.Distrust()
	r.Do("GET", "/test/view", nil, cookie).Want(401, "provider_untrusted")
}

func TestOldPasswordAndOtherSecretEndSessions(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	token := accesstest.Bearer(f.Replica(accesstest.Options{}).SignIn(caller.Admin))
	for name, o := range map[string]accesstest.Options{
		"new password": {AdminPassword: "another-of-the-tests"}, "new secret": {JWTSecret: strings.Repeat("another", 6)},
		"local login off": {NoLocalLogin: true, Federation: &accesstest.Provider{}},
	} {
		r, _ := newReplica(f, o)
		if a := r.Do("GET", "/test/view", nil, token); a.Code != 401 || a.Text("code") != "invalid_token" {
			t.Errorf("%s: %d %s; want 401 invalid_token", name, a.Code, a.Body)
		}
	}
}

func TestOperatorTenant(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	r, p := newReplica(f, accesstest.Options{Operators: []string{"ops"}})
	r.Do("PUT", "/test/config", nil, accesstest.Bearer(r.SignIn(caller.Viewer))).Want(403, "role_required")
	r.Do("PUT", "/test/config", nil, accesstest.Bearer(r.SignIn(caller.Admin))).Want(403, "operator_tenant_required")
	if p.reached != 0 {
		t.Errorf("the handler was reached %d times; want 0", p.reached)
	}
	own, _ := newReplica(f, accesstest.Options{Operators: []string{"ops", accesstest.Tenant}})
	own.Do("PUT", "/test/config", nil, accesstest.Bearer(own.SignIn(caller.Admin))).Want(200, "")
}

func TestRefusalsOfKnownCallersAreAudited(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	r, _ := newReplica(f, accesstest.Options{Operators: []string{"ops"}, EnforceStepUp: true})
	token, who, err := r.Tokens.Mint(caller.Admin)
	if err != nil {
		t.Fatal(err)
	}
	r.Do("POST", "/test/admin", nil, accesstest.Bearer(r.SignIn(caller.Viewer))).Want(403, "role_required")
	r.Do("PUT", "/test/config", nil, accesstest.Bearer(token)).Want(403, "operator_tenant_required")
	f.Advance(16 * time.Minute)
	r.Do("POST", "/test/flag", nil, accesstest.Bearer(token)).Want(401, "step_up_required")
	r.Do("POST", "/test/admin", nil, accesstest.Bearer("x")).Want(401, "invalid_token") // a stranger: the access log has it
	got := f.Facts("access.denied")
	if len(got) != 3 {
		t.Fatalf("%d facts; want 3: %+v", len(got), got)
	}
	delete(got[0].Details, "session")
	fact := func(actor, target string, details map[string]any) accesstest.Fact {
		return accesstest.Fact{Actor: actor, Action: "access.denied", Target: target, Outcome: "denied", Tenant: "default", Details: details}
	}
	want := []accesstest.Fact{
		fact("local:viewer", "route:/test/admin", map[string]any{"code": "role_required", "method": "POST"}),
		fact("local:admin", "route:/test/config", map[string]any{"code": "operator_tenant_required", "method": "PUT", "session": who.SessionID[:8]}),
		fact("local:admin", "route:/test/flag", map[string]any{"code": "step_up_required", "method": "POST", "step_up_action": "flag.write", "session": who.SessionID[:8]}),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

func TestACallerWhoInsistsDoesNotFillTheLedger(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	r, _ := newReplica(f, accesstest.Options{})
	token := accesstest.Bearer(r.SignIn(caller.Viewer))
	for range 50 {
		r.Do("GET", "/test/admin", nil, token).Want(403, "role_required")
	}
	if got := len(f.Facts("access.denied")); got != 30 {
		t.Errorf("%d facts of 50 refusals in a minute; want 30", got)
	}
}

func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	f.Rates.Buckets[access.Writes] = access.Rate{Count: 1, Window: time.Minute}
	p := &accesstest.Provider{}
	p.DemandStepUp(time.Minute, "urn:x:phr")
	r, _ := newReplica(f, accesstest.Options{Federation: p, Operators: []string{"ops"}})
	viewer, admin := f.Person(caller.Viewer), f.Person(caller.Admin)
	proof := accesstest.Header("X-PLATFORM-CSRF", "1")
	cookie := signIn(t, r, viewer)
	put := func(how ...accesstest.Request) *accesstest.Answer {
		return r.Do("PUT", "/test/config?secret=true", nil, how...)
	}
	put().Want(401, "unauthenticated")
	put(cookie).Want(403, "csrf_refused")                    // before role
	put(cookie, proof).Want(403, "role_required")            // before tenant
	cookie = signIn(t, r, admin)                             //
	put(cookie, proof).Want(403, "operator_tenant_required") // before limit
	flag := func() *accesstest.Answer { return r.Do("POST", "/test/flag", "not even an object", cookie, proof) }
	flag().Want(401, "step_up_required") // after the limit's only one
	flag().Want(429, "rate_limited")     // before step-up
}

func TestNewRefusesMissingPartsAndFaultySettings(t *testing.T) {
	t.Parallel()
	if _, err := access.New(access.Config{}); err == nil || !strings.Contains(err.Error(), "Tokens") {
		t.Errorf("New without parts: %v; want an error that names them", err)
	}
	if err := access.CheckProxies([]string{"10.0.0.0/8", "::1", "nonsense"}); err == nil || !strings.Contains(err.Error(), `"nonsense"`) {
		t.Errorf("CheckProxies: %v; want an error that names nonsense", err)
	}
	if err := access.CheckStepUpActions([]string{"flag.writ"}); err == nil || !strings.Contains(err.Error(), "flag.write") {
		t.Errorf("CheckStepUpActions: %v; want an error that lists the actions", err)
	}
}
