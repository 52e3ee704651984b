package dashboard_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/mlp-platform/platform/libs/apitest"
	"github.com/mlp-platform/platform/libs/testenv"
	dashboard "github.com/mlp-platform/platform/services/dashboard-bff"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/idp/idptest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/recordstest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/viewtest"
)

// The files contract_*_test.go prove the contract row by row: a test is one table, a subtest one row and has its name.
// The dashboard runs as in production, on a real Postgres, NATS and Redis. The services behind it replay real answers
// recorded by package viewtest, and the assistant its recorded streams. Every answer is also checked against the API's
// document.

// The broker leaves the loop of a stream's file, and the clock that it reads, when a stream is made while it shuts down.
func TestMain(m *testing.M) {
	testenv.Main(m, goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server.(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server/ats.Register.func1"))
}

const (
	viewerPassword = "viewer-of-the-tests"
	adminPassword  = "admin-of-the-tests"
	jwtSecret      = "a-secret-of-the-tests-with-more-than-32-bytes"
	secretKey      = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlBQkNERUY="
)

// required returns the settings without which nothing starts.
func required(database string) []string {
	return []string{
		"PLATFORM_DATABASE_URL=" + database, "DASHBOARD_VIEWER_PASSWORD=" + viewerPassword, "DASHBOARD_ADMIN_PASSWORD=" + adminPassword,
		"DASHBOARD_JWT_SECRET=" + jwtSecret, "DASHBOARD_SECRET_KEY=" + secretKey,
	}
}

// world is a running dashboard with all that it talks to.
type world struct {
	t          testing.TB
	url, tools string
	services   *viewtest.Kit
	records    *recordstest.ControlPlane // alerts and the ledger
	assistant  *assistantStandIn
	issuer     *idptest.Issuer // the provider campus
	pool       *pgxpool.Pool
	addresses  *atomic.Int64
	trustFile  string
	stop       func()
}

// redisDatabases gives each world a separate database of one Redis.
var redisDatabases atomic.Int64

// startWorld starts a dashboard; environ replaces settings.
func startWorld(t testing.TB, environ ...string) *world {
	t.Helper()
	database := testenv.Migrated(t, "contract", func(ctx context.Context, url string) error {
		cfg, err := dashboard.LoadConfig(required(url))
		if err != nil {
			return err
		}
		return dashboard.Migrate(ctx, cfg)
	})
	w := &world{
		t: t, services: viewtest.New(t), records: recordstest.NewControlPlane(t), assistant: startAssistant(t), issuer: idptest.New(t),
		pool: recordstest.Reopen(t, database), addresses: &atomic.Int64{},
	}
	records, err := url.Parse(w.records.URL)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(records)
	w.services.ControlPlane.Handle("/alerts", forward.ServeHTTP)
	w.services.ControlPlane.Handle("/audit/events", forward.ServeHTTP)
	w.services.Tracker.Answer("/health", 200, "{}")
	w.services.Serving.Answer("/livez", 200, "{}")
	w.services.ControlPlane.Answer("/livez", 200, "{}")
	dir := t.TempDir()
	w.trustFile = w.writeTrust(dir)
	redis := strings.TrimSuffix(testenv.Redis(t), "/0") + fmt.Sprint("/", redisDatabases.Add(1)%15+1)
	settings := append(required(database),
		"NATS_URL="+testenv.NATS(t), "REDIS_URL="+redis, "DRAIN_DELAY=0s", "DASHBOARD_SESSION_COOKIE_SECURE=false", "DASHBOARD_TRUSTED_PROXIES=127.0.0.1",
		"TRACKING_URI="+w.services.Tracker.URL, "SERVING_URL="+w.services.Serving.URL, "CONTROL_PLANE_URL="+w.services.ControlPlane.URL,
		"ASSISTANT_URL="+w.assistant.URL, "ASSISTANT_READONLY_KEY="+readonlyKey, "ASSISTANT_OPERATOR_KEY="+operatorKey, "ORCHESTRATOR_API_URL=", "BUS_BRIDGE_URL=",
		"DASHBOARD_ACT_KEY_FILE="+filepath.Join(dir, "act.key"), "PLATFORM_DOCS_ROOT=../..", "PLATFORM_IAM_CONFIG="+w.trustFile)
	cfg, err := dashboard.LoadConfig(append(settings, environ...))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []*net.Listener{&cfg.Listener, &cfg.ToolsListener} {
		if *l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	w.url, w.tools = "http://"+cfg.Listener.Addr().String(), "http://"+cfg.ToolsListener.Addr().String()
	if !slices.ContainsFunc(environ, func(s string) bool { return strings.HasPrefix(s, "DASHBOARD_PUBLIC_URL=") }) {
		cfg.PublicURL, cfg.ToolsURL = w.url, w.tools // LoadConfig has made them of the default addresses
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- dashboard.Run(ctx, cfg, slog.New(slog.DiscardHandler)) }()
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the dashboard ended with %v, want no error", err)
		}
	}
	t.Cleanup(w.stop)
	// A broker that is stopped while it creates the stream leaves goroutines behind.
	testenv.Eventually(t, time.Minute, func() error {
		if a := w.call(nobody, "GET", "/readyz", "", "Host", strings.SplitN(cfg.PublicURL, "://", 2)[1]); a.status != http.StatusOK {
			return fmt.Errorf("not ready: %s", a.body)
		}
		return nil
	})
	return w
}

// writeTrust writes the trust file with one provider, campus, whose groups platform-admins and platform-viewers give the
// roles and whose claim tenant names the tenant.
func (w *world) writeTrust(dir string) string {
	w.t.Helper()
	secret, file := filepath.Join(dir, "client-secret"), filepath.Join(dir, "trust.yaml")
	text := "version: 1\nproviders:\n" + w.issuer.Trust("campus", `  tenant_claim: org
  tenants_allowed: [default, other]
  step_up: {acr_values: [gold], max_age_s: 900}
  introspection: {client_id: dashboard, client_secret_ref: "env:SECRET"}
`)
	text = strings.ReplaceAll(text, "env:SECRET", "file:"+secret)
	for name, content := range map[string]string{secret: idptest.ClientSecret, file: text} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	return file
}

// on returns the world for a subtest, so that failures are reported there.
func (w *world) on(t testing.TB) *world {
	other := *w
	other.t = t
	return &other
}

// person is the credentials that a request carries.
type person []string // header pairs

var nobody person

func bearer(token string) person { return person{"Authorization", "Bearer " + token} }

// provenCookie returns a session's cookie with the proof that the dashboard's own page sent it.
func provenCookie(cookie string) person { return person{"Cookie", cookie, "X-PLATFORM-CSRF", "1"} }

// answer is a response with its body read.
type answer struct {
	t       testing.TB
	request string
	status  int
	header  http.Header
	body    []byte
}

var client = &http.Client{
	Timeout: 2 * time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport: &http.Transport{DisableKeepAlives: true},
}

// call sends each request from a different address, so that no per-address limit is reached by chance.
func (w *world) call(who person, method, path, body string, header ...string) answer {
	w.t.Helper()
	address := path
	if strings.HasPrefix(path, "/") {
		address = w.url + path
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	n := w.addresses.Add(1)
	req.Header.Set("X-Forwarded-For", fmt.Sprintf("10.1.%d.%d", n/250, n%250+1))
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, pairs := range [][]string{who, header} {
		for i := 0; i+1 < len(pairs); i += 2 {
			if req.Header.Set(pairs[i], pairs[i+1]); pairs[i] == "Host" {
				req.Host = pairs[i+1]
			}
		}
	}
	res, err := client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	a := answer{w.t, method + " " + path, res.StatusCode, res.Header, raw}
	if strings.HasPrefix(address, w.url) && !strings.HasPrefix(path, "/api/proxy/") { // whose paths have slashes, and whose answers are the tools'
		if err := recordstest.Document.Conforms(req, apitest.Answer{Status: a.status, Header: a.header, Body: a.body}); err != nil {
			w.t.Errorf("%s: got an answer unlike the API's document: %v\n%s", a.request, err, a.body)
		}
	}
	return a
}

// want calls and requires an answer with that status.
func (w *world) want(status int, who person, method, path, body string, header ...string) answer {
	w.t.Helper()
	a := w.call(who, method, path, body, header...)
	if a.status != status {
		w.t.Fatalf("%s: got %d %s, want %d", a.request, a.status, a.body, status)
	}
	return a
}

// refused calls and requires a problem document with that code.
func (w *world) refused(status int, code string, who person, method, path, body string, header ...string) answer {
	w.t.Helper()
	a := w.call(who, method, path, body, header...)
	if got := a.code(); a.status != status || got != code {
		w.t.Errorf("%s: got %d %s: %s, want %d %s", a.request, a.status, got, a.body, status, code)
	}
	return a
}

func (a answer) code() string {
	var p struct{ Code string }
	_ = json.Unmarshal(a.body, &p)
	return p.Code
}

// at returns a member by its path, such as registry.rows.0.name; nil if absent.
func (a answer) at(path string) any {
	a.t.Helper()
	var v any
	if err := json.Unmarshal(a.body, &v); err != nil {
		a.t.Fatalf("%s: got %s, want JSON", a.request, a.body)
	}
	return memberAt(v, path)
}

func memberAt(v any, path string) any {
	if path == "" {
		return v
	}
	for name := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[name]
		case []any:
			i := -1
			if _, err := fmt.Sscan(name, &i); err != nil || i < 0 || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

// hasMembers checks the members that the contract names, by their exact names, of the object at path ("" is the body).
func (a answer) hasMembers(path, names string) {
	a.t.Helper()
	var v any
	if err := json.Unmarshal(a.body, &v); err != nil {
		a.t.Fatalf("%s: got %s, want JSON", a.request, a.body)
	}
	object, ok := memberAt(v, path).(map[string]any)
	if !ok {
		a.t.Errorf("%s: got %v at %q, want an object with %s; all of it: %s", a.request, v, path, names, a.body)
		return
	}
	for name := range strings.FieldsSeq(names) {
		if _, ok := object[name]; !ok {
			a.t.Errorf("%s: %q has no member %s: %v", a.request, path, name, object)
		}
	}
}

// hasHeader compares headers, pairs of name and value.
func (a answer) hasHeader(pairs ...string) {
	a.t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		if got := a.header.Get(pairs[i]); got != pairs[i+1] {
			a.t.Errorf("%s: got %s %q, want %q", a.request, pairs[i], got, pairs[i+1])
		}
	}
}

// signIn returns a new password session.
func (w *world) signIn(password string) person { return bearer(w.token(password)) }

func (w *world) token(password string) string {
	w.t.Helper()
	return w.want(200, nobody, "POST", "/api/auth/login", `{"password": "`+password+`"}`).at("token").(string)
}

// cookieOf returns the pair name=value of a cookie that an answer sets.
func (a answer) cookieOf(name string) (pair string, whole *http.Cookie) {
	a.t.Helper()
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		if c.Name == name {
			return c.Name + "=" + c.Value, c
		}
	}
	return "", nil
}

// signOn signs a person of the provider campus in and returns their session's cookie.
func (w *world) signOn(claims map[string]any) string {
	w.t.Helper()
	all := map[string]any{"sub": "1001", "org": "default", "groups": []string{"platform-admins"}, "acr": "gold", "name": "Ada"}
	for name, v := range claims {
		all[name] = v
	}
	w.issuer.SignsIn(all)
	callback, browser := w.authorize("")
	done := w.want(302, person{"Cookie", browser}, "GET", callback, "")
	session, _ := done.cookieOf("platform_session")
	if session == "" {
		w.t.Fatalf("the sign-in led to %s without a session", done.header.Get("Location"))
	}
	return session
}

// authorize begins a sign-in and goes to the provider; it returns its answer's address and the browser's cookie.
func (w *world) authorize(query string) (callback, browser string) {
	w.t.Helper()
	begun := w.want(302, nobody, "GET", "/api/auth/sso/campus/login"+query, "")
	browser, _ = begun.cookieOf("platform_sso")
	asked := w.want(302, nobody, "GET", begun.header.Get("Location"), "")
	return strings.TrimPrefix(asked.header.Get("Location"), w.url), browser
}

// claimsOf reads a token without verifying it.
func claimsOf(t testing.TB, token string) map[string]any {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("got %q, want a JWT", token)
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// audits returns the facts of an action so far.
func (w *world) audits(action string) []map[string]any {
	w.t.Helper()
	return recordstest.Audits(w.t, w.pool, action)
}
