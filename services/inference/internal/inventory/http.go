// Package inventory lists the loaded models and reloads them on request.
package inventory

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/inference/internal/announce"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
)

// Handlers are the routes on loaded models.
type Handlers struct {
	catalog *catalog.Catalog
	events  *announce.Writer
}

// New returns the handlers.
func New(c *catalog.Catalog, events *announce.Writer) *Handlers { return &Handlers{c, events} }

// Health is GET /health.
func (h *Handlers) Health(c echo.Context) error {
	failures := h.catalog.Failures("")
	lastError := map[string]string{}
	for _, f := range failures {
		if _, have := lastError[f.Model]; !have || f.Alias == catalog.Production {
			lastError[f.Model] = f.Alias + ", version " + f.Version + ": " + f.Reason
		}
	}
	out := api.Health{Status: api.HealthStatusDegraded, Models: map[string]api.HealthModel{}}
	for _, s := range h.catalog.Slots() {
		m, ok := out.Models[s.Name]
		if !ok && s.Alias != catalog.Production {
			continue // Slots lists Production first
		}
		if !ok {
			m = api.HealthModel{Version: s.Version, RunId: s.RunID, Status: api.HealthModelStatusOk, Aliases: map[string]string{}}
			if e, bad := lastError[s.Name]; bad {
				m.LastError = &e
			}
		}
		m.Aliases[s.Alias] = s.Version
		out.Models[s.Name] = m
	}
	out.ModelsLoaded = len(out.Models)
	if out.ModelsLoaded > 0 {
		out.Status = api.HealthStatusOk
	}
	if len(failures) > 0 {
		out.Failed = ptr(loadFailures(failures))
	}
	r := h.catalog.Residency()
	out.Residency = &api.Residency{Resident: r.Resident, Known: r.Known, Max: r.Max}
	now := time.Now()
	state := h.catalog.State()
	t := api.TrackerState{Ok: state.LastError == "" && !state.LastScan.IsZero() && !state.Overdue}
	if !state.LastScan.IsZero() {
		t.LastScanAt = ptr(state.LastScan.UTC())
		t.LastScanSecondsAgo = ptr(secondsSince(state.LastScan, now))
	}
	if state.LastError != "" {
		t.LastError = &state.LastError
	}
	out.Tracker = &t
	out.Followers = ptr(describeFollowers(h.catalog.Followers(), now))
	return c.JSON(http.StatusOK, out)
}

func ptr[T any](v T) *T { return &v }

func secondsSince(at, now time.Time) float32 {
	return float32(now.Sub(at).Round(time.Millisecond).Seconds())
}

func describeFollowers(in []catalog.Follower, now time.Time) []api.Follower {
	out := make([]api.Follower, len(in))
	for i, f := range in {
		out[i] = api.Follower{Model: f.Model}
		if !f.Compared.IsZero() {
			out[i].ComparedSecondsAgo = ptr(secondsSince(f.Compared, now))
		}
		if f.Loading != "" {
			out[i].LoadingVersion, out[i].LoadingSeconds = ptr(f.Loading), ptr(secondsSince(f.Since, now))
		}
	}
	return out
}

func loadFailures(in []catalog.Failure) []api.LoadFailure {
	out := make([]api.LoadFailure, len(in))
	for i, f := range in {
		out[i] = api.LoadFailure{Model: f.Model, Alias: f.Alias, Version: ptr(f.Version), Reason: f.Reason}
	}
	return out
}

// Models is GET /models.
func (h *Handlers) Models(c echo.Context) error {
	only := catalog.Production
	switch q := c.QueryParam("alias"); q {
	case "":
	case "*":
		only = ""
	default:
		canonical, ok := catalog.CanonicalAlias(q)
		if !ok {
			return problem.Validation.Errorf("There is no alias %q; use *, Production, Canary or Staging.", problem.Shorten(q)).
				WithErrors(problem.Field{Loc: []string{"query", "alias"}, Msg: "expected *, Production, Canary or Staging"})
		}
		only = canonical
	}
	limit, err := service.PageLimit(c)
	if err != nil {
		return err
	}
	var after [2]string // name and alias of the last row before this page
	if _, err := service.Cursor(c, &after); err != nil {
		return err
	}
	out := []api.LoadedModel{}
	slots, reasons := h.catalog.Slots(), map[*catalog.Slot]string(nil)
	if only == "" { // versions taken out are not loaded, so only the complete list has them
		var gone []*catalog.Slot
		gone, reasons = h.catalog.Outages()
		slots = append(slots, gone...)
		slices.SortStableFunc(slots, compareSlots)
	}
	for _, s := range slots {
		if only != "" && s.Alias != only || !isAfter(s, after) {
			continue
		}
		if len(out) == limit {
			last := out[limit-1]
			c.Response().Header().Set("X-Next-Cursor", service.EncodeCursor(c.Path(), [2]string{last.ModelName, last.Alias}))
			break
		}
		m := describe(s)
		if reason, gone := reasons[s]; gone {
			m.Status, m.LastError = api.LoadedModelStatusTakenOut, &reason
		}
		out = append(out, m)
	}
	return c.JSON(http.StatusOK, out)
}

