package caller_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/caller"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
)

const (
	adminKey    = "ki-admin-0123456789abcdef"
	operatorKey = "ki-op-0123456789abcdef"
	readonlyKey = "ki-ro-0123456789abcdef"
	demoSecret  = "0123456789abcdef0123456789abcdef"
)

var now = time.Unix(1764000000, 0)

func fixedNow() time.Time { return now }

var keys = caller.Config{
	AdminKeys: "ki-admin-another-long-one.x.y, " + adminKey + " ,,", OperatorKeys: operatorKey, ReadonlyKeys: readonlyKey,
	Backend: "hmac", DemoSecret: demoSecret, Addr: "0.0.0.0:18004", Now: fixedNow,
}

func newCallers(t testing.TB, cfg caller.Config) *caller.Callers {
	t.Helper()
	c, err := caller.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newServer responds with the caller, and mints demo keys.
func newServer(c *caller.Callers) *echo.Echo {
	e := echo.New()
	e.HTTPErrorHandler = fault.Handler(slog.New(slog.NewTextHandler(io.Discard, nil)))
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(ec echo.Context) error {
			ec.Response().Header().Set("X-Request-ID", "req-1")
			return next(ec)
		}
	})
	who := func(ec echo.Context) error {
		ctx := ec.Request().Context()
		w, _ := caller.FromContext(ctx)
		p, _ := auth.FromContext(ctx)
		return ec.String(http.StatusOK, w.Principal+" "+string(w.Role)+" "+w.Via+" "+p.Name)
	}
	e.GET("/v1/who", who, c.Middleware)
	e.POST("/v1/who", who, c.Middleware)
	e.GET("/v1/broken", func(echo.Context) error { return auth.InvalidCredential.New("A neighbour's.") }, c.Middleware)
	e.POST("/v1/auth/demo-keys", func(ec echo.Context) error {
		w, _ := caller.FromContext(ec.Request().Context())
		body, err := io.ReadAll(ec.Request().Body)
		if err != nil {
			return err
		}
		minted, err := c.Mint(w, body)
		if err != nil {
			return err
		}
		return ec.JSON(http.StatusOK, minted)
	}, c.Middleware)
	return e
}

func sendRequest(e *echo.Echo, method, path, body string, header ...string) *http.Response {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:18004"
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w.Result()
}

