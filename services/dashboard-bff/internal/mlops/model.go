package mlops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/compose"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/figure"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
)

const (
	// maxName limits a model's name, in bytes: the tracker, which others write to as well, takes names of 256 characters.
	maxName = 1024
	// versionsShown are the newest versions of a model; of runsShown of them metrics and parameters are read.
	versionsShown = 100
	runsShown     = 20
	// runsAtOnce limits the calls of one request to the tracker.
	runsAtOnce = 8
	// movesShown are the newest moves of a model's aliases.
	movesShown = 100
)

// Model serves GET /api/v1/mlops/model/{name}.
func (v *Views) Model(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	name, err := nameFromPath(c)
	if err != nil {
		return err
	}
	view := v.pool.Begin(c)
	model := compose.Ask(view, v.sources.model, name)
	cost := compose.Ask(view, v.sources.cost, name)
	drift := compose.Ask(view, v.sources.driftOf, name)
	traffic := compose.Ask(view, v.sources.traffic, compose.None{})
	gate := compose.Ask(view, v.sources.gate, name)
	history := compose.Ask(view, v.sources.history, name)

	out := api.ModelDetail{Name: name, TrackerName: strings.ToLower(name)}
	stage := production
	if m, ok := model.Get(); ok {
		if !m.found {
			return unknownModel(name)
		}
		out.TrackerName = m.trackerName
		out.Versions = &m.versions
		if m.description != "" {
			out.Description = &m.description
		}
		_, at := m.position()
		stage = string(at)
	}
	if m, ok := cost.Get(); ok {
		out.Cost = m.round()
	}
	if d, ok := drift.Get(); ok {
		out.Drift = driftView(d, stage)
	}
	if rules, ok := traffic.Get(); ok {
		out.Traffic = trafficView(rules, name)
	}
	if g, ok := gate.Get(); ok {
		promotion := g.view(name)
		out.Promotion = &promotion
	}
	if moves, ok := history.Get(); ok {
		out.AliasHistory = historyView(moves)
	}
	return view.Answer(api.ModelView{Detail: out})
}

// nameFromPath returns the model of the path, in the platform's spelling.
func nameFromPath(c echo.Context) (string, error) {
	name := c.Param("name")
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '/' }) {
		return "", fault.ValidationFailed.Errorf("The model's name must be 1 to %d characters, without slashes and control characters.", maxName).
			WithErrors(problem.Field{Loc: []string{"path", "name"}, Msg: fmt.Sprintf("must be 1 to %d characters, without slashes and control characters", maxName)})
	}
	return modelName(name), nil
}

func unknownModel(name string) error {
	return fault.ModelNotFound.Errorf("The tracker has no model %s; GET /api/v1/mlops/registry lists those there are.", problem.Shorten(name))
}

// trackedModel is a model of the tracker with its versions.
type trackedModel struct {
	registered
	found    bool
	versions []api.ModelVersion // newest first
}

// trackedModel reads a model by its platform's name. found is false for one that the tracker does not know.
func (c clients) trackedModel(ctx context.Context, _ caller.Caller, name string) (trackedModel, error) {
	t, err := c.Tracker()
	if err != nil {
		return trackedModel{}, err
	}
	m, err := findModel(ctx, t, name)
	if err != nil || m == nil {
		return trackedModel{}, err
	}
	out := trackedModel{registered: newRegistered(*m), found: true, versions: []api.ModelVersion{}}
	aliases := map[int][]string{}
	for _, alias := range slices.Sorted(maps.Keys(out.aliases)) {
		aliases[out.aliases[alias]] = append(aliases[out.aliases[alias]], alias)
	}
	for mv, err := range t.SearchModelVersions(ctx, "name = "+tracker.Quote(m.Name)) {
		if err != nil {
			return trackedModel{}, err
		}
		n := versionNumber(mv.Version)
		if n == 0 || mv.Name != m.Name {
			continue
		}
		v := api.ModelVersion{Version: n, RunId: mv.RunID, CreatedAt: mv.Created, Aliases: append([]string{}, aliases[n]...)}
		if len(mv.Tags) > 0 {
			v.Tags = &mv.Tags
		}
		out.versions = append(out.versions, v)
		if len(out.versions) == versionsShown {
			break
		}
	}
	slices.SortFunc(out.versions, func(a, b api.ModelVersion) int { return b.Version - a.Version })
	return out, addRuns(ctx, t, out.versions)
}

// findModel finds the model that the registry shows under name, nil if there is none. The names of this platform's own
// models are in lower case; others are found by a search that ignores case.
func findModel(ctx context.Context, t *tracker.Client, name string) (*tracker.RegisteredModel, error) {
	var same []registered
	models := map[string]tracker.RegisteredModel{}
	// The tracker folds the case of ASCII letters alone, and its grammar has no escape: _ matches any one character.
	pattern := strings.Map(func(r rune) rune {
		if r == '%' || r > unicode.MaxASCII {
			return '_'
		}
		return r
	}, name)
	for m, err := range t.SearchRegisteredModels(ctx, "name ILIKE "+tracker.Quote(pattern)) {
		if err != nil {
			return nil, err
		}
		if modelName(m.Name) == name {
			models[m.Name] = m
			same = append(same, newRegistered(m))
		}
	}
	if same = mergeByName(same); len(same) == 0 {
		return nil, nil
	}
	m := models[same[0].trackerName]
	return &m, nil
}

