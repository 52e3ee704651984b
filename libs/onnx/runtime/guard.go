package runtime

import (
	"errors"
	"fmt"
	"math"
	"time"

	ort "github.com/yalue/onnxruntime_go"
)

// ErrOverran is what Run answers when it took longer than Options.RunLimit and was ended.
var ErrOverran = errors.New("the run was ended: it took too long")

// guard ends a run that takes too long: the library looks at the flag between two operators. One run at a time uses it.
type guard struct {
	opts  *ort.RunOptions
	limit time.Duration
	timer *time.Timer
	fired chan struct{} // receives once the flag is set
}

// newGuard makes a guard; overran is called beside the run when it takes too long, and must not block.
func newGuard(limit time.Duration, overran func()) (*guard, error) {
	opts, err := ort.NewRunOptions()
	if err != nil {
		return nil, fmt.Errorf("run options: %w", err)
	}
	g := &guard{opts: opts, limit: limit, fired: make(chan struct{}, 1)}
	if limit > 0 {
		g.timer = time.AfterFunc(math.MaxInt64, func() { // start sets the limit: none is over before a run
			_ = g.opts.Terminate() // fails only on options that are gone, and end waits for this function
			if overran != nil {
				overran()
			}
			g.fired <- struct{}{}
		})
		g.timer.Stop()
	}
	return g, nil
}

func (g *guard) start() {
	if g.timer != nil {
		g.timer.Reset(g.limit)
	}
}

// end reports whether the run took too long. The guard is ready for the next one.
func (g *guard) end() (overran bool) {
	if g.timer == nil || g.timer.Stop() {
		return false
	}
	<-g.fired
	_ = g.opts.UnsetTerminate()
	return true
}

func (g *guard) destroy() { _ = g.opts.Destroy() }
