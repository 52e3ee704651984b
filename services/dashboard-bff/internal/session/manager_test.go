package session

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/sealing"
)

const keyA, keyB = "0123456789abcdef0123456789ABCDEF", "fedcba9876543210FEDCBA9876543210"

func parseKeys(t testing.TB, raw ...string) *sealing.Keys {
	t.Helper()
	for i := range raw {
		raw[i] = base64.StdEncoding.EncodeToString([]byte(raw[i]))
	}
	keys, err := sealing.ParseKeys(service.Secret(strings.Join(raw, ",")))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

type managerBench struct {
	store *memory
	clock *clock
	*Manager
}

// newManager returns a replica over the store and clock of another, or over new ones.
func newManager(t testing.TB, beside *managerBench, change ...func(*ManagerConfig)) managerBench {
	t.Helper()
	b := managerBench{store: &memory{}, clock: &clock{time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)}}
	if beside != nil {
		b.store, b.clock = beside.store, beside.clock
	}
	cfg := ManagerConfig{
		Verdicts: NewVerdicts(b.store, b.clock.now), Keys: parseKeys(t, keyA), Lifetime: 8 * time.Hour, Idle: 2 * time.Hour, Now: b.clock.now,
	}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	if b.Manager, err = NewManager(cfg); err != nil {
		t.Fatal(err)
	}
	return b
}

// exchange returns one request with these cookies, and its response.
func exchange(cookies ...*http.Cookie) (echo.Context, *httptest.ResponseRecorder) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, c := range cookies {
		r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
	}
	w := httptest.NewRecorder()
	return echo.New().NewContext(r, w), w
}

func ada() Data {
	return Data{
		Subject: "idp-a:1001", Name: "Ada", Tenant: "hpc", Role: caller.Admin, Provider: "idp-a", ProviderSubject: "1001", ACR: "urn:x:mfa",
		AuthTime: time.Date(2026, 11, 22, 8, 59, 0, 0, time.UTC), IDToken: "e30.e30.sig", Claims: map[string]any{"groups": []any{"ops"}},
	}
}

// begin starts a session and returns its cookie.
func begin(t testing.TB, b managerBench, d Data, before ...*http.Cookie) *http.Cookie {
	t.Helper()
	c, w := exchange(before...)
	if err := b.Begin(c, d); err != nil {
		t.Fatalf("Begin: %v; want no error", err)
	}
	cookies := w.Result().Cookies()
	if len(cookies) != 1 {
		t.Fatalf("Begin set %v; want one cookie", cookies)
	}
	return cookies[0]
}

func wantCurrent(t *testing.T, b managerBench, cookie *http.Cookie) (Data, string) {
	t.Helper()
	c, _ := exchange(cookie)
	d, id, err := b.Current(c)
	if err != nil {
		t.Fatalf("Current: %v; want a session", err)
	}
	return d, id
}

func wantEnded(t *testing.T, b managerBench, cookie *http.Cookie) {
	t.Helper()
	c, _ := exchange(cookie)
	if d, _, err := b.Current(c); !fault.InvalidToken.Has(err) {
		t.Errorf("Current = %+v, %v; want 401 invalid_token", d, err)
	}
}

func TestASessionIsFoundOnAnotherReplicaAsItBegan(t *testing.T) {
	t.Parallel()
	a := newManager(t, nil)
	cookie := begin(t, a, ada())
	got, id := wantCurrent(t, newManager(t, &a), cookie)
	want := ada()
	want.CreatedAt, want.LastSeen = a.clock.at, a.clock.at
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("session (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(cookie.Value, id+".") {
		t.Errorf("id %q; want that of the cookie %q", id, cookie.Value)
	}
}

func TestCookieFlags(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		insecure bool
		want     string
	}{
		"https":    {false, "__Host-platform_session=V; Path=/; HttpOnly; Secure; SameSite=Strict"},
		"loopback": {true, "platform_session=V; Path=/; HttpOnly; SameSite=Strict"},
	} {
		b := newManager(t, nil, func(cfg *ManagerConfig) { cfg.Cookies = Cookies{Insecure: c.insecure} })
		ctx, w := exchange()
		if err := b.Begin(ctx, ada()); err != nil {
			t.Fatal(err)
		}
		got := w.Header().Get("Set-Cookie")
		value := w.Result().Cookies()[0].Value
		if got = strings.Replace(got, value, "V", 1); got != c.want {
			t.Errorf("%s: Set-Cookie %q; want %q", name, got, c.want)
		}
		id, secret, _ := strings.Cut(value, ".")
		if len(id) != 22 || len(secret) != 43 { // 128 and 256 bits in base64url
			t.Errorf("%s: cookie %q; want <22>.<43>", name, value)
		}
		if got := w.Header().Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: Cache-Control %q; want no-store", name, got)
		}
	}
	sso := Cookies{}.New(BrowserCookie, "v", http.SameSiteLaxMode, 10*time.Minute).String()
	if want := "__Host-platform_sso=v; Path=/; Max-Age=600; HttpOnly; Secure; SameSite=Lax"; sso != want {
		t.Errorf("browser key %q; want %q", sso, want)
	}
}

