package compose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// How long answers live. They are constants of the interface: views promise figures at most this old.
const (
	fresh     = 2 * time.Second // an answer is shared
	failedFor = 5 * time.Second // between background retries of a failed source
	idleAfter = 30 * time.Second
	// keepFor is how old the answer before may be that is shown while the next one takes longer than views wait.
	keepFor = 10 * time.Minute
	// maxEntries and maxRetries limit what callers with many different parameters can make the pool keep.
	maxEntries = 2048
	maxRetries = 64
	// grace is how long a first call to a service that seems to hang is waited for, at most an eighth of the timeout.
	grace = 250 * time.Millisecond
)

// Config of New; Timeout and Log are required.
type Config struct {
	// Timeout of each source.
	Timeout time.Duration
	Log     *slog.Logger
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Pool holds the shared answers. It is safe for concurrent use.
type Pool struct {
	timeout time.Duration
	log     *slog.Logger
	now     func() time.Time

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup // flights and retries

	mu      sync.Mutex // guards those below and the members of entries
	closed  bool
	entries map[key]*entry
	retries int
	swept   time.Time // when entries was last cleared of old answers
	// answered is when each service last answered, suspect since when it has not: a call began and timed out.
	answered map[upstream.Service]time.Time
	suspect  map[upstream.Service]bool
	// documents are the large views as last encoded.
	documents map[documentKey]document
}

// entry is the state of one key.
type entry struct {
	flight   *flight // running now
	last     *result // of the newest flight that ended
	asked    time.Time
	call     call // of the last caller: retries are made in that person's name
	retrying bool // a background retry owns the entry until it succeeds or requests stop
}

// flight is a call that is running.
type flight struct {
	began time.Time
	done  chan struct{} // closed after result is set
	result
}

// result of a call.
type result struct {
	value any
	err   error
	at    time.Time // when the answer came
	took  time.Duration
}

// New returns an empty pool; end it with Close.
func New(cfg Config) (*Pool, error) {
	if cfg.Timeout <= 0 || cfg.Log == nil {
		return nil, errors.New("compose: Timeout and Log are required")
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Pool{
		timeout: cfg.Timeout, log: cfg.Log, now: cfg.Now, ctx: ctx, cancel: cancel,
		entries: map[key]*entry{}, answered: map[upstream.Service]time.Time{}, suspect: map[upstream.Service]bool{},
		documents: map[documentKey]document{},
	}
	if p.now == nil {
		p.now = time.Now
	}
	return p, nil
}

// Close ends the background retries and the calls that are running, and waits for them.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.running.Wait()
}

// call is a source with its parameters and caller bound.
type call struct {
	fetch  func(ctx context.Context) (any, error)
	budget time.Duration
	pace   int
}

// errClosed answers requests that come after Close.
var errClosed = errors.New("the service is shutting down")

// ticket is the result of a lookup: an answer, or a flight to wait for.
type ticket struct {
	ready  *result // set: there is nothing to wait for
	flight *flight
	wait   time.Duration
	before *result // shown if the flight takes longer than wait; may be nil
}

// ask returns the shared answer of k if there is one, else the flight that will have it and how long to wait for it.
// ctx gives request id and trace to a call that begins now, but its end does not cancel the call: others wait for it
// too.
func (p *Pool) ask(ctx context.Context, k key, c call) ticket {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	e := p.entries[k]
	if e == nil {
		p.makeRoom(now)
		e = &entry{}
		p.entries[k] = e
	}
	e.asked, e.call = now, c
	if r := e.last; r != nil {
		switch age := now.Sub(r.at); {
		case r.err == nil || skipped(r.err):
			if age < max(fresh, time.Duration(c.pace)*r.took) {
				return ticket{ready: r}
			}
		case e.retrying || age < failedFor:
			return ticket{ready: r}
		}
	}
	if e.flight == nil {
		if p.closed {
			return ticket{ready: &result{err: errClosed, at: now}}
		}
		e.flight = p.launch(ctx, k, e)
	}
	return p.waitFor(k, e, now)
}

// waitFor decides how long to wait for a flight; p.mu is held.
func (p *Pool) waitFor(k key, e *entry, now time.Time) ticket {
	t := ticket{flight: e.flight, wait: p.timeout + p.timeout/20} // the call ends itself at the timeout; this is for one that does not
	if e.call.budget > p.timeout {
		t.wait = max(p.timeout-now.Sub(e.flight.began), 0) // a late caller does not wait the full timeout again
		if r := e.last; r != nil && r.err == nil && now.Sub(r.at) < keepFor {
			t.before = r
			if r.took > p.timeout {
				t.wait = 0 // it takes longer every time
			}
		}
	}
	if p.suspect[k.service] && now.Sub(e.flight.began) >= p.timeout {
		t.before = nil // the service answers nothing at all: its call is not slow but lost, and an old answer would hide that
	}
	if p.suspect[k.service] && (e.last == nil || e.last.err != nil) {
		t.wait = min(t.wait, grace, p.timeout/8)
	}
	return t
}

// launch begins a call; p.mu is held.
func (p *Pool) launch(ctx context.Context, k key, e *entry) *flight {
	f := &flight{began: p.now(), done: make(chan struct{})}
	c := e.call
	p.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(c.budget, p.timeout))
		defer cancel()
		defer context.AfterFunc(p.ctx, cancel)()
		value, err := p.run(ctx, k, c)
		if err != nil && ctx.Err() != nil && p.ctx.Err() == nil { // however the client puts it
			err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
		}
		p.land(k, e, f, value, err)
	})
	return f
}

