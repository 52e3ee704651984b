package sso_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access/accesstest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/idp/idptest"
)

func TestASignInBecomesASession(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.browser()
	provider := w.begin("?return_to=/models%3Fq=a%23b")
	q := provider.Query()
	for name, want := range map[string]string{
		"response_type": "code", "client_id": idptest.ClientID, "redirect_uri": "https://dashboard.test/api/auth/sso/callback",
		"scope": "openid profile email", "code_challenge_method": "S256", "acr_values": "", "max_age": "", "prompt": "",
	} {
		if got := q.Get(name); got != want {
			t.Errorf("authorization request: %s is %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"state", "nonce", "code_challenge"} {
		if len(q.Get(name)) != 43 {
			t.Errorf("authorization request: %s is %q, want 256 bits", name, q.Get(name))
		}
	}
	if got := w.back(w.visit(provider)); got != "/models?q=a#b" {
		t.Errorf("the callback leads to %q, want the page asked for", got)
	}
	me := w.me().Want(http.StatusOK, "").Object()
	for name, want := range map[string]any{
		"sub": "idp-a:1001", "name": "ann", "idp": "idp-a", "role": "admin", "tenant": "idp-a", "auth_method": "sso", "acr": "silver", "break_glass": false,
	} {
		if me[name] != want {
			t.Errorf("/me: %s is %v, want %v", name, me[name], want)
		}
	}
	facts := b.Fleet.Facts("auth.login")
	want := []accesstest.Fact{{
		Actor: "idp-a:1001", Action: "auth.login", Target: "provider:idp-a", Outcome: "ok", Tenant: "idp-a", Details: map[string]any{
			"provider": "idp-a", "role": "admin", "acr": "silver", "method": "sso", "rules": []any{`role_rules[0]: groups exact "platform-admin" gives admin`},
		},
	}}
	if diff := cmp.Diff(want, facts); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
}

func TestCookiesOfASignIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	groups := []any{"platform-admin"}
	for n := range 200 {
		groups = append(groups, fmt.Sprintf("/department/of/groups/number-%04d", n))
	}
	b.SignsIn(person("1001", map[string]any{"groups": groups}))
	w := b.browser()
	w.signIn("")
	for name, want := range map[string]struct {
		sameSite http.SameSite
		maxAge   int
	}{"__Host-platform_session": {http.SameSiteStrictMode, 0}, "__Host-platform_sso": {http.SameSiteLaxMode, 600}} {
		c := w.cookies[name]
		if c == nil {
			t.Fatalf("no cookie %s", name)
		}
		if !c.HttpOnly || !c.Secure || c.Path != "/" || c.Domain != "" || c.SameSite != want.sameSite || c.MaxAge != want.maxAge || len(c.Value) > 100 {
			t.Errorf("cookie %s: got %s, want HttpOnly, Secure, Path=/, SameSite %v, Max-Age %d, under 100 characters", name, c, want.sameSite, want.maxAge)
		}
	}
	w.me().Want(http.StatusOK, "")
}

func TestTabsThatSignInAtOnceDoNotCollide(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.browser()
	first, second := w.begin("?return_to=/a"), w.begin("?return_to=/b")
	if got := w.back(w.visit(second)); got != "/b" {
		t.Errorf("second tab: got %q, want /b", got)
	}
	if got := w.back(w.visit(first)); got != "/a" {
		t.Errorf("first tab: got %q, want /a", got)
	}
}

func TestAnAnswerIsGoodForOneUseInOneBrowser(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w, other, stranger := b.browser(), b.browser(), b.browser()
	callback := w.visit(w.begin("?return_to=/a"))
	other.begin("") // has a separate browser key
	if got := other.back(callback); got != "/?sso_error=state_mismatch" {
		t.Errorf("other browser: got %q", got)
	}
	if got := stranger.back(callback); got != "/?sso_error=session_expired" {
		t.Errorf("browser without a key: got %q", got)
	}
	if got := w.back(callback); got != "/a" {
		t.Errorf("own browser, after others tried: got %q, want /a", got)
	}
	if got := w.back(callback); got != "/?sso_error=state_mismatch" {
		t.Errorf("second use: got %q", got)
	}
	other.wantNobody("other browser")
	stranger.wantNobody("stranger")
}

func TestASignInMayTakeTenMinutes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.browser()
	callback := w.visit(w.begin(""))
	b.Fleet.Advance(10*time.Minute + time.Second)
	if got := w.back(callback); got != "/?sso_error=session_expired" {
		t.Errorf("after ten minutes: got %q", got)
	}
	w.wantNobody("late")
}

