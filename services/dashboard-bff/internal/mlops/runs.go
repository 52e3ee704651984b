package mlops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/compose"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
)

// runsListed are the newest runs of a tenant, as many as a browser sorts and filters without a pause.
const runsListed = 5000

// Runs serves GET /api/v1/runs.
func (v *Views) Runs(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	view := v.pool.Begin(c)
	list, facts, ok := v.askRuns(view)
	return view.AnswerShared("runs", func() any {
		var out api.RunsView
		if ok {
			rows := make([]api.RunRow, len(list.items))
			for i := range list.items {
				rows[i] = facts.row(&list.items[i])
			}
			out.Runs = &api.RunsView_Runs{Items: rows, Truncated: list.truncated}
		}
		return out
	})
}

// Run serves GET /api/v1/runs/{id}.
func (v *Views) Run(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	id := c.Param("id")
	view := v.pool.Begin(c)
	list, facts, ok := v.askRuns(view)
	var out api.RunView
	if !ok {
		return view.Answer(out)
	}
	i := slices.IndexFunc(list.items, func(r controlplane.Run) bool { return r.FlowRunId == id })
	if i < 0 {
		return fault.RunNotFound.Errorf("There is no run %s among the newest %d; GET /api/v1/runs lists them.", problem.Shorten(id), runsListed)
	}
	row := facts.row(&list.items[i])
	out.Run = &row
	if row.TrackerRunId == nil {
		out.Record = &api.RunRecord{State: api.FigureNotMeasured, Reason: reason("the run has recorded nothing at the tracker")}
	} else if record, ok := compose.Ask(view, v.sources.record, *row.TrackerRunId).Get(); ok {
		out.Record = &record
	} else {
		out.Record = &api.RunRecord{State: api.FigureFailed, Reason: reason("the tracker gave no answer")}
	}
	return view.Answer(out)
}

// askRuns reads the runs, and all that their figures are made of. ok is false if there are no runs to show.
func (v *Views) askRuns(view *compose.View) (list runList, facts runFacts, ok bool) {
	runs := compose.Ask(view, v.sources.runs, compose.None{})
	models := compose.Ask(view, v.sources.tracker, compose.None{})
	policies := compose.Ask(view, v.sources.policies, compose.None{})
	costs := compose.Ask(view, v.sources.runCosts, compose.None{})
	facts.policies, facts.ok.policies = policies.Get()
	facts.costs, facts.ok.costs = costs.Get()
	all, ok := models.Get()
	facts.ok.models = ok
	facts.production = make(map[string]int, len(all))
	for _, m := range all {
		facts.production[m.name] = m.aliases[production]
	}
	list, ok = runs.Get()
	facts.trained = make(map[modelAndVersion]*controlplane.Run, len(list.items))
	for i := range list.items {
		if r := &list.items[i]; r.ModelVersion != nil {
			facts.trained[modelAndVersion{modelName(r.ModelId), versionNumber(*r.ModelVersion)}] = r
		}
	}
	return list, facts, ok
}

// runList are the newest runs; truncated if there are older ones.
type runList struct {
	items     []controlplane.Run
	truncated bool
}

func (c clients) listRuns(ctx context.Context, who caller.Caller) (runList, error) {
	client, err := c.ControlPlane(who)
	if err != nil {
		return runList{}, err
	}
	var out runList
	limit, read := pageLimit, 0
	out.items, err = compose.ReadPages(ctx, func(ctx context.Context, cursor *string) ([]controlplane.Run, *string, error) {
		page, err := wire.Decode[controlplane.RunList](client.ListRuns(ctx, &controlplane.ListRunsParams{Limit: &limit, Cursor: cursor}))
		read += len(page.Items)
		if out.truncated = page.NextCursor != nil; read >= runsListed {
			page.NextCursor = nil
		}
		return page.Items, page.NextCursor, err
	})
	return out, err
}

// modelAndVersion names a version; the model in the platform's spelling.
type modelAndVersion struct {
	model   string
	version int
}

