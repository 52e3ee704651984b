package outbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
)

// consume runs a consumer of job events until the test ends and yields the handled events; change may set another
// Handle.
func (b *bundle) consume(t *testing.T, change func(*outbox.ConsumerConfig)) <-chan outbox.Envelope {
	t.Helper()
	got := make(chan outbox.Envelope, 10_000)
	cfg := outbox.ConsumerConfig{
		Conn: b.nc, Pool: b.pool, Name: "test-jobs", Subjects: []string{"platform.*.job.>"},
		Handle: func(_ context.Context, _ pgx.Tx, e outbox.Envelope) error {
			got <- e
			return nil
		},
	}
	if change != nil {
		change(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- outbox.Consume(ctx, cfg, slog.New(slog.NewTextHandler(t.Output(), nil))) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("consumer: %v", err)
		}
	})
	return got
}

func nextEvent(t *testing.T, ch <-chan outbox.Envelope) outbox.Envelope {
	t.Helper()
	select {
	case e := <-ch:
		return e
	case <-time.After(20 * time.Second):
		t.Fatal("no event")
		panic("unreachable")
	}
}

func TestConsumerHandlesEachEventOnceAndInOrder(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	events := numberedEvents(300)
	got := b.consume(t, nil)
	b.relay(t, nil)
	b.insert(t, outbox.Event{Namespace: "drift", Name: "reset"}) // of no concern to it
	b.insert(t, events...)
	for i, want := range events {
		if e := nextEvent(t, got); e.ID != want.ID {
			t.Fatalf("event %d is %s; want e.ID == %v", i, e.ID, want.ID)
		}
	}
	// The same event under another message id, as after the duplicate window.
	again := outbox.Event{ID: uuid.Must(uuid.NewV7()), Namespace: "job", Name: "started"}
	body := fmt.Sprintf(`{"specversion":"1.0","id":%q,"type":"platform.job.started","data":{}}`, events[0].ID)
	if _, err := b.js.Publish(t.Context(), "platform.default.job.started", []byte(body)); err != nil {
		t.Fatal(err)
	}
	b.insert(t, again)
	if e := nextEvent(t, got); e.ID != again.ID {
		t.Errorf("%s came again; want %v", e.ID, again.ID)
	}
}

