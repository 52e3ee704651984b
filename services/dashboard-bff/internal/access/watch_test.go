package access_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access/accesstest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/session"
)

// stream sends a request whose handler runs until Watch ends it, and then reports the reason.
func stream(t *testing.T, r *accesstest.Replica, how ...accesstest.Request) (reason <-chan string) {
	t.Helper()
	begun, ended := make(chan struct{}), make(chan string, 1)
	path := "/test/stream" + strings.ReplaceAll(testenv.Prefix(t), ":", "")
	r.Server.Echo.GET(path, func(c echo.Context) error {
		ctx, why := r.Guard.Watch(c.Request().Context(), caller.From(c))
		close(begun)
		<-ctx.Done()
		ended <- why()
		return nil
	}, r.Guard.Require(caller.Viewer))
	ctx, cancel := context.WithCancel(context.Background())
	q := httptest.NewRequest("GET", path, nil).WithContext(ctx)
	for _, change := range how {
		change(q)
	}
	done := make(chan struct{})
	go func() { // ends with the cleanup at the latest
		defer close(done)
		r.Server.Echo.ServeHTTP(httptest.NewRecorder(), q)
	}()
	t.Cleanup(func() { cancel(); <-done })
	select {
	case <-begun:
	case <-done:
		t.Fatal("the stream was refused; want it to begin")
	case <-time.After(10 * time.Second):
		t.Fatal("the stream did not begin within 10 s")
	}
	return ended
}

func wantReason(t *testing.T, ended <-chan string, want string, within time.Duration) {
	t.Helper()
	select {
	case got := <-ended:
		if got != want {
			t.Errorf("the stream ended for %q; want %q", got, want)
		}
	case <-time.After(within):
		t.Fatalf("the stream goes on after %s; want it ended for %q", within, want)
	}
}

func wantOpen(t *testing.T, ended <-chan string) {
	t.Helper()
	select {
	case got := <-ended:
		t.Errorf("the stream ended for %q; want it open", got)
	default:
	}
}

// within2s is the promised time, and a margin for a loaded machine.
const within2s = 2*time.Second + 500*time.Millisecond

func TestALogoutOnAnotherReplicaEndsTheStreamsOfThatSessionWithin2Seconds(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	a, _ := newReplica(f, accesstest.Options{Federation: &accesstest.Provider{}})
	b, _ := newReplica(f, accesstest.Options{Federation: &accesstest.Provider{}})
	proof := accesstest.Header("X-PLATFORM-CSRF", "1")
	password, cookie := accesstest.Bearer(a.SignIn(caller.Viewer)), signIn(t, a, f.Person(caller.Viewer))
	byPassword, byCookie, another := stream(t, b, password), stream(t, b, cookie), stream(t, b, accesstest.Bearer(a.SignIn(caller.Viewer)))
	a.Do("POST", "/api/auth/logout", nil, password).Want(204, "")
	a.Do("POST", "/api/auth/logout", nil, cookie, proof).Want(204, "")
	wantReason(t, byPassword, access.LoggedOut, within2s)
	wantReason(t, byCookie, access.LoggedOut, within2s)
	wantOpen(t, another)
}

func TestAStreamEndsWhenTheTokenExpires(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	r, _ := newReplica(f, accesstest.Options{TTL: 2 * time.Second})
	ended := stream(t, r, accesstest.Bearer(r.SignIn(caller.Viewer)))
	wantReason(t, ended, access.TokenExpired, 5*time.Second)
}

func TestAStreamEndsWhenItsProviderIsNoLongerTrusted(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	p := &accesstest.Provider{}
	r, _ := newReplica(f, accesstest.Options{Federation: p})
	ended := stream(t, r, signIn(t, r, f.Person(caller.Viewer)))
	p.Distrust()
	wantReason(t, ended, access.LoggedOut, within2s)
}

func TestAStreamEndsWhenItsBearerIsNoLongerGood(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	p := &accesstest.Provider{}
	p.Know("t", caller.Caller{Subject: "idp-a:7", Tenant: "default", Role: caller.Viewer, Method: caller.IDPBearer, Provider: "idp-a",
		SessionID: "digest", ExpiresAt: f.Now().Add(time.Hour)})
	r, _ := newReplica(f, accesstest.Options{Federation: p})
	ended := stream(t, r, accesstest.Bearer("t"))
	p.Forget("t") // denied, or withdrawn at the provider
	wantReason(t, ended, access.LoggedOut, within2s)
}

func TestAStepUpEndsTheStreamsOfTheOldSession(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	r, _ := newReplica(f, accesstest.Options{Federation: &accesstest.Provider{}})
	cookie := signIn(t, r, f.Person(caller.Viewer))
	ended := stream(t, r, cookie)
	r.Do("POST", "/test/sign-in", f.Person(caller.Viewer), cookie).Want(204, "")
	wantReason(t, ended, access.LoggedOut, within2s)
}

// flakyStore can be switched off.
type flakyStore struct {
	session.Store
	away   atomic.Bool
	failed atomic.Int32
}

func (s *flakyStore) Put(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	if s.away.Load() {
		return errors.New("the store is away")
	}
	return s.Store.Put(ctx, key, value, ttl)
}

func (s *flakyStore) Delete(ctx context.Context, key string) error {
	if s.away.Load() {
		return errors.New("the store is away")
	}
	return s.Store.Delete(ctx, key)
}

func (s *flakyStore) Get(ctx context.Context, key string) ([]byte, error) {
	if s.away.Load() {
		s.failed.Add(1)
		return nil, errors.New("the store is away")
	}
	return s.Store.Get(ctx, key)
}

func TestAStreamOutlivesAShortOutageOfTheStoreAndNotALongOne(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	s := &flakyStore{Store: f.Store}
	r, _ := newReplica(f, accesstest.Options{Store: s})
	token := accesstest.Bearer(r.SignIn(caller.Viewer))
	ended := stream(t, r, token)
	s.away.Store(true)
	f.Advance(5 * time.Second)
	testenv.Eventually(t, 10*time.Second, func() error {
		if n := s.failed.Load(); n < 2 {
			return fmt.Errorf("the stream asked %d times; want 2", n)
		}
		return nil
	})
	r.Do("GET", "/test/view", nil, token).Want(503, "session_store_unavailable") // requests do not
	wantOpen(t, ended)
	f.Advance(31 * time.Second)
	wantReason(t, ended, access.BusUnavailable, within2s)
}

func TestTheEndOfTheRequestEndsTheWatchWithoutAReason(t *testing.T) {
	t.Parallel()
	f := accesstest.New(t)
	r, _ := newReplica(f, accesstest.Options{})
	_, who, err := r.Tokens.Mint(caller.Viewer)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	watched, reason := r.Guard.Watch(ctx, who)
	cancel()
	<-watched.Done()
	if got := reason(); got != "" {
		t.Errorf("reason %q; want none", got)
	}
}
