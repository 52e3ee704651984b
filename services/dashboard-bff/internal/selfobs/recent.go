package selfobs

import (
	"slices"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
)

// kept is how many of the newest requests are looked at.
const kept = 1000

// Requests remembers the newest requests of this replica. It is safe for concurrent use.
type Requests struct {
	// Streams are the routes whose requests last as long as the client listens: they are counted, their duration is
	// not.
	streams []string

	mu   sync.Mutex // guards those below
	ring [kept]request
	seen int
}

type request struct {
	status int
	took   time.Duration
	timed  bool
}

// NewRequests remembers none yet. streams are routes, such as /api/v1/stream.
func NewRequests(streams ...string) *Requests { return &Requests{streams: streams} }

// ignored are the routes of probes, which do not reflect what people experience.
var ignored = []string{"/livez", "/readyz", "/metrics"}

// Middleware remembers every request that passes. It stands outside the guards, so that it sees refusals too.
func (r *Requests) Middleware(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if slices.Contains(ignored, c.Path()) {
			return next(c)
		}
		began := time.Now()
		err := next(c)
		status := c.Response().Status
		if err != nil && !c.Response().Committed { // the error handler further out will answer
			status = problem.From(err).Status()
		}
		r.add(request{status, time.Since(began), !slices.Contains(r.streams, c.Path())})
		return err
	}
}

func (r *Requests) add(q request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ring[r.seen%kept] = q
	r.seen++
}

// summarize counts the remembered requests.
func (r *Requests) summarize() api.SelfStatus_Metrics {
	var out api.SelfStatus_Metrics
	var took []time.Duration
	r.mu.Lock()
	for _, q := range r.ring[:min(r.seen, kept)] {
		out.Requests++
		switch {
		case q.status >= 500:
			out.Errors++
		case q.status >= 400:
			out.ClientErrors++
		}
		if q.status == 429 {
			out.RateLimitHits++
		}
		if q.timed {
			took = append(took, q.took)
		}
	}
	r.mu.Unlock()
	slices.Sort(took)
	out.LatencyMs = api.SelfStatus_Metrics_LatencyMs{Count: len(took), P50: service.Quantile(took, 0.5), P95: service.Quantile(took, 0.95)}
	return out
}
