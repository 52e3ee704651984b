package service

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mlp-platform/platform/libs/service/internal/reference"
)

// Check is the state of one dependency. Status is ok, warn (degraded, still
// ready) or fail (not ready); Detail says why.
type Check struct{ Status, Detail string }

// The states of a Check.
const (
	OK   = "ok"
	Warn = "warn"
	Fail = "fail"
)

// String is ok, "warn: why" or "fail: why".
func (c Check) String() string {
	if c.Status == OK || c.Detail == "" {
		return c.Status
	}
	return c.Status + ": " + c.Detail
}

// checkTimeout limits one check; orchestrators give a probe a second or a few.
const checkTimeout = 2 * time.Second

// readyFor is how long an answer of /readyz is reused: the route is public, and
// must not be a way to load the database.
const readyFor = 250 * time.Millisecond

type probes struct {
	mu    sync.Mutex // guards names and fns
	names []string
	fns   []func(context.Context) Check

	answer sync.Mutex // guards those below, and lets one caller check at a time
	at     time.Time
	ready  bool
	checks map[string]string
}

// Check adds a dependency to /readyz. fn is bounded to 2 s; checks run at the same time.
func (s *Server) Check(name string, fn func(context.Context) Check) {
	s.probes.mu.Lock()
	defer s.probes.mu.Unlock()
	s.probes.names = append(s.probes.names, name)
	s.probes.fns = append(s.probes.fns, fn)
}

// Ready runs every check now. It is false while draining or when one fails.
func (s *Server) Ready(ctx context.Context) (bool, map[string]string) {
	s.probes.mu.Lock()
	names, fns := s.probes.names, s.probes.fns
	s.probes.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	results := make([]Check, len(fns))
	var wg sync.WaitGroup
	for i, fn := range fns {
		wg.Go(func() { results[i] = runCheck(ctx, fn) })
	}
	wg.Wait()
	ready := true
	checks := make(map[string]string, len(names)+1)
	for i, c := range results {
		checks[names[i]] = c.String()
		ready = ready && c.Status != Fail
	}
	return s.withDrain(ready, checks)
}

func runCheck(ctx context.Context, fn func(context.Context) Check) (c Check) {
	defer func() {
		if p := recover(); p != nil {
			c = Check{Fail, fmt.Sprintf("check panicked: %v", p)}
		}
	}()
	return fn(ctx)
}

func (s *Server) withDrain(ready bool, checks map[string]string) (bool, map[string]string) {
	if !s.draining.Load() {
		return ready, checks
	}
	checks = maps.Clone(checks)
	checks["drain"] = Check{Fail, "the service is shutting down"}.String()
	return false, checks
}

// recentReady is Ready, at most readyFor old; draining shows at once.
func (s *Server) recentReady(ctx context.Context) (bool, map[string]string) {
	p := &s.probes
	p.answer.Lock()
	defer p.answer.Unlock()
	if p.checks == nil || time.Since(p.at) > readyFor {
		// A caller that gives up must not make the others see its cancellation.
		p.ready, p.checks = s.Ready(context.WithoutCancel(ctx))
		p.at = time.Now()
	}
	return s.withDrain(p.ready, p.checks)
}

type readiness struct {
	Status string            `json:"status"`
	Checks map[string]string `json:"checks"`
}

// Get adds a route of GET and of HEAD, which RFC 9110 asks of every resource that
// has GET, and which load balancers probe with; net/http leaves out the body.
func Get(e *echo.Echo, path string, h echo.HandlerFunc, m ...echo.MiddlewareFunc) {
	e.Match([]string{http.MethodGet, http.MethodHead}, path, h, m...)
}

func (s *Server) routes() {
	Get(s.Echo, "/livez", func(c echo.Context) error {
		return c.JSON(http.StatusOK, map[string]string{"status": "alive"})
	})
	Get(s.Echo, "/readyz", func(c echo.Context) error {
		ready, checks := s.recentReady(c.Request().Context())
		status := http.StatusOK
		if !ready {
			status = http.StatusServiceUnavailable
		}
		if s.opt.ReadyBody != nil {
			return c.JSON(status, s.opt.ReadyBody(ready, checks))
		}
		return c.JSON(status, readiness{StatusWord(ready, checks), checks})
	})
	Get(s.Echo, "/metrics", echo.WrapHandler(promhttp.HandlerFor(s.Registry, promhttp.HandlerOpts{
		ErrorHandling:     promhttp.ContinueOnError, // one faulty collector does not hide the others
		EnableOpenMetrics: true,
	})))
	if len(s.opt.OpenAPI) > 0 {
		if err := reference.Add(s.Echo, s.opt.OpenAPI); err != nil {
			panic(fmt.Sprintf("service %s: %v", s.opt.Name, err)) // it is compiled in
		}
	}
}

// StatusWord sums checks up: not_ready, degraded (ready, with warnings) or ok.
func StatusWord(ready bool, checks map[string]string) string {
	if !ready {
		return "not_ready"
	}
	for _, c := range checks {
		if c != OK {
			return "degraded"
		}
	}
	return "ok"
}
