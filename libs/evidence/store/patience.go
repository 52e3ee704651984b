package store

import (
	"context"
	"errors"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// The pauses between two tries to get a lock: a writer holds it for milliseconds.
const (
	firstPause = time.Millisecond
	lastPause  = 20 * time.Millisecond
)

type lockDeadlineKey struct{}

// WithLockDeadline limits the waits for locks of all reads under the context together:
// none waits past the deadline, and none past the reader's own wait.
func WithLockDeadline(ctx context.Context, deadline time.Time) context.Context {
	return context.WithValue(ctx, lockDeadlineKey{}, deadline)
}

// patiently retries fn as long as it fails on a lock, up to the deadline or the end of
// ctx. SQLite could wait itself, but it counts the pauses that it requested, not the
// real ones, which are longer on a busy machine, and it does not watch the context.
func (s *source) patiently(ctx context.Context, fn func() error) error {
	err := fn()
	if !isBusy(err) {
		return err
	}
	deadline := time.Now().Add(s.wait)
	if d, ok := ctx.Value(lockDeadlineKey{}).(time.Time); ok && d.Before(deadline) {
		deadline = d
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for pause := firstPause; isBusy(err); pause = min(2*pause, lastPause) {
		left := time.Until(deadline)
		if left <= 0 {
			return storeFault(ctx, err)
		}
		timer.Reset(min(pause, left))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		err = fn()
	}
	return err
}

// isBusy reports whether a lock was in the way, and nothing else.
func isBusy(err error) bool {
	if err == nil || isKnown(err) {
		return false
	}
	code := primaryCode(err)
	return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED
}

// isKnown reports whether a fault has its code already.
func isKnown(err error) bool {
	var known *Error
	return errors.As(err, &known)
}
