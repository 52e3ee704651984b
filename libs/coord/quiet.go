package coord

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// quiet drops the Redis library's own output on standard error: every fault is
// also returned by the call that met it.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(quiet{}) }