// TestAnswersThatAreRefused changes the provider's answers, one member at a time.
func TestAnswersThatAreRefused(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	claims := func(name string, value any) idptest.Bends { return idptest.Bends{Claims: map[string]any{name: value}} }
	ago := func(d time.Duration) int64 { return time.Now().Add(-d).Unix() }
	status := func(path string, code int, header ...string) idptest.Bends {
		return idptest.Bends{Handle: func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == path {
				for n := 0; n+1 < len(header); n += 2 {
					w.Header().Set(header[n], header[n+1])
				}
				w.WriteHeader(code)
			}
			return r.URL.Path == path
		}}
	}
	for _, test := range []struct {
		name   string
		bend   idptest.Bends
		reason string
	}{
		{"iss missing though promised", idptest.Bends{Iss: text("")}, "login_rejected"},
		{"iss of another", idptest.Bends{Iss: text("https://evil.example")}, "login_rejected"},
		{"iss of another, not promised", idptest.Bends{Iss: text("https://evil.example"), NoIssPromise: true}, "login_rejected"},
		{"iss before error", idptest.Bends{Iss: text("https://evil.example"), Error: "access_denied"}, "login_rejected"},
		{"error", idptest.Bends{Error: "access_denied"}, "idp_access_denied"},
		{"error with markup", idptest.Bends{Error: "<script>alert(1)</script>"}, "idp_scriptalert1script"},
		{"long error", idptest.Bends{Error: strings.Repeat("x", 99)}, "idp_" + strings.Repeat("x", 40)},
		{"error of nothing", idptest.Bends{Error: "-"}, "idp_error"},
		{"wrong nonce", claims("nonce", "x"), "login_rejected"},
		{"no nonce", claims("nonce", nil), "login_rejected"},
		{"wrong at_hash", claims("at_hash", "x"), "login_rejected"},
		{"expired", claims("exp", ago(2*time.Minute)), "login_rejected"},
		{"no end", claims("exp", nil), "login_rejected"},
		{"wrong audience", claims("aud", "other"), "login_rejected"},
		{"two audiences without azp", claims("aud", []any{idptest.ClientID, "other"}), "login_rejected"},
		{"azp of another", claims("azp", "other"), "login_rejected"},
		{"issuer of another", claims("iss", "https://evil.example"), "login_rejected"},
		{"no subject", claims("sub", nil), "login_rejected"},
		{"an access token", idptest.Bends{Header: map[string]any{"typ": "at+jwt"}}, "login_rejected"},
		{"alg none", idptest.Bends{Sign: idptest.Unsigned}, "login_rejected"},
		{"no ID token", idptest.Bends{Sign: func(_, _ map[string]any) string { return "" }}, "login_rejected"},
		{"code refused", status("/token", 400), "login_rejected"},
		{"token endpoint down", status("/token", 503), "idp_unreachable"},
		{"token endpoint redirects", status("/token", 307, "Location", "/elsewhere"), "idp_unreachable"},
		{"keys away", status("/keys", 500), "idp_unreachable"},
		{"on the deny list", claims("sub", "mallory"), "account_disabled"},
		{"on the deny list, without a role", idptest.Bends{Claims: map[string]any{"sub": "mallory", "groups": nil}}, "account_disabled"},
		{"no role", claims("groups", []any{"guests"}), "no_role"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.Bend(test.bend)
			w := b.browser()
			if got := w.signIn(""); got != "/?sso_error="+test.reason {
				t.Errorf("got %q, want /?sso_error=%s", got, test.reason)
			}
			w.wantNobody(test.name)
			if n := b.Requests("/elsewhere"); n > 0 {
				t.Error("a redirect of the token endpoint was followed, with the code")
			}
		})
	}
}

func TestAnswersThatAreFine(t *testing.T) {
	t.Parallel()
	for name, bend := range map[string]idptest.Bends{
		"iss neither promised nor there": {Iss: new(string), NoIssPromise: true},
		"no at_hash":                     {Claims: map[string]any{"at_hash": nil}},
		"several audiences with azp":     {Claims: map[string]any{"aud": []any{idptest.ClientID, "x"}, "azp": idptest.ClientID}},
		"no auth_time":                   {Claims: map[string]any{"auth_time": nil}},
		"clock late within the leeway":   {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			if name == "clock late within the leeway" { // of a minute, counted from here on
				bend.Claims = map[string]any{"exp": time.Now().Add(-10 * time.Second).Unix()}
			}
			b.Bend(bend)
			if got := b.browser().signIn(""); got != "/" {
				t.Errorf("got %q, want /", got)
			}
		})
	}
}

