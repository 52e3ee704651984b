// Package coord is what the replicas of a service agree on: who does a task,
// what was done already, how much a caller may do, whether a neighbour is worth
// calling, and settings that all follow.
//
// Redis and Postgres serve it alike; one suite of tests holds for both.
package coord

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrUnavailable means that the store did not answer. The caller decides whether
// to refuse or to go on by itself.
var ErrUnavailable = errors.New("the coordinator does not answer")

// ErrLost means that a lease has expired or was taken over.
var ErrLost = errors.New("the lease is lost")

// Coordinator is safe for concurrent use. Names and keys are any text. Every
// fault of the store is an ErrUnavailable.
type Coordinator interface {
	// Kind is redis or postgres.
	Kind() string
	// Ping reports whether the store answers.
	Ping(ctx context.Context) error

	// TryLease takes the lease if nobody has it. Its fence is higher than that of
	// every earlier holder.
	TryLease(ctx context.Context, name string, ttl time.Duration) (*Lease, bool, error)
	// Once is true for the first caller with this key within ttl and false for
	// all others.
	Once(ctx context.Context, key string, ttl time.Duration) (bool, error)
	// Allow counts one act against limit. The window begins with the first act and
	// the count starts anew after it, so at most twice the limit passes within any
	// span as long as the window. Acts over the limit do not count. A limit of 0
	// allows everything.
	Allow(ctx context.Context, key string, limit int, window time.Duration) (Decision, error)

	// BreakerAllow asks whether a call may go out; use Breaker.
	BreakerAllow(ctx context.Context, name string, reset time.Duration) (BreakerDecision, error)
	// BreakerReport tells how a call ended; opened is true when that opened the
	// breaker. Use Breaker.
	BreakerReport(ctx context.Context, name string, r BreakerReport) (opened bool, err error)
	// BreakerState reads the breaker without asking for a trial.
	BreakerState(ctx context.Context, name string, reset time.Duration) (BreakerState, error)

	// SetConfig publishes a setting to all replicas; nil removes it.
	SetConfig(ctx context.Context, key string, value []byte) error
	// GetConfig reads a setting; found is false when there is none.
	GetConfig(ctx context.Context, key string) (value []byte, found bool, err error)
	// WatchConfig calls fn for every setting there is and then for each that
	// changes, with nil for a removed one, within a second; one call at a time. It
	// returns when ctx ends. While the store is away it goes on trying.
	WatchConfig(ctx context.Context, fn func(key string, value []byte)) error

	// Close gives connections back that the coordinator opened.
	Close() error
}

// Decision answers Allow, in the terms of the header fields RateLimit-*.
type Decision struct {
	OK           bool
	Limit        int
	Remaining    int // acts left in this window
	ResetSeconds int // until the window ends, rounded up
}

func decideRate(count int64, limit int, left time.Duration) Decision {
	return Decision{
		OK: count <= int64(limit), Limit: limit, Remaining: max(0, limit-int(count)),
		ResetSeconds: int((max(left, 0) + time.Second - 1) / time.Second),
	}
}

func wrapUnavailable(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("coord: %s: %w: %w", what, ErrUnavailable, err)
}
