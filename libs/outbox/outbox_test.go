package outbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
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

func setupBundle(t testing.TB) *bundle {
	t.Helper()
	return setupWith(t, testenv.NewBroker(t))
}

func setupWith(t testing.TB, broker *testenv.Broker) *bundle {
	t.Helper()
	return setupAt(t, broker, testenv.Migrated(t, "outbox", func(ctx context.Context, url string) error {
		return postgres.Migrate(ctx, url, schema, outbox.Migrations())
	}), nil)
}

func setupAt(t testing.TB, broker *testenv.Broker, url string, migrate func(context.Context, string) error) *bundle {
	t.Helper()
	b := &bundle{broker: broker, url: url}
	var err error
	if migrate != nil {
		if err := migrate(t.Context(), url); err != nil {
			t.Fatal(err)
		}
	}
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
	b := setupBundle(t)
	events := numberedEvents(1200)
	b.insert(t, events[:300]...)
	r, _ := b.relay(t, nil)
	b.insert(t, events[300:]...)
	b.published(t, events)
	testenv.Eventually(t, 20*time.Second, func() error {
		s, err := r.Stats(t.Context())
		if err != nil || s.Published != 1200 || s.Pending != 0 || s.Poison != 0 || s.LastError != "" {
			return fmt.Errorf("%+v, %v", s, err)
		}
		return nil
	})
}

func TestNothingLeavesBeforeTheCommit(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	b.relay(t, nil)
	events := numberedEvents(2)
	aborted := errors.New("aborted")
	err := postgres.InTx(t.Context(), b.pool, func(tx pgx.Tx) error {
		if err := outbox.Insert(t.Context(), tx, numberedEvents(3)...); err != nil {
			return err
		}
		return aborted
	})
	if !errors.Is(err, aborted) {
		t.Fatal(err, "want errors.Is(err, aborted)")
	}
	b.insert(t, events...)
	b.published(t, events)
}

func TestInsertRefusesWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	for name, e := range map[string]outbox.Event{
		"namespace": {Namespace: "Job", Name: "started"},
		"name":      {Namespace: "job", Name: "a.b"},
		"array":     {Namespace: "job", Name: "started", Payload: []int{1}},
		"no JSON":   {Namespace: "job", Name: "started", Payload: map[string]any{"x": math.NaN()}},
	} {
		err := postgres.InTx(t.Context(), b.pool, func(tx pgx.Tx) error { return outbox.Insert(t.Context(), tx, e) })
		if err == nil {
			t.Errorf("%s: inserted; want an error", name)
		}
	}
}

