package monitor

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/drift"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
	"github.com/mlp-platform/platform/services/inference/internal/owner"
)

// Limits of the status query's window.
const minWindow, maxWindow = 20, 5000

// Status is GET /drift/status, or for inputs /drift/input/status.
func (m *Monitor) Status(c echo.Context) error {
	ctx := c.Request().Context()
	model := catalog.UpperName(c.QueryParam("model"))
	alias, err := aliasOf(c.QueryParam("alias"), "query", "")
	if err != nil {
		return err
	}
	window, err := windowOf(c)
	if err != nil {
		return err
	}
	mode := drift.Mode(c.QueryParam("z_mode"))
	switch mode {
	case "":
		mode = drift.Spread
	case drift.Spread, drift.StandardError:
	default:
		return invalidQuery("z_mode", "expected spread or standard_error")
	}
	if window != DefaultWindow || mode != drift.Spread {
		leave, err := m.enter(ctx)
		if err != nil {
			return err
		}
		defer leave()
	}
	limit, err := service.PageLimit(c)
	if err != nil {
		return err
	}
	var after [2]string
	if _, err := service.Cursor(c, &after); err != nil {
		return err
	}
	baselines, err := m.subject.baselines(ctx)
	if err != nil {
		return storeFault(err)
	}
	places, err := m.places(ctx, baselines)
	if err != nil {
		return storeFault(err)
	}
	places = slices.DeleteFunc(places, func(p place) bool {
		return !owner.Visible(c, p.model) || model != "" && p.model != model || alias != "" && p.alias != alias || p.compare(place{after[0], after[1]}) <= 0
	})
	if len(places) > limit {
		places = places[:limit]
		last := places[limit-1]
		c.Response().Header().Set("X-Next-Cursor", service.EncodeCursor(c.Path(), [2]string{last.model, last.alias}))
	}
	out := []api.DriftStatus{}
	if err := m.evaluate(ctx, places, baselines, window, mode, func(st status) error {
		out = append(out, st.wire())
		return nil
	}); err != nil {
		return storeFault(err)
	}
	return c.JSON(http.StatusOK, out)
}

func (st *status) wire() api.DriftStatus {
	out := api.DriftStatus{
		Model: st.model, Alias: st.alias, Version: st.version, Status: api.DriftLevel(st.Status), Overall: api.DriftLevel(st.Overall),
		ZScore: st.Z, ZSe: st.ZSE, LiveMean: st.LiveMean, LiveStd: st.LiveStd, BaselineMean: st.BaselineMean, BaselineStd: st.BaselineStd,
		NSnapshots: st.snapshots, Measures: map[string]api.DriftMeasure{}, Recent: st.recent,
		NewestAt: st.newest,
	}
	for name, v := range st.Measures {
		out.Measures[name] = wireMeasure(v)
	}
	if st.inputs != nil {
		out.Statistic, out.Statistics = wireStatistics(st.inputs)
	}
	if st.DecidedBy != "" {
		out.DecidedBy = &st.DecidedBy
	}
	if st.Reason != "" {
		out.Reason = &st.Reason
	}
	if st.baseline != nil {
		out.NBaseline = st.baseline.n
		out.BaselineSetAt = &st.baseline.setAt
	}
	if out.Recent == nil {
		out.Recent = []any{}
	}
	return out
}

func wireMeasure(m drift.Measure) api.DriftMeasure {
	return api.DriftMeasure{Status: api.DriftLevel(m.Status), Value: m.Value, PValue: m.P}
}

func wireStatistics(r *drift.InputReport) (decisive *string, all *map[string]api.DriftStatistic) {
	if r.Statistic != "" {
		decisive = &r.Statistic
	}
	out := map[string]api.DriftStatistic{}
	for name, s := range r.Statistics {
		w := api.DriftStatistic{Status: api.DriftLevel(s.Status), Overall: api.DriftLevel(s.Overall), ZScore: s.Z, LiveMean: s.LiveMean, LiveStd: s.LiveStd,
			BaselineMean: s.BaselineMean, BaselineStd: s.BaselineStd, Measures: map[string]api.DriftMeasure{}}
		for measure, v := range s.Measures {
			w.Measures[measure] = wireMeasure(v)
		}
		out[name] = w
	}
	return decisive, &out
}

// finiteValue is v, or nil where JSON has no form for it.
func finiteValue(v float64) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return v
}

