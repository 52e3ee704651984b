package session

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
)

// memory is an in-memory Store for tests; it can be switched off, and counts its calls.
type memory struct {
	mu      sync.Mutex // guards the fields below
	entries map[string][]byte
	away    bool
	gets    int
}

var errAway = errors.New("the store is away")

func (m *memory) Put(_ context.Context, key string, value []byte, _ time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return errAway
	}
	if m.entries == nil {
		m.entries = map[string][]byte{}
	}
	m.entries[key] = value
	return nil
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gets++
	value, have := m.entries[key]
	switch {
	case m.away:
		return nil, errAway
	case !have:
		return nil, ErrNotFound
	}
	return value, nil
}

func (m *memory) Take(ctx context.Context, key string) ([]byte, error) {
	value, err := m.Get(ctx, key)
	return value, errors.Join(err, m.Delete(ctx, key))
}

func (m *memory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return errAway
	}
	delete(m.entries, key)
	return nil
}

func (m *memory) setAway(away bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = away
}

func (m *memory) asked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gets
}

// clock is the present of a test.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

const testSecret = "a-secret-of-the-tests-with-more-than-32-bytes"

type tokenBench struct {
	store *memory
	clock *clock
	*Tokens
}

func newTokens(t testing.TB, change ...func(*TokenConfig)) tokenBench {
	t.Helper()
	b := tokenBench{store: &memory{}, clock: &clock{time.Date(2026, 11, 22, 9, 0, 0, 5e8, time.UTC)}}
	cfg := TokenConfig{
		Secret: testSecret, TTL: 12 * time.Hour, Tenant: "default", Viewer: "viewer-word", Admin: "admin-word", LocalLogin: true,
		Verdicts: NewVerdicts(b.store, b.clock.now), Now: b.clock.now,
	}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	if b.Tokens, err = NewTokens(cfg); err != nil {
		t.Fatal(err)
	}
	return b
}

