package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/testenv"
)

func TestBatchesHandleEachEventOnceAndInOrder(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	events := numberedEvents(700)
	b.relay(t, nil)
	b.insert(t, events...)
	b.inStream(t, len(events))
	// The same event under another message id, as after the duplicate window.
	body := fmt.Sprintf(`{"specversion":"1.0","id":%q,"type":"platform.job.started","data":{}}`, events[0].ID)
	if _, err := b.js.Publish(t.Context(), "platform.default.job.started", []byte(body)); err != nil {
		t.Fatal(err)
	}
	last := numberedEvents(1)[0]
	b.insert(t, last)
	sizes := make(chan int, 10_000)
	got := b.batches(t, 100, func(_ context.Context, _ pgx.Tx, es []outbox.Envelope) error {
		sizes <- len(es)
		return nil
	})
	for i, want := range append(events, last) {
		if e := nextEvent(t, got); e.ID != want.ID {
			t.Fatalf("event %d is %s; want e.ID == %v", i, e.ID, want.ID)
		}
	}
	largest := 0
	for len(sizes) > 0 {
		largest = max(largest, <-sizes)
	}
	if largest < 2 || largest > 100 {
		t.Errorf("the largest batch has %d events; want largest >= 2 && largest <= 100", largest)
	}
}

// batches runs a consumer of batches until the test ends and yields the events of
// those that committed.
func (b *bundle) batches(t *testing.T, size int, handle func(context.Context, pgx.Tx, []outbox.Envelope) error) <-chan outbox.Envelope {
	t.Helper()
	out := make(chan outbox.Envelope, 10_000)
	b.consume(t, func(c *outbox.ConsumerConfig) {
		c.Handle, c.Batch, c.Retry = nil, size, time.Millisecond
		c.HandleBatch = func(ctx context.Context, tx pgx.Tx, es []outbox.Envelope) error {
			if err := handle(ctx, tx, es); err != nil {
				return err
			}
			for _, e := range es {
				out <- e
			}
			return nil
		}
	})
	return out
}

func TestAFaultyEventLeavesItsBatchAlone(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	events := numberedEvents(50)
	bad := events[20]
	b.relay(t, nil)
	b.insert(t, events...)
	b.inStream(t, len(events))
	got := b.batches(t, 0, func(_ context.Context, _ pgx.Tx, es []outbox.Envelope) error {
		if slices.ContainsFunc(es, func(e outbox.Envelope) bool { return e.ID == bad.ID }) {
			return errors.New("no such model")
		}
		return nil
	})
	for i, want := range slices.Delete(slices.Clone(events), 20, 21) {
		if e := nextEvent(t, got); e.ID != want.ID {
			t.Fatalf("event %d is %s; want e.ID == %v", i, e.ID, want.ID)
		}
	}
	testenv.Eventually(t, 20*time.Second, func() error {
		var id uuid.UUID
		var deliveries int
		if err := b.pool.QueryRow(t.Context(), "select event_id, deliveries from dead_letter").Scan(&id, &deliveries); err != nil {
			return err
		}
		if id != bad.ID || deliveries != 5 {
			return fmt.Errorf("dead letter %s after %d", id, deliveries)
		}
		return nil
	})
}

func TestAConsumerThatIsToldToStopCostsNoDelivery(t *testing.T) {
	t.Parallel()
	for _, batch := range []bool{false, true} {
		t.Run(fmt.Sprintf("batch=%v", batch), func(t *testing.T) {
			t.Parallel()
			b := setupBundle(t)
			events := numberedEvents(20)
			b.relay(t, nil)
			b.insert(t, events...)
			b.inStream(t, len(events))
			stop := fmt.Errorf("no longer the leader: %w", outbox.ErrStop)
			cfg := outbox.ConsumerConfig{Conn: b.nc, Pool: b.pool, Name: "test-jobs", Subjects: []string{"platform.*.job.>"}}
			if batch {
				cfg.HandleBatch = func(context.Context, pgx.Tx, []outbox.Envelope) error { return stop }
			} else {
				cfg.Handle = func(context.Context, pgx.Tx, outbox.Envelope) error { return stop }
			}
			for range 7 { // more than an event may fail
				if err := outbox.Consume(t.Context(), cfg, slog.New(slog.NewTextHandler(t.Output(), nil))); !errors.Is(err, outbox.ErrStop) {
					t.Fatalf("it ended with %v; want errors.Is(err, outbox.ErrStop)", err)
				}
			}
			got := b.consume(t, nil)
			seen := map[uuid.UUID]bool{}
			for range events {
				seen[nextEvent(t, got).ID] = true
			}
			if len(seen) != len(events) {
				t.Errorf("%d of %d events; want len(seen) == len(events)", len(seen), len(events))
			}
		})
	}
}

// The events that a killed process had fetched do not come after newer ones.
func TestOrderOutlivesAKilledConsumer(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	events := numberedEvents(60)
	b.relay(t, nil)
	b.insert(t, events[:40]...)
	b.inStream(t, 40)
	dead, err := b.js.CreateOrUpdateConsumer(t.Context(), outbox.StreamName, jetstream.ConsumerConfig{
		Durable: "test-jobs", FilterSubjects: []string{"platform.*.job.>"}, AckPolicy: jetstream.AckExplicitPolicy, AckWait: 30 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	fetched, err := dead.Fetch(30)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for msg := range fetched.Messages() {
		if n++; n == 1 || n == 20 { // it had answered some, not all in their order
			if err := msg.DoubleAck(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n != 30 {
		t.Fatalf("fetched %d, %v; want n == 30", n, fetched.Error())
	}
	b.insert(t, events[40:]...)
	got := make(chan outbox.Envelope, 100)
	b.consume(t, func(c *outbox.ConsumerConfig) {
		c.Handle, c.InOrder = nil, true
		c.HandleBatch = func(_ context.Context, _ pgx.Tx, es []outbox.Envelope) error {
			for _, e := range es {
				got <- e
			}
			return nil
		}
	})
	for i, want := range events[1:] { // the first was answered; the twentieth comes again, as its inbox row is not there
		if e := nextEvent(t, got); e.ID != want.ID {
			t.Fatalf("event %d is %s; want e.ID == %v", i+2, e.ID, want.ID)
		}
	}
}
