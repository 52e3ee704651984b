package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/inference/internal/artifact"
	"github.com/mlp-platform/platform/services/inference/internal/batch"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
	"github.com/mlp-platform/platform/services/inference/internal/model"
	"github.com/mlp-platform/platform/services/inference/internal/pyfunc"
	"github.com/mlp-platform/platform/services/inference/internal/trial"
)

const (
	// loadTimeout limits one download, trial and opening.
	loadTimeout = 10 * time.Minute
	// A version that failed to load is tried again by polls after retryFirst, doubled up to retryMost.
	retryFirst, retryMost = 30 * time.Second, 10 * time.Minute
)

type failure struct {
	version string
	reason  string
	tries   int
	retryAt time.Time
	// unreachable is set if the tracker failed, not the version.
	unreachable bool
	// ownFault is set if the version itself failed, as one that hangs does: it loads behind all others.
	ownFault bool
}

// following is the load of one version on its way to the aliases that name it.
type following struct {
	key    rawKey // the tracker's name and the version
	model  string
	began  time.Time
	done   chan struct{}
	loaded []string // upper-case names of the models that got it; may be read once done is closed

	// All below is guarded by the catalog's mu.
	waiting map[place]int   // requests that wait for the alias
	slots   map[place]*Slot // where the version was put
	ended   bool            // each request that still waits holds one use of its alias's slot, if there is one
}

// wait reports whether the load ended before ctx did.
func (f *following) wait(ctx context.Context) bool {
	select {
	case <-f.done:
		return true
	case <-ctx.Done():
	}
	select {
	case <-f.done: // a load that ended while another was waited for
		return true
	default:
		return false
	}
}

