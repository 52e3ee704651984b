// Package catalog keeps the models loaded that the registry's aliases point to.
//
// A version is downloaded into a folder named by its digest, checked, opened, compared with its
// signature and warmed up before anything changes; then one pointer is swapped, and the old copy is closed
// after its last request. Whatever fails leaves the last good copy in service. A registry that cannot be
// reached changes nothing.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/inference/internal/artifact"
	"github.com/mlp-platform/platform/services/inference/internal/batch"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
	"github.com/mlp-platform/platform/services/inference/internal/model"
)

// Config of a catalog; all fields are required but Notify and Admissions.
type Config struct {
	Tracker   *tracker.Client
	Artifacts *artifact.Store
	Metrics   *metrics.Set
	Log       *slog.Logger
	Aliases   []string      // kept loaded; other versions load when first asked for
	Poll      time.Duration // between scans
	Threads   int           // of one run of a model
	Sessions  int           // runs of one copy at a time
	BatchRows int
	BatchWait time.Duration
	Waiting   int // requests of one model that may be inside at once
	// Admissions says which versions may serve Production; nil: those that the tracker's aliases name.
	Admissions Admissions
	// Notify is called for each load and failed load. It must not block.
	Notify func(Event)
}

// Event is a load or, with Reason, a failed one.
type Event struct{ Model, Alias, Version, Reason string }

const (
	// loadTimeout limits one download, opening and warm-up.
	loadTimeout = 10 * time.Minute
	// loadsAtOnce limits concurrent loads: one may wait for the network while another opens.
	loadsAtOnce = 2
	// A version that failed to load is tried again by polls after retryFirst, doubled up to retryMost.
	retryFirst, retryMost = 30 * time.Second, 10 * time.Minute
)

// Catalog is safe for concurrent use.
type Catalog struct {
	cfg   Config
	table atomic.Pointer[Table]
	pass  chan struct{} // holds a token while a scan runs
	raw   rawVersions
	wg    sync.WaitGroup // closes of copies

	mu       sync.Mutex // guards all below, and swapping table
	failures map[place]failure
	// unadmitted are the aliases that name a version which may not serve.
	unadmitted map[place]Failure
	lazy       map[place]string // versions of the aliases that are not kept loaded
	gates      map[string]*Gate
	state      TrackerState
}

type place struct{ model, alias string }

type failure struct {
	version string
	reason  string
	tries   int
	retryAt time.Time
	// unreachable is set if the tracker failed, not the version.
	unreachable bool
}

// TrackerState is how the last scan went.
type TrackerState struct {
	LastScan  time.Time // of the last that was carried through; zero before
	LastError string    // of the last scan; "" when it succeeded
}

// New returns an empty catalog. Run or Refresh fills it; Close empties it.
func New(cfg Config) *Catalog {
	c := &Catalog{cfg: cfg, pass: make(chan struct{}, 1), failures: map[place]failure{}, unadmitted: map[place]Failure{}, lazy: map[place]string{}, gates: map[string]*Gate{}}
	c.table.Store(&Table{models: map[string]*Entry{}})
	c.raw.init(c)
	return c
}

// Table returns what is loaded now.
func (c *Catalog) Table() *Table { return c.table.Load() }

// Run scans immediately, then every poll interval, and for every model sent on changed, until ctx ends.
func (c *Catalog) Run(ctx context.Context, changed <-chan string) error {
	scan := func(only, via string) {
		if _, err := c.Refresh(ctx, only, via); err != nil && ctx.Err() == nil {
			c.cfg.Log.WarnContext(ctx, "aliases not compared with the tracker", slog.String("via", via), slog.Any("err", err))
		}
	}
	scan("", "start")
	ticker := time.NewTicker(c.cfg.Poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case name := <-changed:
			scan(name, "event")
		case <-ticker.C:
			scan("", "poll")
		}
	}
}

// Report is what one scan did. Names are upper-case and sorted.
type Report struct {
	Reloaded, Unchanged []string
	Failed              []Failure
}