// SetBaseline is POST /drift/{model_name}/baseline, or for inputs /drift/input/{model_name}/baseline.
func (m *Monitor) SetBaseline(c echo.Context) error {
	p, err := m.chosen(c)
	if err != nil {
		return err
	}
	set, n, err := m.setBaseline(c.Request().Context(), p)
	var few errNotEnough
	switch {
	case errors.As(err, &few):
		return fault.NotEnoughSnapshots.Errorf("Model %s has %d recent predictions under %s; a baseline needs at least %d.", p.model, few.have, p.alias, drift.MinSnapshots)
	case errors.Is(err, errUnusable):
		return problem.Conflict.New("The recent " + m.subject.kind() + "s hold values that are not finite; reset them and collect new ones first.")
	case err != nil:
		return storeFault(err)
	}
	return c.JSON(http.StatusOK, api.DriftBaseline{Model: p.model, Alias: p.alias, N: n, Mean: set.Mean, Std: set.Std, SetAt: set.SetAt})
}

// Reset is POST /drift/{model_name}/reset, or for inputs /drift/input/{model_name}/reset.
func (m *Monitor) Reset(c echo.Context) error {
	p, err := m.chosen(c)
	if err != nil {
		return err
	}
	n, err := m.reset(c.Request().Context(), p)
	if err != nil {
		return storeFault(err)
	}
	return c.JSON(http.StatusOK, api.DriftReset{Deleted: int(n)})
}

// chosen is the model of the path and the alias of the body; one that is neither loaded nor has
// predictions or a baseline is 404.
func (m *Monitor) chosen(c echo.Context) (place, error) {
	var body api.AliasChoice
	if err := service.DecodeOptionalJSON(c, &body, true); err != nil {
		return place{}, err
	}
	given := ""
	if body.Alias != nil {
		given = *body.Alias
	}
	alias, err := aliasOf(given, "body", catalog.Production)
	if err != nil {
		return place{}, err
	}
	return m.known(c.Request().Context(), place{catalog.UpperName(c.Param("model_name")), alias})
}

const (
	// maxReads limits the concurrent reads that no memo answers. Each may keep a core busy for seconds, and every
	// client that may request predictions may send them.
	maxReads = 1
	// readWait is how long such a read waits for its turn; most take milliseconds.
	readWait = 5 * time.Second
)

// enter admits such a read, or refuses it.
func (m *Monitor) enter(ctx context.Context) (leave func(), err error) {
	t := time.NewTimer(readWait)
	defer t.Stop()
	select {
	case m.reads <- struct{}{}:
		return func() { <-m.reads }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-t.C:
		return nil, fault.Overloaded.New("Drift is being computed for other requests; ask again later, or with the default window and z_mode.").After(time.Second)
	}
}

// windowOf is the number of newest requests that a query selects.
func windowOf(c echo.Context) (int, error) {
	v := c.QueryParam("window")
	if v == "" {
		return DefaultWindow, nil
	}
	window, err := strconv.Atoi(v)
	if err != nil || window < minWindow || window > maxWindow {
		return 0, invalidQuery("window", "expected a whole number from 20 to 5000")
	}
	return window, nil
}

// known is the place, or 404.
func (m *Monitor) known(ctx context.Context, want place) (place, error) {
	baselines, err := m.subject.baselines(ctx)
	if err != nil {
		return place{}, storeFault(err)
	}
	places, err := m.places(ctx, baselines)
	if err != nil {
		return place{}, storeFault(err)
	}
	for _, p := range places {
		if p == want {
			return p, nil
		}
	}
	return place{}, fault.ModelNotLoaded.Errorf("Model %s is not loaded under %s and has no predictions or baseline there; check the name.", problem.Shorten(want.model), want.alias)
}

func aliasOf(given, where, standard string) (string, error) {
	if given == "" {
		return standard, nil
	}
	alias, ok := catalog.CanonicalAlias(given)
	if !ok {
		return "", problem.Validation.Errorf("There is no alias %q; use Production, Canary or Staging.", problem.Shorten(given)).
			WithErrors(problem.Field{Loc: []string{where, "alias"}, Msg: "expected Production, Canary or Staging"})
	}
	return alias, nil
}

func invalidQuery(name, msg string) error {
	return problem.Validation.New("The query parameter " + name + " is not valid: " + msg + ".").
		WithErrors(problem.Field{Loc: []string{"query", name}, Msg: msg})
}

func storeFault(err error) error {
	if postgres.Unavailable(err) {
		return fault.StoreUnavailable.New("The database cannot be reached; predictions continue, but drift is not available.").WithCause(err).After(time.Second)
	}
	return err
}
