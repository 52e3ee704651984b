package login_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access/accesstest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/login"
)

var proof = accesstest.Header("X-PLATFORM-CSRF", "1")

func TestLogoutOfABrowserSessionEndsItAndRemovesItsCookies(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	a, b := f.Replica(accesstest.Options{Federation: &accesstest.Provider{}}), f.Replica(accesstest.Options{Federation: &accesstest.Provider{}})
	a.AddSignIn()
	cookie := accesstest.Cookie(a.Do("POST", "/test/sign-in", f.Person(caller.Viewer)).Want(204, "").Response)
	b.Do("GET", "/api/auth/me", nil, cookie).Want(200, "")
	a.Do("POST", "/api/auth/logout", nil, cookie).Want(403, "csrf_refused")
	out := a.Do("POST", "/api/auth/logout", nil, cookie, proof).Want(204, "")
	removed := map[string]bool{}
	for _, c := range out.Response.Cookies() {
		removed[c.Name] = c.MaxAge < 0 && c.Value == ""
	}
	if diff := cmp.Diff(map[string]bool{"__Host-platform_session": true, "__Host-platform_sso": true}, removed); diff != "" {
		t.Errorf("removed cookies (-want +got):\n%s", diff)
	}
	f.Advance(2 * time.Second)
	for _, r := range []*accesstest.Replica{a, b} {
		r.Do("GET", "/api/auth/me", nil, cookie).Want(401, "invalid_token")
	}
}

func TestLogoutOfABearerEndsTheCookiesSessionToo(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	r := f.Replica(accesstest.Options{Federation: &accesstest.Provider{}})
	r.AddSignIn()
	cookie := accesstest.Cookie(r.Do("POST", "/test/sign-in", f.Person(caller.Viewer)).Want(204, "").Response)
	token := accesstest.Bearer(r.SignIn(caller.Viewer))
	r.Do("POST", "/api/auth/logout", nil, token, cookie).Want(204, "")
	r.Do("GET", "/api/auth/me", nil, token).Want(401, "invalid_token")
	r.Do("GET", "/api/auth/me", nil, cookie).Want(401, "invalid_token")
}

func TestLogoutOfAProvidersBearerHoldsHere(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	p := &accesstest.Provider{}
	p.Know("t", caller.Caller{Subject: "idp-a:1", Tenant: "default", Role: caller.Viewer, Method: caller.IDPBearer, Provider: "idp-a",
		SessionID: "digest", ExpiresAt: f.Now().Add(time.Hour)})
	r := f.Replica(accesstest.Options{Federation: p})
	r.Do("POST", "/api/auth/logout", nil, accesstest.Bearer("t")).Want(204, "")
	r.Do("GET", "/api/auth/me", nil, accesstest.Bearer("t")).Want(401, "invalid_token")
}

