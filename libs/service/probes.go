package service

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mlp-platform/platform/libs/service/internal/reference"
)

// Check is the state of one dependency. Status is ok, warn (degraded, still ready) or fail (not ready); Detail is the
// reason.
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

const (
	// checkTimeout limits one check.
	checkTimeout = 2 * time.Second
	// checkEvery is the pause between two runs of a check, recheckEvery after one that failed: a
	// replica that is needed again should not wait for it.
	checkEvery   = time.Second
	recheckEvery = 250 * time.Millisecond
	// checkOverdue is the age at which a result counts as missing: the check hangs, and ignores its deadline.
	checkOverdue = 15 * time.Second
)

// probes run the checks in the background. An orchestrator's probe has a second or less, and a hanging dependency alone
// takes that long: an answer of /readyz must wait for none.
type probes struct {
	mu   sync.Mutex // guards list
	list []*probe
}

// probe is one check with its newest result.
type probe struct {
	name     string
	fn       func(context.Context) Check
	optional bool
	local    bool          // runs in the goroutine that needs its result
	wake     chan struct{} // holds a token when the check is to run soon
	last     atomic.Pointer[checked]
}

// checked is a result and when it came.
type checked struct {
	Check
	at time.Time
}

// Check adds a dependency that every request needs: while it fails, /readyz answers 503. fn is
// bounded to 2 s and runs every second in the background.
func (s *Server) Check(name string, fn func(context.Context) Check) {
	s.addProbe(&probe{name: name, fn: fn, wake: make(chan struct{}, 1)})
}

// CheckOptional adds a dependency that only some requests need, or that has a fallback: /readyz
// names its failures as warnings and stays 200, so that its end takes no replica out.
func (s *Server) CheckOptional(name string, fn func(context.Context) Check) {
	s.addProbe(&probe{name: name, fn: fn, optional: true, wake: make(chan struct{}, 1)})
}

// CheckLocal adds a state of this process that /readyz shows as it is at that moment. fn must answer from memory; only
// a fail makes the replica unready.
func (s *Server) CheckLocal(name string, fn func() Check) {
	s.addProbe(&probe{name: name, fn: func(context.Context) Check { return fn() }, local: true})
}

func (s *Server) addProbe(p *probe) {
	s.probes.mu.Lock()
	s.probes.list = append(s.probes.list, p)
	s.probes.mu.Unlock()
	if !p.local {
		s.Go("check "+p.name, p.run)
	}
}

// Recheck makes every check run now, because the state that they report has changed.
func (s *Server) Recheck() {
	for _, p := range s.checks() {
		select {
		case p.wake <- struct{}{}:
		default: // it will run anyway
		}
	}
}

func (s *Server) checks() []*probe {
	s.probes.mu.Lock()
	defer s.probes.mu.Unlock()
	return s.probes.list
}

// run repeats the check until ctx ends.
func (p *probe) run(ctx context.Context) error {
	for {
		c := p.check(ctx)
		if ctx.Err() != nil {
			return nil // its error may be the cancellation alone
		}
		p.last.Store(&checked{c, time.Now()})
		pause := checkEvery
		if c.Status == Fail {
			pause = recheckEvery
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-p.wake:
			t.Stop()
		case <-t.C:
		}
	}
}

// check runs the check once.
func (p *probe) check(ctx context.Context) (c Check) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			c = Check{Fail, fmt.Sprintf("check panicked: %v", v)}
		}
		if p.optional && c.Status == Fail {
			c.Status = Warn
		}
	}()
	return p.fn(ctx)
}

// result is the newest one, or the reason why there is none.
func (p *probe) result(now time.Time) Check {
	worst := Fail
	if p.optional {
		worst = Warn
	}
	last := p.last.Load()
	switch {
	case last == nil:
		return Check{worst, "not checked yet"}
	case now.Sub(last.at) > checkOverdue:
		return Check{worst, fmt.Sprintf("the check has not ended for %s; it said %s", now.Sub(last.at).Round(time.Second), last.Check)}
	}
	return last.Check
}

// Ready returns the newest results of all checks without waiting for any; on a server that does
// not run yet it runs them now. It is false while stopping or when a check fails.
func (s *Server) Ready(ctx context.Context) (bool, map[string]string) {
	list := s.checks()
	results := make([]Check, len(list))
	if s.up.Load() {
		now := time.Now()
		for i, p := range list {
			if p.local {
				results[i] = p.check(ctx)
			} else {
				results[i] = p.result(now)
			}
		}
	} else {
		var wg sync.WaitGroup
		for i, p := range list {
			wg.Go(func() { results[i] = p.check(ctx) })
		}
		wg.Wait()
	}
	ready := true
	checks := make(map[string]string, len(list)+1)
	for i, c := range results {
		checks[list[i].name] = c.String()
		ready = ready && c.Status != Fail
	}
	if s.leaving.Load() {
		checks["drain"] = Check{Fail, "the service is shutting down"}.String()
		ready = false
	}
	return ready, checks
}

type readiness struct {
	Status string            `json:"status"`
	Checks map[string]string `json:"checks"`
}

// Get adds a route of GET and of HEAD, which RFC 9110 requires of every resource that has GET, and which load balancers
// probe with; net/http leaves out the body.
func Get(e *echo.Echo, path string, h echo.HandlerFunc, m ...echo.MiddlewareFunc) {
	e.Match([]string{http.MethodGet, http.MethodHead}, path, h, m...)
}

func (s *Server) routes() {
	Get(s.Echo, "/livez", func(c echo.Context) error {
		return c.JSON(http.StatusOK, map[string]string{"status": "alive"})
	})
	Get(s.Echo, "/readyz", func(c echo.Context) error {
		ready, checks := s.Ready(c.Request().Context())
		status := http.StatusOK
		if !ready {
			status = http.StatusServiceUnavailable
		}
		return c.JSON(status, s.readyBody(ready, checks))
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

func (s *Server) readyBody(ready bool, checks map[string]string) any {
	if s.opt.ReadyBody != nil {
		return s.opt.ReadyBody(ready, checks)
	}
	return readiness{StatusWord(ready, checks), checks}
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
