package app

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/coord"
)

// leaderLease is how long after a leader's death another replica may lead.
const leaderLease = 10 * time.Second

// breakerName is the same in all replicas.
const breakerName = "orchestrator"

// coordinate opens the coordinator of the configuration.
func coordinate(cfg Config, pool *pgxpool.Pool) (coord.Coordinator, error) {
	if cfg.Coordinator != "redis" {
		return coord.NewPostgres(pool), nil
	}
	c, err := coord.NewRedis(cfg.RedisURL.Reveal(), name+":")
	if err != nil {
		return nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	return c, nil
}

func newBreaker(cfg Config, c coord.Coordinator) *coord.Breaker {
	return coord.NewBreaker(c, breakerName, cfg.BreakerFailMax, time.Duration(cfg.BreakerResetSeconds)*time.Second)
}

// expireLeases ends the leases of a dead predecessor where nobody else can hold one.
// That of the model repository's poller would else keep this process from polling
// for three intervals, which are 15 minutes by default.
func expireLeases(ctx context.Context, cfg Config, c coord.Coordinator) error {
	own, ok := c.(interface{ ExpireLeases(context.Context) error })
	if !cfg.SoleProcess || !ok {
		return nil
	}
	return own.ExpireLeases(ctx)
}
