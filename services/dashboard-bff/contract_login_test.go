package dashboard_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/idp/idptest"
)

// resign returns a session token whose header and claims a test changes, signed with a key.
func resign(t *testing.T, token, key string, change func(header, claims map[string]any)) string {
	t.Helper()
	claims := claimsOf(t, token)
	again := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims(claims))
	if change != nil {
		change(again.Header, claims)
	}
	signed, err := again.SignedString([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// TestContractPasswordSession walks "Password session": the calls with their errors, and the token's claims.
func TestContractPasswordSession(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	t.Run("claims", func(t *testing.T) {
		claims := claimsOf(t, w.on(t).token(adminPassword))
		for name, want := range map[string]string{
			"iss": "mlp-dashboard", "aud": "mlp-dashboard", "sub": "local:admin", "role": "admin", "tenant": "default", "amr": "[pwd]", "auth_time": fmt.Sprint(claims["iat"]),
		} {
			if got := fmt.Sprint(claims[name]); got != want {
				t.Errorf("got %s %s, want %s", name, got, want)
			}
		}
		life := time.Duration(claims["exp"].(float64)-claims["iat"].(float64)) * time.Second
		if pv, _ := claims["pv"].(string); len(pv) != 16 || claims["jti"] == "" || life != 12*time.Hour {
			t.Errorf("got pv %v, jti %v and a life of %s; want 16 hex, an id and 12h", claims["pv"], claims["jti"], life)
		}
	})
	t.Run("401 invalid_password", func(t *testing.T) {
		for _, body := range []string{`{"password": "wrong"}`, `{"password": ""}`} {
			w.on(t).refused(401, "invalid_password", nobody, "POST", "/api/auth/login", body)
		}
		if len(w.on(t).audits("auth.login_failed")) != 2 {
			t.Error("want a fact auth.login_failed for each")
		}
	})
	t.Run("422", func(t *testing.T) {
		for _, body := range []string{`{}`, `[]`, `{"password": 7}`, `{"password": "x", "more": 1}`, `{`} {
			w.on(t).refused(422, "validation_failed", nobody, "POST", "/api/auth/login", body)
		}
	})
	t.Run("415", func(t *testing.T) {
		w.on(t).refused(415, "unsupported_media_type", nobody, "POST", "/api/auth/login", `{"password": "x"}`, "Content-Type", "text/plain")
	})
	t.Run("413", func(t *testing.T) {
		w.on(t).refused(413, "body_too_large", nobody, "POST", "/api/auth/login", `{"password": "`+strings.Repeat("x", 256<<10)+`"}`)
	})
	t.Run("refused tokens", func(t *testing.T) {
		w := w.on(t)
		token := w.token(adminPassword)
		for name, bad := range map[string]string{
			"another key":  resign(t, token, strings.Repeat("k", 40), nil),
			"another aud":  resign(t, token, jwtSecret, func(_, c map[string]any) { c["aud"] = "elsewhere" }),
			"another iss":  resign(t, token, jwtSecret, func(_, c map[string]any) { c["iss"] = "elsewhere" }),
			"expired":      resign(t, token, jwtSecret, func(_, c map[string]any) { c["exp"] = time.Now().Unix() - 1 }),
			"old password": resign(t, token, jwtSecret, func(_, c map[string]any) { c["pv"] = "0123456789abcdef" }),
			"role and sub": resign(t, token, jwtSecret, func(_, c map[string]any) { c["sub"] = "local:viewer" }),
			"empty":        "",
			"not a token":  "x",
		} {
			if a := w.call(person{"Authorization", "Bearer " + bad}, "GET", "/api/auth/me", ""); a.status != 401 || a.code() != "invalid_token" {
				t.Errorf("%s: got %d %s, want 401 invalid_token", name, a.status, a.code())
			}
		}
		// A token of another algorithm is treated as a provider's, and mlp-dashboard is none.
		none := strings.Join([]string{base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)), strings.Split(token, ".")[1], ""}, ".")
		w.refused(401, "provider_untrusted", bearer(none), "GET", "/api/auth/me", "")
		w.want(200, bearer(resign(t, token, jwtSecret, nil)), "GET", "/api/auth/me", "")
	})
	t.Run("logout", func(t *testing.T) {
		w := w.on(t)
		who := w.signIn(viewerPassword)
		w.want(204, who, "POST", "/api/auth/logout", "")
		w.refused(401, "invalid_token", who, "GET", "/api/auth/me", "")
	})
	t.Run("capabilities", func(t *testing.T) {
		w := w.on(t)
		viewer := "[alert.ack comment.write copilot.ask search snapshot.create view]"
		admin := "[alert.ack approval.decide assistant.decide audit.read comment.write config.write copilot.ask drift.manage flag.write model.promote proxy.write retrain.trigger search secret.write snapshot.create traffic.manage view]"
		wantValue("capabilities", viewer)(w, w.want(200, w.signIn(viewerPassword), "GET", "/api/auth/me", ""))
		wantValue("capabilities", admin)(w, w.want(200, w.signIn(adminPassword), "GET", "/api/auth/me", ""))
	})
	t.Run("break-glass", func(t *testing.T) { // a provider is configured
		w := w.on(t)
		wantValue("break_glass", true)(w, w.want(200, w.signIn(viewerPassword), "GET", "/api/auth/me", ""))
		if len(w.audits("auth.break_glass")) == 0 {
			t.Error("got no fact auth.break_glass")
		}
	})
	// Last: all logins together have a limit too, 20 a second.
	t.Run("429", func(t *testing.T) {
		w := w.on(t)
		for range 10 {
			w.call(nobody, "POST", "/api/auth/login", `{"password": "wrong"}`, "X-Forwarded-For", "192.0.2.7")
		}
		a := w.refused(429, "rate_limited", nobody, "POST", "/api/auth/login", `{"password": "`+adminPassword+`"}`, "X-Forwarded-For", "192.0.2.7")
		if a.header.Get("Retry-After") == "" {
			t.Error("got no Retry-After")
		}
	})
}

