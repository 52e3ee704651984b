package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mlp-platform/platform/libs/outbox/internal/store"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
)

const (
	ackWait      = 30 * time.Second
	handleTime   = 25 * time.Second // below ackWait: the broker must not hand the event to another meanwhile
	inboxKeep    = 2 * streamAge    // no event comes again after it has left the stream
	prefetch     = 64
	maxDelivers  = 5
	databaseWait = 500 * time.Millisecond
	leaveTime    = 2 * time.Second // for the last words of a consumer that stops
)

// ConsumerConfig names a durable consumer.
type ConsumerConfig struct {
	Conn     *nats.Conn
	Pool     *pgxpool.Pool // its schema has the tables of Migrations
	Name     string        // of the durable consumer, such as control-plane-audit
	Subjects []string      // such as platform.*.audit.>
	Stream   StreamConfig  // for when the consumer comes before any relay
	Retry    time.Duration // before the second delivery, doubling after; 0 means 1 s

	// Handle processes one event, once for each id, in the transaction that also
	// records the id: its writes there happen exactly once. An error rolls them back
	// and redelivers the event, at most 5 times; then it becomes a dead letter. One
	// that wraps ErrStop costs the event nothing and ends Consume.
	Handle func(ctx context.Context, tx pgx.Tx, e Envelope) error

	// HandleBatch replaces Handle where handling many events at once is cheaper: it
	// gets those that are there, in their order, up to Batch (0 means 256). An error
	// undoes all of them; they then come one at a time, so that only the faulty ones
	// fail.
	HandleBatch func(ctx context.Context, tx pgx.Tx, events []Envelope) error
	Batch       int

	// InOrder means that no other process consumes under this name at the same time,
	// such as under a lease. The events that a killed process had fetched then come
	// first, instead of after newer ones.
	InOrder bool

	// KeepInbox keeps the ids of handled events for ever, for a consumer whose work is
	// checked against them later. Otherwise they go once the event cannot come again.
	KeepInbox bool
}

// ErrStop in the error of a handler means that this process must handle no more
// events, for example because it is no longer the leader.
var ErrStop = errors.New("the consumer must stop")

// Consume handles events, one at a time or in batches, until ctx ends, which returns
// nil, or a handler returns ErrStop. They come in the order of the stream, except
// redelivered ones: after an error, and those that a consumer which ended had already
// fetched. Faults of the broker and the database are waited out and cost an event no
// delivery.
func Consume(ctx context.Context, cfg ConsumerConfig, log *slog.Logger) error {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &consumer{cfg: cfg, log: log.With(slog.String("consumer", cfg.Name))}
	js, err := jetstream.New(cfg.Conn)
	if err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	for wait := (backoff{}); ctx.Err() == nil; {
		err := c.session(ctx, js, wait.reset)
		if errors.Is(err, ErrStop) {
			return err
		}
		if ctx.Err() == nil {
			c.log.WarnContext(ctx, "event consumer waits", slog.Any("err", err))
			wait.sleep(ctx, nil)
		}
	}
	return nil
}

type consumer struct {
	cfg   ConsumerConfig
	log   *slog.Logger
	swept time.Time

	unfinished []jetstream.Msg // that the end of the context interrupted
	rewound    uint64          // the stream's sequence up to which events may have come before
}

func (c *consumer) session(ctx context.Context, js jetstream.JetStream, works func()) error {
	if err := EnsureStream(ctx, js, c.cfg.Stream); err != nil {
		return err
	}
	setup, cancel := context.WithTimeout(ctx, brokerTimeout)
	defer cancel()
	// MaxDeliver is left open: the broker would drop the event silently, here it
	// becomes a dead letter.
	durable := jetstream.ConsumerConfig{
		Durable: c.cfg.Name, FilterSubjects: c.cfg.Subjects, AckPolicy: jetstream.AckExplicitPolicy,
		DeliverPolicy: jetstream.DeliverAllPolicy, AckWait: ackWait, MaxAckPending: 4 * c.prefetch(),
	}
	if c.cfg.InOrder {
		if err := c.rewind(setup, js, &durable); err != nil {
			return fmt.Errorf("outbox: consumer %s: %w", c.cfg.Name, err)
		}
	}
	cons, err := js.CreateOrUpdateConsumer(setup, StreamName, durable)
	if err != nil {
		return fmt.Errorf("outbox: consumer %s: %w", c.cfg.Name, err)
	}
	// The wait for messages has short heartbeats, to notice a broker that is gone or
	// came back without the consumer.
	messages, err := cons.Messages(jetstream.PullMaxMessages(c.prefetch()), jetstream.PullHeartbeat(2*time.Second), jetstream.PullExpiry(10*time.Second),
		jetstream.WithMessagesErrOnMissingHeartbeat(true))
	if err != nil {
		return fmt.Errorf("outbox: consumer %s: %w", c.cfg.Name, err)
	}
	defer c.giveBack(ctx, messages)
	works()
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("outbox: consumer %s: %w", c.cfg.Name, err)
		}
		if c.cfg.HandleBatch != nil {
			err = c.takeBatch(ctx, c.gather(messages, msg))
		} else {
			err = c.take(ctx, msg)
		}
		if err != nil {
			return err
		}
		c.sweep(ctx)
	}
}

