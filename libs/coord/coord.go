// Package coord coordinates the replicas of a service: leases for tasks, keys for
// work that is done once, rate limits, circuit breakers, and settings that all
// replicas follow.
//
// There is a Redis and a Postgres implementation; both pass the same test suite.
package coord

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrUnavailable means that the store did not answer. The caller decides whether to
// refuse or to continue without it.
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

	// TryLease takes the lease if it is free. Its fence is higher than that of every
	// earlier holder.
	TryLease(ctx context.Context, name string, ttl time.Duration) (*Lease, bool, error)
	// Once is true for the first caller with this key within ttl and false for
	// all others.
	Once(ctx context.Context, key string, ttl time.Duration) (bool, error)
	// Allow counts one action against limit. The window begins with the first action and
	// the count restarts after it, so at most twice the limit passes within any span as
	// long as the window. Actions over the limit do not count. A limit of 0 allows
	// everything.
	Allow(ctx context.Context, key string, limit int, window time.Duration) (Decision, error)

	// BreakerAllow reports whether a call may be made; use Breaker.
	BreakerAllow(ctx context.Context, name string, reset time.Duration) (BreakerDecision, error)
	// BreakerReport reports how a call ended; opened is true when that opened the
	// breaker. Use Breaker.
	BreakerReport(ctx context.Context, name string, r BreakerReport) (opened bool, err error)
	// BreakerState reads the breaker without asking for a trial.
	BreakerState(ctx context.Context, name string, reset time.Duration) (BreakerState, error)

	// SetConfig publishes a setting to all replicas; nil removes it.
	SetConfig(ctx context.Context, key string, value []byte) error
	// GetConfig reads a setting; found is false when there is none.
	GetConfig(ctx context.Context, key string) (value []byte, found bool, err error)
	// WatchConfig calls fn for every existing setting and then for each that
	// changes, with nil for a removed one, within a second; one call at a time. It
	// returns when ctx ends. While the store is unavailable it keeps retrying.
	WatchConfig(ctx context.Context, fn func(key string, value []byte)) error

	// Close closes the connections that the coordinator opened.
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