func TestContractLocalLoginOff(t *testing.T) {
	t.Parallel()
	w := startWorld(t, "DASHBOARD_LOCAL_LOGIN=false")
	a := w.refused(403, "local_login_disabled", nobody, "POST", "/api/auth/login", `{"password": "`+adminPassword+`"}`)
	if !strings.Contains(string(a.body), "organisation") {
		t.Errorf("got %s, want a pointer to the organisation's sign-in", a.body)
	}
	wantValue("local_login", false)(w, w.want(200, nobody, "GET", "/api/auth/sso/providers", ""))
}

// TestContractCookies walks "Cookies and CSRF".
func TestContractCookies(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	w.issuer.SignsIn(map[string]any{"sub": "1001", "org": "default", "groups": []string{"platform-viewers"}})
	callback, browser := w.authorize("")
	_, key := w.want(302, nobody, "GET", "/api/auth/sso/campus/login", "").cookieOf("platform_sso")
	done := w.want(302, person{"Cookie", browser}, "GET", callback, "")
	session, cookie := done.cookieOf("platform_session")
	t.Run("platform_sso", func(t *testing.T) {
		if key == nil || !key.HttpOnly || key.SameSite != http.SameSiteLaxMode || key.Path != "/" || key.MaxAge != 600 || key.Domain != "" || len(key.Value) < 43 {
			t.Errorf("got %+v, want HttpOnly, Lax, Path=/, 600 s and 256 bits", key)
		}
	})
	t.Run("platform_session", func(t *testing.T) {
		id, secret, _ := strings.Cut(cookie.Value, ".")
		if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Domain != "" || len(id) != 22 || len(secret) != 43 {
			t.Errorf("got %+v, want HttpOnly, Strict, Path=/ and <128 bits>.<256 bits>", cookie)
		}
	})
	write := func(t *testing.T, header ...string) answer {
		return w.on(t).call(person{"Cookie", session}, "POST", "/api/v1/selfobs/action", `{"action": "a", "target": "t"}`, header...)
	}
	for name, row := range map[string]struct {
		header []string
		status int
	}{
		"no proof": {nil, 403}, "X-PLATFORM-CSRF: 1": {[]string{"X-PLATFORM-CSRF", "1"}, 200}, "X-PLATFORM-CSRF: yes": {[]string{"X-PLATFORM-CSRF", "yes"}, 403},
		"Sec-Fetch-Site: same-origin": {[]string{"Sec-Fetch-Site", "same-origin"}, 200}, "Sec-Fetch-Site: same-site": {[]string{"Sec-Fetch-Site", "same-site"}, 403},
		"Origin": {[]string{"Origin", w.url}, 200}, "another Origin": {[]string{"Origin", "http://evil.example"}, 403}, "Origin: null": {[]string{"Origin", "null"}, 403},
		"another port": {[]string{"Origin", w.tools}, 403}, "another scheme": {[]string{"Origin", strings.Replace(w.url, "http", "https", 1)}, 403},
	} {
		t.Run("CSRF by "+name, func(t *testing.T) {
			if a := write(t, row.header...); a.status != row.status || row.status == 403 && a.code() != "csrf_refused" {
				t.Errorf("got %d %s, want %d", a.status, a.body, row.status)
			}
		})
	}
	t.Run("a bearer beats the cookie", func(t *testing.T) {
		w.on(t).refused(401, "invalid_token", person{"Cookie", session, "Authorization", "Bearer x"}, "GET", "/api/auth/me", "")
	})
	t.Run("the id changes at each login", func(t *testing.T) {
		w := w.on(t)
		again, key := w.authorize("")
		next, _ := w.want(302, person{"Cookie", key + "; " + session}, "GET", again, "").cookieOf("platform_session")
		if next == "" || next == session {
			t.Errorf("got %q after %q, want another", next, session)
		}
		w.refused(401, "invalid_token", person{"Cookie", session}, "GET", "/api/auth/me", "")
		session = next
	})
	t.Run("SSO logout", func(t *testing.T) {
		w := w.on(t)
		a := w.want(200, provenCookie(session), "POST", "/api/auth/sso/logout", "")
		wantValue("ok", true)(w, a)
		end, err := url.Parse(fmt.Sprint(a.at("end_session_url")))
		if err != nil || end.Query().Get("client_id") != "dashboard" || end.Query().Get("id_token_hint") == "" || end.Query().Get("post_logout_redirect_uri") != w.url+"/" {
			t.Errorf("got end_session_url %s, want client_id, id_token_hint and post_logout_redirect_uri", end)
		}
		for _, name := range []string{"platform_session", "platform_sso"} {
			if _, gone := a.cookieOf(name); gone == nil || gone.MaxAge >= 0 {
				t.Errorf("got %v, want the cookie %s removed", gone, name)
			}
		}
	})
}