// take brings one message to its end: handled, known, dead, or to come again.
func (c *consumer) take(ctx context.Context, msg jetstream.Msg) error {
	meta, err := msg.Metadata()
	if err != nil {
		return fmt.Errorf("outbox: consumer %s: %w", c.cfg.Name, err)
	}
	e, err := ParseEnvelope(msg.Data())
	if err != nil {
		id, noID := uuid.Parse(msg.Headers().Get(jetstream.MsgIDHeader))
		if noID != nil {
			id = uuid.New()
		}
		return c.bury(ctx, msg, id, 1, err)
	}
	times, counted := 1, false
	if c.seenBefore(meta) {
		// Counted beforehand: the handler may end the process. First deliveries cost
		// no such write; one that ends the process is not counted.
		err := c.patiently(ctx, msg, func(ctx context.Context) (err error) {
			times, err = c.count(ctx, e.ID)
			return err
		})
		if err != nil {
			c.unfinished = append(c.unfinished, msg)
			return fmt.Errorf("outbox: consumer %s: count a delivery: %w", c.cfg.Name, err)
		}
		counted = true
	}
	if times > maxDelivers {
		return c.bury(ctx, msg, e.ID, times-1, errors.New("every delivery ended without an answer; the handler may end the process"))
	}
	fault := c.patiently(ctx, msg, func(ctx context.Context) error { return c.handle(ctx, e, parentOf(msg.Headers(), e), counted) })
	if ctx.Err() != nil || errors.Is(fault, ErrStop) {
		c.unfinished = append(c.unfinished, msg)
		if counted {
			c.uncount(ctx, e.ID)
		}
		return cmp.Or(ctx.Err(), fault)
	}
	if fault == nil {
		return c.answer(msg.DoubleAck(ctx))
	}
	if !counted {
		if err := c.patiently(ctx, msg, func(ctx context.Context) error {
			_, err := c.count(ctx, e.ID)
			return err
		}); err != nil {
			return fmt.Errorf("outbox: consumer %s: count a delivery: %w", c.cfg.Name, err)
		}
	}
	if times < maxDelivers {
		c.log.WarnContext(ctx, "event not handled", slog.String("event_id", e.ID.String()), slog.String("type", e.Type),
			slog.Int("delivery", times), slog.Any("err", fault))
		return c.answer(msg.NakWithDelay(orDefault(c.cfg.Retry, time.Second) << (times - 1)))
	}
	return c.bury(ctx, msg, e.ID, times, fault)
}

// count adds a delivery to those of an event and returns their number.
func (c *consumer) count(ctx context.Context, id uuid.UUID) (times int, err error) {
	n, err := store.New(c.cfg.Pool).CountHandover(ctx, store.CountHandoverParams{Consumer: c.cfg.Name, EventID: id})
	return int(n), err
}

// uncount takes a handover back that the end of this process cut short.
func (c *consumer) uncount(ctx context.Context, id uuid.UUID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	if err := store.New(c.cfg.Pool).UncountHandover(ctx, store.UncountHandoverParams{Consumer: c.cfg.Name, EventID: id}); err != nil {
		c.log.WarnContext(ctx, "an interrupted delivery counts as an attempt", slog.String("event_id", id.String()), slog.Any("err", err))
	}
}

// bury makes a dead letter of an event that was delivered so many times.
func (c *consumer) bury(ctx context.Context, msg jetstream.Msg, id uuid.UUID, times int, fault error) error {
	if err := c.patiently(ctx, msg, func(ctx context.Context) error {
		return postgres.InTx(ctx, c.cfg.Pool, func(tx pgx.Tx) error {
			q := store.New(tx)
			if err := q.ForgetHandovers(ctx, store.ForgetHandoversParams{Consumer: c.cfg.Name, EventID: id}); err != nil {
				return err
			}
			return q.BuryEvent(ctx, store.BuryEventParams{
				Consumer: c.cfg.Name, EventID: id, Subject: msg.Subject(), Body: msg.Data(),
				Deliveries: int32(times), LastError: fault.Error(),
			})
		})
	}); err != nil {
		return fmt.Errorf("outbox: dead letter: %w", err)
	}
	c.log.ErrorContext(ctx, "event is a dead letter", slog.String("event_id", id.String()), slog.String("subject", msg.Subject()), slog.Any("err", fault))
	return c.answer(msg.DoubleAck(ctx))
}

