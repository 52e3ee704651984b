package coord

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// quiet drops what the Redis library prints to standard error by itself: every
// fault is also an error of the call that met it.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(quiet{}) }
