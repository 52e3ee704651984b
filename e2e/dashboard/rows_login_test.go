//go:build e2e

package dashboard_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// revocationLimit is how long a replica may accept a session that another one ended.
const revocationLimit = 2 * time.Second

func TestRow01LogoutHoldsOnEveryReplica(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	r := w.startReplica(t)
	session := w.passwordLogin(t, "viewer")
	w.want(t, http.StatusOK, http.MethodGet, r.url+"/api/auth/me", session, nil)
	events := w.openStream(t, r.url, session, "")
	events.next(t, "hello")

	w.want(t, http.StatusNoContent, http.MethodPost, w.url+"/api/auth/logout", session, nil)
	ended := time.Now()
	w.want(t, http.StatusUnauthorized, http.MethodGet, w.url+"/api/auth/me", session, nil)
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		asked := time.Now()
		a := w.call(t, http.MethodGet, r.url+"/api/auth/me", session, nil)
		if a.Status == http.StatusUnauthorized {
			a.problem(t, http.StatusUnauthorized, "invalid_token")
			t.Logf("the other replica refused the token %s after the logout", time.Since(ended).Round(time.Millisecond))
			break
		}
		if late := asked.Sub(ended); late > revocationLimit {
			t.Fatalf("the other replica took the token %s after the logout, want at most %s", late, revocationLimit)
		}
		<-poll.C
	}
	if bye := events.next(t, "bye"); bye.data["reason"] != "logged_out" {
		t.Errorf("the stream's last frame: got %v, want the reason logged_out", bye.data)
	}
}

// loginPace stays below the limit for all addresses together, 20 logins a second.
const loginPace = 70 * time.Millisecond

// TestRow02LoginsAreLimitedOverReplicas runs alone: other rows' logins would count for all addresses together.
func TestRow02LoginsAreLimitedOverReplicas(t *testing.T) {
	w := sharedWorld(t)
	r := w.startReplica(t)
	origins := []string{w.url, r.url}
	good := map[string]string{"password": w.Secret(t, "dashboard_viewer_password")}
	bad := map[string]string{"password": "not the password"}
	pace := time.NewTicker(loginPace)
	defer pace.Stop()
	login := func(n int, address string, body any) answer {
		<-pace.C
		return w.call(t, http.MethodPost, origins[n%2]+"/api/auth/login", who{}, body, "X-Forwarded-For", address)
	}

	busy := w.freshAddress()
	for n := range 10 {
		if a := login(n, busy, good); a.Status != http.StatusOK {
			t.Fatalf("login %d of a minute: got %d %s, want 200", n+1, a.Status, a.Body)
		}
	}
	for n := range 2 {
		if a := login(n, busy, good); a.Status != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
			t.Errorf("login 11 at replica %d: got %d, Retry-After %q, want 429 with one", n, a.Status, a.Header.Get("Retry-After"))
		}
	}
	if a := login(0, w.freshAddress(), good); a.Status != http.StatusOK {
		t.Errorf("another address: got %d %s, want 200", a.Status, a.Body)
	}

	// Twenty failed logins from one address exceed one minute of its limit. The row does not wait: ten go to each
	// replica, whose own counts allow that, and between them the shared count of the address is reset.
	guesser := w.freshAddress()
	for n := range 20 {
		if n == 10 {
			w.forgetLogins(t, guesser)
		}
		login(n/10, guesser, bad).problem(t, http.StatusUnauthorized, "invalid_password")
	}
	w.forgetLogins(t, guesser)
	fresh := w.startReplica(t) // its own count of the address is empty: the lock refuses
	a := w.call(t, http.MethodPost, fresh.url+"/api/auth/login", who{}, good, "X-Forwarded-For", guesser)
	a.problem(t, http.StatusTooManyRequests, "login_locked")
	if a.Header.Get("Retry-After") == "" {
		t.Error("login_locked has no Retry-After")
	}
	if a := w.call(t, http.MethodPost, fresh.url+"/api/auth/login", who{}, good, "X-Forwarded-For", w.freshAddress()); a.Status != http.StatusOK {
		t.Errorf("another address after the lock: got %d %s, want 200", a.Status, a.Body)
	}
}

// forgetLogins resets the shared count of an address's logins of this minute; that of failed ones stays.
func (w *world) forgetLogins(t *testing.T, address string) {
	t.Helper()
	tag, err := w.db.Exec(t.Context(), "delete from dashboard.coord_rate where key like '%:login:%' || $1 || '%'", address)
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("forget the logins of %s: %v, %d rows, want 1", address, err, tag.RowsAffected())
	}
}

