package auth_test

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
)

// seed is the private key of the tests' issuer.
var seed = base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))

var delegable = auth.Rules{Scopes: rules.Scopes, Reads: []string{"read"}}

// onces is a coordinator's once-key in memory.
type onces struct {
	mu   sync.Mutex // guards those below
	seen map[string]bool
	down bool
}

func (o *onces) Once(_ context.Context, key string, ttl time.Duration) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.down:
		return false, errors.New("down")
	case ttl < time.Second || ttl > 2*auth.DelegationLife:
		return false, errors.New("the key would be kept too short or too long")
	case o.seen[key]:
		return false, nil
	}
	o.seen[key] = true
	return true, nil
}

func newTestDelegator(t *testing.T, issuer string) *auth.Delegator {
	t.Helper()
	d, err := auth.NewDelegator(issuer, seed)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func trustOf(d *auth.Delegator) string {
	return `{"dashboard": {"public_key": "` + d.PublicKey() + `", "tenants": ["default", "acme"], "scopes": ["read", "approve", "another-service's"]}}`
}

// signToken makes a token that Mint would not.
func signToken(t testing.TB, header, payload map[string]any) string {
	t.Helper()
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	text := part(header) + "." + part(payload)
	raw, _ := base64.StdEncoding.DecodeString(seed)
	key := ed25519.NewKeyFromSeed(raw)
	var signature []byte
	switch header["alg"] {
	case "HS256": // with the public key as the secret: the classic confusion
		mac := hmac.New(sha256.New, key.Public().(ed25519.PublicKey))
		mac.Write([]byte(text))
		signature = mac.Sum(nil)
	case "none":
	default:
		signature = ed25519.Sign(key, []byte(text))
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func TestDelegationSpeaksForAPerson(t *testing.T) {
	t.Parallel()
	d := newTestDelegator(t, "dashboard")
	a := auth.Load(legacySecret, twoPeople, delegable).WithDelegation(auth.Delegation{Audience: "svc", Trust: trustOf(d), Once: &onces{seen: map[string]bool{}}})
	token, err := d.Mint("svc", auth.Person{Name: "alice@example.org", Tenant: "acme", Scopes: []string{"write", "read", "predict"}})
	if err != nil {
		t.Fatal(err)
	}
	resp, code, p := callRoute(t, a, "approve", "Bearer "+token)
	if resp.StatusCode != 200 || p.Name != "alice@example.org" || p.Tenant != "acme" || p.Legacy || p.Via != "dashboard" {
		t.Fatalf(`%d %s %+v; want resp.StatusCode == 200 && p.Name == "alice@example.org" && p.Tenant == "acme" && !p.Legacy && p.Via == "dashboard"`, resp.StatusCode, code, p)
	}
	// write implies four scopes, of which the issuer may pass on one; write itself it may not.
	if !slices.Equal(p.Scopes, []string{"approve", "read"}) {
		t.Errorf(`scopes %v; want slices.Equal(p.Scopes, []string{"approve", "read"})`, p.Scopes)
	}
	if resp, code, _ := callRoute(t, a, "manage", "Bearer "+token); resp.StatusCode != 403 || code != "insufficient_scope" {
		t.Errorf(`a scope the issuer may not pass on: %d %s; want resp.StatusCode == 403 && code == "insufficient_scope"`, resp.StatusCode, code)
	}
	if resp, _, p := callRoute(t, a, "changes", "Bearer "+ciSecret); resp.StatusCode != 200 || p.Name != "ci" || p.Via != "" {
		t.Errorf(`own credentials beside delegations: %d %+v; want resp.StatusCode == 200 && p.Name == "ci" && p.Via == ""`, resp.StatusCode, p)
	}
	narrow, err := d.Mint("svc", auth.Person{Name: "bob", Tenant: "default", Scopes: []string{"unheard-of", "another-service's"}})
	if err != nil {
		t.Fatal(err)
	}
	if resp, code, _ := callRoute(t, a, "read", "Bearer "+narrow); resp.StatusCode != 403 || code != "insufficient_scope" {
		t.Errorf(`no scope in common: %d %s; want resp.StatusCode == 403 && code == "insufficient_scope"`, resp.StatusCode, code)
	}
	if resp, code, _ := callRoute(t, auth.Load("", twoPeople, delegable), "read", "Bearer "+token); resp.StatusCode != 401 || code != "invalid_credential" {
		t.Errorf(`where nobody is trusted: %d %s; want resp.StatusCode == 401 && code == "invalid_credential"`, resp.StatusCode, code)
	}
}

// Each claim that is wrong, absent or too wide is a 401 that names no detail.
func TestDelegationsRefused(t *testing.T) {
	t.Parallel()
	d := newTestDelegator(t, "dashboard")
	at := time.Unix(1_800_000_000, 0)
	a := auth.Load("", twoPeople, delegable).WithDelegation(auth.Delegation{
		Audience: "svc", Trust: trustOf(d), Once: &onces{seen: map[string]bool{}}, Now: func() time.Time { return at },
	})
	header := map[string]any{"alg": "EdDSA", "typ": "platform-act+jwt"}
	good := map[string]any{
		"iss": "dashboard", "aud": "svc", "sub": "alice", "tenant": "default", "scopes": []string{"read"}, "jti": "one",
		"iat": at.Unix(), "exp": at.Add(time.Minute).Unix(),
	}
	with := func(base map[string]any, name string, v any) map[string]any {
		m := maps.Clone(base)
		if v == nil {
			delete(m, name)
		} else {
			m[name] = v
		}
		return m
	}
	for _, ok := range []string{
		signToken(t, header, good), signToken(t, with(header, "kid", "1"), good), signToken(t, header, with(good, "aud", []string{"svc"})),
		signToken(t, header, with(with(good, "iat", at.Unix()-62), "exp", at.Unix()-3)), // the clocks differ a little
		signToken(t, header, with(with(good, "iat", at.Unix()+3), "exp", at.Unix()+60)),
	} {
		if resp, code, _ := callRoute(t, a, "read", "Bearer "+ok); resp.StatusCode != 200 {
			t.Fatalf("a good one: %d %s; want resp.StatusCode == 200", resp.StatusCode, code)
		}
	}
	claim := func(name string, v any) string { return signToken(t, header, with(good, name, v)) }
	other, err := auth.NewDelegator("dashboard", base64.StdEncoding.EncodeToString([]byte("another key, also of 32 bytes...")))
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := other.Mint("svc", auth.Person{Name: "alice", Tenant: "default", Scopes: []string{"read"}})
	if err != nil {
		t.Fatal(err)
	}
	token := signToken(t, header, good)
	for name, bad := range map[string]string{
		"alg none":           signToken(t, with(header, "alg", "none"), good),
		"alg HS256":          signToken(t, with(header, "alg", "HS256"), good),
		"alg RS256":          signToken(t, with(header, "alg", "RS256"), good),
		"alg absent":         signToken(t, with(header, "alg", nil), good),
		"typ JWT":            signToken(t, with(header, "typ", "JWT"), good),
		"typ absent":         signToken(t, with(header, "typ", nil), good),
		"crit":               signToken(t, with(header, "crit", []string{"b64"}), good),
		"key in the header":  signToken(t, with(header, "jwk", map[string]any{"kty": "OKP"}), good),
		"another key":        foreign,
		"signature cut":      token[:len(token)-4],
		"payload changed":    strings.Replace(token, ".", ".e30", 1),
		"iss unknown":        claim("iss", "mallory"),
		"iss absent":         claim("iss", nil),
		"iss a number":       claim("iss", 7),
		"aud another":        claim("aud", "inference"),
		"aud absent":         claim("aud", nil),
		"aud two":            claim("aud", []string{"svc", "inference"}),
		"sub absent":         claim("sub", nil),
		"sub blank":          claim("sub", " "),
		"sub padded":         claim("sub", "alice "),
		"sub with a newline": claim("sub", "alice\nadmin"),
		"sub with NUL":       claim("sub", "alice\x00"),
		"sub too long":       claim("sub", strings.Repeat("a", 257)),
		"sub legacy":         claim("sub", "legacy"),
		"sub Legacy":         claim("sub", "Legacy"),
		"sub system":         claim("sub", "system:seed"),
		"sub System":         claim("sub", "SYSTEM:seed"),
		"tenant absent":      claim("tenant", nil),
		"tenant another":     claim("tenant", "other"),
		"tenant of a case":   claim("tenant", "Default"),
		"scopes a string":    claim("scopes", "read write"),
		"jti absent":         claim("jti", nil),
		"jti too long":       claim("jti", strings.Repeat("a", 257)),
		"iat absent":         claim("iat", nil),
		"iat ahead":          signToken(t, header, with(with(good, "iat", at.Unix()+30), "exp", at.Unix()+60)),
		"exp absent":         claim("exp", nil),
		"expired":            signToken(t, header, with(with(good, "iat", at.Unix()-70), "exp", at.Unix()-10)),
		"lives 61 s":         claim("exp", at.Unix()+61),
		"ends before":        claim("exp", at.Unix()),
		"not yet":            claim("nbf", at.Unix()+30),
		"too large":          claim("pad", strings.Repeat("a", 9<<10)),
	} {
		if resp, code, p := callRoute(t, a, "read", "Bearer "+bad); resp.StatusCode != 401 || code != "invalid_credential" || p.Name != "" {
			t.Errorf(`%s: %d %s %+v; want resp.StatusCode == 401 && code == "invalid_credential" && p.Name == ""`, name, resp.StatusCode, code, p)
		}
	}
}

// One token serves many reads and one write, over all routes; while the coordinator cannot be
// asked whether it was used, it writes nothing.
func TestDelegationWritesOnce(t *testing.T) {
	t.Parallel()
	d := newTestDelegator(t, "dashboard")
	o := &onces{seen: map[string]bool{}}
	a := auth.Load("", twoPeople, delegable).WithDelegation(auth.Delegation{Audience: "svc", Trust: trustOf(d), Once: o})
	e := echo.New()
	e.HTTPErrorHandler = problem.Handler(slog.New(slog.DiscardHandler))
	done := func(c echo.Context) error { return c.NoContent(http.StatusOK) }
	e.GET("/read", done, a.Require("read"))
	e.POST("/ask", done, a.Require("read")) // reads by its scope
	e.GET("/list", done, a.Require("approve"))
	e.POST("/write", done, a.Require("approve"))
	e.DELETE("/write", done, a.Require("approve"))
	e.POST("/other", done, a.Require("manage"))
	send := func(method, path, bearer string) (int, string) {
		r := httptest.NewRequest(method, path, nil)
		r.Header.Set("Authorization", "Bearer "+bearer)
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if w.Code == http.StatusOK {
			return w.Code, ""
		}
		return w.Code, problem.Decode(w.Result()).Kind.Code
	}
	mint := func() string {
		token, err := d.Mint("svc", auth.Person{Name: "alice", Tenant: "default", Scopes: []string{"read", "approve"}})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	one := mint()
	for _, step := range []struct {
		method, path string
		status       int
		code         string
	}{
		{"GET", "/read", 200, ""}, {"GET", "/read", 200, ""}, {"POST", "/ask", 200, ""}, {"POST", "/ask", 200, ""}, {"GET", "/list", 200, ""},
		{"POST", "/other", 403, "insufficient_scope"}, // which does not spend it
		{"POST", "/write", 200, ""}, {"POST", "/write", 401, "invalid_credential"}, {"DELETE", "/write", 401, "invalid_credential"},
		{"GET", "/read", 200, ""},
	} {
		if status, code := send(step.method, step.path, one); status != step.status || code != step.code {
			t.Fatalf("%s %s: %d %s, want %d %s", step.method, step.path, status, code, step.status, step.code)
		}
	}
	o.mu.Lock()
	o.down = true
	o.mu.Unlock()
	two := mint()
	if status, code := send("POST", "/write", two); status != 503 || code != "coordinator_unavailable" {
		t.Errorf(`coordinator down: %d %s; want status == 503 && code == "coordinator_unavailable"`, status, code)
	}
	if status, _ := send("GET", "/read", two); status != 200 {
		t.Errorf("a read with the coordinator down: %d; want 200", status)
	}
	if status, _ := send("POST", "/write", opSecret); status != 200 {
		t.Errorf("an own credential with the coordinator down: %d; want 200", status)
	}
}

// A trust map that is broken refuses delegations, not the service's own credentials.
func TestTrustMapBroken(t *testing.T) {
	t.Parallel()
	d := newTestDelegator(t, "dashboard")
	token, err := d.Mint("svc", auth.Person{Name: "alice", Tenant: "default", Scopes: []string{"read"}})
	if err != nil {
		t.Fatal(err)
	}
	good := trustOf(d)
	entry := func(rest string) string { return `{"dashboard": ` + rest + `}` }
	key := `"public_key": "` + d.PublicKey() + `"`
	for name, text := range map[string]string{
		"no JSON":             `{`,
		"not an object":       `[]`,
		"null":                `null`,
		"nobody":              `{}`,
		"trailing text":       good + `x`,
		"not UTF-8":           strings.Replace(good, "acme", "\xff", 1),
		"issuer twice":        strings.TrimSuffix(good, "}") + "," + strings.TrimPrefix(good, "{"),
		"issuer without name": strings.Replace(good, "dashboard", "", 1),
		"member missing":      entry(`{` + key + `, "tenants": ["default"]}`),
		"member unknown":      entry(`{` + key + `, "tenants": ["default"], "scopes": ["read"], "admin": true}`),
		"member twice":        entry(`{` + key + `, ` + key + `, "tenants": ["default"], "scopes": ["read"]}`),
		"member of a case":    entry(`{` + key + `, "Tenants": ["default"], "scopes": ["read"]}`),
		"scopes empty":        entry(`{` + key + `, "tenants": ["default"], "scopes": []}`),
		"scopes a string":     entry(`{` + key + `, "tenants": ["default"], "scopes": "read"}`),
		"tenants empty":       entry(`{` + key + `, "tenants": [], "scopes": ["read"]}`),
		"tenants all":         entry(`{` + key + `, "tenants": ["*"], "scopes": ["read"]}`),
		"line in tenant":      entry(`{` + key + `, "tenants": ["a\nb"], "scopes": ["read"]}`),
		"turned tenant":       entry(`{` + key + `, "tenants": ["a\u202e"], "scopes": ["read"]}`),
		"tenant twice":        entry(`{` + key + `, "tenants": ["a", "a"], "scopes": ["read"]}`),
		"key too short":       entry(`{"public_key": "AAAA", "tenants": ["default"], "scopes": ["read"]}`),
		"key not base64":      entry(`{"public_key": "!", "tenants": ["default"], "scopes": ["read"]}`),
		"entry a string":      entry(`"x"`),
	} {
		a := auth.Load("", twoPeople, delegable).WithDelegation(auth.Delegation{Audience: "svc", Trust: text, Once: &onces{seen: map[string]bool{}}})
		if a.DelegationState() == nil || a.State() != nil {
			t.Errorf("%s: taken as good, or spoils the credentials: %v; want a.DelegationState() != nil && a.State() == nil", name, a.State())
		}
		if resp, code, _ := callRoute(t, a, "read", "Bearer "+token); resp.StatusCode != 503 || code != "auth_misconfigured" {
			t.Errorf(`%s: %d %s; want resp.StatusCode == 503 && code == "auth_misconfigured"`, name, resp.StatusCode, code)
		}
		if resp, _, _ := callRoute(t, a, "changes", "Bearer "+ciSecret); resp.StatusCode != 200 {
			t.Errorf("%s: an own credential: %d; want resp.StatusCode == 200", name, resp.StatusCode)
		}
	}
	// And a broken credential map refuses delegations as it refuses every bearer.
	a := auth.Load("", `{`, delegable).WithDelegation(auth.Delegation{Audience: "svc", Trust: good, Once: &onces{seen: map[string]bool{}}})
	if resp, code, _ := callRoute(t, a, "read", "Bearer "+token); resp.StatusCode != 503 || code != "auth_misconfigured" {
		t.Errorf(`credential map broken: %d %s; want resp.StatusCode == 503 && code == "auth_misconfigured"`, resp.StatusCode, code)
	}
	// Trust alone configures a service.
	a = auth.Load("", "", delegable).WithDelegation(auth.Delegation{Audience: "svc", Trust: good, Once: &onces{seen: map[string]bool{}}})
	if resp, code, _ := callRoute(t, a, "read", "Bearer "+token); resp.StatusCode != 200 || !a.Configured() {
		t.Errorf("trust alone: %d %s; want resp.StatusCode == 200 && a.Configured()", resp.StatusCode, code)
	}
	if resp, code, _ := callRoute(t, a, "read", "Bearer x"); resp.StatusCode != 401 || code != "invalid_credential" {
		t.Errorf(`trust alone, another bearer: %d %s; want resp.StatusCode == 401 && code == "invalid_credential"`, resp.StatusCode, code)
	}
}

// Whatever the token, it is refused unless the issuer signed it, and nothing panics.
func FuzzDelegation(f *testing.F) {
	d, err := auth.NewDelegator("dashboard", seed)
	if err != nil {
		f.Fatal(err)
	}
	// The same in each of the fuzzer's processes.
	at := time.Unix(1_800_000_000, 0)
	token := signToken(f, map[string]any{"alg": "EdDSA", "typ": "platform-act+jwt"}, map[string]any{
		"iss": "dashboard", "aud": "svc", "sub": "alice", "tenant": "default", "scopes": []string{"read"}, "jti": "one",
		"iat": at.Unix(), "exp": at.Add(time.Minute).Unix(),
	})
	a := auth.Load("", "", delegable).WithDelegation(auth.Delegation{
		Audience: "svc", Trust: trustOf(d), Once: &onces{seen: map[string]bool{}}, Now: func() time.Time { return at },
	})
	if _, err := a.Authenticate("Bearer " + token); err != nil {
		f.Fatal(err)
	}
	f.Add(token)
	f.Add("a.b.c")
	f.Add("eyJ0eXAiOiJwbGF0Zm9ybS1hY3Qrand0IiwiYWxnIjoibm9uZSJ9.e30.")
	f.Add("eyJ0eXAiOiJwbGF0Zm9ybS1hY3Qrand0IiwiYWxnIjoiRWREU0EifQ.bnVsbA.AAAA")
	f.Fuzz(func(t *testing.T, bearer string) {
		if p, err := a.Authenticate("Bearer " + bearer); err == nil && strings.TrimSpace(bearer) != token {
			t.Fatalf("%q speaks for %+v; want (an error || strings.TrimSpace(bearer) == token)", bearer, p)
		}
	})
}

// Whatever the trust map, it is read whole or refuses every delegation.
func FuzzTrust(f *testing.F) {
	d, err := auth.NewDelegator("dashboard", seed)
	if err != nil {
		f.Fatal(err)
	}
	token, err := d.Mint("svc", auth.Person{Name: "alice", Tenant: "default", Scopes: []string{"read"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(trustOf(d))
	f.Add(`{"dashboard": {}}`)
	f.Fuzz(func(t *testing.T, text string) {
		a := auth.Load("", twoPeople, delegable).WithDelegation(auth.Delegation{Audience: "svc", Trust: text, Once: &onces{seen: map[string]bool{}}})
		_, err := a.Authenticate("Bearer " + token)
		if a.DelegationState() != nil && !errors.Is(err, auth.Misconfigured.New("")) {
			t.Fatalf(`faulty, yet: %v; want (a.DelegationState() == nil || errors.Is(err, auth.Misconfigured.New("")))`, err)
		}
		if err == nil && (!json.Valid([]byte(text)) || !strings.Contains(text, d.PublicKey()) && !strings.Contains(text, `\`)) {
			t.Fatalf("took %q; want (an error || !!json.Valid([]byte(text)) || !strings.Contains(text, d.PublicKey()) && !strings.Contains(text, `\\`))", text)
		}
	})
}
