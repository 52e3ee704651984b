// Package refresh keeps a copy of a small table in memory, so that hot paths need no database and keep working without
// one.
package refresh

import (
	"context"
	"log/slog"
	"time"
)

// Interval is how often a replica reads changes of other replicas. A change is live everywhere within a second: one
// interval, one read.
const Interval = 500 * time.Millisecond

// readTimeout limits one read; it is the rest of the second.
const readTimeout = 400 * time.Millisecond

// Loop calls load at every interval until ctx ends. While load fails, the copy stays as it is; the first failure
// in a row and the recovery are logged.
func Loop(ctx context.Context, log *slog.Logger, load func(context.Context) error) {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		read, cancel := context.WithTimeout(ctx, readTimeout)
		err := load(read)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			log.WarnContext(ctx, "refresh failed; the last values hold", slog.Any("err", err))
		case err == nil && failing:
			log.InfoContext(ctx, "refresh works again")
		}
		failing = err != nil
	}
}
