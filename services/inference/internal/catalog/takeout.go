package catalog

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/services/inference/internal/batch"
)

// Outage is a copy that was taken out of service because a run took too long. Its version stays out until an explicit
// reload: reloaded automatically, it would overrun again.
type Outage struct {
	Slots  []*Slot // where it was; the copy is closed, its description is not
	Reason string
	At     time.Time
}

// takenOutError is why a version that was taken out is not loaded again.
type takenOutError struct{ reason string }

func (e *takenOutError) Error() string { return e.reason }

// maxOutages limits the outages remembered, the oldest leaving first.
const maxOutages = 256

// takeOut is called during a run that takes too long, and so must not wait for anything.
func (c *Catalog) takeOut(cp *Copy) {
	if !cp.out.CompareAndSwap(false, true) {
		return
	}
	cp.queue.Stop(batch.ErrTakenOut)
	c.wg.Go(func() { c.remove(cp) })
}

// remove makes an overrunning copy unreachable. It is closed when its last run has ended.
func (c *Catalog) remove(cp *Copy) {
	key := rawKey{cp.Tracker, cp.Version}
	o := &Outage{At: time.Now().UTC(), Reason: fmt.Sprintf("taken_out: a run took longer than %s; POST /reload/%s tries the version again", c.cfg.RunLimit, cp.Name)}
	var gone []*Slot
	c.mu.Lock()
	for name, e := range c.table.Load().models {
		for alias, s := range e.Aliases {
			if s.Copy != cp {
				continue
			}
			p := place{name, alias}
			o.Slots = append(o.Slots, s)
			gone = append(gone, c.swapLocked(p, "", nil))
			c.failures[p] = failure{version: cp.Version, reason: o.Reason, tries: 1, ownFault: true}
		}
	}
	for len(c.takenOut) >= maxOutages {
		c.forgetOldestOutage()
	}
	c.takenOut[key] = o
	c.mu.Unlock()
	for _, s := range gone {
		s.Release()
	}
	c.raw.drop(cp)
	c.cfg.Metrics.TakenOut.WithLabelValues(cp.Name).Inc()
	c.cfg.Log.Error("model taken out of service", slog.String("model", cp.Name), slog.String("version", cp.Version), slog.String("reason", o.Reason))
	for _, s := range o.Slots {
		c.notify(Event{s.Name, s.Alias, s.Version, o.Reason})
	}
}

// forgetOldestOutage runs with mu held.
func (c *Catalog) forgetOldestOutage() {
	var oldest rawKey
	var at time.Time
	for k, o := range c.takenOut {
		if at.IsZero() || o.At.Before(at) {
			oldest, at = k, o.At
		}
	}
	delete(c.takenOut, oldest)
}

func (c *Catalog) refuseTakenOut(k rawKey) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.takenOut[k]; o != nil {
		return &takenOutError{o.Reason}
	}
	return nil
}

// readmit lets the versions of a model, or of all, be loaded again after they were taken out.
func (c *Catalog) readmit(only string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.takenOut, func(k rawKey, _ *Outage) bool { return only == "" || UpperName(k.model) == only })
}

// Outages lists the slots that were taken out and whose aliases still name the version, by name and alias.
func (c *Catalog) Outages() (out []*Slot, reasons map[*Slot]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	reasons = map[*Slot]string{}
	for k, o := range c.takenOut {
		for _, s := range o.Slots {
			if w, ok := c.desired[place{s.Name, s.Alias}]; ok && w.key() == k {
				out, reasons[s] = append(out, s), o.Reason
			}
		}
	}
	slices.SortFunc(out, func(a, b *Slot) int { return strings.Compare(a.Name+"\x00"+a.Alias, b.Name+"\x00"+b.Alias) })
	return out, reasons
}