// Failure is an alias whose version could not be loaded.
type Failure struct{ Model, Alias, Version, Reason string }

// ErrUnknownModel means that neither the tracker nor the table has the model.
var ErrUnknownModel = errors.New("unknown model")

// want is what an alias should hold.
type want struct {
	place
	tracker string // the tracker's name
	version string
	digest  string // of the files that were admitted; empty: any that are registered
}

// Refresh compares all aliases, or those of the model only, with the tracker and loads what differs.
// via says who asked; polls leave versions alone that failed shortly before.
func (c *Catalog) Refresh(ctx context.Context, only, via string) (Report, error) {
	select {
	case c.pass <- struct{}{}:
		defer func() { <-c.pass }()
	case <-ctx.Done():
		return Report{}, ctx.Err()
	}
	only = UpperName(only)
	wants, err := c.registered(ctx, only)
	scanned := time.Now()
	if err != nil {
		c.setState(func(s *TrackerState) {
			if ctx.Err() == nil {
				s.LastError = err.Error()
			}
		})
		c.cfg.Metrics.Reloads.WithLabelValues("unreachable", via).Inc()
		return Report{}, err
	}
	known := len(wants) > 0
	wants = c.keepLoaded(wants, only)
	if only != "" && !known && c.Table().Model(only) == nil {
		return Report{}, ErrUnknownModel
	}
	reloaded, seen := map[string]bool{}, map[string]bool{}
	for _, p := range c.unload(wants, only, via) {
		reloaded[p.model] = true
	}
	// Aliases of one version load one after the other, so that they share one copy.
	due := map[rawKey][]want{}
	for _, w := range wants {
		seen[w.model] = true
		if !c.holds(w) && (via != "poll" || c.dueAgain(w)) {
			k := rawKey{w.tracker, w.version}
			due[k] = append(due[k], w)
		}
	}
	var g errgroup.Group
	g.SetLimit(loadsAtOnce)
	var mu sync.Mutex // guards reloaded
	for _, same := range due {
		g.Go(func() error {
			for _, w := range same {
				if c.load(ctx, w, via) {
					mu.Lock()
					reloaded[w.model] = true
					mu.Unlock()
				}
			}
			return nil
		})
	}
	_ = g.Wait() // its functions answer nil
	if ctx.Err() == nil {
		// Only now: who waits for the first scan waits for what it loads.
		c.setState(func(s *TrackerState) { *s = TrackerState{LastScan: scanned} })
	}
	if len(due) > 0 {
		if err := c.cfg.Artifacts.Trim(); err != nil {
			c.cfg.Log.WarnContext(ctx, "model cache not trimmed", slog.Any("err", err))
		}
	}
	r := Report{Reloaded: slices.Sorted(maps.Keys(reloaded)), Failed: c.Failures(only)}
	failed := map[string]bool{}
	for _, f := range r.Failed {
		failed[f.Model] = true
	}
	for name := range seen {
		if !reloaded[name] && !failed[name] {
			r.Unchanged = append(r.Unchanged, name)
		}
	}
	slices.Sort(r.Unchanged)
	return r, ctx.Err()
}

// keepLoaded picks the aliases that are kept loaded and remembers what the others name, so that a request
// for one of those does not have to ask the tracker.
func (c *Catalog) keepLoaded(wants []want, only string) (kept []want) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.lazy, func(p place, _ string) bool { return only == "" || p.model == only })
	for _, w := range wants {
		if slices.Contains(c.cfg.Aliases, w.alias) {
			kept = append(kept, w)
		} else {
			c.lazy[w.place] = w.version
		}
	}
	return kept
}

func (c *Catalog) setState(change func(*TrackerState)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.state)
}