// hmacToken returns a handmade JWT.
func hmacToken(header, claims map[string]any, newHash func() hash.Hash, key string) string {
	signed := encodeSegment(header) + "." + encodeSegment(claims)
	mac := hmac.New(newHash, []byte(key))
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// passwordBinding is the claim that binds a token to a password.
func passwordBinding(key, role, password string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(role + "\x00" + password))
	return hex.EncodeToString(mac.Sum(nil))[:16]
}

func TestRow03ForgedTokensAreRefused(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	key, password := w.Secret(t, "dashboard_jwt_secret"), w.Secret(t, "dashboard_admin_password")
	now := time.Now().Unix()
	good := map[string]any{
		"iss": "mlp-dashboard", "aud": "mlp-dashboard", "sub": "local:admin", "role": "admin", "tenant": "default", "jti": "row-3",
		"iat": now, "exp": now + 600, "auth_time": now, "amr": []string{"pwd"}, "pv": passwordBinding(key, "admin", password),
	}
	with := func(more map[string]any) map[string]any {
		out := maps.Clone(good)
		maps.Copy(out, more)
		return out
	}
	hs256 := map[string]any{"alg": "HS256", "typ": "JWT"}
	me := w.want(t, http.StatusOK, http.MethodGet, w.url+"/api/auth/me", who{bearer: hmacToken(hs256, good, sha256.New, key)}, nil).JSON(t)
	if me["role"] != "admin" {
		t.Fatalf("a token made by hand as the service makes it: got %v; the cases below would prove nothing", me)
	}
	for name, token := range map[string]string{
		"alg none":                encodeSegment(map[string]any{"alg": "none", "typ": "JWT"}) + "." + encodeSegment(good) + ".",
		"alg none, signed":        hmacToken(map[string]any{"alg": "none"}, good, sha256.New, key),
		"another key":             hmacToken(hs256, good, sha256.New, key+"x"),
		"another audience":        hmacToken(hs256, with(map[string]any{"aud": "platform"}), sha256.New, key),
		"another issuer":          hmacToken(hs256, with(map[string]any{"iss": w.issuer.url("campus")}), sha256.New, key),
		"expired":                 hmacToken(hs256, with(map[string]any{"iat": now - 700, "auth_time": now - 700, "exp": now - 100}), sha256.New, key),
		"without an end":          hmacToken(hs256, with(map[string]any{"exp": 0}), sha256.New, key),
		"an old password":         hmacToken(hs256, with(map[string]any{"pv": passwordBinding(key, "admin", "the one before")}), sha256.New, key),
		"the viewers' password":   hmacToken(hs256, with(map[string]any{"pv": passwordBinding(key, "viewer", w.Secret(t, "dashboard_viewer_password"))}), sha256.New, key),
		"another tenant":          hmacToken(hs256, with(map[string]any{"tenant": foreignTenant}), sha256.New, key),
		"a provider's, other key": newForger(w).accessToken("campus", "eve", "platform-admin", nil),
		"a provider's ID token":   w.issuer.sign(map[string]any{"typ": "ID"}, with(map[string]any{"iss": w.issuer.url("campus"), "aud": issuerAudience, "groups": []string{"platform-admin"}})),
	} {
		a := w.call(t, http.MethodGet, w.url+"/api/auth/me", who{bearer: token}, nil)
		if got := a.Header.Get("WWW-Authenticate"); a.Status != http.StatusUnauthorized || !strings.HasPrefix(got, "Bearer ") {
			t.Errorf("%s: got %d, WWW-Authenticate %q, want 401 with a Bearer challenge\n%s", name, a.Status, got, a.Body)
		}
	}
	flipped := hmacToken(hs256, with(map[string]any{"role": "viewer", "sub": "local:viewer", "pv": passwordBinding(key, "viewer", w.Secret(t, "dashboard_viewer_password"))}), sha256.New, key)
	parts := strings.Split(flipped, ".")
	var claims map[string]any
	raw, _ := base64.RawURLEncoding.DecodeString(parts[1])
	if err := json.Unmarshal(raw, &claims); err != nil {
		t.Fatal(err)
	}
	claims["role"], claims["sub"], claims["pv"] = "admin", "local:admin", good["pv"]
	if a := w.call(t, http.MethodGet, w.url+"/api/auth/me", who{bearer: parts[0] + "." + encodeSegment(claims) + "." + parts[2]}, nil); a.Status != http.StatusUnauthorized {
		t.Errorf("claims changed below the signature: got %d, want 401", a.Status)
	}
}

// newForger signs with another key in the name of the world's issuer.
func newForger(w *world) *issuer {
	forger := newIssuer()
	forger.server.Close()
	forger.server.URL = w.issuer.server.URL
	return forger
}

// visitor is a browser that signs in at a realm.
type visitor struct {
	who
	w     *world
	url   string // of the dashboard
	realm string
}

func (w *world) visitor(t *testing.T, dashboard, realm string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{who{jar: jar, header: []string{"X-Forwarded-For", w.freshAddress()}}, w, dashboard, realm}
}

