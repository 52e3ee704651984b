package catalog

import (
	"context"
	"log/slog"
	"slices"
	"time"
)

// Residency is how many of the registry's aliases are loaded. An alias beyond Config.Resident is known, and is loaded
// when a request asks for it; the one that was used least then makes room for it.
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

// Lazy reports whether an alias is known to the registry and is not loaded until a request asks for it.
func (c *Catalog) Lazy(name, alias string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.lazy[place{name, alias}]
	return ok
}

// ask acquires an alias that is not resident: it is loaded and followed from now on, until it must make room. A request
// that cannot wait so long is told to come again.
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
		f := c.follow(w, "request")
		if f == nil {
			return nil, trackerUnavailable("The service is shutting down; send the request again.")
		}
		if !f.wait(ctx) {
			return nil, trackerUnavailable("The version of the alias %s is being loaded; send the request again later.", p.alias).WithCause(ctx.Err())
		}
	}
}

// evict lets go of the aliases used least while more are loaded than may be. One that serves a request stays: then there
// are more for a while, and the next load or scan looks again.
func (c *Catalog) evict() {
	if c.cfg.Resident == 0 {
		return
	}
	var gone []*Slot
	c.mu.Lock()
	for c.residentLocked() > c.cfg.Resident {
		s := c.leastUsed()
		if s == nil {
			break
		}
		p := place{s.Name, s.Alias}
		if w, ok := c.desired[p]; ok {
			delete(c.desired, p)
			c.lazy[p] = w
		}
		gone = append(gone, c.swapLocked(p, "", nil))
	}
	c.mu.Unlock()
	for _, s := range gone {
		s.Release() // a request that has just acquired it keeps the copy open until it is done
		c.cfg.Metrics.Reloads.WithLabelValues("unloaded", "evicted").Inc()
		c.cfg.Log.Debug("alias unloaded to make room", slog.String("model", s.Name), slog.String("alias", s.Alias), slog.String("version", s.Version))
	}
}

// leastUsed is the slot that was used longest ago among those that serve nobody, or nil. A slot whose alias names another
// version by now is the last good one while that version loads, or because it cannot be loaded: it could not come back,
// so it stays. It is called with mu held.
func (c *Catalog) leastUsed() (least *Slot) {
	held := map[*Copy]int64{} // by slots
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
			if s.refs.Load() <= held[s.Copy] && (least == nil || s.used.Load() < least.used.Load()) {
				least = s
			}
		}
	}
	return least
}

// touch remembers that a slot was used.
func (c *Catalog) touch(s *Slot) {
	if c.cfg.Resident > 0 {
		s.used.Store(time.Now().UnixNano())
	}
}
