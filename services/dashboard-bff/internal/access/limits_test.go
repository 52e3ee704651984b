package access_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access/accesstest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
)

func tryLogin(r *accesstest.Replica, password, address string) *accesstest.Answer {
	return r.Do("POST", "/api/auth/login", map[string]any{"password": password}, accesstest.From(address))
}

// wantRetry checks that Retry-After names a time up to most.
func wantRetry(t *testing.T, a *accesstest.Answer, most time.Duration) {
	t.Helper()
	seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if err != nil || seconds < 1 || time.Duration(seconds)*time.Second > most {
		t.Errorf("Retry-After %q; want 1 to %v seconds", a.Header.Get("Retry-After"), most.Seconds())
	}
}

// A page of another site can send a form or plain text, again and again, and must not shut the login for who sits before it.
func TestALoginOfAnotherFormIsNotCounted(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	a := f.Replica(accesstest.Options{})
	for range 20 {
		a.Do("POST", "/api/auth/login", map[string]any{"password": "x"}, accesstest.From("192.0.2.1"), accesstest.Header("Content-Type", "text/plain")).Want(415, "unsupported_media_type")
	}
	tryLogin(a, accesstest.AdminPassword, "192.0.2.1").Want(200, "")
}

func TestElevenLoginsAMinuteOverTwoReplicasAre429(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	replicas := []*accesstest.Replica{f.Replica(accesstest.Options{}), f.Replica(accesstest.Options{})}
	for i := range 10 {
		tryLogin(replicas[i%2], accesstest.AdminPassword, "192.0.2.1").Want(200, "")
	}
	for _, r := range replicas {
		wantRetry(t, tryLogin(r, accesstest.AdminPassword, "192.0.2.1").Want(429, "rate_limited"), time.Minute)
	}
	tryLogin(replicas[0], accesstest.AdminPassword, "192.0.2.2").Want(200, "") // another address gets in
}

func TestTwentyBadLoginsLockTheAddressOnAllReplicas(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	f.Rates.Buckets[access.Login] = access.Rate{Count: 1000, Window: time.Minute}
	f.Rates.AllLogins = access.Rate{Count: 1000, Window: time.Second}
	a, b := f.Replica(accesstest.Options{}), f.Replica(accesstest.Options{})
	for i := range 20 {
		tryLogin([]*accesstest.Replica{a, b}[i%2], "wrong", "192.0.2.1").Want(401, "invalid_password")
	}
	for _, r := range []*accesstest.Replica{a, b} {
		wantRetry(t, tryLogin(r, accesstest.AdminPassword, "192.0.2.1").Want(429, "login_locked"), 15*time.Minute)
		tryLogin(r, accesstest.AdminPassword, "192.0.2.2").Want(200, "")
	}
	f.Advance(15*time.Minute + time.Second)
	tryLogin(a, accesstest.AdminPassword, "192.0.2.1").Want(200, "")
}

func TestGoodLoginsLockNothing(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	f.Rates.Buckets[access.Login] = access.Rate{Count: 1000, Window: time.Minute}
	f.Rates.AllLogins = access.Rate{Count: 1000, Window: time.Second}
	r := f.Replica(accesstest.Options{})
	for range 25 {
		tryLogin(r, accesstest.ViewerPassword, "192.0.2.1").Want(200, "")
	}
}

func TestOneIPv6SubscriberIsOneAddress(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	r := f.Replica(accesstest.Options{})
	for i := range 10 {
		tryLogin(r, accesstest.AdminPassword, fmt.Sprintf("[2001:db8:1:2:%x::1]", i)).Want(200, "")
	}
	tryLogin(r, accesstest.AdminPassword, "[2001:db8:1:2:ffff::9]").Want(429, "rate_limited")
	tryLogin(r, accesstest.AdminPassword, "[2001:db8:1:3::1]").Want(200, "")
}

func TestAThousandLoginsAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	replicas := []*accesstest.Replica{f.Replica(accesstest.Options{}), f.Replica(accesstest.Options{})}
	var good, limited, other atomic.Int32
	var wg sync.WaitGroup
	began := time.Now()
	for i := range 1000 {
		wg.Go(func() {
			switch a := tryLogin(replicas[i%2], accesstest.AdminPassword, fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)); a.Code {
			case http.StatusOK:
				good.Add(1)
			case http.StatusTooManyRequests:
				limited.Add(1)
			default:
				other.Add(1)
				t.Errorf("login %d: %d %s; want 200 or 429", i, a.Code, a.Body)
			}
		})
	}
	wg.Wait()
	// When a window ends, as many requests are admitted again.
	windows := int32(time.Since(began)/time.Second) + 2
	if g := good.Load(); g < 1 || g > 20*windows || g+limited.Load() != 1000 {
		t.Errorf("%d got in, %d were limited, %d failed; want 1 to %d and the rest limited", g, limited.Load(), other.Load(), 20*windows)
	}
}