// addRuns reads the metrics and parameters of the newest versions and of those under an alias. Runs that were deleted
// have none.
func addRuns(ctx context.Context, t *tracker.Client, versions []api.ModelVersion) error {
	var wg sync.WaitGroup
	slots := make(chan struct{}, runsAtOnce)
	faults := make([]error, len(versions))
	for i := range versions {
		v := &versions[i]
		if v.RunId == "" || i >= runsShown && len(v.Aliases) == 0 {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			run, err := t.GetRun(ctx, v.RunId)
			if err != nil {
				if !errors.Is(err, tracker.ErrNotFound) {
					faults[i] = err
				}
				return
			}
			metrics := maps.Clone(run.Metrics)
			maps.DeleteFunc(metrics, func(_ string, m float64) bool { return math.IsNaN(m) || math.IsInf(m, 0) }) // no JSON
			v.Metrics, v.Params = &metrics, &run.Params
		})
	}
	wg.Wait()
	return errors.Join(faults...)
}

// driftView shows the drift under the alias that the model is at.
func driftView(d modelDrift, stage string) *api.ModelDrift {
	out := &api.ModelDrift{}
	if at := d.newest(); !at.IsZero() {
		at = at.UTC()
		out.Latest = &at
	}
	row := d.under(stage)
	if row == nil {
		return out
	}
	status, overall := string(row.Status), string(row.Overall)
	measures := make([]map[string]any, 0, len(row.Measures))
	for _, name := range slices.Sorted(maps.Keys(row.Measures)) {
		m := row.Measures[name]
		measures = append(measures, map[string]any{"name": name, "status": m.Status, "value": m.Value, "p_value": m.PValue})
	}
	if of := measuredVersion(row); of > 0 {
		out.Version = &of
	}
	out.Samples, out.Status, out.Overall, out.Measures = row.NSnapshots, &status, &overall, &measures
	out.MeanPrediction, out.ZScore, out.BaselineMean = figure.RoundPointer(row.LiveMean, 4), row.ZScore, row.BaselineMean
	return out
}

func trafficView(rules map[string]inference.TrafficRule, name string) *api.ModelTraffic {
	r, ok := rules[name]
	out := &api.ModelTraffic{Configured: ok, Rules: map[string]int{}}
	if ok {
		maps.Copy(out.Rules, r.Rules)
		if at := r.UpdatedAt.UTC(); !r.UpdatedAt.IsZero() {
			out.UpdatedAt = &at
		}
	}
	return out
}

func historyView(moves []controlplane.AliasHolder) *[]api.AliasMove {
	out := make([]api.AliasMove, len(moves))
	for i, m := range moves {
		out[i] = api.AliasMove{
			Alias: m.Alias, Version: nullableVersion(m.Version), PreviousVersion: nullableVersion(m.PreviousVersion),
			From: m.From, To: m.To, Actor: m.Actor, Via: string(m.Via),
		}
	}
	return &out
}

// aliasHistory reads the newest moves of a model's aliases.
func (c clients) aliasHistory(ctx context.Context, who caller.Caller, name string) ([]controlplane.AliasHolder, error) {
	client, err := c.ControlPlane(who)
	if err != nil {
		return nil, err
	}
	limit := movesShown
	page, err := wire.Decode[controlplane.AliasHistory](client.ListAliasHistory(ctx, &controlplane.ListAliasHistoryParams{Model: &name, Limit: &limit}))
	if isNotFound(err) {
		return nil, nil
	}
	return page.Items, err
}

// modelCost is the tenant's cost of a model's training.
type modelCost struct {
	runs              int
	gpuHours, costUSD float64
	syntheticUSD      float64
}

// round rounds to the contract's decimals.
func (m modelCost) round() *api.ModelCost {
	out := &api.ModelCost{Runs: m.runs, GpuHours: figure.Round(m.gpuHours, 3), CostUsd: figure.Round(m.costUSD, 2)}
	if synthetic := figure.Round(m.syntheticUSD, 2); synthetic > 0 {
		out.SyntheticCostUsd = &synthetic
	}
	return out
}

// costOf reads a model's cost, that of mock runs apart.
func (c clients) costOf(ctx context.Context, who caller.Caller, name string) (modelCost, error) {
	client, err := c.ControlPlane(who)
	if err != nil {
		return modelCost{}, err
	}
	summarize := func(synthetic bool) (controlplane.CostRow, error) {
		s, err := wire.Decode[controlplane.CostSummary](client.CostSummary(ctx, &controlplane.CostSummaryParams{Model: &name, IncludeSynthetic: &synthetic}))
		for _, row := range s.Cost.Rows {
			if modelName(row.Key) == name {
				return row, err
			}
		}
		return controlplane.CostRow{}, err
	}
	own, err := summarize(false)
	if err != nil {
		return modelCost{}, err
	}
	all, err := summarize(true)
	return modelCost{runs: int(own.Runs), gpuHours: own.GpuHours, costUSD: own.CostUsd, syntheticUSD: all.CostUsd - own.CostUsd}, err
}
