package catalog

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/mlp-platform/platform/libs/problem"
)

// Residency counts the loaded aliases of the registry. An alias beyond Config.Resident is known, and is loaded by the
// first request for it, in place of the least recently used one.
type Residency struct {
	Resident, Known int
	Max             int // 0: no limit
}

// Residency counts the aliases of the last scan.
func (c *Catalog) Residency() Residency {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Residency{Resident: c.residentLocked(), Known: len(c.desired) + len(c.lazy), Max: c.cfg.Resident}
}

func (c *Catalog) residentLocked() (n int) {
	for _, e := range c.table.Load().models {
		n += len(e.Aliases)
	}
	return n
}

// keepResident picks the aliases that are loaded while their number is limited: those that were, and as many more of the
// kept aliases as there is room for. It is called with mu held; desired has no aliases of the models that wants are of.
func (c *Catalog) keepResident(wants []want, before map[place]want) (kept []want) {
	keep := func(w want) {
		kept = append(kept, w)
		c.desired[w.place] = w
	}
	var others []want
	for _, w := range wants {
		if _, ok := before[w.place]; ok {
			keep(w)
		} else {
			others = append(others, w)
		}
	}
	for _, alias := range Aliases { // Production first
		for _, w := range others {
			switch {
			case w.alias != alias:
			case slices.Contains(c.cfg.Aliases, alias) && len(c.desired) < c.cfg.Resident:
				keep(w)
			default:
				c.lazy[w.place] = w
			}
		}
	}
	return kept
}

// Lazy reports whether the registry has the alias and it stays unloaded until a request for it.
func (c *Catalog) Lazy(name, alias string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.lazy[place{name, alias}]
	return ok
}

// unreachable reports whether the alias is not loaded because the tracker did not deliver its version.
func (c *Catalog) unreachable(w want) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.failures[w.place]
	return ok && f.unreachable && f.version == w.version
}

// AcquireOrLoad acquires an alias that is loaded now. Of one that is not kept loaded it starts the load and returns nil.
func (c *Catalog) AcquireOrLoad(name, alias string) *Slot {
	if s := c.Acquire(name, alias); s != nil {
		return s
	}
	p := place{name, alias}
	c.mu.Lock()
	w, ok := c.lazy[p]
	if ok && c.cfg.Resident > 0 {
		delete(c.lazy, p)
		c.desired[p] = w
		c.followLocked(w, "request")
	}
	c.mu.Unlock()
	if !ok || c.cfg.Resident > 0 {
		return nil
	}
	cp := c.loaded(name, w.tracker, w.version)
	if cp == nil {
		_, _ = c.raw.join(rawKey{name, w.version}, w.tracker) // requests for the version get the reason
		return nil
	}
	if checkAdmitted(w, cp) != nil {
		cp.Release()
		return nil
	}
	return newSlot(cp, alias, c.cfg.Metrics)
}

// ask acquires an alias that is not resident: it is loaded and followed from now on, until it must make room. The load
// continues after the request's deadline.
func (c *Catalog) ask(ctx context.Context, p place) (*Slot, error) {
	for {
		c.mu.Lock()
		w, ok := c.lazy[p]
		if ok {
			delete(c.lazy, p)
			c.desired[p] = w
		} else {
			w, ok = c.desired[p] // another request was first
		}
		c.mu.Unlock()
		if !ok {
			return nil, c.absence(c.Table().Model(p.model), p.model, p.alias)
		}
		if s := c.Acquire(p.model, p.alias); s != nil {
			return s, nil
		}
		if !c.dueAgain(w) { // it failed shortly before
			return nil, c.absence(c.Table().Model(p.model), p.model, p.alias)
		}
		c.mu.Lock()
		f := c.followLocked(w, "request")
		if f != nil {
			f.waiting[p]++
		}
		c.mu.Unlock()
		if f == nil {
			return nil, trackerUnavailable("The service is shutting down; send the request again.")
		}
		switch s, inTime := c.await(ctx, f, p); {
		case s != nil:
			c.touch(s)
			return s, nil
		case !inTime && c.State().LastError == "":
			return nil, problem.From(ctx.Err())
		case !inTime || c.unreachable(w):
			return nil, trackerUnavailable("Version %s of the alias %s is not loaded: the tracker cannot be reached; send the request again later.", w.version, p.alias)
		}
	}
}

// evict lets go of the aliases used least while more are loaded than may be. One that serves a request stays: then there
// are more until a request ends, or the next load or scan looks again.
func (c *Catalog) evict() {
	if c.cfg.Resident == 0 {
		return
	}
	var gone []*Slot
	c.mu.Lock()
	c.crowded.Store(true) // a use that ends meanwhile evicts again
	crowded := false
	for c.residentLocked() > c.cfg.Resident {
		var s *Slot
		if s, crowded = c.leastUsed(); s == nil {
			break
		}
		crowded = false
		p := place{s.Name, s.Alias}
		if w, ok := c.desired[p]; ok {
			delete(c.desired, p)
			c.lazy[p] = w
		}
		gone = append(gone, c.swapLocked(p, "", nil))
	}
	c.crowded.Store(crowded)
	c.mu.Unlock()
	for _, s := range gone {
		c.raw.drop(s.Copy)
		s.Release() // a request that has just acquired it keeps the copy open until it is done
		c.cfg.Metrics.Reloads.WithLabelValues("unloaded", "evicted").Inc()
		c.cfg.Log.Debug("alias unloaded to make room", slog.String("model", s.Name), slog.String("alias", s.Alias), slog.String("version", s.Version))
	}
}

// makeRoom is called with each end of a use, and must not be with mu held: evict may have waited for it.
func (c *Catalog) makeRoom() {
	if c.crowded.Load() {
		c.evict()
	}
}

// leastUsed returns the least recently used slot among the idle ones, or nil. A slot whose alias now names another
// version is the last good one, while that version loads or because it cannot be loaded: it could not be loaded again,
// so it stays. busy is set if only slots in use could make room. Called with mu held.
func (c *Catalog) leastUsed() (least *Slot, busy bool) {
	held := c.raw.holding() // by recent requests for a version, then by slots too
	models := c.table.Load().models
	for _, e := range models {
		for _, s := range e.Aliases {
			held[s.Copy]++
		}
	}
	for _, e := range models {
		for _, s := range e.Aliases {
			if w, ok := c.desired[place{s.Name, s.Alias}]; ok && w.key() != (rawKey{s.Tracker, s.Version}) {
				continue
			}
			switch {
			case s.refs.Load() > held[s.Copy]:
				busy = true
			case least == nil || s.used.Load() < least.used.Load():
				least = s
			}
		}
	}
	return least, busy
}

// touch remembers that a slot was used.
func (c *Catalog) touch(s *Slot) {
	if c.cfg.Resident > 0 {
		s.used.Store(time.Now().UnixNano())
	}
}