func mint(t testing.TB, b tokenBench, role caller.Role) string {
	t.Helper()
	token, _, err := b.Mint(role)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func wantInvalid(t *testing.T, b tokenBench, token, detail string) {
	t.Helper()
	who, err := b.Verify(t.Context(), token)
	if !fault.InvalidToken.Has(err) || !strings.Contains(err.Error(), detail) {
		t.Errorf("Verify = %+v, %v; want 401 invalid_token that says %q", who, err, detail)
	}
}

func TestAMintedTokenSpeaksForItsRole(t *testing.T) {
	t.Parallel()
	b := newTokens(t)
	for _, role := range []caller.Role{caller.Viewer, caller.Admin} {
		token, minted, err := b.Mint(role)
		if err != nil {
			t.Fatal(err)
		}
		who, err := b.Verify(t.Context(), token)
		if err != nil || who != minted {
			t.Fatalf("Verify = %+v, %v; want %+v as minted", who, err, minted)
		}
		now := b.clock.at.Truncate(time.Second)
		want := caller.Caller{
			Subject: "local:" + string(role), Tenant: "default", Role: role, Method: caller.Password, AuthTime: now,
			SessionID: who.SessionID, ExpiresAt: now.Add(12 * time.Hour), Basis: b.Basis(who),
		}
		if who != want || len(who.SessionID) != 36 || who.Basis == "" {
			t.Errorf("caller = %+v; want %+v with a UUID", who, want)
		}
	}
}

func TestATokenEndsAtItsExpiry(t *testing.T) {
	t.Parallel()
	b := newTokens(t)
	token := mint(t, b, caller.Viewer)
	b.clock.at = b.clock.at.Truncate(time.Second).Add(12*time.Hour - time.Second)
	if _, err := b.Verify(t.Context(), token); err != nil {
		t.Errorf("a second before: %v; want no error", err)
	}
	b.clock.at = b.clock.at.Add(time.Second)
	wantInvalid(t, b, token, "expired")
}

func TestANewPasswordSecretOrTenantEndsOldTokens(t *testing.T) {
	t.Parallel()
	admin, viewer := mint(t, newTokens(t), caller.Admin), mint(t, newTokens(t), caller.Viewer)
	rotated := newTokens(t, func(c *TokenConfig) { c.Admin = "another-word" })
	wantInvalid(t, rotated, admin, "the password was changed")
	if _, err := rotated.Verify(t.Context(), viewer); err != nil {
		t.Errorf("the other role's token: %v; want no error", err)
	}
	wantInvalid(t, newTokens(t, func(c *TokenConfig) { c.Secret = testSecret + "2" }), admin, "signature")
	wantInvalid(t, newTokens(t, func(c *TokenConfig) { c.Tenant = "other" }), admin, "tenant")
	wantInvalid(t, newTokens(t, func(c *TokenConfig) { c.LocalLogin = false }), admin, "switched off")
}

func TestPasswordsOfTheRolesSwappedDoNotFit(t *testing.T) {
	t.Parallel()
	b := newTokens(t)
	if b.bound[caller.Viewer] == b.bind(caller.Viewer, "admin-word") || b.bind(caller.Viewer, "x") == b.bind(caller.Admin, "x") {
		t.Error("pv is equal for two roles; want it bound to role and password")
	}
}

// forge signs claims that differ from a genuine token's.
func forge(t testing.TB, b tokenBench, method jwt.SigningMethod, key any, change map[string]any) string {
	t.Helper()
	parts := strings.Split(mint(t, b, caller.Admin), ".")
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	all := jwt.MapClaims{}
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	maps.Copy(all, change)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	token, err := jwt.NewWithClaims(method, all).SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// flipUnusedBits changes the last character to another that a lenient decoder reads as the same bytes.
func flipUnusedBits(token string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := len(token) - 1
	return token[:last] + string(alphabet[strings.IndexByte(alphabet, token[last])^1])
}

func TestForgedTokensAreRefused(t *testing.T) {
	t.Parallel()
	b := newTokens(t)
	now, key := b.clock.at.Unix(), []byte(testSecret)
	if _, err := b.Verify(t.Context(), forge(t, b, jwt.SigningMethodHS256, key, nil)); err != nil {
		t.Fatalf("the unchanged token: %v; want no error, else this test proves nothing", err)
	}
	for name, token := range map[string]string{
		"alg none":                forge(t, b, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil),
		"alg HS512":               forge(t, b, jwt.SigningMethodHS512, key, nil),
		"other key":               forge(t, b, jwt.SigningMethodHS256, []byte("another-secret-of-more-than-32-bytes-length"), nil),
		"empty key":               forge(t, b, jwt.SigningMethodHS256, []byte{}, nil),
		"other aud":               forge(t, b, jwt.SigningMethodHS256, key, map[string]any{"aud": "mlp-assistant"}),
		"no aud":                  forge(t, b, jwt.SigningMethodHS256, key, map[string]any{"aud": nil}),
		"other iss":               forge(t, b, jwt.SigningMethodHS256, key, map[string]any{"iss": "x"}),
		"no exp":                  forge(t, b, jwt.SigningMethodHS256, key, map[string]any{"exp": nil}),
		"expired":                 forge(t, b, jwt.SigningMethodHS256, key, map[string]any{"exp": now - 1}),
		"issued in the future":    forge(t, b, jwt.SigningMethodHS256, key, map[string]any{"iat": now + 3600, "auth_time": now + 3600}),
		"auth_time not iat":       forge(t, b, jwt.SigningMethodHS256, key, map[string]any{"auth_time": now + 30}),
		"no jti":                  forge(t, b, jwt.SigningMethodHS256, key, map[string]any{"jti": nil}),
		"role of another sub":     forge(t, b, jwt.SigningMethodHS256, key, map[string]any{"sub": "local:viewer"}),
		"viewer's pv":             forge(t, b, jwt.SigningMethodHS256, key, map[string]any{"pv": b.bound[caller.Viewer]}),
		"no pv":                   forge(t, b, jwt.SigningMethodHS256, key, map[string]any{"pv": nil}),
		"unknown role":            forge(t, b, jwt.SigningMethodHS256, key, map[string]any{"role": "root", "sub": "local:root"}),
		"other tenant":            forge(t, b, jwt.SigningMethodHS256, key, map[string]any{"tenant": "platform"}),
		"signature of another":    strings.Join(append(strings.Split(mint(t, b, caller.Admin), ".")[:2], strings.Split(mint(t, b, caller.Viewer), ".")[2]), "."),
		"signature's unused bits": flipUnusedBits(mint(t, b, caller.Admin)),
		"signature cut":           strings.Join(strings.Split(mint(t, b, caller.Admin), ".")[:2], ".") + ".",
		"too long":                mint(t, b, caller.Admin) + strings.Repeat("A", maxToken),
		"no token":                "x",
		"nothing":                 "",
	} {
		t.Run(name, func(t *testing.T) { wantInvalid(t, b, token, "") })
	}
}

func TestARevokedSessionIsRefusedAndNoOther(t *testing.T) {
	t.Parallel()
	b := newTokens(t)
	token, who, err := b.Mint(caller.Admin)
	if err != nil {
		t.Fatal(err)
	}
	other := mint(t, b, caller.Admin)
	if err := b.Revoke(t.Context(), who); err != nil {
		t.Fatal(err)
	}
	wantInvalid(t, b, token, "logout")
	if _, err := b.Verify(t.Context(), other); err != nil {
		t.Errorf("another session of the role: %v; want no error", err)
	}
	for key := range b.store.entries {
		if strings.Contains(key, who.SessionID) {
			t.Errorf("the store's key %q holds the session's id; want its digest", key)
		}
	}
}

func TestVerdictsAreAskedForOncePerSecondAndUsedForTwoWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	b := newTokens(t)
	token := mint(t, b, caller.Viewer)
	verify := func() error { _, err := b.Verify(t.Context(), token); return err }
	for range 5 {
		if err := verify(); err != nil {
			t.Fatalf("Verify: %v; want no error", err)
		}
	}
	if got := b.store.asked(); got != 1 {
		t.Errorf("the store was asked %d times; want 1", got)
	}
	b.store.setAway(true)
	b.clock.at = b.clock.at.Add(1900 * time.Millisecond)
	if err := verify(); err != nil {
		t.Errorf("1.9 s old, store away: %v; want no error", err)
	}
	b.clock.at = b.clock.at.Add(100 * time.Millisecond)
	if err := verify(); !fault.SessionStoreUnavailable.Has(err) {
		t.Errorf("2 s old, store away: %v; want 503 session_store_unavailable", err)
	}
	b.store.setAway(false)
	if err := verify(); err != nil {
		t.Errorf("the store is back: %v; want no error", err)
	}
}

func TestAnotherReplicaSeesARevocationWithin2Seconds(t *testing.T) {
	t.Parallel()
	a := newTokens(t)
	other := newTokens(t, func(c *TokenConfig) { c.Verdicts, c.Now = NewVerdicts(a.store, a.clock.now), a.clock.now })
	token, who, err := a.Mint(caller.Viewer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Verify(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	if err := a.Revoke(t.Context(), who); err != nil {
		t.Fatal(err)
	}
	a.clock.at = a.clock.at.Add(freshFor)
	wantInvalid(t, other, token, "logout")
}

func TestVerdictsStayBounded(t *testing.T) {
	t.Parallel()
	now := &clock{time.Now()}
	v := NewVerdicts(&memory{}, now.now)
	for i := range maxVerdicts + 100 {
		if _, err := v.Get(t.Context(), Key(strings.Repeat("x", i))); !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
	}
	if len(v.entries) > maxVerdicts {
		t.Errorf("%d verdicts are kept; want at most %d", len(v.entries), maxVerdicts)
	}
	now.at = now.at.Add(dropEvery)
	if err := v.Put(t.Context(), Key("y"), nil, time.Minute); err != nil || len(v.entries) != 1 {
		t.Errorf("%d verdicts are kept after %s (%v); want the newest alone", len(v.entries), dropEvery, err)
	}
	if value, err := v.Get(t.Context(), Key("y")); err != nil || len(value) != 0 {
		t.Errorf("Get of an empty entry = %q, %v; want it found, empty", value, err)
	}
}

func TestAnAnswerFromBeforeAWriteDoesNotUndoIt(t *testing.T) {
	t.Parallel()
	slow := &slowStore{memory: &memory{}, asked: make(chan struct{}), answer: make(chan struct{})}
	v := NewVerdicts(slow, time.Now)
	done := make(chan error)
	go func() {
		_, err := v.Get(t.Context(), Key("x"))
		done <- err
	}()
	<-slow.asked // it has looked, and found nothing
	if err := v.Put(t.Context(), Key("x"), []byte("1"), time.Minute); err != nil {
		t.Fatal(err)
	}
	close(slow.answer)
	if err := <-done; err != nil {
		t.Errorf("Get that was under way: %v; want what was written meanwhile", err)
	}
	if _, err := v.Get(t.Context(), Key("x")); err != nil {
		t.Errorf("Get afterwards: %v; want what was written", err)
	}
}

// slowStore answers Get with the value it read before it signalled asked.
type slowStore struct {
	*memory
	asked, answer chan struct{}
}

func (s *slowStore) Get(ctx context.Context, key string) ([]byte, error) {
	value, err := s.memory.Get(ctx, key)
	close(s.asked)
	<-s.answer
	return value, err
}

func TestTokensRefuseAGuessableSecretAndMissingParts(t *testing.T) {
	t.Parallel()
	good := newTokens(t).cfg
	for name, change := range map[string]func(*TokenConfig){
		"31 bytes":    func(c *TokenConfig) { c.Secret = service.Secret(strings.Repeat("x", 31)) },
		"no verdicts": func(c *TokenConfig) { c.Verdicts = nil },
		"no clock":    func(c *TokenConfig) { c.Now = nil },
		"no tenant":   func(c *TokenConfig) { c.Tenant = "" },
		"no lifetime": func(c *TokenConfig) { c.TTL = 0 },
	} {
		cfg := good
		change(&cfg)
		if _, err := NewTokens(cfg); err == nil {
			t.Errorf("%s: NewTokens: no error; want one", name)
		}
	}
}

// FuzzVerify: no text is a session but the one that was minted.
func FuzzVerify(f *testing.F) {
	b := newTokens(f)
	// With a jti of this test, so that all processes of the fuzzer know the same one.
	minted := forge(f, b, jwt.SigningMethodHS256, []byte(testSecret), map[string]any{"jti": "5f0c6a52-2d0e-4c1b-9a53-1f6f7d3c8b11"})
	f.Add(minted)
	f.Add(forge(f, b, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil))
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, token string) {
		who, err := b.Verify(t.Context(), token)
		switch {
		case err == nil && token != minted:
			t.Errorf("Verify(%q) = %+v; want a refusal of what was not minted", token, who)
		case err != nil && !fault.InvalidToken.Has(err):
			t.Errorf("Verify(%q): %v; want 401 invalid_token", token, err)
		}
	})
}
