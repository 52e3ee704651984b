package dispatch

import (
	"context"
	"slices"
	"sync"
)

// Limits of this process's concurrent calls to the orchestrator: initial and maximum.
const (
	firstPace = 4
	mostPace  = 16
)

// pace adapts the limit of concurrent calls to the orchestrator's load: a failure halves the limit, every answer in
// time raises it a little. A server on SQLite refuses most of sixteen concurrent calls but easily takes the same calls
// in sequence. Callers wait in order; each holds a durable command, which another process sends if this one dies.
type pace struct {
	mu      sync.Mutex // guards all below
	limit   float64
	cuts    int // how often the limit was halved
	calls   []*call
	waiting []chan *call
}

// call is one call in progress.
type call struct {
	cuts  int  // of the pace when it began
	alone bool // no other call of this process ran at the same time
}

func newPace() *pace { return &pace{limit: firstPace} }

// enter waits for a turn.
func (p *pace) enter(ctx context.Context) (*call, error) {
	p.mu.Lock()
	if len(p.waiting) == 0 && len(p.calls) < int(p.limit) {
		defer p.mu.Unlock()
		return p.begin(), nil
	}
	turn := make(chan *call, 1)
	p.waiting = append(p.waiting, turn)
	p.mu.Unlock()
	select {
	case c := <-turn:
		return c, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, turn); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return nil, ctx.Err()
	}
	return <-turn, nil // the turn came first
}

// begin is called with mu held.
func (p *pace) begin() *call {
	c := &call{cuts: p.cuts, alone: len(p.calls) == 0}
	for _, other := range p.calls {
		other.alone = false
	}
	p.calls = append(p.calls, c)
	return c
}

// leave ends a call; ok means that the orchestrator accepted it. It reports whether other calls of this process ran at
// the same time.
func (p *pace) leave(c *call, ok bool) (beside bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case ok:
		p.limit = min(p.limit+1/p.limit, mostPace)
	case c.cuts == p.cuts: // the calls of one burst halve it once
		p.limit = max(p.limit/2, 1)
		p.cuts++
	}
	p.remove(c)
	return !c.alone
}

// drop ends a call that was not made.
func (p *pace) drop(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(c)
}

// remove admits the next calls; mu is held.
func (p *pace) remove(c *call) {
	p.calls = slices.DeleteFunc(p.calls, func(other *call) bool { return other == c })
	for len(p.waiting) > 0 && len(p.calls) < int(p.limit) {
		p.waiting[0] <- p.begin()
		p.waiting = p.waiting[1:]
	}
}
