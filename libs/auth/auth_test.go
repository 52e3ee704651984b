package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
)

var rules = auth.Rules{Scopes: map[string][]string{
	"read": nil, "write": {"changes", "retrain", "approve", "manage"},
	"changes": nil, "retrain": nil, "approve": nil, "manage": nil,
}}

const (
	legacySecret = "legacy-0123456789abcdef"
	ciSecret     = "ci-0123456789abcdef"
	opSecret     = "op-0123456789abcdef"
	twoPeople    = `{"` + ciSecret + `": {"principal": "ci", "tenant": "default", "scopes": ["read", "changes"]},
		"` + opSecret + `": {"principal": "operator", "tenant": "acme", "scopes": ["write"]}}`
)

// callRoute calls a route that needs scope and returns the status and the problem's
// code.
func callRoute(t *testing.T, a *auth.Authenticator, scope string, header ...string) (*http.Response, string, auth.Principal) {
	t.Helper()
	var seen auth.Principal
	e := echo.New()
	e.HTTPErrorHandler = problem.Handler(slog.New(slog.DiscardHandler))
	e.GET("/", func(c echo.Context) error {
		seen, _ = auth.FromContext(c.Request().Context())
		return c.NoContent(http.StatusOK)
	}, a.Require(scope))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if header != nil {
		r.Header["Authorization"] = header
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	resp := w.Result()
	if resp.StatusCode == http.StatusOK {
		return resp, "", seen
	}
	return resp, problem.Decode(resp).Kind.Code, seen
}

// The order of the checks is part of the API, row by row.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	entry := func(rest string) string { return `{"` + ciSecret + `": ` + rest + `}` }
	good := entry(`{"principal": "ci", "tenant": "default", "scopes": ["read"]}`)
	malformed := map[string]string{
		"no JSON":            `{`,
		"not an object":      `["x"]`,
		"null":               `null`,
		"trailing text":      good + ` x`,
		"line in principal":  entry(`{"principal": "ci\nroot", "tenant": "d", "scopes": ["read"]}`),
		"line in tenant":     entry(`{"principal": "ci", "tenant": "d\n", "scopes": ["read"]}`),
		"turned principal":   entry(`{"principal": "ci\u202e", "tenant": "d", "scopes": ["read"]}`),
		"second value":       good + good,
		"no members":         entry(`{}`),
		"member missing":     entry(`{"principal": "ci", "scopes": ["read"]}`),
		"unknown member":     entry(`{"principal": "ci", "tenant": "d", "scopes": ["read"], "admin": true}`),
		"member of a case":   entry(`{"Principal": "ci", "tenant": "d", "scopes": ["read"]}`),
		"duplicate member":   entry(`{"principal": "ci", "principal": "ci", "tenant": "d", "scopes": ["read"]}`),
		"duplicate secret":   strings.TrimSuffix(good, "}") + "," + strings.TrimPrefix(good, "{"),
		"escaped duplicate":  strings.TrimSuffix(good, "}") + `,"\u0063` + strings.TrimPrefix(good, `{"c`),
		"unknown scope":      entry(`{"principal": "ci", "tenant": "d", "scopes": ["root"]}`),
		"no scopes":          entry(`{"principal": "ci", "tenant": "d", "scopes": []}`),
		"scope twice":        entry(`{"principal": "ci", "tenant": "d", "scopes": ["read", "read"]}`),
		"scopes a string":    entry(`{"principal": "ci", "tenant": "d", "scopes": "read"}`),
		"empty principal":    entry(`{"principal": " ", "tenant": "d", "scopes": ["read"]}`),
		"principal a number": entry(`{"principal": 7, "tenant": "d", "scopes": ["read"]}`),
		"empty secret":       `{"": {"principal": "ci", "tenant": "d", "scopes": ["read"]}}`,
		"padded secret":      `{" x ": {"principal": "ci", "tenant": "d", "scopes": ["read"]}}`,
		"entry a string":     entry(`"ci"`),
		"not UTF-8":          entry(`{"principal": "` + "\xff" + `", "tenant": "d", "scopes": ["read"]}`),
		"legacy secret":      `{"` + legacySecret + `": {"principal": "ci", "tenant": "d", "scopes": ["read"]}}`,
	}
	for name, text := range malformed {
		t.Run("malformed/"+name, func(t *testing.T) {
			t.Parallel()
			a := auth.Load(legacySecret, text, rules)
			if a.State() == nil || !a.Configured() {
				t.Fatal("taken as good")
			}
			for _, secret := range []string{legacySecret, ciSecret} {
				if strings.Contains(a.State().Error(), secret) {
					t.Errorf("the fault shows a secret: %v; want !strings.Contains(a.State().Error(), secret)", a.State())
				}
			}
			for _, header := range []string{"", "Bearer " + legacySecret, "Bearer " + ciSecret, "Bearer x"} {
				if resp, code, _ := callRoute(t, a, "read", header); resp.StatusCode != 503 || code != "auth_misconfigured" {
					t.Errorf(`%q: %d %s; want resp.StatusCode == 503 && code == "auth_misconfigured"`, header, resp.StatusCode, code)
				}
			}
		})
	}
	both := auth.Load(legacySecret, twoPeople, rules)
	for _, tc := range []struct {
		name   string
		a      *auth.Authenticator
		scope  string
		header []string
		status int
		code   string
	}{
		{"nothing configured", auth.Load("", "", rules), "read", []string{"Bearer " + ciSecret}, 503, "auth_not_configured"},
		{"nothing configured, blank map", auth.Load("", " \n", rules), "read", nil, 503, "auth_not_configured"},
		{"empty map", auth.Load("", "{}", rules), "read", []string{"Bearer x"}, 503, "auth_not_configured"},
		{"no header", both, "read", nil, 401, "missing_credential"},
		{"empty header", both, "read", []string{""}, 401, "missing_credential"},
		{"another scheme", both, "read", []string{"Basic " + ciSecret}, 401, "missing_credential"},
		{"no token", both, "read", []string{"Bearer "}, 401, "missing_credential"},
		{"bare token", both, "read", []string{ciSecret}, 401, "missing_credential"},
		{"unknown", both, "read", []string{"Bearer " + ciSecret + "x"}, 401, "invalid_credential"},
		{"prefix", both, "read", []string{"Bearer " + ciSecret[:8]}, 401, "invalid_credential"},
		{"two headers", both, "read", []string{"Bearer " + ciSecret, "Bearer " + opSecret}, 401, "invalid_credential"},
		{"scope missing", both, "approve", []string{"Bearer " + ciSecret}, 403, "insufficient_scope"},
		{"write is not read", both, "read", []string{"Bearer " + opSecret}, 403, "insufficient_scope"},
		{"granted", both, "changes", []string{"Bearer " + ciSecret}, 200, ""},
		{"implied", both, "approve", []string{"bearer " + opSecret}, 200, ""},
		{"legacy", both, "manage", []string{"Bearer " + legacySecret}, 200, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			resp, code, _ := callRoute(t, tc.a, tc.scope, tc.header...)
			if resp.StatusCode != tc.status || code != tc.code {
				t.Errorf("%d %s, want %d %s", resp.StatusCode, code, tc.status, tc.code)
			}
			want := ""
			if tc.status == 401 {
				want = "Bearer"
			}
			if got := resp.Header.Get("WWW-Authenticate"); got != want {
				t.Errorf("WWW-Authenticate %q, want %q", got, want)
			}
		})
	}
}

