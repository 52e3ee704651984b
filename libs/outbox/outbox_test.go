package outbox_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/testenv"
)

const schema = "svc"

// bundle is an outbox with a broker, and no relay yet.
type bundle struct {
	url    string
	pool   *pgxpool.Pool
	broker *testenv.Broker
	nc     *nats.Conn
	js     jetstream.JetStream
}

func setup(t testing.TB) *bundle {
	t.Helper()
	b := &bundle{broker: testenv.NewBroker(t)}
	b.url = testenv.Migrated(t, "outbox", func(ctx context.Context, url string) error {
		return postgres.Migrate(ctx, url, schema, outbox.Migrations())
	})
	var err error
	if b.pool, err = postgres.Open(t.Context(), b.url, schema, postgres.MaxConns(5)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.pool.Close)
	if b.nc, err = nats.Connect(b.broker.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.nc.Close)
	if b.js, err = jetstream.New(b.nc); err != nil {
		t.Fatal(err)
	}
	return b
}

// relay runs a relay until the test ends or stop is called.
func (b *bundle) relay(t testing.TB, change func(*outbox.RelayConfig)) (r *outbox.Relay, stop func()) {
	t.Helper()
	cfg := outbox.RelayConfig{Service: "test-service", Pool: b.pool, URL: b.broker.URL()}
	if change != nil {
		change(&cfg)
	}
	r = outbox.NewRelay(cfg, slog.New(slog.NewTextHandler(t.Output(), nil)), nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("relay: %v", err)
		}
	}
	t.Cleanup(stop)
	return r, stop
}

func (b *bundle) insert(t testing.TB, events ...outbox.Event) {
	t.Helper()
	if err := postgres.InTx(t.Context(), b.pool, func(tx pgx.Tx) error { return outbox.Insert(t.Context(), tx, events...) }); err != nil {
		t.Fatal(err)
	}
}

// numbered makes n events with ids.
func numbered(n int) []outbox.Event {
	events := make([]outbox.Event, n)
	for i := range events {
		events[i] = outbox.Event{
			ID: uuid.Must(uuid.NewV7()), Tenant: "default", Namespace: "job", Name: "started", SubjectID: "JPCP",
			Actor: "alice", Payload: map[string]any{"model": "JPCP", "n": i},
		}
	}
	return events
}

// ids reads the message ids of the whole stream, in order.
func (b *bundle) ids(ctx context.Context) ([]string, error) {
	s, err := b.js.Stream(ctx, outbox.StreamName)
	if err != nil {
		return nil, err
	}
	n := int(s.CachedInfo().State.Msgs)
	if n == 0 {
		return nil, nil
	}
	cons, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return nil, err
	}
	batch, err := cons.Fetch(n, jetstream.FetchMaxWait(10*time.Second))
	if err != nil {
		return nil, err
	}
	var ids []string
	for m := range batch.Messages() {
		ids = append(ids, m.Headers().Get(jetstream.MsgIDHeader))
	}
	return ids, batch.Error()
}

// published waits until the stream holds these events, each once and in order.
func (b *bundle) published(t testing.TB, events []outbox.Event) {
	t.Helper()
	b.await(t, events, true)
}

func (b *bundle) await(t testing.TB, events []outbox.Event, ordered bool) {
	t.Helper()
	testenv.Eventually(t, 30*time.Second, func() error {
		got, err := b.ids(t.Context())
		if err != nil {
			return err
		}
		if len(got) != len(events) {
			return fmt.Errorf("%d of %d events in the stream", len(got), len(events))
		}
		at := make(map[string]int, len(got))
		for i, id := range got {
			if _, twice := at[id]; twice {
				return fmt.Errorf("%s is in the stream twice", id)
			}
			at[id] = i
		}
		for i, e := range events {
			switch j, ok := at[e.ID.String()]; {
			case !ok:
				return fmt.Errorf("event %d is not in the stream", i)
			case ordered && i != j:
				return fmt.Errorf("event %d is message %d", i, j)
			}
		}
		return nil
	})
}

func TestMain(m *testing.M) { testenv.Main(m) }

func TestCommittedEventsLeaveInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	events := numbered(1200)
	b.insert(t, events[:300]...)
	r, _ := b.relay(t, nil)
	b.insert(t, events[300:]...)
	b.published(t, events)
	testenv.Eventually(t, 5*time.Second, func() error {
		s, err := r.Stats(t.Context())
		if err != nil || s.Published != 1200 || s.Pending != 0 || s.Poison != 0 || s.LastError != "" {
			return fmt.Errorf("%+v, %v", s, err)
		}
		return nil
	})
}
