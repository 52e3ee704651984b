package outbox

import (
	"context"
	"log/slog"
	"time"
)

// logDue logs due rows in their order until ctx ends or the database fails. A row
// counts as published once its line is written; it has no place in a stream, and
// a relay that publishes later leaves it alone. Payloads stay out of the log.
func (r *Relay) logDue(ctx context.Context) error {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		for full := true; full; {
			rows, err := r.claim(ctx)
			if err != nil {
				return err
			}
			full = len(rows) == batchRows
			outcomes := make([]outcome, len(rows))
			for i, w := range rows {
				r.log.InfoContext(ctx, "event", slog.String("event_id", w.ID.String()), slog.String("tenant", w.Tenant),
					slog.String("type", typePrefix+w.Namespace+"."+w.Name), slog.String("subject", w.SubjectID))
				outcomes[i] = outcome{id: w.ID, logged: true}
			}
			if err := r.settle(ctx, outcomes); err != nil {
				return err
			}
		}
		if err := r.checkLocked(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.wake:
		case <-poll.C:
		}
	}
}