// listRunCosts adds up the recorded cost of each version. A synthetic figure stands only where there is no other: it is
// in no sum.
func (c clients) listRunCosts(ctx context.Context, who caller.Caller) (map[modelAndVersion]api.RunCost, error) {
	client, err := c.ControlPlane(who)
	if err != nil {
		return nil, err
	}
	limit := pageLimit
	all, err := compose.ReadPages(ctx, func(ctx context.Context, cursor *string) ([]controlplane.Cost, *string, error) {
		page, err := wire.Decode[controlplane.CostList](client.ListCosts(ctx, &controlplane.ListCostsParams{Limit: &limit, Cursor: cursor}))
		return page.Items, page.NextCursor, err
	})
	out := map[modelAndVersion]api.RunCost{}
	for _, cost := range all {
		k := modelAndVersion{modelName(cost.Model), versionNumber(cost.Version)}
		sum, known := out[k]
		switch {
		case !known, *sum.Synthetic && !cost.Synthetic:
			out[k] = api.RunCost{State: api.FigureMeasured, Usd: &cost.CostUsd, GpuHours: &cost.GpuHours, Synthetic: &cost.Synthetic}
		case *sum.Synthetic == cost.Synthetic:
			usd, hours := *sum.Usd+cost.CostUsd, *sum.GpuHours+cost.GpuHours
			sum.Usd, sum.GpuHours = &usd, &hours
			out[k] = sum
		}
	}
	return out, err
}

// readRecord reads what the tracker recorded of a run. A run that was deleted there has no record.
func (c clients) readRecord(ctx context.Context, _ caller.Caller, id string) (api.RunRecord, error) {
	t, err := c.Tracker()
	if err != nil {
		return api.RunRecord{}, err
	}
	run, err := t.GetRun(ctx, id)
	if errors.Is(err, tracker.ErrNotFound) || err == nil && run.Deleted {
		return api.RunRecord{State: api.FigureNotMeasured, Reason: reason("the tracker no longer has the run")}, nil
	}
	if err != nil {
		return api.RunRecord{}, err
	}
	metrics := maps.Clone(run.Metrics)
	maps.DeleteFunc(metrics, func(_ string, m float64) bool { return math.IsNaN(m) || math.IsInf(m, 0) }) // no JSON
	return api.RunRecord{State: api.FigureMeasured, ExperimentId: &run.ExperimentID, Params: &run.Params, Metrics: &metrics}, nil
}

// runFacts are what the figures of runs are made of; ok marks the sources that answered.
type runFacts struct {
	policies   map[string]controlplane.Policy
	production map[string]int // version by model; 0 for none
	costs      map[modelAndVersion]api.RunCost
	trained    map[modelAndVersion]*controlplane.Run // the run that produced a version

	ok struct{ policies, models, costs bool }
}

// row returns a run with its figures. One that was not measured has a reason in place of a value.
func (f *runFacts) row(r *controlplane.Run) api.RunRow {
	out := api.RunRow{
		FlowRunId: r.FlowRunId, ModelId: r.ModelId, DatasetName: r.DatasetName, Origin: r.Origin, Cause: causeOf(r), StateType: r.StateType,
		Reason: r.Reason, IsDummy: isDummy(r), IsGenerated: r.IsGenerated, Requester: r.RequestedBy, CommitSha: r.CommitSha, ApprovalId: r.ApprovalId,
		ModelVersion: r.ModelVersion, TrackerRunId: r.TrackerRunId, DispatchedAt: r.DispatchedAt, StartedAt: r.StartedAt, EndedAt: r.EndedAt,
	}
	if r.Requesters != nil && len(*r.Requesters) > 0 { // who filed the request comes first
		out.Requester = &(*r.Requesters)[0]
	}
	if r.ApprovalId != nil {
		out.ApprovedBy = r.RequestedBy
	}
	if r.StartedAt != nil && r.EndedAt != nil {
		seconds := r.EndedAt.Sub(*r.StartedAt).Seconds()
		out.DurationS = &seconds
	}
	out.Metric = f.metric(r)
	out.Change = f.change(r, out.Metric)
	out.Cost = f.cost(r)
	return out
}

func isDummy(r *controlplane.Run) bool { return r.IsDummy != nil && *r.IsDummy }

// causes by the origin that the control plane records.
var causes = map[string]api.RunCause{
	"ci": api.CauseChange, "modelrepo": api.CauseChange, "drift": api.CauseDrift, "api": api.CauseManual,
}

// causeOf returns why a run was started. A dummy is one whoever asked for it: it is a trial.
func causeOf(r *controlplane.Run) api.RunCause {
	if isDummy(r) {
		return api.CauseDummy
	}
	return cmp.Or(causes[r.Origin], api.CauseOther)
}

