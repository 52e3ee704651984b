//go:build e2e

package dashboard_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/libs/auth"
)

// world is a seeded platform with two identity providers: the realm campus belongs to the tenant default, as password
// sessions do, and other to another tenant. Further replicas of the dashboard work on the same database.
type world struct {
	*harness.Platform
	url, tools string // the platform's own dashboard
	dir, docs  string
	issuer     *issuer
	db         *pgxpool.Pool
	database   string

	addresses atomic.Uint32
	mu        sync.Mutex // guards the fields below
	answers   bytes.Buffer
	logs      []string // files
	issued    []string // credentials given out
}

const foreignTenant = "other"

var shared struct {
	once sync.Once
	w    *world
}

const (
	// Both are several times what two idle cores need.
	startLimit = 3 * time.Minute
	seedLimit  = 8 * time.Minute
)

// sharedWorld is started by the first test that needs it.
func sharedWorld(t *testing.T) *world {
	t.Helper()
	shared.once.Do(func() { startWorld(t) })
	if shared.w == nil || shared.w.db == nil {
		t.Fatal("the shared platform did not start")
	}
	return shared.w
}

func startWorld(t *testing.T) {
	t.Helper()
	w := &world{issuer: newIssuer()}
	w.Platform, w.dir = harness.NewShared(t)
	shared.w = w
	w.docs = filepath.Join(w.dir, "documentation")
	writeDocs(t, w.docs)
	file := filepath.Join(w.dir, "trust.yaml")
	writeFile(t, file, w.trust())
	for _, kv := range [][2]string{
		{"PLATFORM_IAM_CONFIG", file}, {"E2E_ISSUER_SECRET", issuerSecret}, {"DASHBOARD_TRUSTED_PROXIES", "127.0.0.1"},
		{"DELEGATION_TRUST_JSON", w.delegationTrust(t)}, {"PLATFORM_DOCS_ROOT", w.docs},
		{"ALERT_SECONDS", "2"}, // alerts are evaluated this often; the default is as long as the rows wait
	} {
		w.Set(kv[0], kv[1])
	}
	w.url, w.tools = "http://"+w.Setting("DASHBOARD_ADDR"), "http://"+w.Setting("DASHBOARD_TOOLS_ADDR")
	w.logs = append(w.logs, filepath.Join(w.Dir, "platform.log"))
	w.Start(t, startLimit)
	w.WaitOutput(t, "Next:", seedLimit, time.Now())
	var err error
	if w.database, err = databaseURL(w.Platform); err != nil {
		t.Fatal(err)
	}
	db, err := pgxpool.New(context.Background(), w.database)
	if err != nil {
		t.Fatal(err)
	}
	w.db = db
}

// trust is the trust file of the platform and of its replicas.
func (w *world) trust() string {
	return "version: 1\nproviders:\n" +
		w.issuer.trust("campus", "default", "  step_up: {acr_values: [gold], max_age_s: 300}\n") +
		w.issuer.trust("other", foreignTenant, "")
}

