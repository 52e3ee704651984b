package coord_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// fleet returns coordinators of replicas that share one store.
type fleet func(t *testing.T) coord.Coordinator

func redisFleet(t *testing.T) fleet {
	url, prefix := testenv.Redis(t), testenv.Prefix(t)
	return func(t *testing.T) coord.Coordinator {
		r, err := coord.NewRedis(url, prefix)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		return r
	}
}

func postgresFleet(t *testing.T) fleet {
	url := testenv.Migrated(t, "coord", func(ctx context.Context, url string) error {
		return postgres.Migrate(ctx, url, "svc", coord.Migrations())
	})
	return func(t *testing.T) coord.Coordinator {
		pool, err := postgres.Open(t.Context(), url, "svc", postgres.MaxConns(8))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return coord.NewPostgres(pool)
	}
}

// TestConformance holds every promise of Coordinator against both stores.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) fleet{"redis": redisFleet, "postgres": postgresFleet} {
		for _, c := range []struct {
			name string
			run  func(*testing.T, fleet)
		}{
			{"one holder of a lease", oneHolder},
			{"fences rise", fencesRise},
			{"an expired lease is lost", expiredLease},
			{"keep renews until the end", keepRenews},
			{"once for the first caller", onceFirst},
			{"a limit for the whole fleet", limitFleet},
			{"a window begins anew", windowAnew},
			{"no limit", noLimit},
			{"a breaker opens for all", breakerOpens},
			{"one trial in the fleet", oneTrial},
			{"late reports leave an open breaker alone", lateReports},
			{"a lost trial is over after the reset time", lostTrial},
			{"settings reach all", testSettings},
			{"one leader at a time", oneLeader},
			{"the end of a leader's task", leaderTask},
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				f := start(t)
				if got := f(t).Kind(); got != name {
					t.Fatalf("kind %q; want %v", got, name)
				}
				if err := f(t).Ping(t.Context()); err != nil {
					t.Fatal(err)
				}
				c.run(t, f)
			})
		}
	}
}

func mustSucceed[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func acquireLease(t *testing.T, c coord.Coordinator, name string, ttl time.Duration) *coord.Lease {
	t.Helper()
	l, ok, err := c.TryLease(t.Context(), name, ttl)
	if err != nil || !ok {
		t.Fatalf("lease %s: %v, %v; want ok", name, ok, err)
	}
	return l
}

func oneHolder(t *testing.T, f fleet) {
	var got atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		c := f(t)
		wg.Go(func() {
			if _, ok, err := c.TryLease(t.Context(), "poller", time.Minute); err != nil {
				t.Error(err)
			} else if ok {
				got.Add(1)
			}
		})
	}
	wg.Wait()
	if got.Load() != 1 {
		t.Errorf("%d replicas have the lease; want 1", got.Load())
	}
	acquireLease(t, f(t), "another name", time.Minute)
}