// metric returns the metric that the model's policy judges by.
func (f *runFacts) metric(r *controlplane.Run) api.RunMetric {
	if !f.ok.policies {
		return api.RunMetric{State: api.FigureFailed, Reason: reason("the promotion policies gave no answer")}
	}
	policy, ok := f.policies[modelName(r.ModelId)]
	if !ok {
		return api.RunMetric{State: api.FigureNotMeasured, Reason: reason("no promotion policy names the model's key metric")}
	}
	better := api.BetterHigher
	if policy.Operator == controlplane.Lt || policy.Operator == controlplane.Lte {
		better = api.BetterLower
	}
	out := api.RunMetric{State: api.FigureNotMeasured, Name: &policy.Metric, Better: &better}
	if r.ModelVersion == nil {
		out.Reason = reason(withoutVersion(r))
		return out
	}
	if r.Metrics != nil {
		if value, ok := (*r.Metrics)[policy.Metric]; ok {
			out.State, out.Value = api.FigureMeasured, &value
			return out
		}
	}
	out.Reason = reason(fmt.Sprintf("the trainer reported no %s of version %s", policy.Metric, *r.ModelVersion))
	return out
}

func withoutVersion(r *controlplane.Run) string {
	if r.EndedAt == nil {
		return "the run has not ended"
	}
	return "the run produced no version"
}

// change compares the key metric with that of the version in Production, where both were judged on the same rows.
func (f *runFacts) change(r *controlplane.Run, metric api.RunMetric) api.RunChange {
	out := api.RunChange{State: api.FigureNotMeasured, Reason: metric.Reason}
	if metric.State != api.FigureMeasured {
		out.State = metric.State
		return out
	}
	if !f.ok.models {
		return api.RunChange{State: api.FigureFailed, Reason: reason("the tracker gave no answer about Production")}
	}
	set := f.production[modelName(r.ModelId)]
	if set == 0 {
		out.Reason = reason("the model has no version in Production")
		return out
	}
	version := fmt.Sprint(set)
	out.Version = &version
	before := f.trained[modelAndVersion{modelName(r.ModelId), set}]
	switch {
	case version == *r.ModelVersion:
		out.Reason = reason("this is the version in Production")
	case before == nil:
		out.Reason = reason("the run that produced Production v" + version + " is not known here")
	case before.DatasetName != r.DatasetName:
		out.Reason = reason("Production v" + version + " was trained on another data set, " + before.DatasetName)
	case isDummy(before) != isDummy(r):
		out.Reason = reason("one of the two was a dummy run, on generated rows")
	default:
		f.compare(&out, before, metric)
	}
	return out
}

func (f *runFacts) compare(out *api.RunChange, before *controlplane.Run, metric api.RunMetric) {
	var from float64
	measured := false
	if before.Metrics != nil {
		from, measured = (*before.Metrics)[*metric.Name]
	}
	if !measured {
		out.Reason = reason(fmt.Sprintf("the trainer reported no %s of Production v%s", *metric.Name, *out.Version))
		return
	}
	difference := *metric.Value - from
	verdict := api.VerdictWorse
	switch {
	case difference == 0:
		verdict = api.VerdictEqual
	case (difference < 0) == (*metric.Better == api.BetterLower):
		verdict = api.VerdictBetter
	}
	out.State, out.Reason, out.From, out.Difference, out.Verdict = api.FigureMeasured, nil, &from, &difference, &verdict
}

// cost returns what was recorded for the run's version.
func (f *runFacts) cost(r *controlplane.Run) api.RunCost {
	switch {
	case !f.ok.costs:
		return api.RunCost{State: api.FigureFailed, Reason: reason("the cost records gave no answer")}
	case r.ModelVersion == nil:
		return api.RunCost{State: api.FigureNotMeasured, Reason: reason(withoutVersion(r) + ", and cost is recorded by version")}
	}
	if cost, ok := f.costs[modelAndVersion{modelName(r.ModelId), versionNumber(*r.ModelVersion)}]; ok {
		return cost
	}
	return api.RunCost{State: api.FigureNotMeasured, Reason: reason("no cost was recorded for version " + *r.ModelVersion)}
}

func reason(s string) *string { return &s }