func TestTextThatPostgresRefusesIsReplaced(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	b.insert(t, outbox.Event{
		Tenant: "a\x00b", Namespace: "job", Name: "started", Actor: "\xff",
		Payload: map[string]any{"nul": "x\x00y", "escaped": `\u0000`, "backslash": `\` + "\x00"},
	})
	rows, err := outbox.List(t.Context(), b.pool, outbox.Pending, nil, uuid.Nil, 10)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err, "want len(rows) == 1")
	}
	var got map[string]string
	if err := json.Unmarshal(rows[0].Payload, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"nul": "x\ufffdy", "escaped": `\u0000`, "backslash": `\` + "\ufffd"}
	if !maps.Equal(got, want) || rows[0].Tenant != "a\ufffdb" || rows[0].Actor != "\ufffd" {
		t.Errorf("%q %+v; want maps.Equal(got, want) && rows[0].Tenant == \"a\\ufffdb\" && rows[0].Actor == \"\\ufffd\"", got, rows[0])
	}
}

// TestEnvelope compares the exact bytes on the wire.
func TestEnvelope(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	b.relay(t, nil)
	id := uuid.MustParse("01930000-0000-7000-8000-000000000001")
	ctx := service.WithTrace(t.Context(), "req-1", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if err := postgres.InTx(ctx, b.pool, func(tx pgx.Tx) error {
		if err := outbox.Insert(ctx, tx, outbox.Event{
			ID: id, Tenant: "acme.west", Namespace: "deploy", Name: "alias_changed", SubjectID: "JPCP", Actor: "alice",
			Payload: map[string]any{"model": "JPCP", "alias": "Production", "version": "3", "via": "promotion"},
		}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "update outbox set created_at = '2026-01-02T03:04:05.000006Z'")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var msg *jetstream.RawStreamMsg
	testenv.Eventually(t, 10*time.Second, func() error {
		s, err := b.js.Stream(t.Context(), outbox.StreamName)
		if err != nil {
			return err
		}
		msg, err = s.GetMsg(t.Context(), 1)
		return err
	})
	if msg.Subject != "platform.acme%2Ewest.deploy.alias_changed" || msg.Header.Get("Nats-Msg-Id") != id.String() {
		t.Errorf(`%s %v; want msg.Subject == "platform.acme%%2Ewest.deploy.alias_changed" && msg.Header.Get("Nats-Msg-Id") == id.String()`, msg.Subject, msg.Header)
	}
	want, err := os.ReadFile("testdata/envelope.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(msg.Data) + "\n"; got != string(want) {
		t.Errorf("got  %swant %s", got, want)
	}
	e, err := outbox.ParseEnvelope(msg.Data)
	if err != nil || e.ID != id || e.Namespace() != "deploy" || e.Name() != "alias_changed" || e.Tenant != "acme.west" {
		t.Errorf(`%+v, %v; want e.ID == id && e.Namespace() == "deploy" && e.Name() == "alias_changed" && e.Tenant == "acme.west"`, e, err)
	}
	cfg, err := b.js.Stream(t.Context(), outbox.StreamName)
	if err != nil {
		t.Fatal(err)
	}
	c := cfg.CachedInfo().Config
	if c.MaxAge != 7*24*time.Hour || c.MaxBytes != 1<<30 || c.MaxMsgSize != 1<<20 || c.Duplicates != 10*time.Minute ||
		c.Storage != jetstream.FileStorage || c.Retention != jetstream.LimitsPolicy || c.Replicas != 1 {
		t.Errorf("stream %+v; want c.MaxAge == 7 * 24 * time.Hour && c.MaxBytes == 1 << 30 && c.MaxMsgSize == 1 << 20 && c.Duplicates == 10 * time.Minute && c.Storage == jetstream.FileStorage && …", c)
	}
}

func TestAuditFact(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	ctx := service.WithRequestID(t.Context(), "req-7")
	e := outbox.Audit(outbox.AuditFact{
		Tenant: "default", Actor: "alice", Action: "approval.approved", Target: "model:JPCP", Outcome: "ok", Source: "control-plane",
		Details: map[string]any{"big": uint64(1) << 60, "small": 7, "nested": []any{int64(-1) << 60}},
		Time:    time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC),
	})
	if err := postgres.InTx(ctx, b.pool, func(tx pgx.Tx) error { return outbox.Insert(ctx, tx, e) }); err != nil {
		t.Fatal(err)
	}
	rows, err := outbox.List(ctx, b.pool, outbox.Pending, nil, uuid.Nil, 10)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err, "want len(rows) == 1")
	}
	var got, want any
	if err := json.Unmarshal(rows[0].Payload, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"tenant":"default","event_id":"`+e.ID.String()+`","ts":"2026-01-02T03:04:05.000006Z",
		"source":"control-plane","actor":"alice","action":"approval.approved","target":"model:JPCP","outcome":"ok","request_id":"req-7",
		"details":{"big":"1152921504606846976","small":7,"nested":["-1152921504606846976"]}}`), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if rows[0].Namespace != "audit" || rows[0].Name != "recorded" || rows[0].ID != e.ID {
		t.Errorf(`%+v; want rows[0].Namespace == "audit" && rows[0].Name == "recorded" && rows[0].ID == e.ID`, rows[0])
	}
}