// registered queries the tracker for the versions that the aliases hold.
func (c *Catalog) registered(ctx context.Context, only string) ([]want, error) {
	var wants []want
	names := map[string]string{} // the tracker's, of each model
	add := func(m tracker.RegisteredModel) {
		name := UpperName(m.Name)
		names[name] = m.Name
		for alias, version := range m.Aliases {
			canonical, ok := CanonicalAlias(alias)
			if ok {
				wants = append(wants, want{place: place{name, canonical}, tracker: m.Name, version: version})
			}
		}
	}
	if only != "" {
		// The tracker's names have a case: what is loaded knows it, else it is the platform's own.
		name := TrackerName(only)
		if e := c.Table().Model(only); e != nil {
			name = e.Tracker
		}
		m, err := c.cfg.Tracker.GetRegisteredModel(ctx, name)
		if errors.Is(err, tracker.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		add(m)
		return c.admit(ctx, wants, names, only), nil
	}
	for m, err := range c.cfg.Tracker.SearchRegisteredModels(ctx, "") {
		if err != nil {
			return nil, err
		}
		add(m)
	}
	// Two tracker names that differ only in case are one model here; the platform's own form wins.
	slices.SortFunc(wants, func(a, b want) int {
		return strings.Compare(a.model+"\x00"+a.alias+"\x00"+ownForm(a), b.model+"\x00"+b.alias+"\x00"+ownForm(b))
	})
	wants = slices.CompactFunc(wants, func(a, b want) bool { return a.place == b.place })
	return c.admit(ctx, wants, names, only), nil
}

func ownForm(w want) string {
	if w.tracker == TrackerName(w.tracker) {
		return "0"
	}
	return "1" + w.tracker
}

func (c *Catalog) holds(w want) bool {
	e := c.Table().Model(w.model)
	if e == nil {
		return false
	}
	s := e.Aliases[w.alias]
	if s == nil || s.Version != w.version || s.Tracker != w.tracker {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.failures, w.place) // the alias has moved back to what is loaded
	return true
}

func (c *Catalog) dueAgain(w want) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.failures[w.place]
	return !ok || f.version != w.version || time.Now().After(f.retryAt)
}

// unload drops the aliases that the registry no longer has.
func (c *Catalog) unload(wants []want, only, via string) []place {
	wanted := make(map[place]bool, len(wants))
	for _, w := range wants {
		wanted[w.place] = true
	}
	var gone []place
	c.mu.Lock()
	for p := range c.failures {
		if !wanted[p] && (only == "" || p.model == only) {
			delete(c.failures, p)
		}
	}
	for name, e := range c.table.Load().models {
		for alias := range e.Aliases {
			if p := (place{name, alias}); !wanted[p] && (only == "" || name == only) {
				gone = append(gone, p)
			}
		}
	}
	c.mu.Unlock()
	for _, p := range gone {
		c.swap(p, "", nil)
		c.cfg.Metrics.Reloads.WithLabelValues("unloaded", via).Inc()
		c.cfg.Log.Info("alias unloaded: the registry no longer has it", slog.String("model", p.model), slog.String("alias", p.alias))
	}
	return gone
}

// load brings one alias to its version. It is false when that failed.
func (c *Catalog) load(ctx context.Context, w want, via string) bool {
	cp, err := c.obtain(ctx, w)
	if err == nil {
		if err = checkAdmitted(w, cp); err != nil {
			cp.Release()
		}
	}
	if err != nil {
		if ctx.Err() == nil {
			c.failed(w, err, via)
		}
		return false
	}
	c.swap(w.place, w.tracker, newSlot(cp, w.alias, c.cfg.Metrics))
	c.mu.Lock()
	delete(c.failures, w.place)
	c.mu.Unlock()
	c.cfg.Metrics.Reloads.WithLabelValues("loaded", via).Inc()
	c.cfg.Log.Info("alias loaded", slog.String("model", w.model), slog.String("alias", w.alias), slog.String("version", w.version),
		slog.String("digest", cp.Digest), slog.Bool("verified", cp.Verified), slog.String("via", via))
	c.notify(Event{Model: w.model, Alias: w.alias, Version: w.version})
	return true
}