func TestSSOIsLimitedByAddress(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	r, _ := newReplica(f, accesstest.Options{})
	from := accesstest.From("192.0.2.1")
	for range 30 {
		r.Do("GET", "/test/sso", nil, from).Want(200, "")
	}
	r.Do("GET", "/test/sso", nil, from).Want(429, "rate_limited")
	// The login page still shows its buttons to other clients behind the same address.
	r.Do("GET", "/test/providers", nil, from).Want(200, "")
}

func TestPrincipalsAreLimitedPerBucketAndTenant(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	p := &accesstest.Provider{}
	for name, tenant := range map[string]string{"a": "default", "b": "default", "c": "other"} {
		subject := map[string]string{"a": "idp-a:1", "b": "idp-a:2", "c": "idp-a:1"}[name]
		p.Know(name, caller.Caller{Subject: subject, Tenant: tenant, Role: caller.Viewer, Method: caller.IDPBearer, SessionID: name, ExpiresAt: f.Now().Add(time.Hour)})
	}
	x, _ := newReplica(f, accesstest.Options{Federation: p})
	y, _ := newReplica(f, accesstest.Options{Federation: p})
	a, b, c := accesstest.Bearer("a"), accesstest.Bearer("b"), accesstest.Bearer("c")
	for i := range 30 {
		r := []*accesstest.Replica{x, y}[i%2]
		r.Do("GET", "/test/search", nil, a).Want(200, "")
		r.Do("POST", "/test/comments", nil, a).Want(200, "")
	}
	wantRetry(t, x.Do("GET", "/test/search", nil, a).Want(429, "rate_limited"), 10*time.Second)
	wantRetry(t, y.Do("POST", "/test/comments", nil, a).Want(429, "rate_limited"), time.Minute)
	x.Do("POST", "/test/write", nil, a).Want(200, "") // another bucket
	x.Do("GET", "/test/search", nil, b).Want(200, "") // another person
	x.Do("GET", "/test/search", nil, c).Want(200, "") // another tenant's person of the same name
}

func TestWritesAreLimitedWithoutBeingTold(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	r, _ := newReplica(f, accesstest.Options{})
	token := accesstest.Bearer(r.SignIn(caller.Viewer))
	for range 120 {
		r.Do("POST", "/test/write", nil, token).Want(200, "")
	}
	r.Do("DELETE", "/test/write", nil, token).Want(429, "rate_limited")
	r.Do("GET", "/test/view", nil, token).Want(200, "")
}

func TestTheDocumentedRates(t *testing.T) {
	t.Parallel()
	got := access.DefaultRates()
	for bucket, want := range map[access.Bucket]access.Rate{
		access.Login: {Count: 10, Window: time.Minute}, access.SSO: {Count: 30, Window: time.Minute}, access.Providers: {Count: 120, Window: time.Minute},
		access.Search: {Count: 30, Window: 10 * time.Second}, access.Comments: {Count: 30, Window: time.Minute},
		access.Snapshots: {Count: 30, Window: time.Minute}, access.CollabReads: {Count: 60, Window: time.Minute},
		access.Copilot: {Count: 10, Window: time.Minute}, access.Writes: {Count: 120, Window: time.Minute},
	} {
		if got.Buckets[bucket] != want {
			t.Errorf("%s: %+v; want %+v", bucket, got.Buckets[bucket], want)
		}
	}
	if got.AllLogins != (access.Rate{Count: 20, Window: time.Second}) || got.BadLogins != (access.Rate{Count: 20, Window: 15 * time.Minute}) || got.LoginLock != 15*time.Minute {
		t.Errorf("logins %+v, bad %+v, lock %s; want 20/s, 20 in 15 min, 15 min", got.AllLogins, got.BadLogins, got.LoginLock)
	}
}

// awayCoordinator fails every question; it embeds nothing, so that no other method can be called unnoticed.
type awayCoordinator struct {
	coord.Coordinator
	asked atomic.Int32
}

func (c *awayCoordinator) Allow(context.Context, string, int, time.Duration) (coord.Decision, error) {
	c.asked.Add(1)
	return coord.Decision{}, errors.Join(coord.ErrUnavailable, errors.New("connection refused"))
}