func bodyOf(t testing.TB, resp *http.Response) string {
	t.Helper()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestKeys(t *testing.T) {
	t.Parallel()
	e := newServer(newCallers(t, keys))
	demo := newCallers(t, keys)
	minted, err := demo.Mint(caller.Caller{Role: guard.Admin}, []byte(`{"email":"ana@example.org"}`))
	if err != nil {
		t.Fatal(err)
	}
	for header, want := range map[string]string{
		"Bearer " + adminKey:                       caller.KeyID(adminKey) + " admin",
		"bearer " + operatorKey:                    caller.KeyID(operatorKey) + " operator",
		"BEARER   " + readonlyKey + " ":            caller.KeyID(readonlyKey) + " readonly",
		"Bearer ki-admin-another-long-one.x.y":     caller.KeyID("ki-admin-another-long-one.x.y") + " admin",
		"Bearer " + minted.APIKey:                  caller.KeyID(minted.APIKey) + " readonly",
		"Bearer " + strings.ToUpper(adminKey):      "",
		"Bearer " + adminKey[:len(adminKey)-1]:     "",
		"Bearer " + adminKey + "0":                 "",
		"Bearer ki-admin-" + operatorKey:           "",
		"Bearer ki-admin-0123456789abcdeg":         "",
		"Bearer 0123456789abcdef":                  "",
		"Bearer ki-admin-":                         "",
		"Bearer " + adminKey + "," + operatorKey:   "",
		"Bearer " + demoSecret:                     "",
		"Bearer " + minted.APIKey[:len("ki-ro-x")]: "",
	} {
		resp := sendRequest(e, http.MethodGet, "/v1/who", "", "Authorization", header)
		id, _, _ := strings.Cut(want, " ")
		switch got := bodyOf(t, resp); {
		case want == "" && (resp.StatusCode != 401 || !strings.Contains(resp.Header.Get("WWW-Authenticate"), `error="invalid_token"`)):
			t.Errorf("%s: %d %s", header, resp.StatusCode, got)
		case want != "" && got != want+"  "+id:
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
	if id := caller.KeyID(adminKey); len(id) != 16 || strings.Trim(id, "0123456789abcdef") != "" {
		t.Errorf(`key id %q; want len(id) == 16 && strings.Trim(id, "0123456789abcdef") == ""`, id)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	on, off := newServer(newCallers(t, keys)), newServer(newCallers(t, caller.Config{Addr: "127.0.0.1:18004"}))
	static := keys
	static.Backend = "static"
	noDemo := newServer(newCallers(t, static))
	const mint = "/v1/auth/demo-keys"
	for name, resp := range map[string]*http.Response{
		"key_missing":              sendRequest(on, "GET", "/v1/who", ""),
		"key_of_other_scheme":      sendRequest(on, "GET", "/v1/who", "", "Authorization", "Basic YTpi"),
		"key_empty":                sendRequest(on, "GET", "/v1/who", "", "Authorization", "Bearer "),
		"key_in_the_url":           sendRequest(on, "GET", "/v1/who?api_key="+adminKey, ""),
		"key_unknown":              sendRequest(on, "GET", "/v1/who", "", "Authorization", "Bearer ki-admin-nobody"),
		"key_malformed":            sendRequest(on, "GET", "/v1/who", "", "Authorization", "Bearer a b"),
		"key_twice":                sendRequest(on, "GET", "/v1/who", "", "Authorization", "Bearer "+adminKey, "Authorization", "Bearer "+operatorKey),
		"unknown_route":            sendRequest(on, "GET", "/v1/nothing", ""),
		"foreign_host":             sendRequest(off, "GET", "/v1/who", "", "Host", "evil.example:18004"),
		"foreign_origin":           sendRequest(off, "GET", "/v1/who", "", "Origin", "http://evil.example"),
		"mint_without_key":         sendRequest(on, "POST", mint, ""),
		"mint_not_admin":           sendRequest(on, "POST", mint, "{", "Authorization", "Bearer "+operatorKey),
		"mint_not_admin_unset":     sendRequest(noDemo, "POST", mint, "{", "Authorization", "Bearer "+operatorKey),
		"mint_unavailable":         sendRequest(noDemo, "POST", mint, "{", "Authorization", "Bearer "+adminKey),
		"mint_malformed":           sendRequest(on, "POST", mint, "{", "Authorization", "Bearer "+adminKey),
		"mint_empty":               sendRequest(on, "POST", mint, "", "Authorization", "Bearer "+adminKey),
		"mint_no_email":            sendRequest(on, "POST", mint, "{}", "Authorization", "Bearer "+adminKey),
		"mint_bad_email":           sendRequest(on, "POST", mint, `{"email":"ana"}`, "Authorization", "Bearer "+adminKey),
		"mint_email_type":          sendRequest(on, "POST", mint, `{"email":1}`, "Authorization", "Bearer "+adminKey),
		"mint_ttl_zero":            sendRequest(on, "POST", mint, `{"email":"ana@example.org","ttl_hours":0}`, "Authorization", "Bearer "+adminKey),
		"mint_both":                sendRequest(on, "POST", mint, `{"email":"ana","ttl_hours":"1"}`, "Authorization", "Bearer "+adminKey),
		"mint_unknown_member":      sendRequest(on, "POST", mint, `{"email":"ana@example.org","role":"admin"}`, "Authorization", "Bearer "+adminKey),
		"mint_bad_before_too_long": sendRequest(on, "POST", mint, `{"email":"ana","ttl_hours":721}`, "Authorization", "Bearer "+adminKey),
		"mint_too_long":            sendRequest(on, "POST", mint, `{"email":"ana@example.org","ttl_hours":721}`, "Authorization", "Bearer "+adminKey),
		"minted":                   sendRequest(on, "POST", mint, `{"email":"ana@example.org","ttl_hours":24}`, "Authorization", "Bearer "+adminKey),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := assistanttest.DumpResponse(t, resp)
			assistanttest.CheckGolden(t, name+".http", got)
			if strings.Contains(string(got), "0123456789") {
				t.Error("tells a key")
			}
		})
	}
}

func TestAuthOff(t *testing.T) {
	t.Parallel()
	c := newCallers(t, caller.Config{Addr: "localhost:18004", AllowedOrigins: []string{"http://localhost:3000"}})
	e := newServer(c)
	for _, tc := range []struct {
		host, origin string
		status       int
	}{
		{"127.0.0.1:18004", "", 200}, {"127.0.0.1", "", 200}, {"127.1.2.3:1", "", 200}, {"localhost", "", 200}, {"LocalHost.:18004", "", 200}, {"[::1]:18004", "", 200}, {"[::1]", "", 200},
		{"", "", 403}, {"evil.example", "", 403}, {"localhost.evil.example", "", 403}, {"127.0.0.1.evil.example:18004", "", 403}, {"10.0.0.1:18004", "", 403}, {"0.0.0.0:18004", "", 403}, {"[::]", "", 403},
		{"localhost:18004", "http://localhost:18004", 200}, {"localhost:18004", "http://LOCALHOST:3000", 200}, {"127.0.0.1:18004", "http://127.0.0.1:18004", 200},
		{"localhost:18004", "http://localhost:18005", 403}, {"localhost:18004", "https://localhost:18004", 403}, {"localhost:18004", "null", 403}, {"localhost:18004", "", 200},
		{"localhost:18004", "http://evil.example", 403}, {"localhost:18004", "http://localhost:18004.evil.example", 403}, {"localhost:18004", "http://evil.example@localhost:18004x", 403},
	} {
		header := []string{"Host", tc.host, "Authorization", "Bearer whatever"}
		if tc.origin != "" {
			header = append(header, "Origin", tc.origin)
		}
		resp := sendRequest(e, http.MethodPost, "/v1/who", "", header...)
		if resp.StatusCode != tc.status {
			t.Errorf("%+v: %d; want resp.StatusCode == %v", tc, resp.StatusCode, tc.status)
		}
		if got := bodyOf(t, resp); tc.status == 200 && got != "local admin  local" {
			t.Errorf(`%+v: %q; want (tc.status != 200 || got == "local admin local")`, tc, got)
		}
	}
	if got := sendRequest(e, http.MethodGet, "/v1/who", "", "Origin", "http://127.0.0.1:18004", "Origin", "http://evil.example").StatusCode; got != 403 {
		t.Errorf("two origins: %d; want 403", got)
	}
}

func TestConfigurations(t *testing.T) {
	t.Parallel()
	const loopback, open = "127.0.0.1:18004", "0.0.0.0:18004"
	for name, tc := range map[string]struct {
		cfg      caller.Config
		open     bool
		faults   []string // each must be in the error; none: it starts
		warnings int
	}{
		"nothing":                      {cfg: caller.Config{Addr: loopback}, open: true},
		"nothing, beyond loopback":     {cfg: caller.Config{Addr: open}, faults: []string{"0.0.0.0:18004"}},
		"blanks are nothing":           {cfg: caller.Config{Addr: loopback, AdminKeys: " , ,"}, open: true},
		"keys":                         {cfg: keys},
		"static secret is nothing":     {cfg: caller.Config{Addr: loopback, DemoSecret: demoSecret}, open: true},
		"hmac without secret":          {cfg: caller.Config{Addr: loopback, Backend: "hmac"}, open: true, warnings: 1},
		"secret without admin":         {cfg: caller.Config{Addr: open, Backend: "hmac", DemoSecret: demoSecret}, warnings: 1},
		"short ones":                   {cfg: caller.Config{Addr: open, AdminKeys: "ki-admin-a,ki-admin-b", Backend: "hmac", DemoSecret: "short"}, warnings: 3},
		"four eyes with keys":          {cfg: caller.Config{Addr: open, AdminKeys: adminKey, FourEyes: true}},
		"four eyes without":            {cfg: caller.Config{Addr: loopback, FourEyes: true}, faults: []string{"four-eyes"}},
		"backend":                      {cfg: caller.Config{Addr: loopback, Backend: "ldap"}, faults: []string{"AUTH_BACKEND"}},
		"placeholder secret":           {cfg: caller.Config{Addr: loopback, Backend: "hmac", DemoSecret: "changeme"}, faults: []string{"DEMO_KEY_HMAC_SECRET"}},
		"hours":                        {cfg: caller.Config{Addr: loopback, DefaultHours: 721}, faults: []string{"DEFAULT_TTL"}},
		"negative hours":               {cfg: caller.Config{Addr: loopback, DefaultHours: -1, MaxHours: -1}, faults: []string{"DEFAULT_TTL", "MAX_TTL"}},
		"too many hours":               {cfg: caller.Config{Addr: loopback, MaxHours: 1 << 40}, faults: []string{"MAX_TTL"}},
		"another list's prefix":        {cfg: caller.Config{Addr: open, AdminKeys: adminKey + "," + operatorKey}, faults: []string{"ASSISTANT_ADMIN_KEYS: entry 2"}},
		"alerts among operators":       {cfg: caller.Config{Addr: open, OperatorKeys: "ki-alert-0123456789abcdef"}, faults: []string{"ASSISTANT_OPERATOR_KEYS: entry 1"}},
		"a key of alerts":              {cfg: caller.Config{Addr: open, AlertKeys: "ki-alert-0123456789abcdef"}},
		"no prefix":                    {cfg: caller.Config{Addr: open, ReadonlyKeys: "secret-of-mine"}, faults: []string{"ASSISTANT_READONLY_KEYS: entry 1"}},
		"bare prefix":                  {cfg: caller.Config{Addr: open, OperatorKeys: "ki-op-"}, faults: []string{"ASSISTANT_OPERATOR_KEYS: entry 1"}},
		"placeholder":                  {cfg: caller.Config{Addr: open, AdminKeys: "ki-admin-changeme-please-now"}, faults: []string{"entry 1 is a placeholder"}},
		"placeholder after the prefix": {cfg: caller.Config{Addr: open, AdminKeys: "ki-admin-example"}, faults: []string{"entry 1 is a placeholder"}},
		"blank within":                 {cfg: caller.Config{Addr: open, AdminKeys: "ki-admin-secret of mine"}, faults: []string{"blanks"}},
		"all faults at once":           {cfg: caller.Config{Addr: open, AdminKeys: "ki-op-x,ki-admin-", ReadonlyKeys: "y", Backend: "z"}, faults: []string{"ADMIN_KEYS: entry 1", "ADMIN_KEYS: entry 2", "READONLY_KEYS", "AUTH_BACKEND"}},
		"delegation to nobody":         {cfg: caller.Config{Addr: open, DelegationTrust: "{}", Once: onceOnly()}, faults: []string{"DELEGATION_TRUST_JSON: delegation trust: the trust map names no issuer"}},
		"delegation with a mistyped member": {cfg: caller.Config{Addr: open, DelegationTrust: `{"dashboard": {"publicKey": "AAAA", "tenants": ["default"], "scopes": ["admin"]}}`, Once: onceOnly()},
			faults: []string{`DELEGATION_TRUST_JSON: delegation trust: entry 1: unknown member "publicKey"`}},
		"delegation without memory": {cfg: caller.Config{Addr: open, DelegationTrust: "{}"}, faults: []string{"DELEGATION_TRUST_JSON"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := caller.New(tc.cfg)
			if len(tc.faults) > 0 {
				for _, f := range tc.faults {
					if err == nil || !strings.Contains(err.Error(), f) {
						t.Errorf("%v, want %q", err, f)
					}
				}
				for _, list := range []service.Secret{tc.cfg.AdminKeys, tc.cfg.OperatorKeys, tc.cfg.ReadonlyKeys, tc.cfg.DemoSecret} {
					for entry := range strings.SplitSeq(list.Reveal(), ",") {
						if len(entry) > 10 && strings.Contains(err.Error(), entry) {
							t.Errorf("the error tells an entry: %v; want (len(entry) <= 10 || !strings.Contains(err.Error(), entry))", err)
						}
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := sendRequest(newServer(c), http.MethodGet, "/v1/who", "").StatusCode == http.StatusOK; got != tc.open {
				t.Errorf("answers without a key: got %t, want %t", got, tc.open)
			}
			if len(c.Warnings()) != tc.warnings {
				t.Errorf("got %d warnings %q, want %d", len(c.Warnings()), c.Warnings(), tc.warnings)
			}
		})
	}
}

// once does for one process what libs/coord does for services.
type once struct {
	mu   sync.Mutex // guards used
	used map[string]bool
	err  error
}

func onceOnly() *once { return &once{used: map[string]bool{}} }

func (o *once) Once(_ context.Context, key string, _ time.Duration) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := !o.used[key]
	o.used[key] = true
	return first, o.err
}

const seed = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

func newDelegatingServer(t testing.TB, o *once, scopes string) (*echo.Echo, *auth.Delegator) {
	t.Helper()
	d, err := auth.NewDelegator("dashboard", seed)
	if err != nil {
		t.Fatal(err)
	}
	cfg := keys
	cfg.Now = nil // tokens are created with the real clock
	cfg.Once = o
	cfg.DelegationTrust = service.Secret(`{"dashboard":{"public_key":"` + d.PublicKey() + `","tenants":["default"],"scopes":` + scopes + `}}`)
	return newServer(newCallers(t, cfg)), d
}

func TestDelegation(t *testing.T) {
	t.Parallel()
	e, d := newDelegatingServer(t, onceOnly(), `["operator"]`)
	ask := func(method, path, token string) *http.Response {
		return sendRequest(e, method, path, "", "Authorization", "Bearer "+token)
	}
	mint := func(audience string, scopes ...string) string {
		token, err := d.Mint(audience, auth.Person{Name: "ana@example.org", Tenant: "default", Scopes: scopes})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	for scope, want := range map[string]string{"readonly": "readonly", "operator": "operator", "admin": "operator"} {
		if got := bodyOf(t, ask("GET", "/v1/who", mint("assistant", scope))); got != "ana@example.org "+want+" dashboard ana@example.org" {
			t.Errorf(`%s: %q; want got == "ana@example.org " + want + " dashboard ana@example.org"`, scope, got)
		}
	}
	token := mint("assistant", "operator", "read")
	for i, tc := range []struct {
		method, path string
		status       int
	}{{"GET", "/v1/who", 200}, {"POST", "/v1/who", 200}, {"GET", "/v1/who", 200}, {"POST", "/v1/who", 401}} {
		if got := ask(tc.method, tc.path, token).StatusCode; got != tc.status {
			t.Errorf("%d: %+v: %d; want got == %v", i, tc, got, tc.status)
		}
	}
	if got := ask("POST", "/v1/auth/demo-keys", mint("assistant", "operator")).StatusCode; got != 403 {
		t.Errorf("an operator's delegation mints a demo key: got %d, want 403", got)
	}
	for name, token := range map[string]string{"another service's": mint("inference", "operator"), "forged": token[:len(token)-4] + "AAAA", "no token": "a.b.c", "no key": "secret"} {
		resp := ask("GET", "/v1/who", token)
		if got := bodyOf(t, resp); resp.StatusCode != 401 || !strings.Contains(got, `"code":"unauthenticated"`) || !strings.Contains(resp.Header.Get("WWW-Authenticate"), `realm="assistant", error="invalid_token"`) {
			t.Errorf("%s: %d %s; want resp.StatusCode == 401 && strings.Contains(got, `\"code\":\"unauthenticated\"`) && …", name, resp.StatusCode, got)
		}
	}
	if resp := ask("GET", "/v1/who", mint("assistant", "read")); resp.StatusCode != 403 || !strings.Contains(bodyOf(t, resp), `"code":"forbidden"`) {
		t.Errorf("no role: %d; want resp.StatusCode == 403 && strings.Contains(bodyOf(t, resp), `\"code\":\"forbidden\"`)", resp.StatusCode)
	}
	// A route's error is passed on unchanged, whatever it looks like.
	if got := bodyOf(t, ask("GET", "/v1/broken", mint("assistant", "operator"))); !strings.Contains(got, `"code":"invalid_credential"`) {
		t.Errorf("%s; want strings.Contains(got, `\"code\":\"invalid_credential\"`)", got)
	}
	if got := ask("GET", "/v1/who", "ki-admin-another-long-one.x.y").StatusCode; got != 200 {
		t.Errorf("a key with two dots: %d; want 200", got)
	}
}

// A person cannot have the name of a caller without a person, and so cannot own that caller's sessions.
func TestDelegationForAReservedName(t *testing.T) {
	t.Parallel()
	e, d := newDelegatingServer(t, onceOnly(), `["operator"]`)
	id := caller.KeyID("ki-admin-some-key-that-there-is")
	for name, want := range map[string]int{
		id: 401, strings.ToUpper(id): 401, "local": 401, "anonymous": 401,
		id + "0": 200, id[:15]: 200, "g" + id[1:]: 200, "locally": 200,
	} {
		token, err := d.Mint("assistant", auth.Person{Name: name, Tenant: "default", Scopes: []string{"operator"}})
		if err != nil {
			t.Fatal(err)
		}
		resp := sendRequest(e, "GET", "/v1/who", "", "Authorization", "Bearer "+token)
		body := bodyOf(t, resp)
		if resp.StatusCode != want || want == 401 && (!strings.Contains(body, `"code":"unauthenticated"`) || !strings.Contains(resp.Header.Get("WWW-Authenticate"), "invalid_token")) {
			t.Errorf("%s: %d %s; want resp.StatusCode == want && …", name, resp.StatusCode, body)
		}
	}
}

func TestDelegationThatCannotBeRemembered(t *testing.T) {
	t.Parallel()
	o := onceOnly()
	o.err = errors.New("the store is down")
	e, d := newDelegatingServer(t, o, `["admin"]`)
	token, err := d.Mint("assistant", auth.Person{Name: "ana", Tenant: "default", Scopes: []string{"admin"}})
	if err != nil {
		t.Fatal(err)
	}
	resp := sendRequest(e, "POST", "/v1/who", "", "Authorization", "Bearer "+token)
	if got := bodyOf(t, resp); resp.StatusCode != 503 || !strings.Contains(got, `"code":"coordinator_unavailable"`) || !strings.Contains(got, `"type":"server_error"`) {
		t.Errorf("%d %s; want resp.StatusCode == 503 && strings.Contains(got, `\"code\":\"coordinator_unavailable\"`) && strings.Contains(got, `\"type\":\"server_error\"`)", resp.StatusCode, got)
	}
}