// obtain acquires a copy of the version: one that is loaded already under another alias, or a new one.
func (c *Catalog) obtain(ctx context.Context, w want) (*Copy, error) {
	if cp := c.loaded(w.model, w.tracker, w.version); cp != nil {
		return cp, nil
	}
	return c.open(ctx, w.tracker, w.version)
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
	m, err := model.Open(a.Dir, c.cfg.Threads, c.cfg.BatchRows)
	if err != nil {
		return nil, err
	}
	cp := &Copy{
		Name: UpperName(v.Name), Tracker: v.Name, Version: v.Version, RunID: v.RunID, Digest: a.Digest, Verified: a.Verified,
		DataOrigin: v.Tags["data_origin"], Dummy: v.Tags["dummy"] == "true", LoadedAt: time.Now().UTC(), Model: m,
		queue: batch.New(m, batch.Options{
			Sessions: c.cfg.Sessions, Rows: c.cfg.BatchRows, Wait: c.cfg.BatchWait, Waiting: c.cfg.Waiting,
			Observe: func(rows int) { c.cfg.Metrics.BatchRows.Observe(float64(rows)) },
		}),
		free: c.free,
	}
	cp.refs.Store(1)
	return cp, nil
}

// free closes a copy that nobody uses any more, without holding up who released it.
func (c *Catalog) free(cp *Copy) {
	c.wg.Go(func() {
		cp.queue.Close()
		if err := cp.Model.Close(); err != nil {
			c.cfg.Log.Warn("model not closed", slog.String("model", cp.Name), slog.String("version", cp.Version), slog.Any("err", err))
		}
	})
}

// swap puts a slot, or nothing, in place and releases the copy that was there.
func (c *Catalog) swap(p place, trackerName string, slot *Slot) {
	c.mu.Lock()
	old := c.table.Load()
	next := &Table{models: maps.Clone(old.models)}
	e := &Entry{Name: p.model, Tracker: trackerName, Aliases: map[string]*Slot{}, Gate: c.gate(p.model)}
	var gone *Slot
	if was := old.models[p.model]; was != nil {
		e.Aliases = maps.Clone(was.Aliases)
		gone = was.Aliases[p.alias]
		if trackerName == "" {
			e.Tracker = was.Tracker
		}
	}
	delete(e.Aliases, p.alias)
	if slot != nil {
		e.Aliases[p.alias] = slot
	}
	next.models[p.model] = e
	if len(e.Aliases) == 0 {
		delete(next.models, p.model)
	}
	c.table.Store(next)
	c.mu.Unlock()
	if gone != nil {
		gone.Release()
	}
}

// gate is called with mu held. Gates outlive their entries, so that requests inside are not forgotten.
func (c *Catalog) gate(name string) *Gate {
	g := c.gates[name]
	if g == nil {
		g = &Gate{}
		c.gates[name] = g
	}
	return g
}

// failed records why an alias does not hold its version and reports it once per version and reason.
func (c *Catalog) failed(w want, err error, via string) {
	reason := Reason(err)
	c.mu.Lock()
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

// Reason is the reported reason why a version is not loaded: a slug where there is one, then the sentence.
func Reason(err error) string {
	switch {
	case errors.Is(err, runtime.ErrMissing):
		return "runtime_missing: " + err.Error()
	case errors.Is(err, tracker.ErrUnavailable):
		return "tracker_unavailable: the tracker did not deliver the version"
	}
	return err.Error()
}

func (c *Catalog) notify(e Event) {
	if c.cfg.Notify != nil {
		c.cfg.Notify(e)
	}
}

// Close releases every copy and waits until all are closed. Requests must have ended.
func (c *Catalog) Close() {
	for name, e := range c.Table().models {
		for alias := range e.Aliases {
			c.swap(place{name, alias}, "", nil)
		}
	}
	c.raw.close()
	c.wg.Wait()
}
