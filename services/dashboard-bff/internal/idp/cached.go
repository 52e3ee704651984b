package idp

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// How long a provider's documents are cached.
const (
	freshFor = 5 * time.Minute // then it is fetched again
	staleFor = time.Hour       // while that fails
	failFor  = 5 * time.Second // a failure is not repeated within
)

// cached keeps one document of a provider. Its methods may be called at once from many goroutines.
type cached[T any] struct {
	load   func(ctx context.Context) (T, error)
	now    func() time.Time
	flight singleflight.Group

	mu       sync.Mutex // guards those below
	value    T
	at       time.Time // when value was fetched; zero: never
	err      error
	failedAt time.Time
}

// get returns the document, fetched if necessary. The error wraps ErrUnreachable.
func (c *cached[T]) get(ctx context.Context) (T, error) {
	c.mu.Lock()
	now := c.now()
	value, age, have := c.value, now.Sub(c.at), !c.at.IsZero()
	err, failedAgo := c.err, now.Sub(c.failedAt)
	c.mu.Unlock()
	usable := have && age < staleFor
	switch {
	case have && age < freshFor:
		return value, nil
	case err != nil && failedAgo < failFor && usable:
		return value, nil
	case err != nil && failedAgo < failFor:
		return value, err
	}
	fetched, err := c.fetch(ctx)
	if err != nil && usable {
		return value, nil
	}
	return fetched, err
}

// fetch loads the document for all who wait. A caller that goes away does not take it from the others.
func (c *cached[T]) fetch(ctx context.Context) (T, error) {
	done := c.flight.DoChan("", func() (any, error) {
		value, err := c.load(context.WithoutCancel(ctx))
		c.mu.Lock()
		defer c.mu.Unlock()
		if err != nil {
			c.err, c.failedAt = err, c.now()
			return value, err
		}
		c.value, c.at, c.err = value, c.now(), nil
		return value, nil
	})
	select {
	case r := <-done:
		value, _ := r.Val.(T)
		return value, r.Err
	case <-ctx.Done():
		var zero T
		return zero, ctx.Err()
	}
}