// run keeps a fault of one source from ending the process.
func (p *Pool) run(ctx context.Context, k key, c call) (value any, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("panic: %v", fault)
			p.log.ErrorContext(ctx, "source panicked", slog.String("source", k.String()), slog.Any("panic", fault), slog.String("stack", string(debug.Stack())))
		}
	}()
	return c.fetch(ctx)
}

// land records how a call ended and wakes who waits for it.
func (p *Pool) land(k key, e *entry, f *flight, value any, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	f.result = result{value: value, err: err, at: now, took: now.Sub(f.began)}
	before := e.last
	e.flight, e.last = nil, &f.result
	close(f.done)
	p.judgeService(k.service, f)
	failed := err != nil && !skipped(err)
	wasFailed := before != nil && before.err != nil && !skipped(before.err)
	switch {
	case failed && !wasFailed && p.ctx.Err() == nil:
		p.log.Warn("source failed", slog.String("source", k.String()), slog.Any("err", err))
	case !failed && wasFailed:
		p.log.Info("source answers again", slog.String("source", k.String()))
	}
	if !failed {
		e.retrying = false
		return
	}
	if !e.retrying && !p.closed && p.retries < maxRetries {
		e.retrying = true
		p.retries++
		p.running.Go(func() { p.retry(k, e) })
	}
}

// judgeService records whether a service answers at all; p.mu is held. A timeout casts suspicion only if nothing came
// back while it ran: otherwise only that one call is slow.
func (p *Pool) judgeService(s upstream.Service, f *flight) {
	switch {
	case skipped(f.err):
	case f.err == nil, !timedOut(f.err):
		p.answered[s] = f.at
		p.suspect[s] = false
	case p.answered[s].Before(f.began):
		p.suspect[s] = true
	}
}

// retry calls a failed source in the background until it answers, or until it has not been requested for a while.
func (p *Pool) retry(k key, e *entry) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.retries--
		if e.retrying { // it still fails: the next one to ask calls it again
			e.retrying = false
			if p.entries[k] == e {
				delete(p.entries, k)
			}
		}
	}()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-time.After(failedFor / 2):
		}
		p.mu.Lock()
		if p.closed || p.now().Sub(e.asked) > idleAfter {
			p.mu.Unlock()
			return
		}
		if e.flight == nil {
			e.flight = p.launch(context.Background(), k, e)
		}
		f := e.flight
		p.mu.Unlock()
		<-f.done // ends at the timeout
		if f.err == nil || skipped(f.err) {
			return
		}
	}
}

// makeRoom drops answers too old to share, and the least recently requested if there are too many; p.mu is held.
func (p *Pool) makeRoom(now time.Time) {
	if len(p.entries) < maxEntries && now.Sub(p.swept) < failedFor {
		return
	}
	p.swept = now
	type aged struct {
		key
		asked time.Time
	}
	var idle []aged
	for k, e := range p.entries {
		switch {
		case e.flight != nil || e.retrying:
		case e.last != nil && now.Sub(e.last.at) > max(failedFor, time.Duration(e.call.pace)*e.last.took):
			delete(p.entries, k)
		default:
			idle = append(idle, aged{k, e.asked})
		}
	}
	slices.SortFunc(idle, func(a, b aged) int { return cmp.Compare(a.asked.UnixNano(), b.asked.UnixNano()) })
	for i := 0; len(p.entries) >= maxEntries && i < len(idle); i++ {
		delete(p.entries, idle[i].key)
	}
}
