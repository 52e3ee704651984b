package refresh_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/refresh"
)

// Whatever moment of the interval a change falls into, a replica that reads as slowly as it may has it in a second.
func TestChangeIsReadWithinASecondAlsoFromASlowDatabase(t *testing.T) {
	t.Parallel()
	for _, into := range []time.Duration{0, time.Millisecond, 250 * time.Millisecond, 499 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			var table, seen atomic.Int64
			done := make(chan struct{})
			go func() {
				defer close(done)
				refresh.Loop(ctx, slog.New(slog.DiscardHandler), func(context.Context) error {
					now := table.Load() // a query's view is fixed when it begins
					<-time.After(390 * time.Millisecond)
					seen.Store(now)
					return nil
				})
			}()
			testenv.Advance(refresh.Interval*4 + into)
			table.Store(1)
			testenv.Advance(time.Second)
			if got := seen.Load(); got != 1 {
				t.Errorf("%s into the interval: got %d a second after the change, want 1", into, got)
			}
			stop()
			<-done
		})
	}
}

func TestFailuresAreGivenUpInTimeAndLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		ctx, stop := context.WithCancel(t.Context())
		reads := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			refresh.Loop(ctx, slog.New(slog.NewTextHandler(&log, nil)), func(ctx context.Context) error {
				if reads++; reads <= 4 {
					<-ctx.Done()
					return errors.New("database away")
				}
				return nil
			})
		}()
		testenv.Advance(6 * refresh.Interval)
		stop()
		<-done
		if got := log.String(); reads != 6 || strings.Count(got, "refresh failed") != 1 || strings.Count(got, "works again") != 1 {
			t.Errorf("got %d reads, log %q; want 6 reads, one failure and one recovery", reads, got)
		}
	})
}
