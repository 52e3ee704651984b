package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mlp-platform/platform/libs/problem"
)

// OnDrain adds a function that ends streams when the stop begins.
func (s *Server) OnDrain(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onDrain = append(s.onDrain, fn)
}

// OnClose adds a function that frees what requests and workers used; the last
// added runs first, as with defer.
func (s *Server) OnClose(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onClose = append(s.onClose, fn)
}

// Enter counts a request that came another way than by this server's listener, so that a stop waits for it as for the
// others. It is refused while they are.
func (s *Server) Enter() (leave func(), err error) {
	s.inFlight.n.Add(1) // before draining is read: then either drain waits for it, or it is refused
	s.metrics.inFlight.Inc()
	leave = func() {
		s.metrics.inFlight.Dec()
		s.inFlight.done(&s.draining)
	}
	if s.draining.Load() {
		leave()
		return nil, problem.Draining.New("The service is shutting down; send the request again, it will reach another or the next process.").After(time.Second)
	}
	return leave, nil
}

// Draining reports whether new requests are refused.
func (s *Server) Draining() bool { return s.draining.Load() }

// leave signals balancers to send elsewhere, and serves requests that still arrive. A server that fails meanwhile does
// not wait.
func (s *Server) leave(failed <-chan struct{}) {
	s.leaving.Store(true)
	if s.opt.DrainDelay <= 0 {
		return
	}
	s.log.Info("leaving", slog.String("service", s.opt.Name), slog.Duration("serves_for", s.opt.DrainDelay))
	select {
	case <-s.after(s.opt.DrainDelay):
	case <-failed:
	}
}

// drain ends intake and waits for requests in flight. The listener stays open meanwhile, so that probes see the service
// as unready, not as gone.
func (s *Server) drain(ctx context.Context) error {
	s.served = make(map[[2]string]bool)
	for _, r := range s.Echo.Routes() {
		s.served[[2]string{r.Method, r.Path}] = true
	}
	s.leaving.Store(true)
	s.draining.Store(true)
	s.http.SetKeepAlivesEnabled(false)
	s.mu.Lock()
	fns := s.onDrain
	s.mu.Unlock()
	for _, fn := range fns {
		fn()
	}
	patience, cancel := context.WithTimeout(ctx, s.opt.Drain)
	defer cancel()
	if n := s.inFlight.wait(patience); n > 0 {
		return errors.Join(fmt.Errorf("%d requests did not finish within %s and were cut off", n, s.opt.Drain), s.http.Close())
	}
	// What is left are answers on their last few bytes, probes, and connections
	// that sent nothing yet, for which Shutdown alone would wait several seconds.
	rest, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := s.http.Shutdown(rest); err != nil {
		return s.http.Close()
	}
	return nil
}

// awaitWorkers waits as long again as requests may take.
func (s *Server) awaitWorkers(r *run) error {
	done := make(chan struct{})
	go func() { // outlives the wait only if a worker does
		r.wg.Wait()
		close(done)
	}()
	t := time.NewTimer(s.opt.Drain)
	defer t.Stop()
	select {
	case <-done:
		return nil
	case <-t.C:
		return fmt.Errorf("workers did not stop within %s", s.opt.Drain)
	}
}

func (s *Server) closeAll() {
	s.mu.Lock()
	fns := s.onClose
	s.onClose = nil
	s.mu.Unlock()
	for i := len(fns) - 1; i >= 0; i-- {
		fns[i]()
	}
}

// inFlight counts requests other than probes. A WaitGroup would not do: it must
// not be added to while it is waited for at zero.
type inFlight struct {
	n    atomic.Int64
	zero chan struct{} // holds a token when the count may have become zero
}

// done ends a request. draining is read after the count is lowered: then either wait sees the lower count, or this sees
// that wait may be running.
func (f *inFlight) done(draining *atomic.Bool) {
	if f.n.Add(-1) == 0 && draining.Load() {
		select {
		case f.zero <- struct{}{}:
		default:
		}
	}
}

// wait returns when the count is zero or ctx ends, with the count. Call it after
// draining is set.
func (f *inFlight) wait(ctx context.Context) int64 {
	for f.n.Load() > 0 {
		select {
		case <-f.zero:
		case <-ctx.Done():
			return f.n.Load()
		}
	}
	return 0
}
