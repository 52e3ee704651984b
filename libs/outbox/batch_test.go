package outbox_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/testenv"
)

// withStream makes the stream before any relay, as change has it.
func (b *bundle) withStream(t *testing.T, change func(*jetstream.StreamConfig)) jetstream.Stream {
	t.Helper()
	if err := outbox.EnsureStream(t.Context(), b.js, outbox.StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	s, err := b.js.Stream(t.Context(), outbox.StreamName)
	if err != nil {
		t.Fatal(err)
	}
	if change == nil {
		return s
	}
	cfg := s.CachedInfo().Config
	change(&cfg)
	if err := b.js.DeleteStream(t.Context(), outbox.StreamName); err != nil {
		t.Fatal(err)
	}
	if s, err = b.js.CreateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	return s
}

// marked waits until each of the events is marked with its number in the stream, and returns
// those numbers.
func (b *bundle) marked(t *testing.T, s jetstream.Stream, events []outbox.Event) []uint64 {
	t.Helper()
	seqs := make([]uint64, len(events))
	testenv.Eventually(t, 20*time.Second, func() error {
		for i, e := range events {
			var seq *int64
			if err := b.pool.QueryRow(t.Context(), "select stream_seq from outbox where id = $1 and published_at is not null", e.ID).Scan(&seq); err != nil {
				return fmt.Errorf("event %d: %w", i, err)
			}
			seqs[i] = uint64(*seq)
		}
		return nil
	})
	for i, seq := range seqs {
		if msg, err := s.GetMsg(t.Context(), seq); err != nil || msg.Header.Get(jetstream.MsgIDHeader) != events[i].ID.String() {
			t.Fatalf("event %d is marked with %d: %+v, %v; want msg.Header.Get(jetstream.MsgIDHeader) == events[i].ID.String()", i, seq, msg, err)
		}
	}
	return seqs
}

func TestEventsGoAtOnce(t *testing.T) {
	t.Parallel()
	b := setupWith(t, testenv.NewSyncedBroker(t))
	s := b.withStream(t, nil)
	events := numberedEvents(1200)
	b.insert(t, events...)
	b.relay(t, nil)
	b.published(t, events)
	seqs := b.marked(t, s, events)
	batches := map[string]int{}
	for i, seq := range seqs {
		if seq != uint64(i+1) {
			t.Fatalf("event %d is number %d; want seq == uint64(i + 1)", i, seq)
		}
		msg, err := s.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		batches[msg.Header.Get("Nats-Batch-Id")]++
	}
	if len(batches) != 3 || batches[""] != 0 {
		t.Errorf(`batches: %v; want len(batches) == 3 && batches[""] == 0`, batches)
	}
}

func TestAKnownEventHoldsUpNoBatch(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	s := b.withStream(t, nil)
	events := numberedEvents(50)
	// As after a relay that died between the broker's answer and the mark.
	known := &nats.Msg{Subject: outbox.Subject("default", "job", "started"), Data: []byte("{}"), Header: nats.Header{}}
	known.Header.Set(jetstream.MsgIDHeader, events[20].ID.String())
	if _, err := b.js.PublishMsg(t.Context(), known); err != nil {
		t.Fatal(err)
	}
	b.insert(t, events...)
	b.relay(t, nil)
	b.await(t, events, false)
	if seqs := b.marked(t, s, events); seqs[20] != 1 || seqs[0] != 2 || seqs[49] != 50 {
		t.Errorf("numbers %v; want seqs[20] == 1 && seqs[0] == 2 && seqs[49] == 50", seqs)
	}
	if n := b.refusals(t); n != 0 {
		t.Errorf("%d refusals; want 0", n)
	}
}

func TestARefusedEventHoldsUpNoBatch(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	b.withStream(t, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 4000 })
	events := numberedEvents(50)
	events[30].Payload = map[string]any{"text": strings.Repeat("x", 5000)}
	b.insert(t, events...)
	r, _ := b.relay(t, func(c *outbox.RelayConfig) { c.MaxAttempts = 1 })
	b.published(t, append(events[:30:30], events[31:]...))
	testenv.Eventually(t, 10*time.Second, func() error {
		if s, err := r.Stats(t.Context()); err != nil || s.Poison != 1 || s.Pending != 0 || s.Published != 49 || s.LastError != "" {
			return fmt.Errorf("%+v, %v", s, err)
		}
		return nil
	})
	rows, err := outbox.List(t.Context(), b.pool, outbox.Poison, nil, uuid.Nil, 10)
	if err != nil || len(rows) != 1 || rows[0].ID != events[30].ID {
		t.Errorf("%+v, %v; want len(rows) == 1 && rows[0].ID == events[30].ID", rows, err)
	}
}

func TestBatchesAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	s := b.withStream(t, nil)
	events := numberedEvents(40)
	for i := range events {
		events[i].Payload = map[string]any{"text": strings.Repeat("x", 300_000)}
	}
	b.insert(t, events...)
	b.relay(t, nil)
	b.published(t, events)
	size := map[string]int{}
	for _, seq := range b.marked(t, s, events) {
		msg, err := s.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		size[msg.Header.Get("Nats-Batch-Id")] += len(msg.Data)
	}
	for id, n := range size {
		if n > 4<<20 {
			t.Errorf("batch %s has %d bytes; want n <= 4 << 20", id, n)
		}
	}
	if len(size) != 4 {
		t.Errorf("%d batches of 12 MB; want 4", len(size))
	}
}

// An event may be as long as the broker allows, though a batch would add headers to it.
func TestTheLongestEventLeavesItsBatch(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	b.withStream(t, nil)
	events := numberedEvents(20)
	events[10].Payload = map[string]any{"text": strings.Repeat("x", outbox.MaxMessage-700)}
	b.insert(t, events...)
	b.relay(t, nil)
	b.published(t, events)
	if n := b.refusals(t); n != 0 {
		t.Errorf("%d refusals; want 0", n)
	}
}

// The operator of the broker may have made the stream without batches, or an older broker
// does not support them.
func TestAStreamWithoutBatches(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	s := b.withStream(t, func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = false })
	events := numberedEvents(700)
	b.insert(t, events...)
	b.relay(t, nil)
	b.published(t, events)
	b.marked(t, s, events)
}

// Between the batches of a relay others publish too; its rows still carry their own numbers.
func TestBatchesBesideOthers(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	s := b.withStream(t, nil)
	events := numberedEvents(3000)
	for part := events; len(part) > 0; part = part[500:] {
		b.insert(t, part[:500]...)
	}
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			msg := &nats.Msg{Subject: outbox.Subject("other", "job", "started"), Data: []byte("{}"), Header: nats.Header{}}
			msg.Header.Set(jetstream.MsgIDHeader, uuid.NewString())
			if _, err := b.js.PublishMsg(t.Context(), msg); err != nil {
				done <- err
				return
			}
		}
	}()
	b.relay(t, nil)
	b.marked(t, s, events)
	close(stop)
	if err := <-done; err != nil && !errors.Is(err, t.Context().Err()) {
		t.Error(err, "want (err == nil || errors.Is(err, t.Context().Err()))")
	}
}
