package controltower

import (
	"context"
	"errors"
	"math"
	"time"
)

// RetryPolicy defines when a read is retried: after a retryable error envelope or
// a *TransportError, never an inspection, a stream or a digest that does not
// verify. The wait has full jitter: it is drawn from 0 to BaseDelay doubled per
// attempt, at most MaxDelay.
type RetryPolicy struct {
	MaxAttempts      int           // how often a call is made at most, the first included
	BaseDelay        time.Duration // 0 or more
	MaxDelay         time.Duration // BaseDelay or more
	IgnoreRetryAfter bool          // else a wait is never shorter than the server's Retry-After
}

// DefaultRetryPolicy is three attempts within seconds.
var DefaultRetryPolicy = RetryPolicy{MaxAttempts: 3, BaseDelay: 200 * time.Millisecond, MaxDelay: 5 * time.Second}

// MaxRetryAfter is the longest Retry-After that is waited for; a longer one ends
// the attempts, so that no answer can park a program for hours.
const MaxRetryAfter = time.Minute

// WithRetry enables retries of reads; without it every call is one request.
func WithRetry(p RetryPolicy) Option {
	return func(c *Client) error {
		if p.MaxAttempts < 1 || p.BaseDelay < 0 || p.MaxDelay < p.BaseDelay {
			return misuseError("a retry policy needs at least one attempt and 0 <= BaseDelay <= MaxDelay")
		}
		c.retry = p
		return nil
	}
}

// pause returns how long to wait after this attempt, counted from 1, failed, and
// whether to retry at all. jitter is from [0,1).
func (p RetryPolicy) pause(attempt int, err error, jitter float64) (time.Duration, bool) {
	if attempt >= p.MaxAttempts {
		return 0, false
	}
	var least time.Duration
	if e, ok := errors.AsType[*APIError](err); ok {
		if !e.Retryable {
			return 0, false
		}
		if !p.IgnoreRetryAfter && e.RetryAfter > 0 {
			least = time.Duration(e.RetryAfter) * time.Second
		}
		if least > MaxRetryAfter {
			return 0, false
		}
	} else if _, ok := errors.AsType[*TransportError](err); !ok {
		return 0, false
	}
	most := min(float64(p.MaxDelay), float64(p.BaseDelay)*math.Pow(2, float64(attempt-1)))
	return max(time.Duration(jitter*most), least), true
}

func sleepFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
