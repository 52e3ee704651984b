package catalog

import (
	"context"
	"slices"
	"sync"
)

const (
	// loadsAtOnce limits concurrent loads of versions that aliases name. Most wait for the network; the trials limit
	// each other by memory, and each has a deadline.
	loadsAtOnce = 8
	// keptForKnown of them are for models that have served before, so that new versions which hang do not hold these up.
	keptForKnown = 2
	// failedAtOnce limits the loads of versions that have failed before: even a hundred hanging versions of one user
	// take one place, not all.
	failedAtOnce = 1
)

// rank is the priority of a load; the lower goes first.
type rank int

const (
	rankKnown  rank = iota // the model has served before, or the control plane admitted the version
	rankNew                // not seen before
	rankFailed             // the version itself failed before, as one that hangs does
	ranks
)

// limits of each rank are the loads that may run when one of it starts.
var limits = [ranks]int{rankKnown: loadsAtOnce, rankNew: loadsAtOnce - keptForKnown, rankFailed: loadsAtOnce - keptForKnown}

// loadQueue decides which load runs next: by rank, then by the order in which they came, but one of each model at a
// time. When one ends, the others of its model go to the end, so that models take turns.
type loadQueue struct {
	mu      sync.Mutex // guards all below
	waiting []*turn
	models  map[string]bool // that have a load running
	running [ranks]int
}

// turn is one load's place in the queue.
type turn struct {
	model string
	rank  rank
	start chan struct{} // closed when the load may run; guarded by the queue's mu until then
}

func newLoadQueue() *loadQueue { return &loadQueue{models: map[string]bool{}} }

// enter waits for the load's turn. Unless it fails, which it does only with ctx, the caller calls leave.
func (q *loadQueue) enter(ctx context.Context, model string, r rank) (leave func(), err error) {
	t := &turn{model: model, rank: r, start: make(chan struct{})}
	q.mu.Lock()
	q.waiting = append(q.waiting, t)
	q.startDue()
	q.mu.Unlock()
	select {
	case <-t.start:
		return func() { q.leave(t) }, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	started := !q.remove(t)
	q.mu.Unlock()
	if started { // between the two
		q.leave(t)
	}
	return nil, ctx.Err()
}

func (q *loadQueue) leave(t *turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.models, t.model)
	q.running[t.rank]--
	var others, rest []*turn
	for _, w := range q.waiting {
		if w.model == t.model {
			rest = append(rest, w)
		} else {
			others = append(others, w)
		}
	}
	q.waiting = append(others, rest...)
	q.startDue()
}

// startDue starts all loads that may run now. It is called with mu held.
func (q *loadQueue) startDue() {
	for t := q.next(); t != nil; t = q.next() {
		q.remove(t)
		q.models[t.model] = true
		q.running[t.rank]++
		close(t.start)
	}
}

// next is the turn that may start now, or nil. It is called with mu held.
func (q *loadQueue) next() (best *turn) {
	total := 0
	for _, n := range q.running {
		total += n
	}
	for _, t := range q.waiting {
		switch {
		case q.models[t.model], total >= limits[t.rank], t.rank == rankFailed && q.running[rankFailed] >= failedAtOnce:
		case best == nil || t.rank < best.rank:
			best = t
		}
	}
	return best
}

// remove takes a turn out of the queue and reports whether it was in it. It is called with mu held.
func (q *loadQueue) remove(t *turn) bool {
	i := slices.Index(q.waiting, t)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}
