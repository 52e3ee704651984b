package registry

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
)

const (
	// followEvery limits how long a model logged at the tracker takes to be listed.
	followEvery = 30 * time.Second
	// lookEvery limits queries to the tracker for unknown names.
	lookEvery = time.Second
)

// trackerLooks are queries between two rounds of FollowTracker, made for callers that request a model logged since the
// last round.
type trackerLooks struct {
	mu     sync.Mutex // guards the fields below; held during a query, so that concurrent callers wait for its result
	client *tracker.Client
	last   time.Time
}

// Tracked is a model that the tracker may hold: one of the repository, or an external one, logged with a plain client
// and without a definition.
type Tracked struct {
	ID          string
	TrackerName string
	External    bool
}

// FollowTracker updates the external models until ctx ends. If the tracker is unavailable the known ones stay.
func (r *Registry) FollowTracker(ctx context.Context, c *tracker.Client) error {
	r.looks.mu.Lock()
	r.looks.client = c
	r.looks.mu.Unlock()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		if err := r.readTracker(ctx, c); err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, "external models are unknown: the tracker cannot be read", slog.Any("err", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (r *Registry) readTracker(ctx context.Context, c *tracker.Client) error {
	var names []string
	for m, err := range c.SearchRegisteredModels(ctx, "") {
		if err != nil {
			return err
		}
		names = append(names, m.Name)
	}
	r.SetTracked(names)
	return nil
}

// SetTracked sets the tracker's model names. Names that cannot be an id of the platform are left out; of two that
// differ only in case the first one counts.
func (r *Registry) SetTracked(names []string) {
	external := map[string]string{}
	for _, name := range slices.Sorted(slices.Values(names)) {
		id := ID(name)
		if _, taken := external[id]; !taken && ValidName(name) {
			external[id] = name
		}
	}
	r.tracked.Store(&external)
}

// External lists the external models by id.
func (r *Registry) External() []Tracked {
	names := r.tracked.Load()
	if names == nil {
		return nil
	}
	defined := map[string]bool{}
	for _, m := range r.Repo().Models {
		defined[m.TrackerName()] = true
	}
	out := []Tracked{}
	for _, id := range slices.Sorted(maps.Keys(*names)) {
		name := (*names)[id]
		if _, ok := r.Find(id); !ok && !defined[name] {
			out = append(out, Tracked{ID: id, TrackerName: name, External: true})
		}
	}
	return out
}

// FindExternal returns the external model of that name in any case.
func (r *Registry) FindExternal(name string) (Tracked, bool) {
	external := r.External()
	i := slices.IndexFunc(external, func(t Tracked) bool { return strings.EqualFold(t.ID, name) })
	if i < 0 {
		return Tracked{}, false
	}
	return external[i], true
}

// FindTracked returns the model of that name in any case, even an external one.
func (r *Registry) FindTracked(name string) (Tracked, bool) {
	if m, ok := r.Find(name); ok {
		return Tracked{ID: m.ID(), TrackerName: m.TrackerName()}, true
	}
	return r.FindExternal(name)
}

// LookUpTracked is FindTracked, but queries the tracker for a name that was not there a moment ago: the model may have
// been logged since, and another replica may have listed it.
func (r *Registry) LookUpTracked(ctx context.Context, name string) (Tracked, bool) {
	t, ok := r.FindTracked(name)
	if ok || !ValidName(name) {
		return t, ok
	}
	r.looks.mu.Lock()
	defer r.looks.mu.Unlock()
	if t, ok = r.FindTracked(name); ok || r.looks.client == nil || time.Since(r.looks.last) < lookEvery {
		return t, ok
	}
	if err := r.readTracker(ctx, r.looks.client); err != nil {
		r.log.WarnContext(ctx, "external models may be missing: the tracker cannot be read", slog.Any("err", err))
	}
	r.looks.last = time.Now() // a tracker that does not answer is not queried again immediately
	return r.FindTracked(name)
}

// RequireTracked is LookUpTracked, with the problem 400 of Require.
func (r *Registry) RequireTracked(ctx context.Context, name string) (Tracked, error) {
	if t, ok := r.LookUpTracked(ctx, name); ok {
		return t, nil
	}
	_, err := r.Require(name)
	return Tracked{}, err
}

// TrackedFromPath returns the model that the path names, even an external one; the error is 404.
func (r *Registry) TrackedFromPath(c echo.Context) (Tracked, error) {
	if t, ok := r.LookUpTracked(c.Request().Context(), c.Param("model")); ok {
		return t, nil
	}
	_, err := r.FromPath(c)
	return Tracked{}, err
}

// noDefinition states that an external model lacks a definition, which training needs.
func noDefinition(t Tracked) string {
	return fmt.Sprintf("Model %s is external: the tracker holds it, and no definition of it exists in the model repository.", t.ID)
}

// requireDefinition returns the problem 400 for an external model, nil for any other name.
func (r *Registry) requireDefinition(name string) error {
	if t, ok := r.FindExternal(name); ok {
		return fault.UnknownModel.New(noDefinition(t))
	}
	return nil
}
