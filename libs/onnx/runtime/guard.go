package runtime

import (
	"errors"
	"fmt"
	"sync"
	"time"

	ort "github.com/yalue/onnxruntime_go"
)

// ErrOverran is returned by Run when it took longer than Options.RunLimit and was ended.
var ErrOverran = errors.New("the run was ended: it took too long")

// guard ends a run that takes too long: the library checks the flag between two operators. One run at a time uses it.
type guard struct {
	opts    *ort.RunOptions
	limit   time.Duration        // 0: none
	clock   func() time.Duration // the clock of the limit
	overran func()

	mu      sync.Mutex // guards all below
	timer   *time.Timer
	running bool
	began   time.Duration // by the clock
	ended   bool          // the run was ended
}

// newGuard makes a guard of a session's runs.
func newGuard(o Options) (*guard, error) {
	opts, err := ort.NewRunOptions()
	if err != nil {
		return nil, fmt.Errorf("run options: %w", err)
	}
	g := &guard{opts: opts, limit: o.RunLimit, clock: o.Clock, overran: o.Overran}
	if g.clock == nil {
		start := time.Now()
		g.clock = func() time.Duration { return time.Since(start) }
	}
	return g, nil
}

func (g *guard) start() {
	if g.limit <= 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running, g.ended, g.began = true, false, g.clock()
	if g.timer == nil {
		g.timer = time.AfterFunc(g.limit, g.judge)
	} else {
		g.timer.Reset(g.limit)
	}
}

// judge runs when the limit may have passed. It rearms the timer if the clock is behind: a process' clock stops while
// others have the processor, and a timer of the previous run may be late.
func (g *guard) judge() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.running || g.ended {
		return
	}
	if left := g.limit - (g.clock() - g.began); left > 0 {
		g.timer.Reset(left)
		return
	}
	g.ended = true
	_ = g.opts.Terminate() // fails only on released options, and end() waits for this function
	if g.overran != nil {
		g.overran()
	}
}

// end reports whether the run took too long. The guard is ready for the next one.
func (g *guard) end() (overran bool) {
	if g.limit <= 0 {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running = false
	g.timer.Stop()
	if g.ended {
		_ = g.opts.UnsetTerminate()
	}
	return g.ended
}

func (g *guard) destroy() { _ = g.opts.Destroy() }
