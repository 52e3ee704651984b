package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/session"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func openPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	url := testenv.Migrated(t, "dashboard-session", func(ctx context.Context, url string) error {
		return postgres.Migrate(ctx, url, store.Schema, store.Migrations())
	})
	pool, err := postgres.Open(t.Context(), url, store.Schema, postgres.MaxConns(4))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func openRedis(t testing.TB, url, prefix string) *session.Redis {
	t.Helper()
	r, err := session.NewRedis(url, prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// replicas opens two stores on one server, as two processes have.
type replicas func(t *testing.T) (a, b session.Store)

func TestStoreConformance(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]replicas{
		"redis": func(t *testing.T) (session.Store, session.Store) {
			url, prefix := testenv.Redis(t), testenv.Prefix(t)
			return openRedis(t, url, prefix), openRedis(t, url, prefix)
		},
		"postgres": func(t *testing.T) (session.Store, session.Store) {
			pool := openPool(t)
			return session.NewPostgres(pool), session.NewPostgres(pool)
		},
	} {
		for rule, run := range map[string]func(*testing.T, session.Store, session.Store){
			"what one replica puts another gets":   putIsShared,
			"a second put replaces value and time": putReplaces,
			"an entry ends with its time":          entryEnds,
			"take gives to exactly one caller":     takeOnce,
			"an expired entry cannot be taken":     takeExpired,
			"delete removes for all":               deleteIsShared,
			"keys in the clear are refused":        clearKeys,
			"entries without an end are refused":   endless,
		} {
			t.Run(name+"/"+rule, func(t *testing.T) {
				t.Parallel()
				a, b := open(t)
				run(t, a, b)
			})
		}
	}
}

func mustPut(t *testing.T, s session.Store, id, value string, ttl time.Duration) {
	t.Helper()
	if err := s.Put(t.Context(), session.Key(id), []byte(value), ttl); err != nil {
		t.Fatalf("Put: %v; want no error", err)
	}
}

func wantEntry(t *testing.T, s session.Store, id, value string) {
	t.Helper()
	if got, err := s.Get(t.Context(), session.Key(id)); err != nil || string(got) != value {
		t.Fatalf("Get(%s) = %q, %v; want %q", id, got, err, value)
	}
}

func wantNone(t *testing.T, s session.Store, id string) {
	t.Helper()
	if got, err := s.Get(t.Context(), session.Key(id)); !errors.Is(err, session.ErrNotFound) {
		t.Fatalf("Get(%s) = %q, %v; want ErrNotFound", id, got, err)
	}
}

func putIsShared(t *testing.T, a, b session.Store) {
	wantNone(t, b, "x")
	value := string([]byte{0, 0xff, '\n'}) // any bytes
	mustPut(t, a, "x", value, time.Minute)
	wantEntry(t, b, "x", value)
	wantNone(t, b, "y")
}

func putReplaces(t *testing.T, a, b session.Store) {
	mustPut(t, a, "x", "one", 50*time.Millisecond)
	mustPut(t, b, "x", "two", time.Minute)
	mustPut(t, a, "y", "", 50*time.Millisecond)
	testenv.Eventually(t, 20*time.Second, func() error { return wantGone(t.Context(), b, "y") })
	wantEntry(t, a, "x", "two") // although its first time is over
}

func wantGone(ctx context.Context, s session.Store, id string) error {
	if got, err := s.Get(ctx, session.Key(id)); !errors.Is(err, session.ErrNotFound) {
		return fmt.Errorf("Get(%s) = %q, %v; want ErrNotFound", id, got, err)
	}
	return nil
}

func entryEnds(t *testing.T, a, b session.Store) {
	mustPut(t, a, "x", "v", 300*time.Millisecond)
	wantEntry(t, b, "x", "v")
	testenv.Eventually(t, 20*time.Second, func() error { return wantGone(t.Context(), b, "x") })
}

func takeOnce(t *testing.T, a, b session.Store) {
	mustPut(t, a, "x", "v", time.Minute)
	var got atomic.Int32
	var wg sync.WaitGroup
	for i := range 16 {
		s := []session.Store{a, b}[i%2]
		wg.Go(func() {
			switch value, err := s.Take(t.Context(), session.Key("x")); {
			case err == nil && string(value) == "v":
				got.Add(1)
			case !errors.Is(err, session.ErrNotFound):
				t.Errorf("Take = %q, %v; want the value or ErrNotFound", value, err)
			}
		})
	}
	wg.Wait()
	if got.Load() != 1 {
		t.Errorf("%d callers took the entry; want 1", got.Load())
	}
	wantNone(t, b, "x")
}

func takeExpired(t *testing.T, a, b session.Store) {
	mustPut(t, a, "x", "v", 50*time.Millisecond)
	testenv.Eventually(t, 20*time.Second, func() error { return wantGone(t.Context(), b, "x") })
	if value, err := b.Take(t.Context(), session.Key("x")); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("Take = %q, %v; want ErrNotFound", value, err)
	}
}