func TestTheStoreHoldsNeitherIdNorStateInTheClear(t *testing.T) {
	t.Parallel()
	b := newManager(t, nil)
	id, secret, _ := strings.Cut(begin(t, b, ada()).Value, ".")
	if _, have := b.store.entries[Key(id)]; !have {
		t.Errorf("no entry under the SHA-256 of the id; there are %v", b.store.entries)
	}
	for key, value := range b.store.entries {
		for _, clear := range []string{id, secret, "Ada", "1001", "hpc", "e30.e30.sig"} {
			if strings.Contains(key+string(value), clear) {
				t.Errorf("the store's entry %q = %q holds %q", key, value, clear)
			}
		}
	}
}

func TestStateOpensOnlyWithTheCookiesSecretAndTheSecretKey(t *testing.T) {
	t.Parallel()
	b := newManager(t, nil)
	cookie, other := begin(t, b, ada()), begin(t, b, ada())
	id, _, _ := strings.Cut(cookie.Value, ".")
	_, secret, _ := strings.Cut(other.Value, ".")
	wantEnded(t, b, &http.Cookie{Name: cookie.Name, Value: id + "." + secret})
	wantEnded(t, newManager(t, &b, func(c *ManagerConfig) { c.Keys = parseKeys(t, keyB) }), cookie)
	// An attacker who can write the store cannot put one session in the place of another.
	otherID, _, _ := strings.Cut(other.Value, ".")
	b.store.entries[Key(id)] = b.store.entries[Key(otherID)]
	wantEnded(t, newManager(t, &b), cookie)
	wantCurrent(t, newManager(t, &b, func(c *ManagerConfig) { c.Keys = parseKeys(t, keyB, keyA) }), other)
}

func TestEachBeginHasANewIdAndEndsTheOldSession(t *testing.T) {
	t.Parallel()
	b := newManager(t, nil)
	first := begin(t, b, ada())
	second := begin(t, b, ada(), first) // a login or a step-up in the same browser
	if first.Value == second.Value {
		t.Error("the cookie stayed the same; want another id")
	}
	wantEnded(t, b, first)
	wantCurrent(t, b, second)
	planted := &http.Cookie{Name: first.Name, Value: strings.Repeat("A", 22) + "." + strings.Repeat("A", 43)}
	if third := begin(t, b, ada(), planted); third.Value == planted.Value {
		t.Error("a planted cookie was taken over; want another id")
	}
}

func TestASessionEndsAfterItsLifetimeHoweverActive(t *testing.T) {
	t.Parallel()
	b := newManager(t, nil)
	cookie := begin(t, b, ada())
	start := b.clock.at
	for b.clock.at.Before(start.Add(8*time.Hour - time.Second)) {
		wantCurrent(t, b, cookie)
		b.clock.at = b.clock.at.Add(30 * time.Minute)
		if limit := start.Add(8*time.Hour - time.Second); b.clock.at.After(limit) {
			b.clock.at = limit
		}
	}
	wantCurrent(t, b, cookie)
	b.clock.at = start.Add(8 * time.Hour)
	wantEnded(t, b, cookie)
}

func TestASessionEndsWhenIdleOnAllReplicas(t *testing.T) {
	t.Parallel()
	a := newManager(t, nil)
	other := newManager(t, &a)
	cookie := begin(t, a, ada())
	a.clock.at = a.clock.at.Add(90 * time.Minute)
	seen, _ := wantCurrent(t, other, cookie) // activity there counts here
	if got := a.clock.at.Sub(seen.LastSeen); got != 90*time.Minute {
		t.Errorf("last seen %s ago; want 1h30m", got)
	}
	a.clock.at = a.clock.at.Add(119 * time.Minute)
	wantCurrent(t, a, cookie)
	a.clock.at = a.clock.at.Add(2 * time.Hour)
	wantEnded(t, other, cookie)
	wantEnded(t, a, cookie)
}

func TestActivityDoesNotBringAnEndedSessionBack(t *testing.T) {
	t.Parallel()
	a := newManager(t, nil)
	other := newManager(t, &a)
	cookie := begin(t, a, ada())
	wantCurrent(t, other, cookie) // other has the state in its cache
	c, _ := exchange(cookie)
	if _, err := a.End(c); err != nil {
		t.Fatal(err)
	}
	id, _, _ := strings.Cut(cookie.Value, ".")
	if err := other.touch(t.Context(), id, other.clock.at); err != nil { // a request that was under way
		t.Fatal(err)
	}
	a.clock.at = a.clock.at.Add(freshFor)
	wantEnded(t, other, cookie)
	wantEnded(t, a, cookie)
}

