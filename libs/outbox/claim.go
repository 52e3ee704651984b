package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/outbox/internal/store"
)

const sweepRows = 1000

// queries are the statements on the relay's pool.
func (r *Relay) queries() *store.Queries { return store.New(r.cfg.Pool) }

func (r *Relay) claim(ctx context.Context) ([]store.ClaimDueRow, error) {
	rows, err := r.queries().ClaimDue(ctx, store.ClaimDueParams{MaxRows: batchRows, Relay: r.id, LeaseSeconds: claimLease.Seconds()})
	if err != nil {
		return nil, fmt.Errorf("outbox: claim: %w", err)
	}
	if len(rows) > 0 {
		r.dueSince = time.Time{}
	}
	return rows, nil
}

// errLocked means that a due row stays locked by another transaction.
var errLocked = errors.New("outbox: the next row has been locked by another transaction for a while, and those after it wait; " +
	"pg_locks and pg_stat_activity say by which")

// checkLocked reports a row that stays locked: the relay waits for it, and must not do so in silence.
func (r *Relay) checkLocked(ctx context.Context) error {
	due, err := r.queries().IsAnyDue(ctx, r.id)
	switch {
	case err != nil:
		return fmt.Errorf("outbox: look for due rows: %w", err)
	case !due:
		r.dueSince = time.Time{}
	case r.dueSince.IsZero():
		r.dueSince = time.Now()
	case time.Since(r.dueSince) > lockedLong:
		r.fault(ctx, errLocked)
		return nil
	}
	r.well(ctx)
	return nil
}

// outcome is the result of a claimed row: acknowledged, logged, refused, or, with none of these, given back.
type outcome struct {
	id      uuid.UUID
	seq     uint64 // in the stream; 0 unless acknowledged
	logged  bool   // instead of published
	refused string // why
}

// settle records outcomes. It runs to its end also while the relay stops: messages that the broker has must not be sent
// again needlessly.
func (r *Relay) settle(ctx context.Context, outcomes []outcome) error {
	if len(outcomes) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	all := store.Outcomes{
		Released: store.ReleaseClaimsParams{Relay: r.id},
		Refused:  store.MarkRefusedParams{MaxAttempts: int32(r.cfg.MaxAttempts)},
	}
	for _, o := range outcomes {
		switch {
		case o.seq != 0 || o.logged:
			all.Published.Ids = append(all.Published.Ids, o.id)
			all.Published.StreamSeqs = append(all.Published.StreamSeqs, int64(o.seq)) // a stream never reaches 2^63
		case o.refused != "":
			all.Refused.Ids = append(all.Refused.Ids, o.id)
			all.Refused.Errors = append(all.Refused.Errors, o.refused)
		default:
			all.Released.Ids = append(all.Released.Ids, o.id)
		}
	}
	batch := all.Batch(func(row store.MarkRefusedRow) { r.reportRefused(ctx, row) })
	if err := r.cfg.Pool.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("outbox: settle: %w", err)
	}
	r.metrics.published.Add(float64(len(all.Published.Ids)))
	return nil
}

// reportRefused logs a refusal as it was recorded.
func (r *Relay) reportRefused(ctx context.Context, row store.MarkRefusedRow) {
	level, text := slog.LevelWarn, "event refused"
	if row.Poison {
		level, text = slog.LevelError, "event is poison"
	}
	r.log.LogAttrs(ctx, level, text, slog.String("event_id", row.ID.String()), slog.String("event", row.Namespace+"."+row.Name),
		slog.Int("refusals", int(row.Refusals)), slog.String("err", row.Error))
	r.metrics.refused.Inc()
}

// sweep deletes published rows that are old enough.
func (r *Relay) sweep(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	age := r.cfg.Retention.Seconds()
	for {
		if err := sweepAll(func() (int64, error) {
			return r.queries().SweepPublished(ctx, store.SweepPublishedParams{RetentionSeconds: age, MaxRows: sweepRows})
		}); err != nil {
			return err
		}
		if err := sweepAll(func() (int64, error) {
			return r.queries().SweepLogged(ctx, store.SweepLoggedParams{RetentionSeconds: age, MaxRows: sweepRows})
		}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// sweepAll repeats a sweep until it deletes fewer rows than it may.
func sweepAll(sweepSome func() (int64, error)) error {
	for {
		n, err := sweepSome()
		if err != nil {
			return fmt.Errorf("outbox: sweep: %w", err)
		}
		if n < sweepRows {
			return nil
		}
	}
}
