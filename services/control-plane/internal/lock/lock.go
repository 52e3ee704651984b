// Package lock uses the coordinator's lease as a short lock: acquired, used, released, and expired if its holder dies.
package lock

import (
	"context"
	"log/slog"
	"time"

	"github.com/mlp-platform/platform/libs/coord"
)

// releaseTimeout limits the release of a lock; one that is not released expires.
const releaseTimeout = 2 * time.Second

// Locker takes locks that apply to all replicas.
type Locker struct {
	coord coord.Coordinator
	log   *slog.Logger
}

// New takes locks from the coordinator.
func New(c coord.Coordinator, log *slog.Logger) *Locker { return &Locker{c, log} }

// Lock takes the lock for at most ttl; ok is false while another holds it. The error is the coordinator's.
func (l *Locker) Lock(ctx context.Context, name string, ttl time.Duration) (unlock func(), ok bool, err error) {
	lease, ok, err := l.coord.TryLease(ctx, name, ttl)
	if err != nil || !ok {
		return nil, false, err
	}
	return func() { l.release(ctx, lease) }, true, nil
}

// Keep is Lock for work of unknown length: the lock is renewed until it is released, and held ends if it is lost.
func (l *Locker) Keep(ctx context.Context, name string, ttl time.Duration) (held context.Context, unlock func(), ok bool, err error) {
	lease, ok, err := l.coord.TryLease(ctx, name, ttl)
	if err != nil || !ok {
		return nil, nil, false, err
	}
	held, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		cancel(lease.Keep(held))
	}()
	return held, func() {
		cancel(nil)
		<-done
		l.release(ctx, lease)
	}, true, nil
}

func (l *Locker) release(ctx context.Context, lease *coord.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := lease.Release(ctx); err != nil {
		l.log.WarnContext(ctx, "lock not given back", slog.String("name", lease.Name), slog.Any("err", err))
	}
}
