package idp_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/idp/idptest"
)

func TestAnAccessTokenBecomesACaller(t *testing.T) {
	t.Parallel()
	b := setup(t, viewers+"  tenant: physics\n  scope_roles: {platform.admin: admin}\n")
	at := time.Now().Add(-time.Minute).Truncate(time.Second)
	who, err := b.registry.Bearer(t.Context(), b.AccessToken(map[string]any{
		"preferred_username": "ann", "acr": "gold", "auth_time": at.Unix(), "scope": "x platform.admin",
	}), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(who.SessionID) != 32 || time.Until(who.ExpiresAt) < 59*time.Minute {
		t.Errorf("session %q until %s; want a digest and the token's end", who.SessionID, who.ExpiresAt)
	}
	who.SessionID, who.ExpiresAt = "", time.Time{}
	want := caller.Caller{
		Subject: "idp-a:1001", Name: "ann", Tenant: "physics", Role: caller.Admin, Method: caller.IDPBearer, Provider: "idp-a",
		ACR: "gold", AuthTime: at.UTC(),
	}
	if who != want {
		t.Errorf("got  %+v\nwant %+v", who, want)
	}
}

// wantProblem fails unless err is a problem of the kind, whose detail has the words, with the challenge of a 401.
func wantProblem(t *testing.T, what string, err error, kind problem.Kind, words string) {
	t.Helper()
	if !kind.Has(err) || !strings.Contains(problem.From(err).Detail, words) {
		t.Errorf("%s: got %v, want %s with %q", what, err, kind.Code, words)
		return
	}
	got := problem.From(err).Header.Get("WWW-Authenticate")
	if want := map[bool]string{true: `Bearer realm="dashboard", error="invalid_token"`}[kind.Status == http.StatusUnauthorized]; got != want {
		t.Errorf("%s: WWW-Authenticate %q, want %q", what, got, want)
	}
}

func TestAccessTokensThatAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, viewers+"  leeway_s: 60\n")
	other := idptest.New(t)
	in := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	good := map[string]any{"iss": b.URL, "sub": "1001", "aud": idptest.Audience, "exp": in(time.Hour)}
	with := func(more map[string]any) string { return b.AccessToken(more) }
	for _, test := range []struct {
		name, token string
		kind        problem.Kind
		words       string
	}{
		{"expired", with(map[string]any{"exp": in(-61 * time.Second)}), fault.InvalidToken, "it expired"},
		{"without an end", with(map[string]any{"exp": nil}), fault.InvalidToken, "exp is absent"},
		{"an end that is text", with(map[string]any{"exp": "tomorrow"}), fault.InvalidToken, "refused"},
		{"not yet valid", with(map[string]any{"nbf": in(2 * time.Minute)}), fault.InvalidToken, "nbf is"},
		{"issued tomorrow", with(map[string]any{"iat": in(24 * time.Hour)}), fault.InvalidToken, "iat is"},
		{"other audience", with(map[string]any{"aud": []any{"x", "y"}}), fault.InvalidToken, "its audience is not platform"},
		{"no audience", with(map[string]any{"aud": nil}), fault.InvalidToken, "its audience"},
		{"issuer that nobody trusts", with(map[string]any{"iss": "https://evil.example"}), fault.ProviderUntrusted, "issuer"},
		{"issuer but for a slash", with(map[string]any{"iss": b.URL + "/"}), fault.ProviderUntrusted, "issuer"},
		{"no issuer", with(map[string]any{"iss": nil}), fault.ProviderUntrusted, "issuer"},
		{"other key", other.Sign(nil, good), fault.InvalidToken, "signature"},
		{"alg none", idptest.Unsigned(nil, good), fault.InvalidToken, "refused"},
		{"alg none in capitals", idptest.Unsigned(map[string]any{"alg": "NONE"}, good), fault.InvalidToken, "refused"},
		{"ID token by typ", with(map[string]any{"typ": "ID"}), fault.InvalidToken, "ID token"},
		{"ID token by at_hash", with(map[string]any{"at_hash": "x"}), fault.InvalidToken, "ID token"},
		{"ID token by c_hash", with(map[string]any{"c_hash": "x"}), fault.InvalidToken, "ID token"},
		{"refresh token", with(map[string]any{"typ": "Refresh"}), fault.InvalidToken, "Refresh"},
		{"logout token", b.Sign(map[string]any{"typ": "logout+jwt"}, good), fault.InvalidToken, "logout+jwt"},
		{"bound to a key", with(map[string]any{"cnf": map[string]any{"jkt": "x"}}), fault.InvalidToken, "bound to a key"},
		{"no subject", with(map[string]any{"sub": nil}), fault.InvalidToken, "who this is"},
		{"changed", with(nil) + "x", fault.InvalidToken, "refused"},
		{"too long", strings.Repeat("x", 70<<10), fault.InvalidToken, "neither a token"},
		{"opaque where none is taken", "abc", fault.InvalidToken, "neither a token"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := b.registry.Bearer(t.Context(), test.token, "", nil)
			wantProblem(t, test.name, err, test.kind, test.words)
		})
	}
}