func TestLimitsHoldPerProcessWhileTheCoordinatorIsDown(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	f.Rates.AllLogins = access.Rate{Count: 1000, Window: time.Second}
	down := &awayCoordinator{}
	a, b := f.Replica(accesstest.Options{Coordinator: down}), f.Replica(accesstest.Options{Coordinator: down})
	for _, r := range []*accesstest.Replica{a, b} {
		for range 10 {
			tryLogin(r, "wrong", "192.0.2.1").Want(401, "invalid_password")
		}
		tryLogin(r, "wrong", "192.0.2.1").Want(429, "rate_limited")
	}
	if got := down.asked.Load(); got > 4 {
		t.Errorf("the coordinator was asked %d times; want it left alone for 2 s after a failure", got)
	}
}

func TestTheLockHoldsPerProcessWhileStoreAndCoordinatorAreDown(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	f.Rates.Buckets[access.Login] = access.Rate{Count: 1000, Window: time.Minute}
	f.Rates.AllLogins = access.Rate{Count: 1000, Window: time.Second}
	s := &flakyStore{Store: f.Store}
	s.away.Store(true)
	r := f.Replica(accesstest.Options{Coordinator: &awayCoordinator{}, Store: s})
	for range 20 {
		tryLogin(r, "wrong", "192.0.2.1").Want(401, "invalid_password")
	}
	tryLogin(r, accesstest.AdminPassword, "192.0.2.1").Want(429, "login_locked")
	tryLogin(r, accesstest.AdminPassword, "192.0.2.2").Want(200, "")
}

func TestALogoutThatCannotBeStoredIs503(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	s := &flakyStore{Store: f.Store}
	r, _ := newReplica(f, accesstest.Options{Store: s, Federation: &accesstest.Provider{}})
	token, cookie, proof := accesstest.Bearer(r.SignIn(caller.Viewer)), signIn(t, r, f.Person(caller.Viewer)), accesstest.Header("X-PLATFORM-CSRF", "1")
	r.Do("GET", "/test/view", nil, token).Want(200, "") // both are known for the next seconds
	r.Do("GET", "/test/view", nil, cookie).Want(200, "")
	s.away.Store(true)
	r.Do("POST", "/api/auth/logout", nil, token).Want(503, "session_store_unavailable")
	r.Do("POST", "/api/auth/logout", nil, cookie, proof).Want(503, "session_store_unavailable")
	s.away.Store(false)
	r.Do("POST", "/api/auth/logout", nil, token).Want(204, "")
	r.Do("POST", "/api/auth/logout", nil, cookie, proof).Want(204, "")
}

func TestACoordinatorThatIsBackIsAskedAgain(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	f.Rates.Buckets[access.Login] = access.Rate{Count: 5, Window: time.Hour}
	flaky := &flakyCoordinator{Coordinator: f.Coordinator}
	flaky.away.Store(true)
	a, b := f.Replica(accesstest.Options{Coordinator: flaky}), f.Replica(accesstest.Options{})
	for range 5 {
		tryLogin(b, accesstest.AdminPassword, "192.0.2.1").Want(200, "")
	}
	tryLogin(a, accesstest.AdminPassword, "192.0.2.1").Want(200, "") // a does not know what b counted
	flaky.away.Store(false)
	f.Advance(3 * time.Second)
	tryLogin(a, accesstest.AdminPassword, "192.0.2.1").Want(429, "rate_limited")
}

type flakyCoordinator struct {
	coord.Coordinator
	away atomic.Bool
}

func (c *flakyCoordinator) Allow(ctx context.Context, key string, limit int, window time.Duration) (coord.Decision, error) {
	if c.away.Load() {
		return coord.Decision{}, coord.ErrUnavailable
	}
	return c.Coordinator.Allow(ctx, key, limit, window)
}

func TestLimitsInRedisHoldForAllReplicas(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	c, err := coord.NewRedis(testenv.Redis(t), testenv.Prefix(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	a, b := f.Replica(accesstest.Options{Coordinator: c}), f.Replica(accesstest.Options{Coordinator: c})
	for i := range 10 {
		tryLogin([]*accesstest.Replica{a, b}[i%2], accesstest.AdminPassword, "192.0.2.1").Want(200, "")
	}
	tryLogin(a, accesstest.AdminPassword, "192.0.2.1").Want(429, "rate_limited")
	tryLogin(b, accesstest.AdminPassword, "192.0.2.1").Want(429, "rate_limited")
}