func TestMeOfEachMethod(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	p := &accesstest.Provider{}
	r := f.Replica(accesstest.Options{Federation: p})
	r.AddSignIn()
	person := f.Person(caller.Admin)
	now := f.Now().UTC().Truncate(time.Second)
	p.Know("t", caller.Caller{Subject: "idp-a:7", Tenant: "hpc", Role: caller.Viewer, Method: caller.IDPBearer, Provider: "idp-a",
		SessionID: "digest", AuthTime: now, ExpiresAt: now.Add(time.Hour)})
	cookie := accesstest.Cookie(r.Do("POST", "/test/sign-in", person).Want(204, "").Response)
	for _, c := range []struct {
		name string
		how  accesstest.Request
		want map[string]any
	}{
		{"password while a provider is configured", accesstest.Bearer(r.SignIn(caller.Admin)), map[string]any{
			"sub": "local:admin", "role": "admin", "tenant": "default", "auth_method": "password", "break_glass": true,
		}},
		{"browser session", cookie, map[string]any{
			"sub": "idp-a:1001", "name": "Ada Lovelace", "idp": "idp-a", "acr": "urn:x:mfa", "role": "admin", "tenant": "default",
			"auth_method": "sso", "break_glass": false,
		}},
		{"provider's bearer", accesstest.Bearer("t"), map[string]any{
			"sub": "idp-a:7", "idp": "idp-a", "role": "viewer", "tenant": "hpc", "auth_method": "idp-bearer", "break_glass": false,
		}},
	} {
		got := r.Do("GET", "/api/auth/me", nil, c.how).Want(200, "").Object()
		for _, member := range []string{"auth_time", "expires_at"} {
			text, _ := got[member].(string)
			if at, err := time.Parse(time.RFC3339, text); err != nil || !strings.HasSuffix(text, "Z") || at.Sub(f.Now()).Abs() > 13*time.Hour {
				t.Errorf("%s: %s = %q; want a time of today in UTC", c.name, member, text)
			}
			delete(got, member)
		}
		if list, _ := got["capabilities"].([]any); len(list) != map[any]int{"admin": 17, "viewer": 6}[got["role"]] {
			t.Errorf("%s: capabilities %v; want 6 of a viewer, 17 of an admin", c.name, list)
		}
		delete(got, "capabilities")
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	r.Do("GET", "/api/auth/me?verbose=1", nil, cookie).Want(422, "validation_failed")
}

func TestLocalLoginOffPointsToTheOrganisation(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	before := f.Replica(accesstest.Options{})
	token := accesstest.Bearer(before.SignIn(caller.Admin))
	r := f.Replica(accesstest.Options{NoLocalLogin: true, Federation: &accesstest.Provider{}})
	a := r.Do("POST", "/api/auth/login", password(accesstest.AdminPassword)).Want(403, "local_login_disabled")
	if !strings.Contains(a.Text("detail"), "/api/auth/sso/providers") {
		t.Errorf("detail %q; want it to point to the organisation's sign-in", a.Text("detail"))
	}
	r.Do("GET", "/api/auth/me", nil, token).Want(401, "invalid_token") // issued before
}

func TestWhatLoginAndLogoutWriteIntoTheLedger(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	plain, federated := f.Replica(accesstest.Options{}), f.Replica(accesstest.Options{Federation: &accesstest.Provider{}})
	from := accesstest.From("192.0.2.9")
	token := plain.Do("POST", "/api/auth/login", password(accesstest.ViewerPassword), from).Want(200, "").Text("token")
	who, err := plain.Tokens.Verify(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	mark := who.SessionID[:8]
	plain.Do("POST", "/api/auth/login", password("my-real-password-elsewhere"), from).Want(401, "invalid_password")
	plain.Do("POST", "/api/auth/logout", nil, accesstest.Bearer(token)).Want(204, "")
	details := map[string]any{"role": "viewer", "method": "password", "address": "192.0.2.9", "session": mark}
	for action, want := range map[string]accesstest.Fact{
		"auth.login":        {Actor: "local:viewer", Outcome: "ok", Target: "auth:password", Tenant: "default", Details: details},
		"auth.login_failed": {Actor: "anonymous", Outcome: "denied", Target: "auth:password", Tenant: "default", Details: map[string]any{"address": "192.0.2.9"}},
		"auth.logout":       {Actor: "local:viewer", Outcome: "ok", Target: "auth:password", Tenant: "default", Details: map[string]any{"method": "password", "session": mark}},
	} {
		want.Action = action
		if diff := cmp.Diff([]accesstest.Fact{want}, f.Facts(action)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", action, diff)
		}
	}
	if got := f.Facts("auth.break_glass"); len(got) != 0 {
		t.Errorf("auth.break_glass without a provider: %+v; want none", got)
	}
	federated.Do("POST", "/api/auth/login", password(accesstest.AdminPassword), from).Want(200, "")
	if got := f.Facts("auth.break_glass"); len(got) != 1 || got[0].Actor != "local:admin" {
		t.Errorf("auth.break_glass with a provider: %+v; want one by local:admin", got)
	}
	var leaked int
	if err := f.Pool.QueryRow(t.Context(), "select count(*) from outbox where payload::text like any($1)",
		[]string{"%my-real-password%", "%" + token + "%", "%" + who.SessionID + "%", "%" + accesstest.ViewerPassword + "%"}).Scan(&leaked); err != nil || leaked != 0 {
		t.Errorf("%d facts hold a password, a token or a whole jti (%v); want none", leaked, err)
	}
}

func TestALoginThatCannotBeRecordedDoesNotHappen(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	r := f.Replica(accesstest.Options{})
	if _, err := f.Pool.Exec(t.Context(), "drop table outbox"); err != nil {
		t.Fatal(err)
	}
	a := r.Do("POST", "/api/auth/login", password(accesstest.AdminPassword)).Want(http.StatusServiceUnavailable, "store_unavailable")
	if strings.Contains(string(a.Body), "eyJ") {
		t.Errorf("body %s; want no token", a.Body)
	}
}

func TestStartChecks(t *testing.T) {
	t.Parallel()
	const key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlBQkNERUY="
	good := login.Settings{Viewer: "viewer-word", Admin: "admin-word", JWTSecret: "0123456789abcdef0123456789abcdef", SecretKey: key, LocalLogin: true}
	if faults := good.Faults(); len(faults) != 0 {
		t.Fatalf("good settings: %v; want no fault", faults)
	}
	for name, c := range map[string]struct {
		change func(*login.Settings)
		want   []string
	}{
		"equal passwords":       {func(s *login.Settings) { s.Admin = s.Viewer }, []string{"are equal"}},
		"empty passwords":       {func(s *login.Settings) { s.Viewer, s.Admin = "", "" }, []string{"VIEWER_PASSWORD is not set", "ADMIN_PASSWORD is not set"}},
		"placeholder passwords": {func(s *login.Settings) { s.Viewer, s.Admin = "changeme", "ChangeMe1" }, []string{"VIEWER_PASSWORD is a placeholder", "ADMIN_PASSWORD is a placeholder"}},
		"short JWT secret":      {func(s *login.Settings) { s.JWTSecret = s.JWTSecret[1:] }, []string{"JWT_SECRET has 31 bytes"}},
		"no JWT secret":         {func(s *login.Settings) { s.JWTSecret = "" }, []string{"JWT_SECRET has 0 bytes"}},
		"placeholder secret":    {func(s *login.Settings) { s.JWTSecret = "changeme-changeme-changeme-changeme" }, []string{"JWT_SECRET is a placeholder"}},
		"no secret key":         {func(s *login.Settings) { s.SecretKey = "" }, []string{"SECRET_KEY is not set"}},
		"bad secret key":        {func(s *login.Settings) { s.SecretKey = "x" }, []string{"SECRET_KEY: entry 1"}},
		"no one could sign in":  {func(s *login.Settings) { s.LocalLogin = false }, []string{"no one could sign in"}},
		"providers alone":       {func(s *login.Settings) { s.LocalLogin, s.Providers, s.Viewer, s.Admin = false, true, "", "" }, nil},
		"all at once": {func(s *login.Settings) { *s = login.Settings{LocalLogin: true} }, []string{
			"VIEWER_PASSWORD is not set", "ADMIN_PASSWORD is not set", "JWT_SECRET has 0 bytes", "SECRET_KEY is not set",
		}},
	} {
		s := good
		c.change(&s)
		faults := s.Faults()
		if len(faults) != len(c.want) {
			t.Errorf("%s: %v; want %d faults", name, faults, len(c.want))
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(faults[i].Error(), want) {
				t.Errorf("%s: %v; want it to say %q", name, faults[i], want)
			}
		}
	}
}
