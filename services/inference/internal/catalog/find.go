package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
)

// Find acquires the slot that a request means: version before alias before Production. Its errors are
// problems. The caller releases the slot.
func (c *Catalog) Find(ctx context.Context, name, alias, version string) (*Slot, error) {
	if version != "" {
		return c.byVersion(ctx, name, version)
	}
	canonical := Production
	if alias != "" {
		var ok bool
		if canonical, ok = CanonicalAlias(alias); !ok {
			return nil, c.notLoaded(name, fmt.Sprintf("there is no alias %q; the aliases are %s", problem.Shorten(alias), strings.Join(Aliases, ", ")))
		}
	}
	if s := c.Acquire(name, canonical); s != nil {
		return s, nil
	}
	switch {
	case c.cfg.Resident > 0:
		return c.ask(ctx, place{name, canonical})
	case !slices.Contains(c.cfg.Aliases, canonical):
		return c.byAlias(ctx, name, canonical)
	}
	return nil, c.absence(c.Table().Model(name), name, canonical)
}

// Loaded acquires the slot of Production, or of the version, if it is loaded now. It loads nothing. Its errors are
// problems. The caller releases the slot.
func (c *Catalog) Loaded(name, version string) (*Slot, error) {
	if version == "" {
		if s := c.Acquire(name, Production); s != nil {
			return s, nil
		}
		return nil, c.absence(c.Table().Model(name), name, Production)
	}
	if cp := c.loaded(name, c.trackerName(name), version); cp != nil {
		return newSlot(cp, "", c.cfg.Metrics), nil
	}
	return nil, c.notLoaded(name, fmt.Sprintf("its version %s is not loaded; a request for it loads it, if it exists", problem.Shorten(version)))
}

// Acquire acquires the slot that is loaded under an alias now, or returns nil.
func (c *Catalog) Acquire(name, alias string) *Slot {
	for {
		e := c.Table().Model(name)
		if e == nil || e.Aliases[alias] == nil {
			return nil
		}
		// The copy may be on its way out between the two steps; then the table has the next one.
		if s := e.Aliases[alias]; s.acquire() {
			c.touch(s)
			return s
		}
	}
}

// absence returns the problem of an alias that is not loaded. A model is known to be missing only once the registry has
// been read: until then, and while it does not deliver a version, the same request may succeed later.
func (c *Catalog) absence(e *Entry, name, alias string) error {
	p := place{name, alias}
	c.mu.Lock()
	f, failed := c.failures[p]
	state := c.state
	_, lazy := c.lazy[p]
	c.mu.Unlock()
	switch {
	case failed && f.unreachable:
		return trackerUnavailable("Version %s of the alias %s is not loaded: the tracker did not deliver it; send the request again later.", f.version, alias)
	case failed:
		return c.notLoaded(name, fmt.Sprintf("version %s of its alias %s could not be loaded: %s", f.version, alias, f.reason))
	case state.LastScan.IsZero() && state.LastError != "":
		return trackerUnavailable("The tracker could not be reached since the service started, so it is not known which models there are; send the request again later.")
	case state.LastScan.IsZero():
		return trackerUnavailable("The service has just started and is still reading the tracker and loading what it names; send the request again later.")
	case c.isLoading(p):
		return trackerUnavailable("The version of the alias %s is being loaded; send the request again later.", alias)
	case lazy:
		return c.notLoaded(name, fmt.Sprintf("the version of its alias %s is not loaded now; a prediction loads it", alias))
	case e == nil:
		return c.notLoaded(name, "the registry has no such model with an alias that is served; check the name")
	}
	return c.notLoaded(name, fmt.Sprintf("it has no version with the alias %s", alias))
}

func trackerUnavailable(format string, a ...any) *problem.Error {
	return fault.TrackerUnavailable.Errorf(format, a...).After(time.Second)
}

// maxNamed limits the models that an error names.
const maxNamed = 5

func (c *Catalog) notLoaded(name, why string) error {
	loaded := c.loadedNames()
	detail := fmt.Sprintf("Model %s is not loaded: %s.", problem.Shorten(name), why)
	if len(loaded) == 0 {
		detail += " Nothing is loaded."
	} else {
		detail += " Loaded are " + strings.Join(loaded[:min(len(loaded), maxNamed)], ", ")
		if more := len(loaded) - maxNamed; more > 0 {
			detail += fmt.Sprintf(" and %d more; GET /models lists them", more)
		}
		detail += "."
	}
	return fault.ModelNotLoaded.New(detail).With(map[string]any{"loaded": loaded})
}

