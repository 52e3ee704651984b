package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/testenv"
)

// inStream waits until the stream has at least n messages.
func (b *bundle) inStream(t testing.TB, n int) {
	t.Helper()
	testenv.Eventually(t, 20*time.Second, func() error {
		s, err := b.js.Stream(t.Context(), outbox.StreamName)
		if err != nil {
			return err
		}
		if got := s.CachedInfo().State.Msgs; got < uint64(n) {
			return fmt.Errorf("%d of %d messages", got, n)
		}
		return nil
	})
}

func (b *bundle) refusals(t testing.TB) (n int) {
	t.Helper()
	if err := b.pool.QueryRow(t.Context(), "select coalesce(sum(refusals), 0) from outbox").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestBrokerOutageLosesNothingAndCostsNoAttempt(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	events := numberedEvents(6000)
	b.insert(t, events[:3000]...)
	r, _ := b.relay(t, nil)
	b.inStream(t, 100)
	b.broker.Stop() // mid-stream
	b.insert(t, events[3000:]...)
	testenv.Eventually(t, 15*time.Second, func() error {
		s, err := r.Stats(t.Context())
		if err != nil || s.LastError == "" || s.Pending < 3000 || s.OldestPendingSeconds <= 0 {
			return fmt.Errorf("%+v, %v", s, err)
		}
		return nil
	})
	b.broker.Start()
	b.await(t, events, false) // messages in flight may come after later ones
	if n := b.refusals(t); n != 0 {
		t.Errorf("the outage cost %d attempts; want 0", n)
	}
	testenv.Eventually(t, 20*time.Second, func() error {
		if s, err := r.Stats(t.Context()); err != nil || s.LastError != "" || s.Pending != 0 || s.Published != 6000 {
			return fmt.Errorf("%+v, %v", s, err)
		}
		return nil
	})
}

func TestRelayWaitsForABrokerThatIsNotThereYet(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	b.broker.Stop()
	events := numberedEvents(10)
	b.insert(t, events...)
	r, _ := b.relay(t, nil)
	testenv.Eventually(t, 10*time.Second, func() error {
		if s, err := r.Stats(t.Context()); err != nil || s.LastError == "" {
			return fmt.Errorf("%+v, %v", s, err)
		}
		return nil
	})
	b.broker.Start()
	b.published(t, events)
}

func TestStreamThatWasWipedIsFilledAgain(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	events := numberedEvents(700)
	r, _ := b.relay(t, nil)
	b.insert(t, events[:600]...)
	b.published(t, events[:600])
	testenv.Eventually(t, 20*time.Second, func() error {
		if s, err := r.Stats(t.Context()); err != nil || s.Published != 600 {
			return fmt.Errorf("%+v, %v", s, err)
		}
		return nil
	})
	b.broker.Wipe()
	b.insert(t, events[600:]...)
	b.broker.Start()
	b.published(t, events)
}

func TestStreamThatWasReplacedIsFilledAgain(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	events := numberedEvents(60)
	r, _ := b.relay(t, nil)
	b.insert(t, events[:50]...)
	b.published(t, events[:50])
	testenv.Eventually(t, 20*time.Second, func() error {
		if s, err := r.Stats(t.Context()); err != nil || s.Published != 50 {
			return fmt.Errorf("%+v, %v", s, err)
		}
		return nil
	})
	if err := b.js.DeleteStream(t.Context(), outbox.StreamName); err != nil {
		t.Fatal(err)
	}
	if err := outbox.EnsureStream(t.Context(), b.js, outbox.StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	b.insert(t, events[50:]...)
	b.await(t, events, false) // the new ones came first, so the relay noticed
}

// A broker that acknowledges before it syncs can lose its newest messages; others
// may have taken their numbers since.
func TestLostTailIsPublishedAgain(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	events := numberedEvents(300)
	_, stop := b.relay(t, nil)
	b.insert(t, events...)
	b.published(t, events)
	stop()

	s, err := b.js.Stream(t.Context(), outbox.StreamName)
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for seq := uint64(151); seq <= 300; seq++ {
		if err := s.DeleteMsg(t.Context(), seq); err != nil {
			t.Fatal(err)
		}
		lost++
	}
	b.broker.Stop() // and it forgets the ids of messages it no longer has
	b.broker.Start()
	reg := prometheus.NewRegistry()
	r := outbox.NewRelay(outbox.RelayConfig{Service: "test-service", Pool: b.pool, Conn: b.nc}, nil, reg)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	b.published(t, events)
	if err := testutil.GatherAndCompare(reg, strings.NewReader(fmt.Sprintf(`# HELP platform_outbox_republished_total Acknowledged events that the stream had lost.
# TYPE platform_outbox_republished_total counter
platform_outbox_republished_total %d
`, lost)), "platform_outbox_republished_total"); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestOversizedEventBecomesPoisonWhileOthersGoOn(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	events := numberedEvents(20)
	big := outbox.Event{
		ID: uuid.Must(uuid.NewV7()), Tenant: "default", Namespace: "job", Name: "started", Actor: "alice",
		Payload: map[string]any{"text": strings.Repeat("x", outbox.MaxMessage)},
	}
	b.insert(t, big)
	b.insert(t, events...)
	r, _ := b.relay(t, func(c *outbox.RelayConfig) { c.MaxAttempts = 2 })
	b.published(t, events)
	testenv.Eventually(t, 15*time.Second, func() error {
		if s, err := r.Stats(t.Context()); err != nil || s.Poison != 1 || s.Pending != 0 || s.LastError != "" {
			return fmt.Errorf("%+v, %v", s, err)
		}
		return nil
	})
	rows, err := outbox.List(t.Context(), b.pool, outbox.Poison, nil, uuid.Nil, 10)
	if err != nil || len(rows) != 1 || rows[0].ID != big.ID || rows[0].Refusals != 2 || !strings.Contains(*rows[0].LastError, "bytes") {
		t.Fatalf(`%+v, %v; want len(rows) == 1 && rows[0].ID == big.ID && rows[0].Refusals == 2 && strings.Contains(*rows[0].LastError, "bytes")`, rows, err)
	}

	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := outbox.Drop(t.Context(), tx, events[0].ID); !errors.Is(err, outbox.ErrNotPoison) {
		t.Errorf("dropping a published row: %v; want errors.Is(err, outbox.ErrNotPoison)", err)
	}
	if _, err := outbox.Drop(t.Context(), tx, uuid.New()); !errors.Is(err, outbox.ErrNoRow) {
		t.Errorf("dropping nothing: %v; want errors.Is(err, outbox.ErrNoRow)", err)
	}
	if row, err := outbox.Replay(t.Context(), tx, big.ID); err != nil || row.State != outbox.Pending || row.Refusals != 0 {
		t.Errorf("replay: %+v, %v; want row.State == outbox.Pending && row.Refusals == 0", row, err)
	}
	if _, err := outbox.Drop(t.Context(), tx, big.ID); !errors.Is(err, outbox.ErrNotPoison) {
		t.Errorf("dropping a replayed row: %v; want errors.Is(err, outbox.ErrNotPoison)", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	row, err := outbox.Drop(t.Context(), b.pool, big.ID)
	if err != nil || row.ID != big.ID || len(row.Digest) != 64 {
		t.Errorf("drop: %+v, %v; want row.ID == big.ID && len(row.Digest) == 64", row.ID, err)
	}
}

func TestRepublishedEventsStaySingle(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	events := numberedEvents(50)
	r, _ := b.relay(t, nil)
	b.insert(t, events...)
	b.published(t, events)
	all := func() error {
		if s, err := r.Stats(t.Context()); err != nil || s.Published != 50 {
			return fmt.Errorf("%+v, %v", s, err)
		}
		return nil
	}
	testenv.Eventually(t, 20*time.Second, all)
	var n int64
	if err := postgres.InTx(t.Context(), b.pool, func(tx pgx.Tx) (err error) {
		n, err = outbox.Republish(t.Context(), tx, nil, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
		return err
	}); err != nil || n != 50 {
		t.Fatalf("%d rows, %v; want n == 50", n, err)
	}
	testenv.Eventually(t, 20*time.Second, all)
	b.published(t, events)
}

func TestPublishedRowsAreSwept(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	events := numberedEvents(30)
	_, stop := b.relay(t, nil)
	b.insert(t, events...)
	b.published(t, events)
	stop()
	if _, err := b.pool.Exec(t.Context(), "update outbox set published_at = now() - interval '8 days' where stream_seq <= 20"); err != nil {
		t.Fatal(err)
	}
	r, _ := b.relay(t, nil)
	testenv.Eventually(t, 10*time.Second, func() error {
		if s, err := r.Stats(t.Context()); err != nil || s.Published != 10 {
			return fmt.Errorf("%+v, %v", s, err)
		}
		return nil
	})
}

// A row that is locked by another process, such as an operator who reads it to replay it,
// or a statement of a relay that was killed, keeps its place before the rows after it.
func TestLockedRowKeepsItsPlace(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	events := numberedEvents(20)
	b.insert(t, events...)
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), "select from outbox where id = any($1) for update", []uuid.UUID{events[0].ID, events[1].ID}); err != nil {
		t.Fatal(err)
	}
	r, _ := b.relay(t, nil)
	testenv.Eventually(t, 20*time.Second, func() error { // it has come to the locked row, and does not wait in silence
		if s, err := r.Stats(t.Context()); err != nil || !strings.Contains(s.LastError, "locked by another transaction") {
			return fmt.Errorf("%+v, %v", s, err)
		}
		return nil
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.published(t, events)
	testenv.Eventually(t, 20*time.Second, func() error {
		if s, err := r.Stats(t.Context()); err != nil || s.LastError != "" {
			return fmt.Errorf("%+v, %v", s, err)
		}
		return nil
	})
}

// A relay that lost its lock without knowing may claim rows after its successor has
// released all claims: the successor takes them over, in their order.
func TestClaimsOfAFormerRelayAreTakenOver(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	b.relay(t, nil)
	first := numberedEvents(1)
	b.insert(t, first...)
	b.published(t, first)
	events := numberedEvents(20)
	if err := postgres.InTx(t.Context(), b.pool, func(tx pgx.Tx) error {
		if err := outbox.Insert(t.Context(), tx, events...); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), "update outbox set claimed_by = $1, claimed_until = now() + interval '1 hour' where id = any($2)",
			uuid.New(), []uuid.UUID{events[0].ID, events[1].ID})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	b.published(t, append(first, events...))
}

func TestASecondRelayTakesOver(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	events := numberedEvents(1500)
	_, stopFirst := b.relay(t, nil)
	b.insert(t, events[:500]...)
	b.published(t, events[:500])
	b.relay(t, nil) // on standby
	b.insert(t, events[500:1000]...)
	b.published(t, events[:1000])
	stopFirst()
	b.insert(t, events[1000:]...)
	b.published(t, events)
}

func TestEnsureStreamLeavesAnExistingOneAlone(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	if err := outbox.EnsureStream(t.Context(), b.js, outbox.StreamConfig{MaxBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	if err := outbox.EnsureStream(t.Context(), b.js, outbox.StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	s, err := b.js.Stream(t.Context(), outbox.StreamName)
	if err != nil || s.CachedInfo().Config.MaxBytes != 1<<20 {
		t.Errorf("%+v, %v; want s.CachedInfo().Config.MaxBytes == 1 << 20", s, err)
	}
	b.broker.Stop()
	js, err := jetstream.New(b.nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := outbox.EnsureStream(ctx, js, outbox.StreamConfig{}); err == nil || errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("without a broker: %v; want an error && !errors.Is(err, nats.ErrConnectionClosed)", err)
	}
}