func TestEndTellsTheSessionAndRemovesTheCookies(t *testing.T) {
	t.Parallel()
	b := newManager(t, nil)
	cookie := begin(t, b, ada())
	c, w := exchange(cookie)
	d, err := b.End(c)
	if err != nil || d.IDToken != "e30.e30.sig" {
		t.Errorf("End = %+v, %v; want the session with its ID token", d, err)
	}
	want := []string{
		"__Host-platform_session=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Strict",
		"__Host-platform_sso=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax",
	}
	if diff := cmp.Diff(want, w.Header().Values("Set-Cookie")); diff != "" {
		t.Errorf("Set-Cookie (-want +got):\n%s", diff)
	}
	wantEnded(t, b, cookie)
	c, w = exchange()
	if _, err := b.End(c); !errors.Is(err, ErrNoSession) || len(w.Header().Values("Set-Cookie")) != 2 {
		t.Errorf("End without a session: %v, cookies %v; want ErrNoSession, and both removed", err, w.Header().Values("Set-Cookie"))
	}
}

func TestNoCookieAndTwoCookies(t *testing.T) {
	t.Parallel()
	b := newManager(t, nil)
	c, _ := exchange()
	if _, _, err := b.Current(c); !errors.Is(err, ErrNoSession) {
		t.Errorf("Current without a cookie: %v; want ErrNoSession", err)
	}
	one, two := begin(t, b, ada()), begin(t, b, ada())
	c, _ = exchange(one, two)
	if _, _, err := b.Current(c); !fault.InvalidToken.Has(err) {
		t.Errorf("Current with two cookies: %v; want 401 invalid_token", err)
	}
}

func TestAStoreThatIsAwayIs503AndEndsNoSession(t *testing.T) {
	t.Parallel()
	b := newManager(t, nil)
	cookie := begin(t, b, ada())
	b.store.setAway(true)
	wantCurrent(t, b, cookie) // known for less than 2 s
	b.clock.at = b.clock.at.Add(2 * time.Second)
	c, _ := exchange(cookie)
	if _, _, err := b.Current(c); !fault.SessionStoreUnavailable.Has(err) {
		t.Errorf("Current: %v; want 503 session_store_unavailable", err)
	}
	c, w := exchange()
	if err := b.Begin(c, ada()); !fault.SessionStoreUnavailable.Has(err) || len(w.Result().Cookies()) != 0 {
		t.Errorf("Begin: %v, cookies %v; want 503 and none", err, w.Result().Cookies())
	}
	c, w = exchange(cookie)
	if _, err := b.End(c); !fault.SessionStoreUnavailable.Has(err) || len(w.Result().Cookies()) != 0 {
		t.Errorf("End: %v, cookies %v; want 503, and the cookie kept for another try", err, w.Result().Cookies())
	}
	b.store.setAway(false)
	wantCurrent(t, b, cookie)
}

func TestBeginRefusesWhatNobodyMayBe(t *testing.T) {
	t.Parallel()
	b := newManager(t, nil)
	for name, change := range map[string]func(*Data){
		"no subject":    func(d *Data) { d.Subject = "" },
		"no tenant":     func(d *Data) { d.Tenant = "" },
		"no role":       func(d *Data) { d.Role = "" },
		"unknown role":  func(d *Data) { d.Role = "root" },
		"200 KiB state": func(d *Data) { d.Claims["x"] = strings.Repeat("x", 200<<10) },
	} {
		d := ada()
		change(&d)
		c, w := exchange()
		if err := b.Begin(c, d); err == nil || len(w.Result().Cookies()) != 0 {
			t.Errorf("%s: Begin = %v, cookies %v; want an error and none", name, err, w.Result().Cookies())
		}
	}
}

func Test200GroupsMakeASmallCookie(t *testing.T) {
	t.Parallel()
	b := newManager(t, nil)
	d := ada()
	groups := make([]any, 200)
	for i := range groups {
		groups[i] = strings.Repeat("g", 60)
	}
	d.Claims["groups"] = groups
	cookie := begin(t, b, d)
	if len(cookie.Value) != 66 {
		t.Errorf("the cookie has %d bytes; want 66 whatever the provider says", len(cookie.Value))
	}
	got, _ := wantCurrent(t, b, cookie)
	if diff := cmp.Diff(d.Claims, got.Claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

// FuzzCookie: a cookie that parses as a ticket is exactly the encoding of that ticket, and opens no other session.
func FuzzCookie(f *testing.F) {
	b := newManager(f, nil)
	genuine := begin(f, b, ada())
	f.Add(genuine.Value)
	f.Add(strings.Repeat("A", 22) + "." + strings.Repeat("A", 43))
	f.Add(strings.Repeat("A", 20) + "\r\n." + strings.Repeat("A", 43))
	f.Add(".")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, ok := parseTicket(text)
		if ok && parsed.String() != text {
			t.Errorf("parseTicket(%q) writes %q; want the same", text, parsed)
		}
		c, _ := exchange()
		c.Request().Header.Set("Cookie", genuine.Name+"="+text)
		if _, _, err := b.Current(c); err == nil && strings.Trim(strings.TrimSpace(strings.Split(text, ";")[0]), `"`) != genuine.Value {
			t.Errorf("Current with %q: a session; want none", text)
		}
	})
}