func fencesRise(t *testing.T, f fleet) {
	var last int64
	for range 5 {
		l := acquireLease(t, f(t), "x", time.Minute)
		if l.Fence <= last {
			t.Fatalf("fence %d after %d; want l.Fence > last", l.Fence, last)
		}
		last = l.Fence
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func expiredLease(t *testing.T, f fleet) {
	a, other := f(t), f(t) // connected first, which may take longer than the lease
	old := acquireLease(t, a, "x", 2*time.Second)
	if _, ok, err := other.TryLease(t.Context(), "x", time.Minute); ok || err != nil {
		t.Fatalf("taken while held: %v, %v; want !ok", ok, err)
	}
	var young *coord.Lease
	testenv.Eventually(t, 20*time.Second, func() error {
		l, ok, err := other.TryLease(t.Context(), "x", time.Minute)
		if err == nil && !ok {
			err = errors.New("still held")
		}
		young = l
		return err
	})
	if young.Fence <= old.Fence {
		t.Errorf("fence %d after %d; want young.Fence > old.Fence", young.Fence, old.Fence)
	}
	if err := old.Renew(t.Context()); !errors.Is(err, coord.ErrLost) {
		t.Errorf("renewing a lost lease: %v; want errors.Is(err, coord.ErrLost)", err)
	}
	if err := old.Keep(t.Context()); !errors.Is(err, coord.ErrLost) {
		t.Errorf("keeping a lost lease: %v; want errors.Is(err, coord.ErrLost)", err)
	}
	if err := old.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := young.Renew(t.Context()); err != nil {
		t.Errorf("the release of a lost lease took it from its holder: %v", err)
	}
}

func keepRenews(t *testing.T, f fleet) {
	const ttl = 3 * time.Second // a busy machine may not run the keeper for some hundred milliseconds
	l := acquireLease(t, f(t), "x", ttl)
	ctx, cancel := context.WithTimeout(t.Context(), 3*ttl)
	defer cancel()
	other := f(t)
	done := make(chan error, 1)
	go func() { done <- l.Keep(ctx) }()
	for ctx.Err() == nil {
		if _, ok, err := other.TryLease(t.Context(), "x", ttl); ok || err != nil {
			if ctx.Err() == nil {
				t.Fatalf("taken while kept: %v, %v; want ctx.Err() != nil", ok, err)
			}
		}
	}
	if err := <-done; err != nil {
		t.Errorf("the end of the context is not an error: %v", err)
	}
}

func onceFirst(t *testing.T, f fleet) {
	var first atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		c := f(t)
		wg.Go(func() {
			if mustSucceed[bool](t)(c.Once(t.Context(), "jti-1", time.Minute)) {
				first.Add(1)
			}
		})
	}
	wg.Wait()
	if first.Load() != 1 {
		t.Errorf("%d callers were the first; want 1", first.Load())
	}
	c := f(t)
	if !mustSucceed[bool](t)(c.Once(t.Context(), "jti-2", 50*time.Millisecond)) {
		t.Error("another key was known")
	}
	testenv.Eventually(t, 20*time.Second, func() error {
		if !mustSucceed[bool](t)(c.Once(t.Context(), "jti-2", time.Minute)) {
			return errors.New("the key is still known")
		}
		return nil
	})
}

func limitFleet(t *testing.T, f fleet) {
	const limit = 20
	var ok atomic.Int32
	var wg sync.WaitGroup
	for range 5 {
		c := f(t)
		wg.Go(func() {
			for range 10 {
				d := mustSucceed[coord.Decision](t)(c.Allow(t.Context(), "retrain:default", limit, time.Minute))
				if d.OK {
					ok.Add(1)
				}
				if d.Limit != limit || d.Remaining < 0 || d.Remaining >= limit || d.ResetSeconds < 1 || d.ResetSeconds > 60 {
					t.Errorf("%+v; want d.Limit == limit && d.Remaining >= 0 && d.Remaining < limit && d.ResetSeconds >= 1 && d.ResetSeconds <= 60", d)
				}
				if !d.OK && d.Remaining != 0 {
					t.Errorf("refused with %d left; want (d.OK || d.Remaining == 0)", d.Remaining)
				}
			}
		})
	}
	wg.Wait()
	if ok.Load() != limit {
		t.Errorf("%d of %d acts passed; want ok.Load() == %v", ok.Load(), limit, limit)
	}
	if d := mustSucceed[coord.Decision](t)(f(t).Allow(t.Context(), "retrain:other", limit, time.Minute)); !d.OK || d.Remaining != limit-1 {
		t.Errorf("another tenant: %+v; want d.OK && d.Remaining == limit - 1", d)
	}
}

func windowAnew(t *testing.T, f fleet) {
	c := f(t)
	const window = 200 * time.Millisecond
	if d := mustSucceed[coord.Decision](t)(c.Allow(t.Context(), "k", 1, window)); !d.OK {
		t.Fatalf("%+v; want d.OK", d)
	}
	testenv.Eventually(t, 20*time.Second, func() error {
		if d := mustSucceed[coord.Decision](t)(c.Allow(t.Context(), "k", 1, window)); !d.OK {
			return fmt.Errorf("%+v", d) // and asking again does not prolong the window
		}
		return nil
	})
}

func noLimit(t *testing.T, f fleet) {
	c := f(t)
	for range 3 {
		if d := mustSucceed[coord.Decision](t)(c.Allow(t.Context(), "k", 0, time.Minute)); !d.OK {
			t.Errorf("%+v; want d.OK", d)
		}
	}
}

func allowCall(t *testing.T, b *coord.Breaker) coord.Permit {
	t.Helper()
	p, err := b.Allow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func requireState(t *testing.T, b *coord.Breaker, want string) {
	t.Helper()
	if s, err := b.State(t.Context()); err != nil || s.State != want {
		t.Errorf("state %+v, %v, want %s", s, err, want)
	}
}

// openBreaker makes b open after failures in a row and checks that this is
// reported once.
func openBreaker(t *testing.T, b *coord.Breaker, failures int) {
	t.Helper()
	for i := range failures {
		opened, err := allowCall(t, b).Failure(t.Context())
		if err != nil || opened != (i == failures-1) {
			t.Fatalf("failure %d opened: %v, %v; want opened == (i == failures-1)", i+1, opened, err)
		}
	}
}

func breakerOpens(t *testing.T, f fleet) {
	a, b := coord.NewBreaker(f(t), "orchestrator", 3, time.Minute), coord.NewBreaker(f(t), "orchestrator", 3, time.Minute)
	requireState(t, a, coord.Closed)
	for range 2 { // a success ends the row
		for range 2 {
			if _, err := allowCall(t, a).Failure(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := allowCall(t, b).Success(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	requireState(t, b, coord.Closed)
	openBreaker(t, a, 3)
	_, err := b.Allow(t.Context())
	var refused *coord.OpenError
	if !errors.As(err, &refused) || refused.RetryAfter <= 0 || refused.RetryAfter > time.Minute {
		t.Errorf("open breaker: %v; want errors.As(err, &refused) && refused.RetryAfter > 0 && refused.RetryAfter <= time.Minute", err)
	}
	requireState(t, b, coord.Open)
	openBreaker(t, coord.NewBreaker(f(t), "fragile", 1, time.Minute), 1)
}

func oneTrial(t *testing.T, f fleet) {
	const reset = 3 * time.Second
	a, b := coord.NewBreaker(f(t), "x", 1, reset), coord.NewBreaker(f(t), "x", 1, reset)
	openBreaker(t, a, 1)
	trial := func() coord.Permit {
		var p coord.Permit
		testenv.Eventually(t, 20*time.Second, func() (err error) { p, err = a.Allow(t.Context()); return err })
		if _, err := b.Allow(t.Context()); err == nil {
			t.Error("a second call went out during the trial")
		}
		return p
	}
	if opened, err := trial().Failure(t.Context()); !opened || err != nil {
		t.Errorf("a failed trial opens again: %v, %v; want opened", opened, err)
	}
	requireState(t, b, coord.Open)
	p := trial()
	requireState(t, b, coord.HalfOpen)
	if err := p.Success(t.Context()); err != nil {
		t.Fatal(err)
	}
	requireState(t, b, coord.Closed)
	allowCall(t, b)
	if s, err := b.State(t.Context()); err != nil || s.Failures != 0 {
		t.Errorf("after a trial: %+v, %v; want s.Failures == 0", s, err)
	}
}

func lateReports(t *testing.T, f fleet) {
	b := coord.NewBreaker(f(t), "x", 1, time.Minute)
	early1, early2 := allowCall(t, b), allowCall(t, b)
	openBreaker(t, b, 1)
	if err := early1.Success(t.Context()); err != nil {
		t.Error(err)
	}
	if opened, err := early2.Failure(t.Context()); opened || err != nil {
		t.Errorf("opened again: %v, %v; want !opened", opened, err)
	}
	requireState(t, b, coord.Open)
}

func lostTrial(t *testing.T, f fleet) {
	b := coord.NewBreaker(f(t), "x", 1, 100*time.Millisecond)
	openBreaker(t, b, 1)
	for range 2 {
		testenv.Eventually(t, 20*time.Second, func() error { _, err := b.Allow(t.Context()); return err })
	}
}

func testSettings(t *testing.T, f fleet) {
	writer, reader := f(t), f(t)
	if err := writer.SetConfig(t.Context(), "before", []byte("1")); err != nil {
		t.Fatal(err)
	}
	type change struct {
		key   string
		value []byte
	}
	seen := make(chan change, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- reader.WatchConfig(ctx, func(k string, v []byte) { seen <- change{k, v} })
	}()
	const within = 10 * time.Second // far beyond the second that a look takes to come: a busy machine
	expect := func(key, value string) {
		t.Helper()
		select {
		case c := <-seen:
			if c.key != key || string(c.value) != value || (c.value == nil) != (value == "") {
				t.Errorf("saw %s=%q, want %s=%q", c.key, c.value, key, value)
			}
		case <-time.After(within):
			t.Errorf("%s=%q not seen within %v", key, value, within)
		}
	}
	expect("before", "1")
	for _, v := range []string{"a", "b", ""} {
		var value []byte
		if v != "" {
			value = []byte(v)
		}
		if err := writer.SetConfig(t.Context(), "branch", value); err != nil {
			t.Fatal(err)
		}
		got, found, err := reader.GetConfig(t.Context(), "branch")
		if err != nil || string(got) != v || found != (v != "") {
			t.Errorf("read %q, %v, %v, want %q", got, found, err, v)
		}
		expect("branch", v)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("the end of a watch is not an error: %v", err)
	}
}

func oneLeader(t *testing.T, f fleet) {
	ctx, cancel := context.WithCancel(t.Context())
	var leading, terms atomic.Int32
	var last atomic.Int64
	var wg sync.WaitGroup
	for range 3 {
		c := f(t)
		wg.Go(func() {
			err := coord.Lead(ctx, c, "sweeper", 2*time.Second, nil, func(ctx context.Context) error {
				defer leading.Add(-1)
				if leading.Add(1) != 1 {
					t.Error("two replicas lead")
				}
				if fence := coord.Fence(ctx); last.Swap(fence) >= fence {
					t.Error("the fence did not rise")
				}
				terms.Add(1)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	testenv.Eventually(t, 30*time.Second, func() error {
		if n := terms.Load(); n < 4 {
			return fmt.Errorf("%d terms", n)
		}
		return nil
	})
	cancel()
	wg.Wait()
}

func leaderTask(t *testing.T, f fleet) {
	broken := errors.New("broken")
	if err := coord.Lead(t.Context(), f(t), "x", time.Minute, nil, func(context.Context) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("the task's error: %v; want errors.Is(err, broken)", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := coord.Lead(ctx, f(t), "x", time.Minute, nil, func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}); err != nil {
		t.Errorf("the end of the context: %v", err)
	}
	acquireLease(t, f(t), "x", time.Minute) // both gave it back
}

func TestRedisIsAway(t *testing.T) {
	t.Parallel()
	const secret = "hunter2hunter2"
	if _, err := coord.NewRedis("redis//:"+secret+"@nowhere", ""); err == nil {
		t.Error("a broken URL passed")
	}
	c, err := coord.NewRedis("redis://:"+secret+"@127.0.0.1:1/0", "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := t.Context()
	_, _, lease := c.TryLease(ctx, "x", time.Minute)
	_, once := c.Once(ctx, "x", time.Minute)
	_, rate := c.Allow(ctx, "x", 1, time.Minute)
	_, breaker := coord.NewBreaker(c, "x", 1, time.Minute).Allow(ctx)
	for _, err := range []error{c.Ping(ctx), lease, once, rate, breaker, c.SetConfig(ctx, "x", nil)} {
		if !errors.Is(err, coord.ErrUnavailable) {
			t.Errorf("%v is no ErrUnavailable; want errors.Is(err, coord.ErrUnavailable)", err)
		}
	}
}
