package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mlp-platform/platform/libs/outbox/internal/store"
)

// compareRows is the number of acknowledged rows that are compared at once, newest
// first.
const compareRows = 100

// compare makes sure that the stream still has the messages it acknowledged. A
// broker that acknowledges before it has synced its disk can lose its newest
// messages in a crash, and a wiped one has lost them all; such rows become pending
// again.
func (r *Relay) compare(ctx context.Context, nc *nats.Conn, js jetstream.JetStream) error {
	if !nc.IsConnected() {
		return &outage{errors.New("no connection to " + serverAddress(nc))}
	}
	stream, err := openStream(ctx, js, r.cfg.Stream)
	if err != nil {
		return &outage{err}
	}
	info := stream.CachedInfo()
	r.highest, r.atomic = 0, info.Config.AllowAtomicPublish
	// Postgres keeps microseconds.
	created := info.Created.UTC().Truncate(time.Microsecond)
	known, err := r.queries().StreamCreatedAt(ctx, StreamName)
	switch {
	case errors.Is(err, pgx.ErrNoRows) || err == nil && !known.Equal(created):
		return r.lostStream(ctx, created)
	case err != nil:
		return fmt.Errorf("outbox: compare with the stream: %w", err)
	}
	return r.lostTail(ctx, stream, info.State)
}

// lostStream makes all rows pending: this is another stream than the one that
// acknowledged them, or the first one seen.
func (r *Relay) lostStream(ctx context.Context, created time.Time) error {
	var lost int64
	err := pgx.BeginFunc(ctx, r.cfg.Pool, func(tx pgx.Tx) error {
		var err error
		if lost, err = store.New(tx).ResetPublished(ctx); err != nil {
			return err
		}
		return store.New(tx).SaveStream(ctx, store.SaveStreamParams{Name: StreamName, CreatedAt: created})
	})
	if err != nil {
		return fmt.Errorf("outbox: compare with the stream: %w", err)
	}
	r.reportLost(ctx, lost)
	return nil
}

func (r *Relay) reportLost(ctx context.Context, lost int64) {
	if lost > 0 {
		r.metrics.republished.Add(float64(lost))
		r.log.WarnContext(ctx, "the stream lacks events that it had acknowledged; they are published again", slog.Int64("events", lost))
	}
}

// lostTail makes rows pending whose message is no longer in the stream. It can lose
// only a tail, so the search ends at the first message that is there; the ids are
// compared because other processes may have published since and taken the numbers.
// No transaction is open while the broker is queried. Rows reset before a failure
// stay reset: the next search begins below them.
func (r *Relay) lostTail(ctx context.Context, stream jetstream.Stream, state jetstream.StreamState) (err error) {
	var lost int64
	defer func() { r.reportLost(ctx, lost) }()
	if lost, err = r.queries().ResetPublishedAfter(ctx, int64(state.LastSeq)); err != nil {
		return fmt.Errorf("outbox: compare with the stream: %w", err)
	}
	for {
		newest, err := r.queries().NewestPublished(ctx, compareRows)
		if err != nil {
			return fmt.Errorf("outbox: compare with the stream: %w", err)
		}
		missing, found, asked := missingFrom(ctx, stream, state.FirstSeq, newest)
		if len(missing) > 0 {
			reset, err := r.queries().ResetPublishedRows(ctx, missing)
			if err != nil {
				return fmt.Errorf("outbox: compare with the stream: %w", err)
			}
			lost += reset
		}
		switch {
		case asked != nil:
			return &outage{asked}
		case found:
			return nil
		}
	}
}

// missingFrom looks up rows in the stream, newest first, until it has one: found is
// true if a row exists or none are left; after an error, missing holds the rows
// checked so far.
func missingFrom(ctx context.Context, stream jetstream.Stream, first uint64, newest []store.NewestPublishedRow) (missing []uuid.UUID, found bool, err error) {
	for _, a := range newest {
		if uint64(a.StreamSeq) < first { // left the stream by age or size
			return missing, true, nil
		}
		ok, err := streamHolds(ctx, stream, uint64(a.StreamSeq), a.ID)
		if err != nil {
			return missing, false, err
		}
		if ok {
			return missing, true, nil
		}
		missing = append(missing, a.ID)
	}
	return missing, len(newest) == 0, nil
}

func streamHolds(ctx context.Context, stream jetstream.Stream, seq uint64, id uuid.UUID) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, brokerTimeout)
	defer cancel()
	msg, err := stream.GetMsg(ctx, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return msg.Header.Get(jetstream.MsgIDHeader) == id.String(), nil
}

func redactURL(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return "the broker"
	}
	return u.Host
}
