package catalog

import (
	"container/list"
	"context"
	"sync"
	"time"
)

const (
	// rawKept is how many bare versions stay loaded, the least recently used leaving first.
	rawKept = 8
	// rawRefused is how long the refusal of a version is remembered, so that a client which keeps asking
	// does not keep downloading.
	rawRefused = 5 * time.Second
	// rawAtOnce limits concurrent loads: one may wait for the network while another opens.
	rawAtOnce = 2
	// refusalsKept limits the refusals remembered.
	refusalsKept = 256
)

type rawKey struct{ model, version string }

// rawVersions holds copies that were requested by version.
type rawVersions struct {
	catalog *Catalog
	tokens  chan struct{}      // holds one per load that runs
	ctx     context.Context    // of loads: they outlive the request that began them
	cancel  context.CancelFunc // at close
	running sync.WaitGroup

	mu       sync.Mutex // guards all below
	closed   bool
	order    *list.List // of *Copy, most recently used first
	byKey    map[rawKey]*list.Element
	refusals map[rawKey]refusal
	loads    map[rawKey]*rawLoad
}

// rawLoad is a load on its way; err may be read once done is closed.
type rawLoad struct {
	done chan struct{}
	err  error
}

type refusal struct {
	err   error
	until time.Time
}

func (r *rawVersions) init(c *Catalog) {
	r.catalog, r.tokens = c, make(chan struct{}, rawAtOnce)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.order, r.byKey, r.refusals = list.New(), map[rawKey]*list.Element{}, map[rawKey]refusal{}
	r.loads = map[rawKey]*rawLoad{}
}

// take acquires a kept copy, or is nil.
func (r *rawVersions) take(k rawKey) *Copy {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.byKey[k]
	if e == nil {
		return nil
	}
	cp := e.Value.(*Copy)
	if !cp.acquire() {
		return nil
	}
	r.order.MoveToFront(e)
	return cp
}

// load makes take succeed or returns why not. Requests for the same version share one load.
func (r *rawVersions) load(ctx context.Context, k rawKey, trackerName string) error {
	l, err := r.join(k, trackerName)
	if err != nil {
		return err
	}
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// join returns the running load of a version and starts one if there is none.
func (r *rawVersions) join(k rawKey, trackerName string) (*rawLoad, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.refusals[k]; ok && time.Now().Before(old.until) {
		return nil, old.err
	}
	if r.closed {
		return nil, context.Canceled
	}
	l := r.loads[k]
	if l == nil {
		l = &rawLoad{done: make(chan struct{})}
		r.loads[k] = l
		r.running.Go(func() { r.run(k, trackerName, l) })
	}
	return l, nil
}

func (r *rawVersions) run(k rawKey, trackerName string, l *rawLoad) {
	defer close(l.done)
	select {
	case r.tokens <- struct{}{}:
		defer func() { <-r.tokens }()
	case <-r.ctx.Done():
		l.err = r.ctx.Err()
		return
	}
	cp, err := r.catalog.open(r.ctx, trackerName, k.version)
	status := "loaded"
	if err != nil {
		status = "failed"
	}
	r.catalog.cfg.Metrics.Reloads.WithLabelValues(status, "version").Inc()
	l.err = err
	r.keep(k, cp, err)
}

// keep stores a load's outcome and evicts the versions beyond the limit.
func (r *rawVersions) keep(k rawKey, cp *Copy, err error) {
	var gone []*Copy
	r.mu.Lock()
	delete(r.loads, k)
	switch {
	case err != nil:
		if len(r.refusals) >= refusalsKept {
			clear(r.refusals)
		}
		r.refusals[k] = refusal{err, time.Now().Add(rawRefused)}
	case r.closed || r.byKey[k] != nil:
		gone = append(gone, cp)
	default:
		delete(r.refusals, k)
		r.byKey[k] = r.order.PushFront(cp)
		for r.order.Len() > rawKept {
			last := r.order.Back()
			old := r.order.Remove(last).(*Copy)
			delete(r.byKey, rawKey{old.Name, old.Version})
			gone = append(gone, old)
		}
	}
	r.mu.Unlock()
	for _, old := range gone {
		old.Release()
	}
}

// holding counts the uses of copies that are kept here.
func (r *rawVersions) holding() map[*Copy]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := map[*Copy]int64{}
	for e := r.order.Front(); e != nil; e = e.Next() {
		held[e.Value.(*Copy)]++
	}
	return held
}

// drop releases a copy that was taken out of service, or makes room.
func (r *rawVersions) drop(cp *Copy) {
	k := rawKey{cp.Name, cp.Version}
	r.mu.Lock()
	e := r.byKey[k]
	held := e != nil && e.Value.(*Copy) == cp
	if held {
		r.order.Remove(e)
		delete(r.byKey, k)
	}
	r.mu.Unlock()
	if held {
		cp.Release()
	}
}

func (r *rawVersions) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	r.running.Wait()
	r.mu.Lock()
	var gone []*Copy
	for e := r.order.Front(); e != nil; e = e.Next() {
		gone = append(gone, e.Value.(*Copy))
	}
	r.order.Init()
	clear(r.byKey)
	r.mu.Unlock()
	for _, cp := range gone {
		cp.Release()
	}
}