func TestHandlerSeesTheContextOfTheRequest(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	seen := make(chan string, 1)
	b.consume(t, func(c *outbox.ConsumerConfig) {
		c.Handle = func(ctx context.Context, _ pgx.Tx, _ outbox.Envelope) error {
			seen <- service.RequestID(ctx)
			return nil
		}
	})
	b.relay(t, nil)
	b.insert(t, outbox.Event{Namespace: "job", Name: "started", RequestID: "req-9"})
	select {
	case id := <-seen:
		if id != "req-9" {
			t.Errorf(`request id %q; want "req-9"`, id)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("no event")
	}
}

func TestEventThatCannotBeHandledBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	bad, worse, good := numberedEvents(1)[0], numberedEvents(1)[0], numberedEvents(1)[0]
	got := make(chan outbox.Envelope, 100)
	b.consume(t, func(c *outbox.ConsumerConfig) {
		c.Retry = time.Millisecond
		c.Handle = func(ctx context.Context, tx pgx.Tx, e outbox.Envelope) error {
			got <- e
			switch e.ID {
			case bad.ID:
				if _, err := tx.Exec(ctx, "insert into dead_letter (consumer, event_id, subject, body, deliveries, last_error) values ('undone', $1, '', '', 0, '')", e.ID); err != nil {
					return err
				}
				return errors.New("no such model")
			case worse.ID:
				panic("nil map")
			}
			return nil
		}
	})
	b.relay(t, nil)
	if err := outbox.EnsureStream(t.Context(), b.js, outbox.StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.js.Publish(t.Context(), "platform.default.job.started", []byte("no envelope")); err != nil {
		t.Fatal(err)
	}
	b.insert(t, bad, worse, good)
	testenv.Eventually(t, 20*time.Second, func() error {
		rows, err := b.pool.Query(t.Context(), "select consumer, event_id, deliveries, last_error, convert_from(body, 'UTF8') from dead_letter order by last_error")
		if err != nil {
			return err
		}
		type letter struct {
			Consumer   string
			ID         uuid.UUID
			Deliveries int
			Error      string
			Body       string
		}
		dead, err := pgx.CollectRows(rows, pgx.RowToStructByPos[letter])
		if err != nil || len(dead) != 3 {
			return fmt.Errorf("%v, %v", dead, err)
		}
		if dead[0].ID != bad.ID || dead[0].Deliveries != 5 || dead[0].Error != "no such model" || dead[0].Consumer != "test-jobs" {
			t.Errorf(`%+v; want dead[0].ID == bad.ID && dead[0].Deliveries == 5 && dead[0].Error == "no such model" && dead[0].Consumer == "test-jobs"`, dead[0])
		}
		if dead[1].Body != "no envelope" || dead[1].Deliveries != 1 {
			t.Errorf(`%+v; want dead[1].Body == "no envelope" && dead[1].Deliveries == 1`, dead[1])
		}
		if dead[2].ID != worse.ID || dead[2].Error != "the handler panicked: nil map" {
			t.Errorf(`%+v; want dead[2].ID == worse.ID && dead[2].Error == "the handler panicked: nil map"`, dead[2])
		}
		return nil
	})
	times := map[uuid.UUID]int{}
	for len(got) > 0 {
		times[(<-got).ID]++
	}
	if times[bad.ID] != 5 || times[worse.ID] != 5 || times[good.ID] != 1 {
		t.Errorf("handled %v; want times[bad.ID] == 5 && times[worse.ID] == 5 && times[good.ID] == 1", times)
	}
}

// The broker counts a delivery for every message that waited in the buffer of a consumer which ended; none of that
// makes a dead letter, nor does a handler that was interrupted by the end of its process.
func TestRestartsCostAnEventNothing(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	events := numberedEvents(20)
	_, stop := b.relay(t, nil)
	b.insert(t, events...)
	b.published(t, events)
	stop()
	for range 8 {
		ctx, cancel := context.WithCancel(t.Context())
		busy := make(chan struct{})
		done := make(chan error, 1)
		go func() {
			done <- outbox.Consume(ctx, outbox.ConsumerConfig{
				Conn: b.nc, Pool: b.pool, Name: "test-jobs", Subjects: []string{"platform.*.job.>"},
				Handle: func(ctx context.Context, _ pgx.Tx, _ outbox.Envelope) error {
					close(busy)
					<-ctx.Done()
					return ctx.Err()
				},
			}, nil)
		}()
		select {
		case <-busy:
		case <-time.After(20 * time.Second): // ackWait is longer
			t.Fatal("what the last consumer had fetched is not handed out again")
		}
		testenv.Eventually(t, 10*time.Second, func() error { // all are fetched
			cons, err := b.js.Consumer(t.Context(), outbox.StreamName, "test-jobs")
			if err != nil {
				return err
			}
			if n := cons.CachedInfo().NumAckPending; n != len(events) {
				return fmt.Errorf("%d messages are fetched", n)
			}
			return nil
		})
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	got := b.consume(t, nil)
	left := map[uuid.UUID]bool{}
	for _, e := range events {
		left[e.ID] = true
	}
	for len(left) > 0 {
		e := nextEvent(t, got)
		if !left[e.ID] {
			t.Errorf("%s came again; want left[e.ID]", e.ID)
		}
		delete(left, e.ID)
	}
	var dead int
	if err := b.pool.QueryRow(t.Context(), "select count(*) from dead_letter").Scan(&dead); err != nil || dead != 0 {
		t.Errorf("%d dead letters, %v; want dead == 0", dead, err)
	}
}

// A handler that ends its process leaves no answer; the count made beforehand
// keeps the event from ending every process after it.
func TestEventThatIsNeverAnsweredBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	event := numberedEvents(1)
	_, stop := b.relay(t, nil)
	b.insert(t, event...)
	b.published(t, event)
	stop()
	cons, err := b.js.CreateOrUpdateConsumer(t.Context(), outbox.StreamName, jetstream.ConsumerConfig{
		Durable: "test-jobs", FilterSubjects: []string{"platform.*.job.>"}, AckPolicy: jetstream.AckExplicitPolicy,
	})
	if err != nil {
		t.Fatal(err)
	}
	msg, err := cons.Next(jetstream.FetchMaxWait(10 * time.Second))
	if err != nil || msg.Nak() != nil { // the broker has counted one delivery
		t.Fatal(err, "want msg.Nak() == nil")
	}
	if _, err := b.pool.Exec(t.Context(), "insert into handover (consumer, event_id, times) values ('test-jobs', $1, 5)", event[0].ID); err != nil {
		t.Fatal(err)
	}
	got := b.consume(t, nil)
	testenv.Eventually(t, 20*time.Second, func() error {
		var n, left int
		if err := b.pool.QueryRow(t.Context(), "select (select count(*) from dead_letter where deliveries = 5), (select count(*) from handover)").Scan(&n, &left); err != nil {
			return err
		}
		if n != 1 || left != 0 {
			return fmt.Errorf("%d dead letters, %d counts", n, left)
		}
		return nil
	})
	if len(got) != 0 {
		t.Error("it was handed over once more")
	}
}

func TestConsumerOutlivesItsBroker(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	events := numberedEvents(20)
	got := b.consume(t, nil)
	b.relay(t, nil)
	b.insert(t, events[:10]...)
	for range 10 {
		nextEvent(t, got)
	}
	b.broker.Wipe() // its consumer is gone as well
	b.broker.Start()
	b.insert(t, events[10:]...)
	for i, want := range events[10:] { // the first ten come again and are known
		if e := nextEvent(t, got); e.ID != want.ID {
			t.Errorf("event %d is %s; want e.ID == %v", i, e.ID, want.ID)
		}
	}
}

func TestSubscribeSeesWhatIsPublishedFromNowOn(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	b.relay(t, nil)
	nc, err := nats.Connect(b.broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan outbox.Envelope, 100)
	done := make(chan error, 1)
	go func() {
		done <- outbox.Subscribe(ctx, nc, []string{"platform.*.deploy.alias_changed", "platform.*.drift.>"}, func(_ context.Context, e outbox.Envelope) { got <- e })
	}()
	testenv.Eventually(t, 20*time.Second, func() error {
		if n := nc.NumSubscriptions(); n != 2 {
			return fmt.Errorf("%d subscriptions", n)
		}
		return nc.Flush()
	})
	b.insert(t, numberedEvents(1)...)
	want := outbox.Event{ID: uuid.Must(uuid.NewV7()), Namespace: "deploy", Name: "alias_changed", Payload: map[string]string{"model": "JPCP"}}
	b.insert(t, want)
	e := nextEvent(t, got)
	var data struct{ Model string }
	if err := e.Decode(&data); err != nil || e.ID != want.ID || data.Model != "JPCP" || e.Tenant != outbox.PlatformTenant {
		t.Errorf(`%+v, %v; want e.ID == want.ID && data.Model == "JPCP" && e.Tenant == outbox.PlatformTenant`, e, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := nc.NumSubscriptions(); n != 0 {
		t.Errorf("%d subscriptions are left; want 0", n)
	}
}

// Anybody with the broker's password may publish: a type that is long or no name is refused before it names a span.
func TestTypesOfOthersAreLimited(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]string{
		"long":      "platform.job." + strings.Repeat("x", 116),
		"line feed": "platform.job.a\nb",
		"space":     "platform.job.a b",
		"not ASCII": "platform.job.\u0161",
	} {
		body, err := json.Marshal(map[string]any{"specversion": "1.0", "id": uuid.NewString(), "type": kind, "data": struct{}{}})
		if err != nil {
			t.Fatal(err)
		}
		if e, err := outbox.ParseEnvelope(body); err == nil || len(err.Error()) > 600 {
			t.Errorf("%s: got %.80q, error %.80v; want a short refusal", name, e.Type, err)
		}
	}
	longest := "platform.a-b_C9.d." + strings.Repeat("x", 110)
	body := fmt.Sprintf(`{"specversion":"1.0","id":%q,"type":%q,"data":{}}`, uuid.NewString(), longest)
	if e, err := outbox.ParseEnvelope([]byte(body)); err != nil || e.Type != longest {
		t.Errorf("got %q, %v; want it accepted", e.Type, err)
	}
}

func FuzzParseEnvelope(f *testing.F) {
	f.Add([]byte(`{"specversion":"1.0","id":"01930000-0000-7000-8000-000000000001","type":"platform.job.started","data":{}}`))
	f.Add([]byte(`{"specversion":"0.3"}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := outbox.ParseEnvelope(body)
		if err != nil {
			return
		}
		if e.ID == uuid.Nil || e.Namespace() == "" || e.Name() == "" {
			t.Errorf(`accepted %q as %+v; want e.ID != uuid.Nil && e.Namespace() != "" && e.Name() != ""`, body, e)
		}
	})
}
