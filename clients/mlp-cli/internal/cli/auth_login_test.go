package cli

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/config"
)

// signInWorld is a dashboard and the identity provider that it trusts, at one address. The real ones, whose failures and
// moments cannot be chosen, are signed in at by e2e/dashboard.
type signInWorld struct {
	url      string
	vars     map[string]string
	file     string
	endpoint map[string]string                                 // replaces endpoints of the discovery document
	during   func(*http.Request)                               // called by every request
	token    func(w http.ResponseWriter, r *http.Request) bool // answers in place of the token endpoint
}

func newSignInWorld(t *testing.T) *signInWorld {
	t.Helper()
	s := &signInWorld{endpoint: map[string]string{}, during: func(*http.Request) {}}
	answer := func(w http.ResponseWriter, doc any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(doc); err != nil {
			t.Error(err)
		}
	}
	identity := map[string]any{"sub": "ada", "role": "operator", "tenant": "default", "auth_method": "oidc", "capabilities": []string{},
		"auth_time": "2026-01-02T03:04:05Z", "expires_at": "2036-01-02T03:04:05Z"}
	mux := http.NewServeMux()
	for path, doc := range map[string]func() any{
		"/api/auth/login": func() any {
			return map[string]any{"token": "password-token", "role": "operator", "tenant": "default", "expires_at": "2036-01-02T03:04:05Z"}
		},
		"/api/auth/me":     func() any { return identity },
		"/api/auth/logout": func() any { return map[string]any{} },
		"/api/auth/sso/providers": func() any {
			return map[string]any{"local_login": true, "providers": []any{map[string]any{"name": "corp", "display_name": "Corp", "login_url": "/", "step_up": false,
				"cli": map[string]any{"client_id": "mlp", "issuer": s.url, "scopes": []string{"openid"}}}}}
		},
		"/.well-known/openid-configuration": func() any {
			at := func(name, path string) string { return cmp.Or(s.endpoint[name], s.url+path) }
			return map[string]any{"issuer": s.url, "authorization_endpoint": at("authorization", "/authorize"), "token_endpoint": at("token", "/token"),
				"device_authorization_endpoint": at("device", "/device"), "revocation_endpoint": at("revocation", "/revoke")}
		},
		"/device": func() any {
			return map[string]any{"device_code": "d", "user_code": "AB-CD", "verification_uri": s.url, "expires_in": 300, "interval": 1}
		},
		"/token": func() any {
			return map[string]any{"access_token": "sso-token", "refresh_token": "refresh-2", "token_type": "Bearer", "expires_in": 3600}
		},
		"/revoke": func() any { return map[string]any{} },
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			s.during(r)
			if path == "/token" && s.token != nil && s.token(w, r) {
				return
			}
			answer(w, doc())
		})
	}
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	s.url = srv.URL
	s.file = filepath.Join(t.TempDir(), "platform", "config.toml")
	s.vars = map[string]string{"PLATFORM_CONFIG": s.file, "DASHBOARD_URL": srv.URL}
	return s
}

// write stores a configuration file.
func (s *signInWorld) write(t *testing.T, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// expired is a sign-in whose token has expired.
func (s *signInWorld) expired() string {
	return "[auth]\ndashboard_token = 'old'\n[session]\nprovider = 'corp'\nissuer = '" + s.url + "'\nclient_id = 'mlp'\nrefresh_token = 'refresh-1'\nexpires_at = 2026-01-02T03:04:05Z\n"
}

// What another program stores while a command waits for the network stays stored.
func TestSignInKeepsWhatOthersStored(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, line, in, file, at, token string }{
		{"password", "auth login", "secret\n", "", "/api/auth/login", "password-token"},
		{"single sign-on", "auth login --device", "", "", "/token", "sso-token"},
		{"logout", "auth logout", "", "[auth]\ndashboard_token = 'old'\n", "/api/auth/logout", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSignInWorld(t)
			s.write(t, tc.file)
			s.during = func(r *http.Request) {
				if r.URL.Path == tc.at {
					s.write(t, tc.file+"[urls]\nserving = 'http://other.example'\n")
				}
			}
			if r := runMLP(t, s.vars, tc.in, strings.Fields(tc.line)...); r.code != 0 {
				t.Fatalf("got %+v, want exit 0", r)
			}
			f, err := config.Load(s.file)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.URLs["serving"]; got != "http://other.example" {
				t.Errorf("got the other program's value as %q, want it kept", got)
			}
			if got := f.Auth["dashboard_token"]; got != tc.token {
				t.Errorf("got the stored token %q, want %q", got, tc.token)
			}
		})
	}
}
