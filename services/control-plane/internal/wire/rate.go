package wire

import (
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
)

// window is the period of the limits.
const window = time.Minute

// Limiter limits how often a tenant may write. Counts are in the coordinator, so that they apply across all replicas.
type Limiter struct {
	coord coord.Coordinator
	log   *slog.Logger

	mu    sync.Mutex // guards the fields below
	local map[string]count
}

// count is one window of this process alone.
type count struct {
	n      int
	endsAt time.Time
}

// NewLimiter returns a Limiter that counts in the coordinator.
func NewLimiter(c coord.Coordinator, log *slog.Logger) *Limiter {
	return &Limiter{coord: c, log: log, local: map[string]count{}}
}

// Per allows perMinute requests of the class to each tenant; 0 is no limit. If the coordinator does not answer, a
// strict class refuses, and the others count in this process alone: decisions must stay possible.
func (l *Limiter) Per(class string, perMinute int, strict bool) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if perMinute <= 0 {
				return next(c)
			}
			ctx := c.Request().Context()
			p, _ := auth.FromContext(ctx)
			key := "rate:" + class + ":" + p.Tenant
			d, err := l.coord.Allow(ctx, key, perMinute, window)
			if err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if strict {
					return fault.CoordinatorUnavailable.New("The coordinator that keeps rate limits and locks does not answer; try again later.").
						WithCause(err).After(5 * time.Second)
				}
				l.log.WarnContext(ctx, "coordinator down: limiting in this process alone", slog.Any("err", err))
				d = l.allow(key, perMinute, time.Now())
			}
			h := c.Response().Header()
			h.Set("RateLimit-Limit", strconv.Itoa(perMinute))
			h.Set("RateLimit-Remaining", strconv.Itoa(max(0, int(d.Remaining))))
			h.Set("RateLimit-Reset", strconv.Itoa(int(d.ResetSeconds)))
			if !d.OK {
				return problem.RateLimited.New(fmt.Sprintf("Your tenant may send %d requests of this kind a minute; wait %d s.", perMinute, max(1, int(d.ResetSeconds)))).
					After(time.Duration(max(1, int(d.ResetSeconds))) * time.Second)
			}
			return next(c)
		}
	}
}

// allow counts in this process. Tenants come from credentials, so the map is bounded.
func (l *Limiter) allow(key string, limit int, now time.Time) coord.Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.local[key]
	if !now.Before(w.endsAt) {
		w = count{endsAt: now.Add(window)}
	}
	w.n++
	l.local[key] = w
	return coord.Decision{OK: w.n <= limit, Limit: limit, Remaining: max(0, limit-w.n), ResetSeconds: int((w.endsAt.Sub(now) + time.Second - 1) / time.Second)}
}