func TestPrincipalInContext(t *testing.T) {
	t.Parallel()
	a := auth.Load(legacySecret, twoPeople, rules)
	_, _, p := callRoute(t, a, "manage", "Bearer "+opSecret)
	if p.Name != "operator" || p.Tenant != "acme" || p.Legacy || !slices.Equal(p.Scopes, []string{"approve", "changes", "manage", "retrain", "write"}) {
		t.Errorf(`%+v; want p.Name == "operator" && p.Tenant == "acme" && !p.Legacy && slices.Equal(p.Scopes, []string{"approve", "changes", "manage", "retrain", "write"})`, p)
	}
	_, _, p = callRoute(t, a, "manage", "Bearer "+legacySecret)
	if p.Name != "legacy" || p.Tenant != "default" || !p.Legacy || !p.Has("read") || !p.Has("write") {
		t.Errorf(`%+v; want p.Name == "legacy" && p.Tenant == "default" && p.Legacy && p.Has("read") && p.Has("write")`, p)
	}
	if _, ok := auth.FromContext(context.Background()); ok {
		t.Error("a principal from nowhere")
	}
}

func TestRequireOneOfSeveral(t *testing.T) {
	t.Parallel()
	a := auth.Load("", twoPeople, rules)
	for secret, want := range map[string]int{ciSecret: http.StatusOK, opSecret: http.StatusOK, "nobody": http.StatusUnauthorized} {
		e := echo.New()
		e.HTTPErrorHandler = problem.Handler(slog.New(slog.DiscardHandler))
		e.GET("/", func(c echo.Context) error { return c.NoContent(http.StatusOK) }, a.Require("manage", "changes"))
		e.GET("/other", func(c echo.Context) error { return c.NoContent(http.StatusOK) }, a.Require("manage", "retrain"))
		get := func(path string) int {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header.Set("Authorization", "Bearer "+secret)
			w := httptest.NewRecorder()
			e.ServeHTTP(w, r)
			return w.Code
		}
		if got := get("/"); got != want {
			t.Errorf("%s: %d, want %d", secret, got, want)
		}
		if got := get("/other"); secret == ciSecret && got != http.StatusForbidden {
			t.Errorf("neither scope: %d; want (secret != ciSecret || got == http.StatusForbidden)", got)
		}
	}
}

