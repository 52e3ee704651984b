package cli

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
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

// expired returns a sign-in whose token has expired.
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

// Codes and tokens go to no address that others can read on the way.
func TestSignInRefusesPlainEndpoints(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"authorization", "token", "device", "revocation"} {
		for _, address := range []string{"http://idp.example/" + name, "file:///etc/passwd", "https:///" + name} {
			t.Run(name+" "+address, func(t *testing.T) {
				t.Parallel()
				s := newSignInWorld(t)
				s.endpoint[name] = address
				r := runMLP(t, s.vars, "", "auth", "login", "--device")
				if r.code != 1 || !strings.Contains(r.err, name) || !strings.Contains(r.err, "is no https address") {
					t.Errorf("got %+v, want the endpoint refused", r)
				}
			})
		}
	}
}

// The browser sees that mlp has the answer, although mlp refuses it at once and ends.
func TestBrowserSeesTheAnswer(t *testing.T) {
	t.Parallel()
	s := newSignInWorld(t)
	told, talk := io.Pipe()
	env := &Env{Out: io.Discard, Err: talk, HTTP: httpClient()}
	ended := make(chan error, 1)
	go func() {
		_, err := env.signInByBrowser(t.Context(), identityProvider{Authorization: s.url + "/authorize", Token: s.url + "/token"}.client("mlp", nil), identityProvider{Issuer: s.url}, true)
		talk.Close()
		ended <- err
	}()
	line, err := bufio.NewReader(told).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, address, _ := strings.Cut(strings.TrimSpace(line), ": ")
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	answer := url.Values{"state": {q.Get("state")}, "code": {"c"}, "iss": {"https://other.example"}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, q.Get("redirect_uri")+"?"+answer.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := httpClient().Do(req)
	if err != nil {
		t.Fatalf("got %v, want the text for the browser", err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	text, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(text), "You can close this window") {
		t.Errorf("got %q and %v, want the text for the browser", text, err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "another issuer") {
		t.Errorf("got %v, want the other issuer refused", err)
	}
}