// signIn goes through the provider as a person and returns the address after the callback; query is that of the
// dashboard's login route.
func (v *visitor) signIn(t *testing.T, query, person, group, level string) string {
	t.Helper()
	a := v.w.want(t, http.StatusFound, http.MethodGet, v.url+"/api/auth/sso/"+v.realm+"/login?"+query, v.who, nil)
	u, err := url.Parse(a.location)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("as", person)
	q.Set("groups", group)
	q.Set("level", level)
	u.RawQuery = q.Encode()
	a = v.w.want(t, http.StatusFound, http.MethodGet, u.String(), who{}, nil)
	a = v.w.want(t, http.StatusFound, http.MethodGet, a.location, v.who, nil)
	return a.location
}

// signedIn returns a visitor with a session.
func (w *world) signedIn(t *testing.T, dashboard, realm, person, group, level string) *visitor {
	t.Helper()
	v := w.visitor(t, dashboard, realm)
	if to := v.signIn(t, "", person, group, level); to != "/" {
		t.Fatalf("sign-in of %s: got %q, want /", person, to)
	}
	u, err := url.Parse(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range v.jar.Cookies(u) {
		w.noteCredential(c.Value)
	}
	return v
}

func TestRow05ReturnToStaysHere(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	for asked, want := range map[string]string{
		"/models": "/models", "/models/JPCP?tab=drift": "/models/JPCP?tab=drift",
		"//x": "/", `/\x`: "/", "/%5cx": "/", "https://x": "/", "/%2f/x": "/", "/\t/x": "/", "javascript:alert(1)": "/", "/api/auth/me": "/", "x": "/", "": "/",
	} {
		v := w.visitor(t, w.url, "campus")
		if got := v.signIn(t, url.Values{"return_to": {asked}}.Encode(), "alice", "platform-viewer", ""); got != want {
			t.Errorf("return_to %q: got %q, want %q", asked, got, want)
		}
	}
}

func TestRow06CookieWritesNeedAProofOfOrigin(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	alice := w.signedIn(t, w.url, "campus", "row6", "platform-admin", "")
	comments := w.url + "/api/v1/collab/model/ROW6/comments"
	count := func() int {
		return len(decode[struct{ Comments []any }](t, w.want(t, http.StatusOK, http.MethodGet, comments, alice.who, nil)).Comments)
	}
	body := map[string]string{"body": "written by whom?"}
	for name, header := range map[string][]string{
		"no proof": nil, "another origin": {"Origin", "https://evil.test"}, "the null origin": {"Origin", "null"}, "another port": {"Origin", "http://127.0.0.1:1"},
		"another scheme": {"Origin", strings.Replace(w.url, "http:", "https:", 1)}, "the tools origin": {"Origin", w.tools, "Sec-Fetch-Site", "same-site"},
		"fetched from elsewhere": {"Sec-Fetch-Site", "cross-site"}, "another value": {"X-PLATFORM-CSRF", "true"},
	} {
		t.Run(name, func(t *testing.T) {
			w.call(t, http.MethodPost, comments, alice.who, body, header...).problem(t, http.StatusForbidden, "csrf_refused")
		})
	}
	if n := count(); n != 0 {
		t.Errorf("after refused writes: %d comments, want 0", n)
	}
	for n, header := range [][]string{{"X-PLATFORM-CSRF", "1"}, {"Sec-Fetch-Site", "same-origin"}, {"Origin", w.url}} {
		w.want(t, http.StatusOK, http.MethodPost, comments, alice.who, body, header...)
		if got := count(); got != n+1 {
			t.Errorf("with the proof %v: %d comments, want %d", header, got, n+1)
		}
	}
}

func TestRow07ApprovalAfterAStepUp(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	id := w.fileChange(t, "RUNTIMECLASS", "row 7")
	alice := w.signedIn(t, w.url, "campus", "row7", "platform-admin", "silver")
	approve := func(header ...string) answer {
		return w.call(t, http.MethodPost, w.url+"/api/proxy/control_plane/approvals/"+id+"/approve", alice.who, map[string]string{}, append(header, "X-PLATFORM-CSRF", "1")...)
	}
	a := approve()
	a.problem(t, http.StatusUnauthorized, "step_up_required")
	const exact = `Bearer error="insufficient_user_authentication", acr_values="gold", max_age=300`
	if got := a.Header.Values("WWW-Authenticate"); len(got) != 1 || got[0] != exact {
		t.Errorf("WWW-Authenticate: got %q, want %q", got, exact)
	}
	for _, bypass := range [][]string{{"X-HTTP-Method-Override", "GET"}, {"X-PLATFORM-ACR", "gold"}} {
		approve(bypass...).problem(t, http.StatusUnauthorized, "step_up_required")
	}
	if rec := w.Approval(t, id); rec["status"] != "pending" {
		t.Fatalf("after refused approvals: got %v, want pending", rec["status"])
	}
	if to := alice.signIn(t, "step_up=true&return_to=/approvals", "row7-other", "platform-admin", "gold"); to != "/?sso_error=step_up_not_met" {
		t.Errorf("stepping up as another subject: got %q, want step_up_not_met", to)
	}
	if to := alice.signIn(t, "step_up=true&return_to=/approvals", "row7", "platform-admin", "silver"); to != "/?sso_error=step_up_not_met" {
		t.Errorf("stepping up to a lower level: got %q, want step_up_not_met", to)
	}
	approve().problem(t, http.StatusUnauthorized, "step_up_required")
	if to := alice.signIn(t, "step_up=true&return_to=/approvals", "row7", "platform-admin", "gold"); to != "/approvals" {
		t.Fatalf("step-up: got %q, want /approvals", to)
	}
	if a := approve(); a.Status != http.StatusOK {
		t.Fatalf("after the step-up: got %d %s, want 200", a.Status, a.Body)
	}
	if rec := w.Approval(t, id); rec["status"] != "approved" || rec["resolved_by"] != "campus:row7" {
		t.Errorf("got %v by %v, want approved by campus:row7", rec["status"], rec["resolved_by"])
	}
}

// fileChange files a change notice as CI would and returns the approval's id.
func (w *world) fileChange(t *testing.T, model, message string) string {
	t.Helper()
	created := harness.Want(t, http.StatusOK, http.MethodPost, w.Env["CONTROL_PLANE_URL"]+"/api/changes", w.Secret(t, "ci_token"), map[string]any{
		"model_ids": []string{model}, "commit_sha": fmt.Sprintf("%x", sha256.Sum256([]byte(message)))[:40], "commit_msg": message, "changed_files": []string{},
	}).JSON(t)
	ids, _ := created["created"].([]any)
	if len(ids) != 1 {
		t.Fatalf("change notice: got %v, want one approval", created)
	}
	return ids[0].(string)
}

func TestRow08TrustEndsWithTheFile(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	file := filepath.Join(t.TempDir(), "trust.yaml")
	writeFile(t, file, w.trust())
	r := w.startReplica(t, "PLATFORM_IAM_CONFIG="+file)
	alice := w.signedIn(t, r.url, "campus", "row8", "platform-admin", "gold")
	bearer := who{bearer: w.issuer.accessToken("campus", "row8", "platform-admin", nil)}
	foreign, local := w.foreigner("row8", "viewer"), w.passwordLogin(t, "viewer")
	me := func(c who) int { return w.call(t, http.MethodGet, r.url+"/api/auth/me", c, nil).Status }
	await := func(when string, want map[string]int) {
		t.Helper()
		callers := map[string]who{"cookie": alice.who, "bearer": bearer, "other provider": foreign, "password": local}
		harness.Eventually(t, 10*time.Second, func() error {
			for name, c := range callers {
				if got := me(c); got != want[name] {
					return fmt.Errorf("%s, %s: got %d, want %d", when, name, got, want[name])
				}
			}
			return nil
		})
	}
	await("at first", map[string]int{"cookie": 200, "bearer": 200, "other provider": 200, "password": 200})
	writeFile(t, file, "version: 1\nproviders:\n"+w.issuer.trust("other", foreignTenant, ""))
	await("without the provider", map[string]int{"cookie": 401, "bearer": 401, "other provider": 200, "password": 200})
	w.call(t, http.MethodGet, r.url+"/api/auth/me", bearer, nil).problem(t, http.StatusUnauthorized, "provider_untrusted")

	faulty := "version: 1\nproviders:\n" + w.issuer.trust("other", foreignTenant, "  colour: red\n")
	writeFile(t, file, faulty)
	await("with an unknown key", map[string]int{"cookie": 401, "bearer": 401, "other provider": 401, "password": 200})
	line := fmt.Sprintf("trust.yaml:%d", strings.Count(faulty[:strings.Index(faulty, "colour")], "\n")+1)
	harness.Eventually(t, 20*time.Second, func() error { // a warning: the replica stays ready
		if a := w.call(t, http.MethodGet, r.url+"/readyz", who{}, nil); a.Status != http.StatusOK || !strings.Contains(string(a.Body), line) {
			return fmt.Errorf("/readyz: got %d %s, want 200 that names %s", a.Status, a.Body, line)
		}
		return nil
	})
	if got := w.call(t, http.MethodGet, r.url+"/api/auth/sso/providers", who{}, nil).JSON(t)["providers"]; len(got.([]any)) != 0 {
		t.Errorf("the login page offers %v, want none", got)
	}
}
