package outboxbench

import (
	"context"
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

func TestMain(m *testing.M) { testenv.Main(m) }

const schema = "svc"

// bundle is an outbox with a broker, and no relay yet.
type bundle struct {
	pool *pgxpool.Pool
	url  string // of the broker
	nc   *nats.Conn
	js   jetstream.JetStream
	jobs *jobs // of River, once it runs
}

func setupBundle(b testing.TB, broker *testenv.Broker) *bundle {
	b.Helper()
	database := testenv.Migrated(b, "outbox", func(ctx context.Context, url string) error {
		return postgres.Migrate(ctx, url, schema, outbox.Migrations())
	})
	env := &bundle{url: broker.URL()}
	var err error
	if env.pool, err = postgres.Open(b.Context(), database, schema, postgres.MaxConns(5)); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(env.pool.Close)
	if env.nc, err = nats.Connect(env.url); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(env.nc.Close)
	if env.js, err = jetstream.New(env.nc); err != nil {
		b.Fatal(err)
	}
	return env
}

// relay runs the relay until stop.
func (env *bundle) relay(b testing.TB) (stop func()) {
	r := outbox.NewRelay(outbox.RelayConfig{Service: "test-service", Pool: env.pool, URL: env.url}, slog.New(slog.NewTextHandler(b.Output(), nil)), nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			b.Errorf("relay: %v", err)
		}
	}
}

// numberedEvents makes n events with ids.
func numberedEvents(n int) []outbox.Event {
	events := make([]outbox.Event, n)
	for i := range events {
		events[i] = outbox.Event{
			ID: uuid.Must(uuid.NewV7()), Tenant: "default", Namespace: "job", Name: "started", SubjectID: "JPCP",
			Actor: "alice", Payload: map[string]any{"model": "JPCP", "n": i},
		}
	}
	return events
}

const benchEvents = 20_000

// BenchmarkRelay measures events from their first insert to their last arrival,
// in both settings of the broker: buffered, and synced as it is shipped.
//
//	events/s   insert → relay → JetStream → a subscriber of JetStream
//	handled/s  the same to a consumer's handler of batches, each id written to its inbox
//	bare/s     the floor: the same messages published and received with the
//	           client library alone, as many unacknowledged, in the same run
//	ratio      events/s to bare/s
//	x-river    events/s to the same through River, a queue of jobs in Postgres
func BenchmarkRelay(b *testing.B) {
	b.Run("broker=buffered", func(b *testing.B) { benchmarkRelay(b, testenv.NewBroker) })
	b.Run("broker=synced", func(b *testing.B) { benchmarkRelay(b, testenv.NewSyncedBroker) })
}

func benchmarkRelay(b *testing.B, broker func(testing.TB) *testenv.Broker) {
	for b.Loop() {
		arrival := measureRate(b, broker, (*bundle).subscriber, (*bundle).relay, (*bundle).insertAll)
		handled := measureRate(b, broker, (*bundle).handler, (*bundle).relay, (*bundle).insertAll)
		bare := measureRate(b, broker, (*bundle).subscriber, (*bundle).relay, (*bundle).publishAll)
		river := measureRate(b, broker, (*bundle).subscriber, (*bundle).river, (*bundle).insertJobs)
		b.ReportMetric(arrival, "events/s")
		b.ReportMetric(handled, "handled/s")
		b.ReportMetric(bare, "bare/s")
		b.ReportMetric(river, "river/s")
		b.ReportMetric(arrival/bare, "ratio")
		b.ReportMetric(arrival/river, "x-river")
		b.ReportMetric(0, "ns/op")
	}
}

// measureRate is the events per second from the first send to the last arrival, while run's worker runs.
func measureRate(b *testing.B, broker func(testing.TB) *testenv.Broker, receive func(*bundle, testing.TB) <-chan int,
	run func(*bundle, testing.TB) (stop func()), send func(*bundle, testing.TB),
) float64 {
	b.Helper()
	env := setupBundle(b, broker(b))
	if err := outbox.EnsureStream(b.Context(), env.js, outbox.StreamConfig{}); err != nil {
		b.Fatal(err)
	}
	arrived := receive(env, b)
	defer run(env, b)()
	begin := time.Now()
	send(env, b)
	deadline := time.After(2 * time.Minute)
	for n := 0; n < benchEvents; {
		select {
		case n = <-arrived:
		case <-deadline:
			b.Fatalf("%d of %d events arrived", n, benchEvents)
		}
	}
	return benchEvents / time.Since(begin).Seconds()
}

// insertAll commits the events in transactions of ten, as services do that write
// several facts of one act.
func (env *bundle) insertAll(b testing.TB) {
	for part := numberedEvents(benchEvents); len(part) > 0; part = part[10:] {
		if err := postgres.InTx(b.Context(), env.pool, func(tx pgx.Tx) error { return outbox.Insert(b.Context(), tx, part[:10]...) }); err != nil {
			b.Fatal(err)
		}
	}
}

// publishAll sends messages of the size of an envelope.
func (env *bundle) publishAll(b testing.TB) {
	js, err := jetstream.New(env.nc, jetstream.WithPublishAsyncMaxPending(512))
	if err != nil {
		b.Fatal(err)
	}
	body := make([]byte, 450)
	for range benchEvents {
		msg := &nats.Msg{Subject: outbox.Subject("default", "job", "started"), Data: body, Header: nats.Header{}}
		msg.Header.Set(jetstream.MsgIDHeader, uuid.NewString())
		if _, err := js.PublishMsgAsync(msg, jetstream.WithStallWait(time.Minute)); err != nil {
			b.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(time.Minute):
		b.Fatal("the floor was not acknowledged in time")
	}
}

// subscriber returns a channel of the number of events that have arrived at an ordered consumer.
func (env *bundle) subscriber(b testing.TB) <-chan int {
	s, err := env.js.Stream(b.Context(), outbox.StreamName)
	if err != nil {
		b.Fatal(err)
	}
	cons, err := s.OrderedConsumer(b.Context(), jetstream.OrderedConsumerConfig{})
	if err != nil {
		b.Fatal(err)
	}
	arrived, n := make(chan int, benchEvents), 0
	work, err := cons.Consume(func(jetstream.Msg) { n++; arrived <- n })
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(work.Stop)
	return arrived
}

// handler returns a channel of the number of events that a consumer with an inbox has handled.
func (env *bundle) handler(b testing.TB) <-chan int {
	arrived, n := make(chan int, benchEvents), 0
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- outbox.Consume(ctx, outbox.ConsumerConfig{
			Conn: env.nc, Pool: env.pool, Name: "bench", Subjects: []string{"platform.>"},
			HandleBatch: func(_ context.Context, _ pgx.Tx, events []outbox.Envelope) error {
				n += len(events)
				arrived <- n
				return nil
			},
			Handle: func(context.Context, pgx.Tx, outbox.Envelope) error { n++; arrived <- n; return nil },
		}, nil)
	}()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	return arrived
}
