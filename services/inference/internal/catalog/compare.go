package catalog

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/tracker"
)

const (
	// settleTime is how long the service may stay unready for the versions of its first scan.
	settleTime = 15 * time.Second
	// Scans are overdue after overduePolls intervals and overdueSlack, which a slow registry may need.
	overduePolls, overdueSlack = 3, time.Minute
)

// Report describes the result of one scan. Names are upper-case and sorted.
type Report struct {
	Reloaded, Unchanged []string
	Failed              []Failure
}

// Failure is an alias whose version could not be loaded.
type Failure struct{ Model, Alias, Version, Reason string }

// comparison is the result of one reading of the registry, and the loads it requires.
type comparison struct {
	models   map[string]bool // seen with an alias that is kept loaded
	unloaded []place
	loads    []*following
}

// Refresh compares all aliases, or only those of the model, with the tracker, loads what differs, and waits for the
// loads up to Config.Patience. via names the caller. A load still running then is reported as failed, and continues.
func (c *Catalog) Refresh(ctx context.Context, only, via string) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Patience)
	defer cancel()
	only = UpperName(only)
	cmp, err := c.compare(ctx, only, via)
	if err != nil {
		return Report{}, err
	}
	reloaded := map[string]bool{}
	for _, p := range cmp.unloaded {
		reloaded[p.model] = true
	}
	failures := map[place]Failure{}
	for _, f := range cmp.loads {
		if f.wait(ctx) {
			for _, name := range f.loaded {
				reloaded[name] = true
			}
			continue
		}
		if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
			return Report{}, err
		}
		for _, w := range c.wanting(f.key) {
			failures[w.place] = Failure{w.model, w.alias, w.version, "still loading after " + c.cfg.Patience.String() + "; the load continues, and GET /health shows its result"}
		}
	}
	for _, f := range c.Failures(only) {
		failures[place{f.Model, f.Alias}] = f
	}
	r := Report{Reloaded: slices.Sorted(maps.Keys(reloaded)), Failed: sortFailures(slices.Collect(maps.Values(failures)))}
	failed := map[string]bool{}
	for _, f := range r.Failed {
		failed[f.Model] = true
	}
	for name := range cmp.models {
		if !reloaded[name] && !failed[name] {
			r.Unchanged = append(r.Unchanged, name)
		}
	}
	slices.Sort(r.Unchanged)
	return r, nil
}

// compare reads the registry, unloads aliases that it no longer has, and starts the loads that are due; it waits for
// none. Polls skip versions that failed recently.
func (c *Catalog) compare(ctx context.Context, only, via string) (comparison, error) {
	select {
	case c.pass <- struct{}{}:
		defer func() { <-c.pass }()
	case <-ctx.Done():
		return comparison{}, ctx.Err()
	}
	only = UpperName(only)
	wants, err := c.registered(ctx, only)
	scanned := time.Now()
	if err != nil {
		c.setState(func(s *TrackerState) {
			if ctx.Err() == nil {
				s.LastError = describeScanFailure(err)
			}
		})
		c.cfg.Metrics.Reloads.WithLabelValues("unreachable", via).Inc()
		return comparison{}, err
	}
	known := len(wants) > 0
	wants = c.keepLoaded(wants, only)
	if only != "" && !known && c.Table().Model(only) == nil {
		return comparison{}, ErrUnknownModel
	}
	if via == "request" {
		c.readmit(only)
	}
	cmp := comparison{models: map[string]bool{}}
	cmp.unloaded = c.unload(only, via)
	started := map[rawKey]bool{}
	for _, w := range wants {
		cmp.models[w.model] = true
		if c.holds(w) || via != "request" && !c.dueAgain(w) || started[w.key()] {
			continue
		}
		started[w.key()] = true
		if f := c.follow(w, via); f != nil {
			cmp.loads = append(cmp.loads, f)
		}
	}
	c.mu.Lock()
	for name := range cmp.models {
		c.compared[name] = scanned
	}
	first := c.state.LastScan.IsZero()
	c.state = TrackerState{LastScan: scanned, Settled: c.state.Settled}
	closed := c.closed
	if first && !closed {
		c.loads.Go(func() { c.settle(cmp.loads) })
	}
	c.mu.Unlock()
	c.evict()
	return cmp, nil
}

// settle marks the catalog as settled once the loads of the first scan have ended, or have had the time to.
func (c *Catalog) settle(loads []*following) {
	limit := time.NewTimer(settleTime)
	defer limit.Stop()
	for _, f := range loads {
		select {
		case <-f.done:
			continue
		case <-limit.C:
		case <-c.ctx.Done():
			return
		}
		break
	}
	c.setState(func(s *TrackerState) { s.Settled = true })
}

// keepLoaded picks the aliases to keep loaded and remembers the versions of the others, so that a request for one of
// those need not query the tracker.
func (c *Catalog) keepLoaded(wants []want, only string) (kept []want) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := maps.Clone(c.desired)
	maps.DeleteFunc(c.lazy, func(p place, _ want) bool { return only == "" || p.model == only })
	maps.DeleteFunc(c.desired, func(p place, _ want) bool { return only == "" || p.model == only })
	maps.DeleteFunc(c.compared, func(name string, _ time.Time) bool { return only == "" || name == only })
	if c.cfg.Resident > 0 {
		return c.keepResident(wants, before)
	}
	for _, w := range wants {
		if slices.Contains(c.cfg.Aliases, w.alias) {
			kept = append(kept, w)
			c.desired[w.place] = w
		} else {
			c.lazy[w.place] = w
		}
	}
	return kept
}

func (c *Catalog) setState(change func(*TrackerState)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.state)
}

// State is how the last scan went.
func (c *Catalog) State() TrackerState {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.state
	s.Overdue = !s.LastScan.IsZero() && time.Since(s.LastScan) > overduePolls*c.cfg.Poll+overdueSlack
	return s
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
		// The tracker's names are case-sensitive: loaded models know their case, else the platform's spelling is used.
		name := c.trackerName(only)
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
	delete(c.failures, w.place) // the alias has moved back to the loaded version
	return true
}

// dueAgain reports whether a version that failed, or was taken out, may be loaded again without a request.
func (c *Catalog) dueAgain(w want) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.takenOut[w.key()] != nil {
		return false
	}
	f, ok := c.failures[w.place]
	return !ok || f.version != w.version || time.Now().After(f.retryAt)
}

// unload drops the aliases that the registry no longer has.
func (c *Catalog) unload(only, via string) []place {
	var gone []place
	c.mu.Lock()
	wanted := func(p place) bool { // a request may have added some since the registry was read
		_, ok := c.desired[p]
		return ok
	}
	for p := range c.failures {
		if !wanted(p) && (only == "" || p.model == only) {
			delete(c.failures, p)
		}
	}
	for name, e := range c.table.Load().models {
		for alias := range e.Aliases {
			if p := (place{name, alias}); !wanted(p) && (only == "" || name == only) {
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

// describeScanFailure returns the public description of a failed scan; the error itself contains addresses.
func describeScanFailure(err error) string {
	if errors.Is(err, tracker.ErrUnavailable) {
		return "the tracker cannot be reached; the log has the cause"
	}
	return "the tracker's aliases cannot be read; the log has the cause"
}