// delegationTrust makes the services accept tokens that the dashboard signs for both tenants. The platform would trust
// its own dashboard for the tenant default only.
func (w *world) delegationTrust(t *testing.T) string {
	t.Helper()
	if err := os.MkdirAll(w.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	delegator, err := auth.LoadOrCreateDelegator("dashboard", filepath.Join(w.Dir, "delegation.key"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]any{"dashboard": map[string]any{
		"public_key": delegator.PublicKey(), "tenants": []string{auth.LegacyTenant, foreignTenant}, "scopes": []string{"read", "write", "predict", "admin"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// databaseURL returns that of a platform's embedded Postgres, from its files.
func databaseURL(p *harness.Platform) (string, error) {
	password, err := os.ReadFile(filepath.Join(p.Dir, "postgres", "password"))
	if err != nil {
		return "", err
	}
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword("platform", strings.TrimSpace(string(password))), Path: "/platform",
		RawQuery: url.Values{"host": {filepath.Join(p.Dir, "postgres", "data")}, "port": {"5432"}}.Encode(),
	}).String(), nil
}

// natsURL includes the token of the embedded NATS.
func (w *world) natsURL(t *testing.T, addr string) string {
	t.Helper()
	return "nats://" + w.Secret(t, "nats_token") + "@" + addr
}

// secretKey derives the key of stored secrets as the platform does.
func (w *world) secretKey(t *testing.T) string {
	t.Helper()
	key := sha256.Sum256([]byte("dashboard secret key/" + w.Secret(t, "dashboard_sealing")))
	return base64.StdEncoding.EncodeToString(key[:])
}

// who is a credential: a bearer, or cookies.
type who struct {
	bearer string
	jar    http.CookieJar
	header []string // pairs added to each request
}

// answer is a fully read response.
type answer struct {
	harness.Answer
	location string
}

var (
	wire       = &http.Transport{MaxIdleConnsPerHost: 64}
	wireClient = http.Client{Transport: wire, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
)

// call sends a request and stores the answer for the search for secrets. A body is JSON, or a string sent unchanged.
func (w *world) call(t testing.TB, method, address string, c who, body any, header ...string) answer {
	t.Helper()
	a, err := w.tryCall(method, address, c, body, header...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, address, err)
	}
	return a
}

// tryCall is call for requests that may fail.
func (w *world) tryCall(method, address string, c who, body any, header ...string) (answer, error) {
	a, err := send(method, address, c, body, header...)
	if err != nil {
		return a, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	const kept = 64 << 20
	if w.answers.Len() < kept && !strings.HasSuffix(address, "/api/auth/login") {
		shown := a.Header.Clone()
		shown.Del("Set-Cookie") // may return a session's secret
		fmt.Fprintf(&w.answers, "%s %s %d %v\n%s\n", method, address, a.Status, shown, a.Body)
	}
	return a, nil
}

// send is tryCall without a record of the answer.
func send(method, address string, c who, body any, header ...string) (answer, error) {
	req, err := newRequest(method, address, c, body, header...)
	if err != nil {
		return answer{}, err
	}
	client := wireClient
	client.Jar = c.jar
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	return answer{harness.Answer{Status: resp.StatusCode, Header: resp.Header, Body: raw}, resp.Header.Get("Location")}, err
}

func newRequest(method, address string, c who, body any, header ...string) (*http.Request, error) {
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(raw)
	}
	req, err := http.NewRequest(method, address, content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.bearer != "" {
		req.Header.Set("Authorization", "Bearer "+c.bearer)
	}
	header = append(c.header[:len(c.header):len(c.header)], header...)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return req, nil
}

// want is call with the status that the answer must have.
func (w *world) want(t testing.TB, status int, method, address string, c who, body any, header ...string) answer {
	t.Helper()
	a := w.call(t, method, address, c, body, header...)
	if a.Status != status {
		t.Fatalf("%s %s: got %d, want %d\n%s", method, address, a.Status, status, a.Body)
	}
	return a
}

// problem fails unless the answer is this problem.
func (a answer) problem(t testing.TB, status int, code string) {
	t.Helper()
	var p struct {
		Code, Detail string
	}
	_ = json.Unmarshal(a.Body, &p)
	if a.Status != status || p.Code != code || p.Detail == "" {
		t.Errorf("got %d %s, want %d %s with a detail", a.Status, a.Body, status, code)
	}
}

// decode parses the answer into a T.
func decode[T any](t testing.TB, a answer) T {
	t.Helper()
	var out T
	if err := json.Unmarshal(a.Body, &out); err != nil {
		t.Fatalf("got %d, not %T: %v\n%s", a.Status, out, err, a.Body)
	}
	return out
}

// freshAddress is an unused client address: limits count by it.
func (w *world) freshAddress() string {
	n := w.addresses.Add(1)
	return fmt.Sprintf("198.51.%d.%d", n/250, n%250+1)
}

// passwordLogin returns a new session of a role; tokens are valid on every replica.
func (w *world) passwordLogin(t *testing.T, role string) who {
	t.Helper()
	var a answer
	harness.Eventually(t, frameLimit, func() error { // all rows together may be over 20 logins a second
		a = w.call(t, http.MethodPost, w.url+"/api/auth/login", who{}, map[string]string{"password": w.Secret(t, "dashboard_"+role+"_password")},
			"X-Forwarded-For", w.freshAddress())
		if a.Status != http.StatusOK {
			return fmt.Errorf("login as %s: %d %s", role, a.Status, a.Body)
		}
		return nil
	})
	token, _ := a.JSON(t)["token"].(string)
	w.noteCredential(token)
	return who{bearer: token}
}

func (w *world) noteCredential(secret string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.issued = append(w.issued, secret)
}

// foreigner returns a bearer token of the other tenant.
func (w *world) foreigner(subject, role string) who {
	token := w.issuer.accessToken("other", subject, "platform-"+role, nil)
	w.noteCredential(token)
	return who{bearer: token}
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