// compareSlots orders by name, then by the aliases' own order.
func compareSlots(a, b *catalog.Slot) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), slices.Index(catalog.Aliases, a.Alias)-slices.Index(catalog.Aliases, b.Alias))
}

// isAfter reports whether s comes after the row, in that order.
func isAfter(s *catalog.Slot, after [2]string) bool {
	if s.Name != after[0] {
		return s.Name > after[0]
	}
	return slices.Index(catalog.Aliases, s.Alias) > slices.Index(catalog.Aliases, after[1])
}

func describe(s *catalog.Slot) api.LoadedModel {
	m := api.LoadedModel{
		ModelName: s.Name, ModelVersion: s.Version, RunId: s.RunID, Status: api.LoadedModelStatusOk, Alias: s.Alias,
		Flavor: api.LoadedModelFlavor(s.Flavor), Digest: ptr(s.Digest), Verified: s.Verified, LoadedAt: s.LoadedAt, Dummy: ptr(s.Dummy),
		Inputs: []api.Column{},
	}
	if s.DataOrigin != "" {
		m.DataOrigin = ptr(s.DataOrigin)
	}
	if why := s.Model.TensorsOnly(); why != "" {
		m.TensorsOnly = &why
	}
	sc := s.Model.Schema()
	for _, col := range sc.Columns {
		in := api.Column{Name: col.Name, Kind: api.ColumnKind(col.Kind)}
		if col.Kind == schema.Vector {
			in.Length = ptr(col.Length)
		}
		if col.Optional {
			in.Optional = ptr(true)
		}
		m.Inputs = append(m.Inputs, in)
	}
	m.Output.Kind = api.OutputKind(sc.Output.Kind)
	if sc.Output.Unit != "" {
		m.Output.Unit = ptr(sc.Output.Unit)
	}
	if len(sc.Output.Labels) > 0 {
		m.Output.Labels = &sc.Output.Labels
	}
	return m
}

// Reload is POST /reload and POST /reload/{model_name}.
func (h *Handlers) Reload(c echo.Context) error {
	ctx := c.Request().Context()
	name := catalog.UpperName(c.Param("model_name"))
	target := "model:*"
	if name != "" {
		target = "model:" + name
	}
	r, err := h.catalog.Refresh(ctx, name, "request")
	if err != nil {
		h.events.Put(announce.Audit(ctx, "models.reload", target, "failed", map[string]any{"reason": err.Error()}))
		return reloadFault(name, err)
	}
	out := api.Reloaded{Reloaded: orEmpty(r.Reloaded), Count: len(r.Reloaded), Unchanged: orEmpty(r.Unchanged), Failed: loadFailures(r.Failed)}
	failed := map[string]bool{}
	for _, f := range r.Failed {
		failed[f.Model] = true
	}
	h.events.Put(announce.Audit(ctx, "models.reload", target, "ok", map[string]any{
		"reloaded": out.Reloaded, "failed": orEmpty(slices.Sorted(maps.Keys(failed))),
	}))
	return c.JSON(http.StatusOK, out)
}

func reloadFault(name string, err error) error {
	switch {
	case errors.Is(err, catalog.ErrUnknownModel):
		return fault.ModelNotLoaded.New("Model " + problem.Shorten(name) + " is not loaded, and the registry has no version of it with an alias that is served; check the name.")
	case errors.Is(err, tracker.ErrUnavailable):
		return fault.TrackerUnavailable.New("The tracker cannot be reached; what is loaded stays in service.").WithCause(err).After(time.Second)
	}
	var refused *tracker.Error
	if errors.As(err, &refused) {
		return problem.BadGateway.New("The tracker refused to list the models: " + refused.Message).WithCause(err)
	}
	return err
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