// TestContractSecureCookies: beyond http on loopback, cookies are Secure and bound to the host.
func TestContractSecureCookies(t *testing.T) {
	t.Parallel()
	w := startWorld(t, "DASHBOARD_PUBLIC_URL=https://dashboard.example", "DASHBOARD_TOOLS_URL=https://tools.example", "DASHBOARD_SESSION_COOKIE_SECURE=true")
	a := w.want(302, nobody, "GET", "/api/auth/sso/campus/login", "", "Host", "dashboard.example")
	if _, c := a.cookieOf("__Host-platform_sso"); c == nil || !c.Secure {
		t.Errorf("got %v, want __Host-platform_sso, Secure", a.header.Values("Set-Cookie"))
	}
	a.hasHeader("Strict-Transport-Security", "max-age=31536000")
	t.Run("foreign Host", func(t *testing.T) {
		w.on(t).refused(421, "host_not_allowed", nobody, "GET", "/api/health", "", "Host", "evil.example")
	})
}

// TestContractSSOErrors walks the table sso_error, and return_to.
func TestContractSSOErrors(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	good := map[string]any{"sub": "1001", "org": "default", "groups": []string{"platform-viewers"}}
	elsewhere := "https://elsewhere.example"
	for name, row := range map[string]struct {
		claims map[string]any // of the person; nil: good ones
		bends  idptest.Bends
		query  string
		change func(callback, browser string) (string, string)
	}{
		"session_expired":        {change: func(c, _ string) (string, string) { return c, "" }},
		"state_mismatch":         {change: func(c, b string) (string, string) { return strings.Replace(c, "state=", "state=x", 1), b }},
		"state_mismatch, absent": {change: func(_, b string) (string, string) { return "/api/auth/sso/callback?code=x", b }},
		"state_mismatch, of another browser": {change: func(c, b string) (string, string) {
			return c, b[:len(b)-4] + "AAAA"
		}},
		"idp_access_denied":         {bends: idptest.Bends{Error: "access_denied"}},
		"login_rejected, iss":       {bends: idptest.Bends{Iss: &elsewhere}},
		"login_rejected, no iss":    {bends: idptest.Bends{Iss: new(string)}},
		"login_rejected, nonce":     {bends: idptest.Bends{Claims: map[string]any{"nonce": "x"}}},
		"login_rejected, at_hash":   {bends: idptest.Bends{Claims: map[string]any{"at_hash": "x"}}},
		"login_rejected, audience":  {bends: idptest.Bends{Claims: map[string]any{"aud": "x"}}},
		"login_rejected, azp":       {bends: idptest.Bends{Claims: map[string]any{"azp": "x", "aud": []string{"dashboard", "x"}}}},
		"step_up_not_met, weaker":   {query: "?step_up=true", claims: map[string]any{"sub": "1001", "org": "default", "groups": []string{"platform-viewers"}, "acr": "silver"}},
		"step_up_not_met, older":    {query: "?step_up=true", bends: idptest.Bends{Claims: map[string]any{"acr": "gold", "auth_time": time.Now().Unix() - 3600}}},
		"no_role":                   {claims: map[string]any{"sub": "1001", "org": "default", "groups": []string{"x"}}},
		"login_rejected, no tenant": {claims: map[string]any{"sub": "1001", "org": "nowhere", "groups": []string{"platform-viewers"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.on(t)
			if row.claims == nil {
				row.claims = good
			}
			w.issuer.SignsIn(row.claims)
			w.issuer.Bend(row.bends)
			defer w.issuer.Bend(idptest.Bends{})
			callback, browser := w.authorize(row.query)
			if row.change != nil {
				callback, browser = row.change(callback, browser)
			}
			code, _, _ := strings.Cut(name, ",")
			w.want(302, person{"Cookie", browser}, "GET", callback, "").hasHeader("Location", "/?sso_error="+code)
		})
	}
	t.Run("state_mismatch, used", func(t *testing.T) {
		w := w.on(t)
		w.issuer.SignsIn(good)
		callback, browser := w.authorize("")
		w.want(302, person{"Cookie", browser}, "GET", callback, "").hasHeader("Location", "/")
		w.want(302, person{"Cookie", browser}, "GET", callback, "").hasHeader("Location", "/?sso_error=state_mismatch")
	})
	for to, want := range map[string]string{
		"/models?q=1": "/models?q=1", "//x": "/", `/\x`: "/", "/%5cx": "/", "https://x": "/", "/api/config": "/", "": "/", "models": "/", "/a%0ab": "/",
	} {
		t.Run("return_to "+to, func(t *testing.T) {
			w := w.on(t)
			w.issuer.SignsIn(good)
			callback, browser := w.authorize("?return_to=" + url.QueryEscape(to))
			w.want(302, person{"Cookie", browser}, "GET", callback, "").hasHeader("Location", want)
		})
	}
	t.Run("404 unknown_provider", func(t *testing.T) {
		w := w.on(t)
		w.refused(404, "unknown_provider", nobody, "GET", "/api/auth/sso/nobody/login", "")
		w.want(302, nobody, "GET", "/api/auth/sso/nobody/login", "", "Accept", "text/html").hasHeader("Location", "/?sso_error=unknown_provider")
	})
	t.Run("502 idp_unreachable", func(t *testing.T) {
		w := startWorld(t)
		w.issuer.Bend(idptest.Bends{Handle: func(rw http.ResponseWriter, _ *http.Request) bool { rw.WriteHeader(500); return true }})
		w.refused(502, "idp_unreachable", nobody, "GET", "/api/auth/sso/campus/login", "")
		w.want(302, nobody, "GET", "/api/auth/sso/campus/login", "", "Accept", "text/html").hasHeader("Location", "/?sso_error=idp_unreachable")
	})
}

// TestContractStepUp walks "Step-up": the actions, and the exact challenge.
func TestContractStepUp(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	w.services.Tracker.Answer("/api/2.0/mlflow/runs/search", 200, `{}`)
	weak, strong := provenCookie(w.signOn(map[string]any{"acr": "silver"})), provenCookie(w.signOn(map[string]any{"acr": "gold"}))
	for action, row := range map[string]struct{ method, path, body string }{
		"config.secret":       {"PUT", "/api/config", `{"forge_token": "s3cr3t"}`},
		"proxy.control_plane": {"POST", "/api/proxy/control_plane/retrain", `{}`},
		"proxy.tracker":       {"POST", "/api/proxy/tracker/api/2.0/mlflow/runs/delete", `{}`},
		"flag.write":          {"POST", "/api/v1/flags/commandPalette", `{"enabled": true}`},
		"model.promote":       {"POST", "/api/proxy/tracker/api/2.0/mlflow/registered-models/alias", `{}`},
		"assistant.decide":    {"POST", "/api/v1/assistant/sessions/x/actions/y", `{"decision": "approve"}`},
	} {
		t.Run(action, func(t *testing.T) {
			w := w.on(t)
			a := w.refused(401, "step_up_required", weak, row.method, row.path, row.body)
			a.hasHeader("WWW-Authenticate", `Bearer error="insufficient_user_authentication", acr_values="gold", max_age=900`)
			for member, want := range map[string]string{
				"acr_values": "[gold]", "max_age": "900", "provider": "campus", "login_url": "/api/auth/sso/campus/login?step_up=true", "action": action,
			} {
				wantValue(member, want)(w, a)
			}
		})
	}
	t.Run("met", func(t *testing.T) {
		w.on(t).want(200, strong, "POST", "/api/v1/flags/commandPalette", `{"enabled": true}`)
	})
	t.Run("not asked of a search of the tracker", func(t *testing.T) {
		w.on(t).want(200, weak, "POST", "/api/proxy/tracker/api/2.0/mlflow/runs/search", `{}`)
	})
	t.Run("not asked of plain configuration", func(t *testing.T) {
		w.on(t).want(200, weak, "PUT", "/api/config", `{"scheduler_time": "01:00:00"}`)
	})
	t.Run("not asked of password sessions unless enforced", func(t *testing.T) {
		w := w.on(t)
		w.want(200, w.signIn(adminPassword), "POST", "/api/v1/flags/commandPalette", `{"enabled": true}`)
	})
}

// TestContractBearer covers "Bearer": access tokens of a provider, opaque ones, and refused ones.
func TestContractBearer(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	member := map[string]any{"org": "default", "groups": []string{"platform-viewers"}}
	with := func(more map[string]any) map[string]any {
		all := maps.Clone(member)
		maps.Copy(all, more)
		return all
	}
	w.issuer.Opaque("opaque", with(map[string]any{"active": true, "sub": "1001", "aud": idptest.Audience}))
	for name, token := range map[string]string{"access token": w.issuer.AccessToken(member), "opaque token": "opaque"} {
		t.Run(name, func(t *testing.T) {
			w := w.on(t)
			a := w.want(200, bearer(token), "GET", "/api/auth/me", "")
			wantValue("auth_method", "idp-bearer")(w, a)
			wantValue("sub", "campus:1001")(w, a)
		})
	}
	for name, token := range map[string]string{
		"ID token by typ":   w.issuer.Sign(map[string]any{"typ": "ID"}, with(map[string]any{"iss": w.issuer.URL, "sub": "1", "aud": idptest.Audience, "exp": time.Now().Unix() + 60})),
		"ID token by hash":  w.issuer.AccessToken(with(map[string]any{"at_hash": "x"})),
		"audience":          w.issuer.AccessToken(with(map[string]any{"aud": "elsewhere"})),
		"expired":           w.issuer.AccessToken(with(map[string]any{"exp": time.Now().Unix() - 3600})),
		"no signature":      idptest.Unsigned(nil, with(map[string]any{"iss": w.issuer.URL, "sub": "1", "aud": idptest.Audience, "exp": time.Now().Unix() + 60})),
		"unknown to anyone": "made-up",
	} {
		t.Run("401 "+name, func(t *testing.T) {
			a := w.on(t).refused(401, "invalid_token", bearer(token), "GET", "/api/auth/me", "")
			if got := a.header.Get("WWW-Authenticate"); !strings.Contains(got, `error="invalid_token"`) {
				t.Errorf(`got WWW-Authenticate %q, want error="invalid_token"`, got)
			}
		})
	}
	t.Run("403 no_role", func(t *testing.T) {
		w.on(t).refused(403, "no_role", bearer(w.issuer.AccessToken(map[string]any{"org": "default"})), "GET", "/api/auth/me", "")
	})
	t.Run("429 for made-up tokens of one address", func(t *testing.T) {
		w := w.on(t)
		flood := func(token string) answer {
			return w.call(bearer(token), "GET", "/api/auth/me", "", "X-Forwarded-For", "192.0.2.9")
		}
		refused := 0
		for i := range 125 {
			if a := flood(fmt.Sprint("made-up-", i)); a.status == 429 {
				refused++
			}
		}
		if asked := w.issuer.Requests("/introspect"); refused == 0 || asked > 130 {
			t.Errorf("got %d refused and %d questions to the provider, want at most 120 of the address", refused, asked)
		}
		if a := flood("opaque"); a.status != 200 {
			t.Errorf("a token that is known from before: got %d %s, want 200", a.status, a.body)
		}
		w.refused(401, "invalid_token", bearer("made-up-elsewhere"), "GET", "/api/auth/me", "")
	})
}
