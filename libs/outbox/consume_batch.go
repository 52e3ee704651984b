package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mlp-platform/platform/libs/outbox/internal/store"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
)

const (
	defaultBatch = 256
	// gatherTime is how long a batch waits for one more event: long enough for
	// events that the broker is just sending, and little for an event that comes
	// alone.
	gatherTime = 2 * time.Millisecond
)

func (c *consumer) batch() int { return orDefault(c.cfg.Batch, defaultBatch) }

// prefetch is the number of messages that the broker may send ahead.
func (c *consumer) prefetch() int {
	if c.cfg.HandleBatch == nil {
		return prefetch
	}
	return 2 * c.batch() // one batch is at work while the next arrives
}

// gather adds to the first message those that are there already.
func (c *consumer) gather(messages jetstream.MessagesContext, first jetstream.Msg) []jetstream.Msg {
	out := []jetstream.Msg{first}
	for len(out) < c.batch() {
		msg, err := messages.Next(jetstream.NextMaxWait(gatherTime))
		if err != nil {
			break // any other error is returned by the next call of Next
		}
		out = append(out, msg)
	}
	return out
}

// takeBatch brings messages to their ends, in their order: those that come for
// the first time together, others by themselves.
func (c *consumer) takeBatch(ctx context.Context, msgs []jetstream.Msg) error {
	for len(msgs) > 0 {
		events := make([]Envelope, 0, len(msgs))
		for _, msg := range msgs {
			meta, err := msg.Metadata()
			if err != nil || c.seenBefore(meta) { // deliveries are counted one by one
				break
			}
			e, err := ParseEnvelope(msg.Data())
			if err != nil {
				break
			}
			events = append(events, e)
		}
		var err error
		n := max(len(events), 1)
		if n > 1 {
			err = c.takeTogether(ctx, msgs[:n], events)
		} else {
			err = c.take(ctx, msgs[0])
		}
		if err != nil {
			c.unfinished = append(c.unfinished, msgs[n:]...)
			return err
		}
		msgs = msgs[n:]
	}
	return nil
}

// takeTogether handles messages that come for the first time in one transaction.
func (c *consumer) takeTogether(ctx context.Context, msgs []jetstream.Msg, events []Envelope) error {
	fault := c.patientlyAll(ctx, msgs, func(ctx context.Context) error { return c.handleBatch(ctx, events) })
	switch {
	case ctx.Err() != nil:
		c.unfinished = append(c.unfinished, msgs...)
		return ctx.Err()
	case errors.Is(fault, ErrStop):
		c.unfinished = append(c.unfinished, msgs...)
		return fault
	case fault != nil:
		c.log.WarnContext(ctx, "a batch of events is handled one by one", slog.Int("events", len(events)), slog.Any("err", fault))
		for i, msg := range msgs {
			if err := c.take(ctx, msg); err != nil {
				c.unfinished = append(c.unfinished, msgs[i+1:]...)
				return err
			}
		}
		return nil
	}
	last := len(msgs) - 1
	for _, msg := range msgs[:last] {
		if err := msg.Ack(); err != nil {
			return c.answer(err)
		}
	}
	return c.answer(msgs[last].DoubleAck(ctx)) // of one connection, so the others arrived as well
}

// handleBatch is handle for many events.
func (c *consumer) handleBatch(ctx context.Context, events []Envelope) (err error) {
	ctx, span := startProcessBatch(ctx, c.cfg.Name, events)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the handler panicked: %v", p)
		}
		service.EndSpan(span, err)
	}()
	ids := make([]uuid.UUID, len(events))
	for i, e := range events {
		ids[i] = e.ID
	}
	return postgres.InTx(ctx, c.cfg.Pool, func(tx pgx.Tx) error {
		added, err := store.New(tx).AddAllToInbox(ctx, store.AddAllToInboxParams{Consumer: c.cfg.Name, EventIds: ids})
		if err != nil {
			return err
		}
		unseen := make(map[uuid.UUID]bool, len(added))
		for _, id := range added {
			unseen[id] = true
		}
		fresh := make([]Envelope, 0, len(added))
		for _, e := range events {
			if unseen[e.ID] {
				fresh = append(fresh, e)
				delete(unseen, e.ID) // an id may occur twice in a batch
			}
		}
		if len(fresh) == 0 {
			return nil
		}
		return c.cfg.HandleBatch(ctx, tx, fresh)
	})
}
