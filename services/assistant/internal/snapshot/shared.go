package snapshot

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// rounds limits the snapshots read in parallel: each may be as large as the cluster.
const rounds = 4

// Shared reads snapshots for concurrent callers. A caller that arrives while a namespace is being read waits for the
// next round, which all waiting callers share: every result was read after the call. All callers are shown all reads of
// their round.
type Shared struct {
	read  func(ctx context.Context, namespace string, show Show) (*engine.Snapshot, error)
	slots chan struct{}

	mu     sync.Mutex
	places map[string]*place // guarded by mu: namespaces with waiting callers
}

// place is the running round of a namespace, and the next one.
type place struct{ running, next *round }

// round is one read.
type round struct {
	ctx    context.Context // ends when no caller waits any more
	cancel context.CancelFunc

	mu       sync.Mutex
	waiters  int           // guarded by mu, like all fields below
	steps    []step        // steps shown so far
	ended    bool          // snapshot and err are final
	changed  chan struct{} // closed at the next change of steps or ended
	snapshot *engine.Snapshot
	err      error
}

// step is one shown read.
type step struct {
	op    operation.Operation
	ended bool
	out   turn.Output
	err   error
}

// Share returns a Shared that calls Read.
func Share(c *cluster.Cluster, policy guard.Policy, now func() time.Time) *Shared {
	return newShared(func(ctx context.Context, namespace string, show Show) (*engine.Snapshot, error) {
		return Read(ctx, c, policy, namespace, now(), show)
	})
}

func newShared(read func(context.Context, string, Show) (*engine.Snapshot, error)) *Shared {
	return &Shared{read: read, slots: make(chan struct{}, rounds), places: map[string]*place{}}
}

// Read is the package's Read. The snapshot must not be modified: other callers have it, too.
func (s *Shared) Read(ctx context.Context, namespace string, show Show) (*engine.Snapshot, error) {
	r := s.join(namespace)
	defer r.leave()
	var done func(turn.Output, error)
	for at := 0; ; {
		now, more, ended, changed := r.look(at)
		switch {
		case done == nil && more:
			done = show(now.op)
		case done != nil && now.ended:
			done(now.out, now.err)
			done, at = nil, at+1
		case done == nil && ended:
			return r.snapshot, r.err
		default:
			select {
			case <-changed:
			case <-ctx.Done():
				if done != nil {
					done(turn.Output{}, context.Cause(ctx))
				}
				return nil, context.Cause(ctx)
			}
		}
	}
}

// join returns the first round that has not started, or starts one.
func (s *Shared) join(namespace string) *round {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.places[namespace]
	switch {
	case p == nil:
		r := newRound()
		s.places[namespace] = &place{running: r}
		go s.run(namespace, r)
		return r
	case p.next == nil || !p.next.enter():
		p.next = newRound()
		return p.next
	}
	return p.next
}

func newRound() *round {
	r := &round{waiters: 1, changed: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// run reads round after round while callers wait.
func (s *Shared) run(namespace string, r *round) {
	for r != nil {
		select {
		case s.slots <- struct{}{}:
			snapshot, err := s.guarded(r, namespace)
			<-s.slots
			r.end(snapshot, err)
		case <-r.ctx.Done():
			r.end(nil, r.ctx.Err())
		}
		r.cancel()
		s.mu.Lock()
		p := s.places[namespace]
		if r = p.next; r == nil {
			delete(s.places, namespace)
		} else {
			p.running, p.next = r, nil
		}
		s.mu.Unlock()
	}
}

// guarded reads; a panic must fail only the turns that wait for this round.
func (s *Shared) guarded(r *round, namespace string) (snapshot *engine.Snapshot, err error) {
	defer func() {
		if p := recover(); p != nil {
			snapshot, err = nil, &turn.Fail{Failure: fault.InternalFailure, Cause: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
		}
	}()
	return s.read(r.ctx, namespace, r.show)
}

// enter adds a waiting caller; false if all had left and the round is abandoned.
func (r *round) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiters == 0 {
		return false
	}
	r.waiters++
	return true
}

func (r *round) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiters--; r.waiters == 0 {
		r.cancel()
	}
}

// look returns the step at a position, if there is one, and whether the round has ended without further ones.
func (r *round) look(at int) (s step, more, ended bool, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at < len(r.steps) {
		return r.steps[at], true, false, r.changed
	}
	return step{}, false, r.ended, r.changed
}

func (r *round) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// show is the Show of the read itself.
func (r *round) show(op operation.Operation) func(turn.Output, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := len(r.steps)
	r.steps = append(r.steps, step{op: op})
	r.wake()
	return func(out turn.Output, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.steps[i].ended, r.steps[i].out, r.steps[i].err = true, out, err
		r.wake()
	}
}

func (r *round) end(snapshot *engine.Snapshot, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.steps { // none is left open
		r.steps[i].ended = true
	}
	r.snapshot, r.err, r.ended = snapshot, err, true
	r.wake()
}