// giveBack makes the broker redeliver at once the events that this process has fetched
// and not finished; it would wait for ackWait otherwise. All of it goes back only once
// nothing more comes, or this process could get it again.
func (c *consumer) giveBack(ctx context.Context, messages jetstream.MessagesContext) {
	defer messages.Stop()
	if !c.cfg.Conn.IsConnected() {
		return
	}
	back := c.unfinished
	c.unfinished = nil
	messages.Drain()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			break
		}
		back = append(back, msg)
	}
	slices.SortStableFunc(back, func(a, b jetstream.Msg) int { return cmp.Compare(streamPosition(a), streamPosition(b)) })
	for _, msg := range back {
		_ = msg.Nak() // without an answer it comes after ackWait
	}
}

// streamPosition returns the sequence number of a message in the stream.
func streamPosition(msg jetstream.Msg) uint64 {
	meta, err := msg.Metadata()
	if err != nil {
		return 0
	}
	return meta.Sequence.Stream
}

// answer makes a lost connection end the session; the event is then redelivered, and
// the inbox knows it.
func (c *consumer) answer(err error) error {
	if err != nil {
		return fmt.Errorf("outbox: consumer %s: acknowledge: %w", c.cfg.Name, err)
	}
	return nil
}

// patiently retries do while the database is away, and reports to the broker that the
// event is still in progress.
func (c *consumer) patiently(ctx context.Context, msg jetstream.Msg, do func(context.Context) error) error {
	return c.patientlyAll(ctx, []jetstream.Msg{msg}, do)
}

func (c *consumer) patientlyAll(ctx context.Context, msgs []jetstream.Msg, do func(context.Context) error) error {
	for {
		one, cancel := context.WithTimeout(ctx, handleTime)
		err := do(one)
		cancel()
		if err == nil || ctx.Err() != nil || !postgres.Unavailable(err) {
			return err
		}
		c.log.WarnContext(ctx, "event waits for the database", slog.Any("err", err))
		for _, msg := range msgs {
			_ = msg.InProgress() // without a broker the event comes again later
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(databaseWait):
		}
	}
}

func (c *consumer) handle(ctx context.Context, e Envelope, parent string, counted bool) (err error) {
	ctx, span := startProcess(ctx, c.cfg.Name, parent, e)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the handler panicked: %v", p)
		}
		service.EndSpan(span, err)
	}()
	return postgres.InTx(ctx, c.cfg.Pool, func(tx pgx.Tx) error {
		q := store.New(tx)
		added, err := q.AddToInbox(ctx, store.AddToInboxParams{Consumer: c.cfg.Name, EventID: e.ID})
		if err != nil {
			return err
		}
		if counted {
			if err := q.ForgetHandovers(ctx, store.ForgetHandoversParams{Consumer: c.cfg.Name, EventID: e.ID}); err != nil {
				return err
			}
		}
		if added == 0 {
			return nil
		}
		if c.cfg.HandleBatch != nil {
			return c.cfg.HandleBatch(ctx, tx, []Envelope{e})
		}
		return c.cfg.Handle(ctx, tx, e)
	})
}

// sweep forgets ids that cannot come again; when it fails, the next one does more.
func (c *consumer) sweep(ctx context.Context) {
	if time.Since(c.swept) < time.Hour {
		return
	}
	c.swept = time.Now()
	q, keep := store.New(c.cfg.Pool), inboxKeep.Seconds()
	swept := []error{q.SweepHandovers(ctx, store.SweepHandoversParams{Consumer: c.cfg.Name, KeepSeconds: keep})}
	if !c.cfg.KeepInbox {
		swept = append(swept, q.SweepInbox(ctx, store.SweepInboxParams{Consumer: c.cfg.Name, KeepSeconds: keep}))
	}
	for _, err := range swept {
		if err != nil {
			c.log.WarnContext(ctx, "inbox not swept", slog.Any("err", err))
		}
	}
}

// Subscribe calls fn for the events of the subjects that are published from now until
// ctx ends, one at a time. It is for reactions that only touch memory: nothing is
// kept, events published during a lost connection are missed, and an event may come
// twice. Use it beside a poll.
//
// The context that fn gets has the event's request id and trace.
func Subscribe(ctx context.Context, nc *nats.Conn, subjects []string, fn func(context.Context, Envelope)) error {
	ch := make(chan *nats.Msg, 1024)
	for _, subject := range subjects {
		sub, err := nc.ChanSubscribe(subject, ch)
		if err != nil {
			return fmt.Errorf("outbox: subscribe to %s: %w", subject, err)
		}
		defer func() { _ = sub.Unsubscribe() }() // fails on a closed connection only
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case msg := <-ch:
			if e, err := ParseEnvelope(msg.Data); err == nil { // others than relays may publish
				one, span := startProcess(ctx, "", parentOf(msg.Header, e), e)
				fn(one, e)
				span.End()
			}
		}
	}
}