// loadedNames lists NAME@Alias.
func (c *Catalog) loadedNames() []string {
	out := []string{}
	for name, e := range c.Table().models {
		for alias := range e.Aliases {
			out = append(out, name+"@"+alias)
		}
	}
	slices.Sort(out)
	return out
}

// byAlias serves an alias that is not kept loaded: its version, as of the last scan, loads as a bare one
// would.
func (c *Catalog) byAlias(ctx context.Context, name, alias string) (*Slot, error) {
	c.mu.Lock()
	w, ok := c.lazy[place{name, alias}]
	c.mu.Unlock()
	if !ok {
		return nil, c.absence(c.Table().Model(name), name, alias)
	}
	s, err := c.byVersion(ctx, name, w.version)
	if err != nil {
		return nil, err
	}
	if err := checkAdmitted(w, s.Copy); err != nil {
		s.Release()
		return nil, c.notLoaded(name, Reason(err))
	}
	return newSlot(s.Copy, alias, c.cfg.Metrics), nil
}

// GateOf is the gate of a model that TrackerOf knows; else nil.
func (c *Catalog) GateOf(name string) *Gate {
	if e := c.Table().Model(name); e != nil {
		return e.Gate
	}
	if c.TrackerOf(name) == "" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gate(name)
}

// TrackerOf is the tracker's name of a model that is loaded, or may be; else empty.
func (c *Catalog) TrackerOf(name string) string {
	if e := c.Table().Model(name); e != nil {
		return e.Tracker
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, alias := range Aliases {
		p := place{name, alias}
		if w, ok := c.desired[p]; ok { // on its way, or failed
			return w.tracker
		}
		if w, ok := c.lazy[p]; ok {
			return w.tracker
		}
	}
	return ""
}

func (c *Catalog) trackerName(name string) string {
	return cmp.Or(c.TrackerOf(name), TrackerName(name))
}

// maxVersion limits the digits of a version number.
const maxVersion = 18

func (c *Catalog) byVersion(ctx context.Context, name, version string) (*Slot, error) {
	if len(version) > maxVersion || strings.Trim(version, "0123456789") != "" {
		return nil, c.notLoaded(name, fmt.Sprintf("%q is no version number", problem.Shorten(version)))
	}
	trackerName := c.trackerName(name)
	for {
		if cp := c.loaded(name, trackerName, version); cp != nil {
			return newSlot(cp, "", c.cfg.Metrics), nil
		}
		if err := c.raw.load(ctx, rawKey{name, version}, trackerName); err != nil {
			return nil, c.lazyFault(name, fmt.Sprintf("the registry has no version %s of it", version), err)
		}
	}
}

// lazyFault distinguishes a version that does not exist from one that is unavailable now.
func (c *Catalog) lazyFault(name, absent string, err error) error {
	switch {
	case errors.Is(err, tracker.ErrNotFound):
		return c.notLoaded(name, absent)
	case errors.Is(err, tracker.ErrUnavailable):
		return trackerUnavailable("This version is not loaded, and the tracker cannot be reached to load it; send the request again later.").WithCause(err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return problem.From(err)
	}
	return c.notLoaded(name, Reason(err))
}

// Failures lists the aliases that do not hold their version, or hold one whose scoring server does not answer, of all
// models or one (upper-case).
func (c *Catalog) Failures(only string) []Failure {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := []Failure{}
	for p, f := range c.failures {
		if only == "" || p.model == only {
			out = append(out, Failure{p.model, p.alias, f.version, f.reason})
		}
	}
	for p, f := range c.unadmitted {
		if _, failed := c.failures[p]; !failed && (only == "" || p.model == only) {
			out = append(out, f)
		}
	}
	for name, e := range c.table.Load().models {
		if only != "" && name != only {
			continue
		}
		for alias, s := range e.Aliases {
			if _, failed := c.failures[place{name, alias}]; failed || s.Flavor != FlavorPython {
				continue
			}
			if why := s.Model.Fault(); why != "" {
				out = append(out, Failure{name, alias, s.Version, why})
			}
		}
	}
	return sortFailures(out)
}

func sortFailures(out []Failure) []Failure {
	slices.SortFunc(out, func(a, b Failure) int { return strings.Compare(a.Model+"\x00"+a.Alias, b.Model+"\x00"+b.Alias) })
	return out
}

// Slots lists the copies loaded under aliases, by name, then in the order of Aliases.
func (c *Catalog) Slots() []*Slot {
	var out []*Slot
	t := c.Table()
	for _, e := range t.models {
		for _, alias := range Aliases {
			if s := e.Aliases[alias]; s != nil {
				out = append(out, s)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b *Slot) int { return strings.Compare(a.Name, b.Name) })
	return out
}