func TestImplicationIsTransitive(t *testing.T) {
	t.Parallel()
	a := auth.Load("", `{"s": {"principal": "p", "tenant": "t", "scopes": ["a"]}}`,
		auth.Rules{Scopes: map[string][]string{"a": {"b"}, "b": {"c", "a"}, "c": nil}})
	p, err := a.Authenticate("Bearer s")
	if err != nil || !p.Has("c") {
		t.Errorf(`%+v %v; want p.Has("c")`, p, err)
	}
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"example", "TODO", "None", "null", "xchangemex", "CHANGE-ME-please", "change_me", "changeThis1", "a-placeholder",
		"your-token-here", "YOURTOKEN", "replace-me", "replaceme", " null ",
	} {
		if !auth.Placeholder(s) {
			t.Errorf("%q passed; want auth.Placeholder(s)", s)
		}
	}
	for _, s := range []string{"", "examples", "nullify", "9f86d081884c7d65", "change.me"} {
		if auth.Placeholder(s) {
			t.Errorf("%q refused; want !auth.Placeholder(s)", s)
		}
	}
	a := auth.Load("changeme", `{"replace-me": {"principal": "ci", "tenant": "t", "scopes": ["read"]}}`, rules)
	err := a.CheckPlaceholders()
	if err == nil || !strings.Contains(err.Error(), "legacy") || !strings.Contains(err.Error(), "ci") || strings.Contains(err.Error(), "changeme") {
		t.Errorf(`%v; want an error && strings.Contains(err.Error(), "legacy") && strings.Contains(err.Error(), "ci") && !strings.Contains(err.Error(), "changeme")`, err)
	}
	if err := auth.Load(legacySecret, twoPeople, rules).CheckPlaceholders(); err != nil {
		t.Error(err)
	}
}

func TestShortSecretsWarn(t *testing.T) {
	t.Parallel()
	a := auth.Load("0123456789abcde", `{"short": {"principal": "ci", "tenant": "t", "scopes": ["read"]},
		"0123456789abcdef": {"principal": "long", "tenant": "t", "scopes": ["read"]}}`, rules)
	w := strings.Join(a.Warnings(), "\n")
	if len(a.Warnings()) != 2 || !strings.Contains(w, "legacy") || !strings.Contains(w, "ci") || strings.Contains(w, "0123456789") {
		t.Errorf(`%q; want len(a.Warnings()) == 2 && strings.Contains(w, "legacy") && strings.Contains(w, "ci") && !strings.Contains(w, "0123456789")`, w)
	}
}

// Whatever the text, Load does not panic, and either it refuses every bearer or the
// text is plain JSON and every secret of the map works.
func FuzzLoad(f *testing.F) {
	f.Add(twoPeople, "")
	f.Add(`{"a": {"principal": "p", "tenant": "t", "scopes": ["read", "write"]}}`, "a")
	f.Add(`{"a": {"principal": "p", "principal": "q", "tenant": "t", "scopes": ["read"]}}`, "")
	f.Add(`{"a":{},"a":{}}`, "x")
	f.Add("", "x")
	f.Fuzz(func(t *testing.T, text, legacy string) {
		a := auth.Load(legacy, text, rules)
		if a.State() != nil {
			if _, err := a.Authenticate("Bearer " + legacy); !errors.Is(err, auth.Misconfigured.New("")) {
				t.Fatalf(`faulty, yet: %v; want errors.Is(err, auth.Misconfigured.New(""))`, err)
			}
			return
		}
		if strings.TrimSpace(text) == "" {
			return
		}
		var m map[string]struct {
			Principal, Tenant string
			Scopes            []string
		}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatalf("took what is no JSON: %v", err)
		}
		for secret, want := range m {
			p, err := a.Authenticate("Bearer " + secret)
			if err != nil || p.Name != want.Principal || p.Tenant != want.Tenant || !p.Has(want.Scopes[0]) {
				t.Fatalf("%q: %+v %v; want p.Name == want.Principal && p.Tenant == want.Tenant && p.Has(want.Scopes[0])", secret, p, err)
			}
		}
	})
}

func BenchmarkAuthenticate(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := map[string]any{}
			for i := range n {
				m[fmt.Sprintf("secret-number-%06d", i)] = map[string]any{"principal": "p", "tenant": "t", "scopes": []string{"read"}}
			}
			text, err := json.Marshal(m)
			if err != nil {
				b.Fatal(err)
			}
			a := auth.Load("", string(text), rules)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Authenticate("Bearer secret-number-000000"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
