package coord

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// Lease is a task that one replica has until the time runs out. A holder that was stopped for
// longer does not know that it has lost it: its writes should carry the fence, and the receiver
// refuse a lower one than it has seen.
type Lease struct {
	Name  string
	Fence int64

	ttl     time.Duration
	renew   func(context.Context) (bool, error)
	release func(context.Context) error

	mu      sync.Mutex
	expires time.Time // guarded by mu; by this process' clock, at the earliest
}

// Renew prolongs the lease by its ttl from now. ErrLost means that the lease has expired or has
// another holder; after ErrUnavailable it lasts as long as it did.
func (l *Lease) Renew(ctx context.Context) error {
	begin := time.Now()
	ok, err := l.renew(ctx)
	switch {
	case err != nil:
		return err
	case !ok:
		return ErrLost
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expires = begin.Add(l.ttl) // the store's clock began later than this
	return nil
}

// Release frees the lease for the next caller. Releasing a lost one is allowed.
func (l *Lease) Release(ctx context.Context) error { return l.release(ctx) }

func (l *Lease) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.expires)
}

// Keep renews the lease three times in each ttl until ctx ends, which returns nil, or the lease is
// lost: the store reported it lost, or did not answer for as long as it lasts.
func (l *Lease) Keep(ctx context.Context) error {
	for {
		t := time.NewTimer(min(l.ttl/3, max(l.left(), 0)))
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
		left := l.left()
		if left <= 0 {
			return ErrLost
		}
		try, cancel := context.WithTimeout(ctx, left)
		err := l.Renew(try)
		cancel()
		if errors.Is(err, ErrLost) {
			return err
		}
	}
}

// LeadTime is the lease of every task that one replica has at a time. It does not depend on how
// often the task runs: after a crash the task is idle for at most LeadTime and a third, under 15 s.
// A task that runs rarely keeps its own clock in the store.
const LeadTime = 10 * time.Second

// releaseTime limits the release of a lease by a process that stops.
const releaseTime = 2 * time.Second

type fenceKey struct{}

// Fence is the fence of the lease under which [Lead] runs a task, 0 elsewhere.
func Fence(ctx context.Context) int64 {
	f, _ := ctx.Value(fenceKey{}).(int64)
	return f
}

// Lead runs fn whenever this replica gets the lease, with a context that ends
// when the lease is lost; fn must then return soon. It tries again ever after, also when
// fn returns nil, until ctx ends. An error of fn while it leads ends Lead. What
// keeps it from asking for the lease is logged once, and so is its end; a nil log
// means none.
func Lead(ctx context.Context, c Coordinator, name string, ttl time.Duration, log *slog.Logger, fn func(context.Context) error) error {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	log = log.With(slog.String("lease", name))
	away := false
	for ctx.Err() == nil {
		lease, ok, err := c.TryLease(ctx, name, ttl)
		switch {
		case err != nil && !away && ctx.Err() == nil:
			away = true
			log.WarnContext(ctx, "no leader can be elected: the coordinator does not answer", slog.Any("err", err))
		case err == nil && away:
			away = false
			log.InfoContext(ctx, "the coordinator answers again")
		}
		if err == nil && ok {
			if err := leadUntilLost(ctx, lease, fn); err != nil {
				return err
			}
		}
		// Jittered, so that replicas do not query simultaneously.
		t := time.NewTimer(ttl/6 + rand.N(ttl/6+1))
		select {
		case <-ctx.Done():
			t.Stop()
		case <-t.C:
		}
	}
	return nil
}

func leadUntilLost(ctx context.Context, lease *Lease, fn func(context.Context) error) error {
	term, end := context.WithCancel(context.WithValue(ctx, fenceKey{}, lease.Fence))
	kept := make(chan error, 1)
	go func() {
		defer end()
		kept <- lease.Keep(term)
	}()
	err := fn(term)
	end()
	if lost := <-kept; lost != nil {
		return nil // whatever fn returned, it had to stop
	}
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	_ = lease.Release(release) // else it expires
	if ctx.Err() != nil {
		return nil
	}
	return err
}