func deleteIsShared(t *testing.T, a, b session.Store) {
	mustPut(t, a, "x", "v", time.Minute)
	for range 2 { // an absent one is no error
		if err := b.Delete(t.Context(), session.Key("x")); err != nil {
			t.Fatalf("Delete: %v; want no error", err)
		}
	}
	wantNone(t, a, "x")
}

func clearKeys(t *testing.T, a, _ session.Store) {
	for _, key := range []string{"", "an-id-of-a-session", session.Key("x")[:62], session.Key("x") + "00"} {
		if err := a.Put(t.Context(), key, []byte("v"), time.Minute); err == nil {
			t.Errorf("Put under %q: no error; want one, only digests of ids are keys", key)
		}
	}
}

func endless(t *testing.T, a, _ session.Store) {
	for _, ttl := range []time.Duration{0, -time.Second} {
		if err := a.Put(t.Context(), session.Key("x"), []byte("v"), ttl); err == nil {
			t.Errorf("Put for %s: no error; want one", ttl)
		}
	}
}

func TestAStoreThatIsAwayIsNoAbsentEntry(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	pool.Close()
	for name, s := range map[string]session.Store{"redis": openRedis(t, "redis://127.0.0.1:1/0", "x:"), "postgres": session.NewPostgres(pool)} {
		for call, do := range map[string]func() error{
			"Put":    func() error { return s.Put(t.Context(), session.Key("x"), nil, time.Minute) },
			"Get":    func() error { _, err := s.Get(t.Context(), session.Key("x")); return err },
			"Take":   func() error { _, err := s.Take(t.Context(), session.Key("x")); return err },
			"Delete": func() error { return s.Delete(t.Context(), session.Key("x")) },
		} {
			if err := do(); err == nil || errors.Is(err, session.ErrNotFound) {
				t.Errorf("%s: %s of a store that is away: %v; want an error that is not ErrNotFound", name, call, err)
			}
		}
	}
}

func TestRedisURLThatCannotBeReadIsRefusedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	_, err := session.NewRedis("postgres://u:s3cret@h", "x:")
	if err == nil || bytes.Contains([]byte(err.Error()), []byte("s3cret")) {
		t.Errorf("NewRedis: %v; want an error without the password", err)
	}
}

func TestSweepRemovesExpiredRowsAlone(t *testing.T) {
	t.Parallel()
	pool := openPool(t)
	s := session.NewPostgres(pool)
	_, err := pool.Exec(t.Context(), `insert into session_entries (key, value, expires_at)
		select encode(sha256(n::text::bytea), 'hex'), '', now() - interval '1 s' from generate_series(1, 2500) n`)
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, "x", "v", time.Minute)
	if n, err := s.Sweep(t.Context()); n != 2500 || err != nil {
		t.Errorf("Sweep = %d, %v; want 2500", n, err)
	}
	wantEntry(t, s, "x", "v")
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := session.NewPostgres(openPool(t)).Run(ctx, slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("Run = %v; want nil", err)
	}
}