func TestTheLeewayOfTheTrustFileCounts(t *testing.T) {
	t.Parallel()
	b := setup(t, viewers+"  leeway_s: 60\n")
	in := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	for name, claims := range map[string]map[string]any{
		"expired within": {"exp": in(-30 * time.Second)}, "valid soon": {"nbf": in(30 * time.Second)}, "issued soon": {"iat": in(30 * time.Second)},
	} {
		if _, err := b.registry.Bearer(t.Context(), b.AccessToken(claims), "", nil); err != nil {
			t.Errorf("%s: got %v, want it accepted", name, err)
		}
	}
}

func TestRequireTypTakesOnlyTokensOfRFC9068(t *testing.T) {
	t.Parallel()
	b := setup(t, viewers+"  require_typ: true\n")
	claims := map[string]any{"iss": b.URL, "sub": "1", "aud": idptest.Audience, "exp": time.Now().Add(time.Hour).Unix()}
	for typ, good := range map[string]bool{"at+jwt": true, "application/at+jwt": true, "AT+JWT": true, "JWT": false, "": false} {
		_, err := b.registry.Bearer(t.Context(), b.Sign(map[string]any{"typ": typ}, claims), "", nil)
		if (err == nil) != good {
			t.Errorf("typ %q: got %v, want accepted %v", typ, err, good)
		}
	}
}

func TestNoRuleIs403AndTheDenyListIs401(t *testing.T) {
	t.Parallel()
	b := setup(t, "  deny: [mallory]\n")
	_, err := b.registry.Bearer(t.Context(), b.AccessToken(nil), "", nil)
	wantProblem(t, "no rule", err, fault.NoRole, "no rule")
	_, err = b.registry.Bearer(t.Context(), b.AccessToken(map[string]any{"sub": "mallory"}), "", nil)
	wantProblem(t, "denied", err, fault.InvalidToken, "disabled")
}

func TestAnUnknownKeyIDFetchesTheKeysAtMostOnceAMinute(t *testing.T) {
	t.Parallel()
	b := setup(t, viewers)
	try := func(what, token string, good bool, fetches int) {
		t.Helper()
		if _, err := b.registry.Bearer(t.Context(), token, "", nil); (err == nil) != good {
			t.Errorf("%s: got %v, want accepted %v", what, err, good)
		}
		if got := b.Requests("/keys"); got != fetches {
			t.Errorf("%s: got %d fetches of the keys, want %d", what, got, fetches)
		}
	}
	try("first token", b.AccessToken(nil), true, 1)
	b.Rotate()
	try("after a rotation", b.AccessToken(nil), true, 2)
	claims := map[string]any{"iss": b.URL, "sub": "1", "aud": idptest.Audience, "exp": time.Now().Add(time.Hour).Unix()}
	for range 5 {
		try("forged key id", b.Sign(map[string]any{"kid": "forged"}, claims), false, 2)
	}
	b.Rotate()
	try("second rotation within the minute", b.AccessToken(nil), false, 2)
	b.advance(time.Minute)
	try("a minute later", b.AccessToken(nil), true, 3)
}

func TestKeysAreUsedForAWhileAfterTheProviderHasGone(t *testing.T) {
	t.Parallel()
	b := setup(t, viewers)
	forever := map[string]any{"exp": time.Now().Add(100 * time.Hour).Unix()}
	token := b.AccessToken(forever)
	if _, err := b.registry.Bearer(t.Context(), token, "", nil); err != nil {
		t.Fatal(err)
	}
	b.Bend(idptest.Bends{Handle: func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(503); return true }})
	b.advance(30 * time.Minute)
	if _, err := b.registry.Bearer(t.Context(), token, "", nil); err != nil {
		t.Errorf("after half an hour: got %v, want the known keys used", err)
	}
	b.advance(2 * time.Hour)
	_, err := b.registry.Bearer(t.Context(), token, "", nil)
	wantProblem(t, "after hours", err, fault.InvalidToken, "does not answer")
}

