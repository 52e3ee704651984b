// Package catalog keeps the models loaded that the registry's aliases point to.
//
// A version is downloaded into a folder named by its digest, checked, tried in a separate process, opened, compared
// with its signature and warmed up before anything changes; then one pointer is swapped, and the old copy is closed
// after its last request. On any failure, the last good copy stays in service. An unreachable registry changes nothing.
//
// A comparison of the aliases with the registry (compare.go) starts the loads that are due and waits for none. Each
// version loads in a separate goroutine (follow.go) when its turn comes (queue.go), so that hung loads delay no model
// that has served before. A copy whose run takes too long is taken out (takeout.go).
package catalog

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/inference/internal/artifact"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
	"github.com/mlp-platform/platform/services/inference/internal/model"
	"github.com/mlp-platform/platform/services/inference/internal/pyfunc"
	"github.com/mlp-platform/platform/services/inference/internal/trial"
)

// Config of a catalog; all fields are required but Notify and Admissions.
type Config struct {
	Tracker   *tracker.Client
	Artifacts *artifact.Store
	Trials    *trial.Runner
	Pyfunc    *pyfunc.Servers
	Metrics   *metrics.Set
	Log       *slog.Logger
	Aliases   []string      // kept loaded; other versions load on first request
	Resident  int           // aliases loaded at a time, see Residency; 0: no limit
	Poll      time.Duration // between scans
	Patience  time.Duration // how long Refresh waits for the loads that it starts
	RunLimit  time.Duration // of one run; a copy that takes longer is taken out
	Threads   int           // of one run of a model
	Engine    runtime.Engine
	Sessions  int // runs of one copy at a time
	BatchRows int
	BatchWait time.Duration
	Waiting   int // requests of one model that may be inside at once
	// Admissions returns the versions that may serve Production; nil: the versions of the tracker's aliases.
	Admissions Admissions
	// Passed remembers which artifacts have passed their trial; nil: none.
	Passed Passed
	// Notify is called for each load and failed load. It must not block.
	Notify func(Event)
}

// Passed remembers the artifacts whose trial has passed, and how large a run of each may be. Without an answer there is a
// trial.
type Passed interface {
	Bounds(ctx context.Context, digest, conditions string) (b model.Bounds, ok bool)
	Keep(ctx context.Context, digest, conditions string, b model.Bounds)
}

// Event is a load or, with Reason, a failed one.
type Event struct{ Model, Alias, Version, Reason string }

// closeWait is how long Close waits for copies. A run that nothing can end must not keep the service from ending.
const closeWait = 10 * time.Second

// Catalog is safe for concurrent use.
type Catalog struct {
	cfg    Config
	table  atomic.Pointer[Table]
	pass   chan struct{} // holds a token while the registry is read
	raw    rawVersions
	ctx    context.Context // of loads: they outlive the request that began them
	cancel context.CancelFunc
	queue  *loadQueue     // of loads of versions that aliases name
	loads  sync.WaitGroup // loads, and the goroutines that wait for them
	wg     sync.WaitGroup // closes of copies
	// crowded is set while more aliases are loaded than may be because requests use them.
	crowded atomic.Bool

	mu        sync.Mutex // guards all below, and swapping table
	closed    bool       // no load starts any more
	desired   map[place]want
	following map[rawKey]*following
	failures  map[place]failure
	takenOut  map[rawKey]*Outage
	// unadmitted are the aliases that name a version which may not serve.
	unadmitted map[place]Failure
	lazy       map[place]want // the aliases that are not kept loaded
	compared   map[string]time.Time
	served     map[string]bool // models that have had a version loaded; they are never forgotten, as gates are not
	gates      map[string]*Gate
	state      TrackerState
}

type place struct{ model, alias string }

// want is the desired version of an alias.
type want struct {
	place
	tracker string // the tracker's name
	version string
	digest  string // of the files that were admitted; empty: any that are registered
}

func (w want) key() rawKey { return rawKey{w.tracker, w.version} }

// TrackerState is how the last scan went.
type TrackerState struct {
	LastScan  time.Time // of the last that was carried through; zero before
	LastError string    // of the last scan; "" when it succeeded
	// Settled is set once the versions that the first scan found were tried, or had the time to be.
	Settled bool
	// Overdue is set when scans have stopped: the last is older than several polls.
	Overdue bool
}

// New returns an empty catalog. Run or Refresh fills it; Close empties it.
func New(cfg Config) *Catalog {
	c := &Catalog{
		cfg: cfg, pass: make(chan struct{}, 1), queue: newLoadQueue(), served: map[string]bool{},
		desired: map[place]want{}, following: map[rawKey]*following{}, failures: map[place]failure{}, takenOut: map[rawKey]*Outage{}, unadmitted: map[place]Failure{},
		lazy: map[place]want{}, compared: map[string]time.Time{}, gates: map[string]*Gate{},
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.table.Store(&Table{models: map[string]*Entry{}})
	c.raw.init(c)
	return c
}

// Table returns the models loaded now.
func (c *Catalog) Table() *Table { return c.table.Load() }

// Run scans immediately, then every poll interval, and for every model sent on changed, until ctx ends. It waits for no
// load.
func (c *Catalog) Run(ctx context.Context, changed <-chan string) error {
	scan := func(only, via string) {
		if _, err := c.compare(ctx, only, via); err != nil && ctx.Err() == nil && !errors.Is(err, ErrUnknownModel) {
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

// ErrUnknownModel means that neither the tracker nor the table has the model.
var ErrUnknownModel = errors.New("unknown model")

// free closes an unused copy without blocking the caller that released it.
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
	gone := c.swapLocked(p, trackerName, slot)
	c.mu.Unlock()
	if gone != nil {
		gone.Release()
	}
}

// swapLocked is swap under mu; the caller releases the returned slot once mu is free.
func (c *Catalog) swapLocked(p place, trackerName string, slot *Slot) (gone *Slot) {
	old := c.table.Load()
	next := &Table{models: maps.Clone(old.models)}
	e := &Entry{Name: p.model, Tracker: trackerName, Aliases: map[string]*Slot{}, Gate: c.gate(p.model)}
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
	return gone
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

// Reason is the reported reason why a version is not loaded: a slug where there is one, then the sentence.
func Reason(err error) string {
	var server *model.ServerError
	switch {
	case errors.As(err, &server):
		return "scoring_unavailable: " + err.Error()
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

// Close ends the loads, releases every copy and waits until all are closed. Requests must have ended.
func (c *Catalog) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.loads.Wait()
	for name, e := range c.Table().models {
		for alias := range e.Aliases {
			c.swap(place{name, alias}, "", nil)
		}
	}
	c.raw.close()
	closed := make(chan struct{})
	go func() {
		c.wg.Wait()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(closeWait):
		c.cfg.Log.Error("models not closed: a run does not end")
	}
}
