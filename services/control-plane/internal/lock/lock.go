package lock

import (
	"context"
	"time"
)

type Locker struct{}

func (l *Locker) Lock(ctx context.Context, name string, ttl time.Duration) (func(), bool, error) {
	return func() {}, true, nil
}