func TestAProviderThatMisbehavesIsNotBelieved(t *testing.T) {
	t.Parallel()
	on := func(path string, answer func(w http.ResponseWriter)) idptest.Bends {
		return idptest.Bends{Handle: func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != path {
				return false
			}
			answer(w)
			return true
		}}
	}
	const discovery = "/.well-known/openid-configuration"
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	for name, bend := range map[string]idptest.Bends{
		"discovery redirects": on(discovery, func(w http.ResponseWriter) { w.Header().Set("Location", "/moved"); w.WriteHeader(302) }),
		"discovery hangs": on(discovery, func(w http.ResponseWriter) {
			select {
			case <-hang:
			case <-time.After(2 * time.Second):
			}
		}),
		"discovery of another issuer":     {Discovery: map[string]any{"issuer": "https://other.example"}},
		"discovery leads to other scheme": {Discovery: map[string]any{"jwks_uri": "file:///etc/passwd"}},
		"discovery leads to http":         {Discovery: map[string]any{"jwks_uri": "http://keys.example.org/keys"}},
		"no keys named":                   {Discovery: map[string]any{"jwks_uri": nil}},
		"metadata service":                {Discovery: map[string]any{"jwks_uri": "https://169.254.169.254/keys"}},
		"keys of 2 MB": on("/keys", func(w http.ResponseWriter) {
			_, _ = w.Write([]byte(`{"keys": [], "x": "` + strings.Repeat("x", 2<<20) + `"}`))
		}),
		"keys redirect":         on("/keys", func(w http.ResponseWriter) { w.Header().Set("Location", "/k2"); w.WriteHeader(307) }),
		"keys that are a page":  on("/keys", func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/html"); _, _ = w.Write([]byte("{}")) }),
		"keys that are no list": on("/keys", func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"keys": 1}`)) }),
		"keys that are no JSON": on("/keys", func(w http.ResponseWriter) { _, _ = w.Write([]byte(`keys`)) }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, viewers)
			b.Bend(bend)
			began := time.Now()
			_, err := b.registry.Bearer(t.Context(), b.AccessToken(nil), "", nil)
			wantProblem(t, name, err, fault.InvalidToken, "does not answer")
			if took := time.Since(began); took > 14*time.Second {
				t.Errorf("%s: took %s, want the time-out of 0.5 s", name, took)
			}
			if b.Requests("/moved")+b.Requests("/k2") > 0 {
				t.Errorf("%s: a redirect was followed", name)
			}
			// A failure is kept for a while, so that tokens do not become calls.
			before := b.Requests(discovery) + b.Requests("/keys")
			_, _ = b.registry.Bearer(t.Context(), b.AccessToken(nil), "", nil)
			if after := b.Requests(discovery) + b.Requests("/keys"); after != before {
				t.Errorf("%s: got %d calls for the second token, want none", name, after-before)
			}
		})
	}
}

const introspection = "  introspection: {client_id: dashboard, client_secret_ref: \"env:SECRET\"}\n"

func TestOpaqueTokensAreLookedUpAndTheVerdictIsKept(t *testing.T) {
	t.Parallel()
	b := setup(t, viewers+introspection)
	active := map[string]any{"active": true, "sub": "1001", "aud": idptest.Audience, "iss": b.URL, "username": "x"}
	b.Opaque("good", active)
	look := func(what, token string, good bool, calls int) {
		t.Helper()
		who, err := b.registry.Bearer(t.Context(), token, "", nil)
		if (err == nil) != good || good && who.Subject != "idp-a:1001" {
			t.Errorf("%s: got %+v, %v; want accepted %v", what, who, err, good)
		}
		if got := b.Requests("/introspect"); got != calls {
			t.Errorf("%s: got %d calls, want %d", what, got, calls)
		}
	}
	look("first", "good", true, 1)
	look("kept", "good", true, 1)
	b.Opaque("good", map[string]any{"active": false})
	b.advance(29 * time.Second)
	look("still kept", "good", true, 1)
	b.advance(2 * time.Second)
	look("revoked", "good", false, 2)
	look("bad, kept", "good", false, 2)
	b.Opaque("good", active)
	b.advance(6 * time.Second)
	look("good again after 5 s", "good", true, 3)
}

func TestOpaqueTokensThatAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, viewers+introspection)
	base := func(more map[string]any) map[string]any {
		answer := map[string]any{"active": true, "sub": "1001", "aud": idptest.Audience}
		for k, v := range more {
			answer[k] = v
		}
		return answer
	}
	for name, answer := range map[string]map[string]any{
		"inactive": base(map[string]any{"active": false}), "active as text": base(map[string]any{"active": "true"}),
		"other audience": base(map[string]any{"aud": "x"}), "no audience": {"active": true, "sub": "1001"},
		"other issuer": base(map[string]any{"iss": "https://x"}), "expired": base(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}),
		"ID token": base(map[string]any{"at_hash": "x"}),
	} {
		b.Opaque(name, answer)
		_, err := b.registry.Bearer(t.Context(), name, "", nil)
		wantProblem(t, name, err, fault.InvalidToken, "refused")
	}
}

func TestTheHintPicksWhomToAskAboutAnOpaqueToken(t *testing.T) {
	t.Parallel()
	b := setup(t, viewers+introspection)
	second, third := idptest.New(t), idptest.New(t)
	b.write(b.Trust("idp-a", viewers+introspection), second.Trust("idp-b", viewers+introspection), third.Trust("idp-c", viewers))
	b.start()
	second.Opaque("tok", map[string]any{"active": true, "sub": "7", "aud": idptest.Audience})
	who, err := b.registry.Bearer(t.Context(), "tok", "idp-b", nil)
	if err != nil || who.Subject != "idp-b:7" {
		t.Errorf("named: got %+v, %v; want idp-b:7", who, err)
	}
	_, err = b.registry.Bearer(t.Context(), "tok", "", nil)
	wantProblem(t, "not named", err, fault.InvalidToken, "X-PLATFORM-IDP")
	_, err = b.registry.Bearer(t.Context(), "tok", "idp-c", nil)
	wantProblem(t, "without introspection", err, fault.ProviderUntrusted, "idp-a, idp-b")
	if n := b.Requests("/introspect"); n != 0 {
		t.Errorf("the provider that was not meant got %d calls, want none: they would show it the other's token", n)
	}
}

// Signatures have several spellings. If each were a separate session, a logout would end only one of them.
func TestATokenIsOneSessionHoweverItsSignatureIsSpelled(t *testing.T) {
	t.Parallel()
	b := setup(t, viewers)
	token := b.AccessToken(nil)
	who, err := b.registry.Bearer(t.Context(), token, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	accepted := 0
	for end, c := range token + "." {
		if c != '.' {
			continue
		}
		last := end - 1 // of a part, whose lowest bits base64 may leave unused
		for _, spelling := range []string{
			token[:last] + string(alphabet[strings.IndexByte(alphabet, token[last])^1]) + token[end:], token[:last] + "\n" + token[last:],
		} {
			again, err := b.registry.Bearer(t.Context(), spelling, "", nil)
			if err != nil {
				continue
			}
			if accepted++; again.SessionID != who.SessionID {
				t.Errorf("got session %s for %q, want %s", again.SessionID, spelling, who.SessionID)
			}
		}
	}
	if accepted == 0 {
		t.Error("no other spelling is accepted any more; this test can go")
	}
	if other, err := b.registry.Bearer(t.Context(), b.AccessToken(map[string]any{"jti": "2"}), "", nil); err != nil || other.SessionID == who.SessionID {
		t.Errorf("another token: got session %s, %v; want one of its own", other.SessionID, err)
	}
}

func TestNoQuestionAboutATokenWithoutPermission(t *testing.T) {
	t.Parallel()
	b := setup(t, viewers+introspection)
	b.Opaque("good", map[string]any{"active": true, "sub": "1001", "aud": idptest.Audience})
	refusal := problem.RateLimited.New("Too many.")
	refuse := func() error { return refusal }
	if _, err := b.registry.Bearer(t.Context(), "good", "", refuse); !errors.Is(err, refusal) || b.Requests("/introspect") != 0 {
		t.Errorf("got %v after %d questions; want the refusal and none", err, b.Requests("/introspect"))
	}
	if _, err := b.registry.Bearer(t.Context(), "good", "", nil); err != nil {
		t.Errorf("allowed: got %v, want the person", err)
	}
	if _, err := b.registry.Bearer(t.Context(), "good", "", refuse); err != nil || b.Requests("/introspect") != 1 {
		t.Errorf("known from before: got %v after %d questions; want the person after one", err, b.Requests("/introspect"))
	}
}