func TestRefusalsAreWrittenDownWithoutTokens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SignsIn(person("mallory", nil))
	b.browser().signIn("")
	b.SignsIn(person("1001", nil))
	b.Bend(idptest.Bends{Claims: map[string]any{"nonce": "x"}})
	b.browser().signIn("")
	denied := b.Fleet.Facts("auth.login_denied")
	want := []accesstest.Fact{{Actor: "idp-a:mallory", Action: "auth.login_denied", Target: "provider:idp-a", Outcome: "denied", Tenant: "idp-a",
		Details: map[string]any{"provider": "idp-a", "reason": "account_disabled", "acr": "silver", "step_up": false, "method": "sso", "rules": nil}}}
	if diff := cmp.Diff(want, denied); diff != "" {
		t.Errorf("denied (-want +got):\n%s", diff)
	}
	failed := b.Fleet.Facts("auth.login_failed")
	if len(failed) != 1 || failed[0].Actor != "anonymous" || failed[0].Details["reason"] != "login_rejected" {
		t.Errorf("failed: got %+v, want one of anonymous", failed)
	}
	raw, err := json.Marshal(append(denied, failed...))
	if err != nil || strings.Contains(string(raw), "eyJ") {
		t.Errorf("the ledger holds a token: %s", raw)
	}
}

func TestReturnToLeadsToAPageOfOursOrHome(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, test := range []struct{ returnTo, want string }{
		{"/models", "/models"}, {"/models/a%20b?x=1&y=%2F#z", "/models/a%20b?x=1&y=%2F#z"}, {"", "/"},
		{"//x", "/"}, {`/\x`, "/"}, {"/%5cx", "/"}, {"/%255cx", "/"}, {"https://x", "/"}, {"https://dashboard.test/models", "/"},
		{"/%2fx", "/"}, {"/%252fx", "/"}, {"///x", "/"}, {"models", "/"}, {"javascript:alert(1)", "/"}, {"/a\r\nX: y", "/"}, {"/a%0d%0aX: y", "/"}, {"/\tx", "/"},
		{"/api/auth/me", "/"}, {"/api", "/"}, {"/%61pi/config", "/"}, {"/API/config", "/"}, {"/./api/config", "/"}, {"/x/../api/config", "/"}, {"/x/%2e%2e/api/config", "/"},
		{"/%2561pi/config", "/"}, {"/apis", "/apis"}, {"/" + strings.Repeat("x", 2048), "/"}, {"/a\xff", "/"}, {"/%zz", "/"},
	} {
		w := b.browser()
		a := w.do("GET", "/api/auth/sso/idp-a/login?return_to="+url.QueryEscape(test.returnTo), false, accesstest.From(fmt.Sprintf("10.0.0.%d", len(test.returnTo)%250+1)))
		if got := w.back(w.visit(w.location(a))); got != test.want {
			t.Errorf("return_to %q leads to %q, want %q", test.returnTo, got, test.want)
		}
	}
}

func TestLoginRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	page := accesstest.Header("Accept", "text/html,*/*;q=0.8")
	b.Do("GET", "/api/auth/sso/nobody/login", nil).Want(http.StatusNotFound, "unknown_provider")
	b.Do("GET", "/api/auth/sso/idp-a/login?step_up=maybe", nil).Want(http.StatusUnprocessableEntity, "validation_failed")
	b.Do("GET", "/api/auth/sso/idp-a/login?next=/", nil).Want(http.StatusUnprocessableEntity, "validation_failed")
	b.Do("GET", "/api/auth/sso/providers?x=1", nil).Want(http.StatusUnprocessableEntity, "validation_failed")
	b.Bend(idptest.Bends{Handle: func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(500); return true }})
	b.Do("GET", "/api/auth/sso/idp-a/login", nil).Want(http.StatusBadGateway, "idp_unreachable")
	w := b.browser()
	if got := w.location(b.Do("GET", "/api/auth/sso/idp-a/login", nil, page)).String(); got != "/?sso_error=idp_unreachable" {
		t.Errorf("a browser is led to %q", got)
	}
	if got := w.location(b.Do("GET", "/api/auth/sso/nobody/login", nil, page)).String(); got != "/?sso_error=unknown_provider" {
		t.Errorf("a browser is led to %q", got)
	}
	b.write(b.Trust("idp-a", "  colour: red\n"))
	b.start(b.Fleet)
	b.Do("GET", "/api/auth/sso/idp-a/login", nil).Want(http.StatusServiceUnavailable, "trust_file_invalid")
	if got := w.location(b.Do("GET", "/api/auth/sso/idp-a/login", nil, page)).String(); got != "/?sso_error=trust_file_invalid" {
		t.Errorf("a browser is led to %q", got)
	}
	if got := string(b.Do("GET", "/api/auth/sso/providers", nil).Want(http.StatusOK, "").Body); strings.TrimSpace(got) != `{"local_login":true,"providers":[]}` {
		t.Errorf("providers of a faulty file: got %s, want none", got)
	}
}