// await waits for the load until ctx ends, and acquires the slot of the alias that it was put in; nil if it was put in
// none. The load keeps the copy for those that wait, so that nothing makes room with it before they have it. The caller
// was counted in waiting.
func (c *Catalog) await(ctx context.Context, f *following, p place) (s *Slot, inTime bool) {
	if f.wait(ctx) {
		return f.slots[p], true // ended is set, and nothing changes any more
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.ended {
		return f.slots[p], true
	}
	f.waiting[p]--
	return nil, false
}

// end is called with mu held, while the load still uses the copy: it acquires a slot for each request that waits.
func (f *following) end() {
	f.ended = true
	for p, s := range f.slots {
		if s.out.Load() { // taken out of service already
			delete(f.slots, p)
			continue
		}
		for range f.waiting[p] {
			s.acquire()
		}
	}
}

// follow starts loading a version, or joins the load that is on its way. It is nil when the catalog is closing.
func (c *Catalog) follow(w want, via string) *following {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.followLocked(w, via)
}

// followLocked is follow under mu.
func (c *Catalog) followLocked(w want, via string) *following {
	if c.closed {
		return nil
	}
	f := c.following[w.key()]
	if f == nil {
		f = &following{key: w.key(), model: w.model, began: time.Now(), done: make(chan struct{}), waiting: map[place]int{}, slots: map[place]*Slot{}}
		c.following[f.key] = f
		c.loads.Go(func() { c.load(f, via) })
	}
	return f
}

// load brings the aliases that name a version to it.
func (c *Catalog) load(f *following, via string) {
	defer close(f.done)
	cp, err := c.obtain(f)
	if cp != nil {
		defer func() {
			cp.Release()
			c.evict() // the load itself held the copy until now
		}()
	}
	told := map[place]bool{}
	for {
		// Aliases may have moved to or from the version while it was loading.
		c.mu.Lock()
		var next []want
		for p, w := range c.desired {
			if w.key() == f.key && !told[p] {
				next = append(next, w)
			}
		}
		if len(next) == 0 {
			delete(c.following, f.key)
			f.end()
			c.mu.Unlock()
			break
		}
		c.mu.Unlock()
		for _, w := range next {
			told[w.place] = true
			err := err
			if err == nil {
				err = checkAdmitted(w, cp)
			}
			switch {
			case err == nil:
				if c.put(w, cp, f, via) && !slices.Contains(f.loaded, w.model) {
					f.loaded = append(f.loaded, w.model)
				}
			case c.ctx.Err() == nil:
				c.failed(w, err, via)
			}
		}
	}
	if err := c.cfg.Artifacts.Trim(); err != nil {
		c.cfg.Log.Warn("model cache not trimmed", slog.Any("err", err))
	}
}

// put makes the alias hold the copy, unless it should hold something else now.
func (c *Catalog) put(w want, cp *Copy, f *following, via string) bool {
	if c.holds(w) || !cp.acquire() {
		return false
	}
	slot := newSlot(cp, w.alias, c.cfg.Metrics)
	c.mu.Lock()
	if c.desired[w.place] != w || c.takenOut[w.key()] != nil {
		c.mu.Unlock()
		slot.Release()
		return false
	}
	gone := c.swapLocked(w.place, w.tracker, slot)
	delete(c.failures, w.place)
	c.served[w.model] = true
	f.slots[w.place] = slot
	c.mu.Unlock()
	c.touch(slot)
	if gone != nil {
		gone.Release()
	}
	c.evict()
	c.cfg.Metrics.Reloads.WithLabelValues("loaded", via).Inc()
	c.cfg.Log.Info("alias loaded", slog.String("model", w.model), slog.String("alias", w.alias), slog.String("version", w.version),
		slog.String("digest", cp.Digest), slog.Bool("verified", cp.Verified), slog.String("via", via))
	c.notify(Event{Model: w.model, Alias: w.alias, Version: w.version})
	return true
}

// obtain acquires a copy of the version: one that is loaded already under another alias, or a new one.
func (c *Catalog) obtain(f *following) (*Copy, error) {
	if cp := c.loaded(f.model, f.key.model, f.key.version); cp != nil {
		return cp, nil
	}
	leave, err := c.queue.enter(c.ctx, f.model, c.rankOf(f.key))
	if err != nil {
		return nil, err
	}
	defer leave()
	return c.open(c.ctx, f.key.model, f.key.version)
}

// rankOf returns the queue rank of a load of the version.
func (c *Catalog) rankOf(k rawKey) rank {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.served[UpperName(k.model)]
	for p, w := range c.desired {
		if w.key() != k {
			continue
		}
		if f, ok := c.failures[p]; ok && f.version == k.version && f.ownFault {
			return rankFailed
		}
		known = known || w.digest != "" // the control plane admitted it
	}
	if known {
		return rankKnown
	}
	return rankNew
}

// loaded acquires the copy of a version that some alias or recent request holds.
func (c *Catalog) loaded(name, trackerName, version string) *Copy {
	if e := c.Table().Model(name); e != nil {
		for _, s := range e.Aliases {
			if s.Version == version && s.Tracker == trackerName && s.acquire() {
				return s.Copy
			}
		}
	}
	return c.raw.take(rawKey{name, version})
}

// open returns a new copy with one reference.
func (c *Catalog) open(ctx context.Context, name, version string) (*Copy, error) {
	if err := c.refuseTakenOut(rawKey{name, version}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	v, err := c.cfg.Tracker.GetModelVersion(ctx, name, version)
	if err != nil {
		return nil, fmt.Errorf("version %s: %w", version, err)
	}
	a, err := c.cfg.Artifacts.Fetch(ctx, v)
	if err != nil {
		return nil, err
	}
	if err := c.refuseDigest(rawKey{name, version}, a.Digest); err != nil {
		return nil, err
	}
	var opened atomic.Pointer[Copy]
	flavor, m, err := c.openModel(ctx, v, a, func() {
		if cp := opened.Load(); cp != nil { // else it was the warm-up, whose error has the cause
			c.takeOut(cp)
		}
	})
	if err != nil {
		return nil, err
	}
	cp := &Copy{
		Name: UpperName(v.Name), Tracker: v.Name, Version: v.Version, RunID: v.RunID, Flavor: flavor, Digest: a.Digest, Verified: a.Verified,
		DataOrigin: v.Tags["data_origin"], Dummy: v.Tags["dummy"] == "true", LoadedAt: time.Now().UTC(), Model: m,
		queue: batch.New(m, batch.Options{
			Sessions: c.cfg.Sessions, Rows: c.cfg.BatchRows, Wait: c.cfg.BatchWait,
			Waiting: c.cfg.Waiting * c.cfg.Sessions, // a request of many rows has as many jobs in the queue as there are sessions
			Observe: func(rows int) { c.cfg.Metrics.BatchRows.Observe(float64(rows)) },
		}),
		free: c.free,
	}
	if c.cfg.Resident > 0 {
		cp.idle = c.makeRoom
	}
	cp.refs.Store(1)
	opened.Store(cp)
	return cp, nil
}

// openModel opens a version where it is to run: at a scoring server if one is set up for it, else in this process once it
// has passed its trial.
func (c *Catalog) openModel(ctx context.Context, v tracker.ModelVersion, a artifact.Artifact, overran func()) (flavor string, m *model.Model, err error) {
	m, err = c.cfg.Pyfunc.Open(ctx, pyfunc.Version{Name: v.Name, Version: v.Version, Files: a, Rows: c.cfg.BatchRows})
	if m != nil || err != nil {
		return FlavorPython, m, err
	}
	o := model.Options{Threads: c.cfg.Threads, Engine: c.cfg.Engine, Rows: c.cfg.BatchRows, RunLimit: c.cfg.RunLimit, Overran: overran}
	if m = c.openPassed(ctx, a, o); m != nil {
		return FlavorONNX, m, nil
	}
	tried, err := c.cfg.Trials.Try(ctx, a, o, c.rankOf(rawKey{v.Name, v.Version}) == rankKnown)
	if err != nil {
		c.cfg.Metrics.CountTrial(metrics.TrialRefused)
		return "", nil, err
	}
	c.cfg.Metrics.CountTrial(metrics.TrialPassed)
	m, err = c.openTried(ctx, a.Digest, tried, o)
	return FlavorONNX, m, err
}

// openTried opens a model that has just passed its trial. One that fails to open here is not remembered as passed:
// otherwise every replica would open it in its own process, before a trial.
func (c *Catalog) openTried(ctx context.Context, digest string, tried trial.Result, o model.Options) (*model.Model, error) {
	conditions, conditionsErr := c.cfg.Trials.Conditions(o)
	o.Rows, o.Length, o.Tried = tried.Bounds.Rows, tried.Bounds.Length, true
	m, err := model.Open(tried.Files, o)
	if err != nil {
		return nil, err
	}
	if conditionsErr == nil && c.cfg.Passed != nil {
		c.cfg.Passed.Keep(ctx, digest, conditions, tried.Bounds)
	}
	return m, nil
}

// openPassed opens a model whose files have already passed a trial; nil if they have not, or if it does not open, since
// the trial does that in a separate process.
func (c *Catalog) openPassed(ctx context.Context, a artifact.Artifact, o model.Options) *model.Model {
	if c.cfg.Passed == nil {
		return nil
	}
	conditions, err := c.cfg.Trials.Conditions(o)
	if err != nil {
		return nil // the trial reports why
	}
	b, ok := c.cfg.Passed.Bounds(ctx, a.Digest, conditions)
	if !ok || b.Rows < 1 || b.Rows > max(o.Rows, 1) {
		return nil
	}
	o.Rows, o.Length, o.Tried = b.Rows, b.Length, true
	m, err := model.Open(trial.NewFolder(a), o)
	if err != nil {
		c.cfg.Log.WarnContext(ctx, "a model whose trial has passed does not open; it is tried again", slog.String("digest", a.Digest), slog.Any("err", err))
		return nil
	}
	c.cfg.Metrics.CountTrial(metrics.TrialKnown)
	return m
}

// failed records why an alias does not hold its version and reports it once per version and reason.
func (c *Catalog) failed(w want, err error, via string) {
	reason := Reason(err)
	c.mu.Lock()
	if c.desired[w.place] != w { // no longer wanted
		c.mu.Unlock()
		return
	}
	was, again := c.failures[w.place]
	again = again && was.version == w.version
	f := failure{version: w.version, reason: reason, tries: 1}
	if again {
		f.tries = was.tries + 1
	}
	wait := retryFirst << min(f.tries-1, 10)
	if errors.Is(err, tracker.ErrUnavailable) {
		wait, f.unreachable = 0, true // nothing is wrong with the version; the next poll may succeed
	}
	var server *model.ServerError
	if errors.As(err, &server) {
		wait = 0 // nor here
	}
	f.ownFault = wait > 0
	f.retryAt = time.Now().Add(min(wait, retryMost))
	c.failures[w.place] = f
	c.mu.Unlock()
	c.cfg.Metrics.Reloads.WithLabelValues("failed", via).Inc()
	if again && was.reason == reason {
		return
	}
	c.cfg.Log.Error("alias not loaded; what it held before stays in service", slog.String("model", w.model), slog.String("alias", w.alias),
		slog.String("version", w.version), slog.String("reason", reason))
	c.notify(Event{w.model, w.alias, w.version, reason})
}

// wanting lists the aliases that should hold a version.
func (c *Catalog) wanting(k rawKey) (out []want) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.desired {
		if w.key() == k {
			out = append(out, w)
		}
	}
	return out
}

// isLoading reports whether the alias's version is on its way for the first time.
func (c *Catalog) isLoading(p place) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, ok := c.desired[p]
	return ok && c.following[w.key()] != nil
}

// Follower is how well one model follows the registry.
type Follower struct {
	Model    string
	Compared time.Time // when its aliases were last compared with the registry
	// Loading is set while a version is on its way: which one, and since when. The one that began first counts.
	Loading string
	Since   time.Time
}

// Followers lists the models whose aliases are kept loaded, by name.
func (c *Catalog) Followers() []Follower {
	c.mu.Lock()
	defer c.mu.Unlock()
	byModel := map[string]*Follower{}
	for name, at := range c.compared {
		byModel[name] = &Follower{Model: name, Compared: at}
	}
	for _, f := range c.following {
		m := byModel[f.model]
		if m == nil {
			m = &Follower{Model: f.model}
			byModel[f.model] = m
		}
		if m.Loading == "" || f.began.Before(m.Since) {
			m.Loading, m.Since = f.key.version, f.began
		}
	}
	out := make([]Follower, 0, len(byModel))
	for _, f := range byModel {
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b Follower) int { return strings.Compare(a.Model, b.Model) })
	return out
}