func TestProvidersAreThoseThatPeopleCanSignInAt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	second := idptest.New(t)
	b.write(b.Trust("idp-a", entry+"  display_name: University\n"), fmt.Sprintf("- name: machines\n  issuer: %s\n  audience: platform\n", second.URL))
	b.start(b.Fleet)
	want := map[string]any{"local_login": true, "providers": []any{
		map[string]any{"name": "idp-a", "display_name": "University", "login_url": "/api/auth/sso/idp-a/login", "step_up": true},
	}}
	if diff := cmp.Diff(want, b.Do("GET", "/api/auth/sso/providers", nil).Want(http.StatusOK, "").Object()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheSessionOfAProviderThatIsRemovedEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.browser()
	callback := w.visit(w.begin(""))
	w.signIn("")
	w.me().Want(http.StatusOK, "")
	b.write("  []\n")
	b.start(b.Fleet)
	w.me().Want(http.StatusUnauthorized, "provider_untrusted")
	if got := w.back(callback); got != "/?sso_error=unknown_provider" {
		t.Errorf("a sign-in under way: got %q", got)
	}
}

func TestLogoutEndsTheSessionHereAndAtTheProvider(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.browser()
	w.signIn("")
	proof := accesstest.Header("Sec-Fetch-Site", "same-origin")
	if a := w.do("POST", "/api/auth/sso/logout", false, accesstest.Header("Origin", "https://evil.example")); a.Code != http.StatusForbidden {
		t.Errorf("from another origin: got %d %s, want 403", a.Code, a.Body)
	}
	stolen := b.browser()
	for name, c := range w.cookies {
		stolen.cookies[name] = c
	}
	a := w.do("POST", "/api/auth/sso/logout", false, proof).Want(http.StatusOK, "")
	end, err := url.Parse(a.Text("end_session_url"))
	if err != nil || end.Scheme+"://"+end.Host+end.Path != b.URL+"/logout" {
		t.Fatalf("got %s, want the provider's address", a.Body)
	}
	q := end.Query()
	payload, _ := base64.RawURLEncoding.DecodeString(strings.Split(q.Get("id_token_hint")+"..", ".")[1])
	if q.Get("client_id") != idptest.ClientID || q.Get("post_logout_redirect_uri") != "https://dashboard.test/" || !strings.Contains(string(payload), `"1001"`) {
		t.Errorf("got %v with %s; want client, hint and the way back", q, payload)
	}
	if len(w.cookies) != 0 {
		t.Errorf("cookies left: %v", w.cookies)
	}
	stolen.wantNobody("the same cookie after logout")
	if facts := b.Fleet.Facts("auth.logout"); len(facts) != 1 || facts[0].Actor != "idp-a:1001" || facts[0].Tenant != "idp-a" {
		t.Errorf("ledger: got %+v", facts)
	}
	b.Do("POST", "/api/auth/sso/logout", nil, proof).Want(http.StatusUnauthorized, "unauthenticated")
}

func TestALogoutAddressStaysShortForSomebodyOfManyGroups(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SignsIn(person("1001", map[string]any{"x": strings.Repeat("group ", 1000)}))
	w := b.browser()
	w.signIn("")
	a := w.do("POST", "/api/auth/sso/logout", false, accesstest.Header("X-PLATFORM-CSRF", "1")).Want(http.StatusOK, "")
	if end := a.Text("end_session_url"); len(end) > 4000 || !strings.Contains(end, "client_id=") {
		t.Errorf("got %d characters, want at most 4,000", len(end))
	}
}
