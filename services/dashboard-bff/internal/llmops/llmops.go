// Package llmops holds the view of hosted language models and of evaluations.
package llmops

import (
	"cmp"
	"context"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/compose"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/figure"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

const pageLimit = 500

// Parts are the dependencies of Views.
type Parts struct {
	Pool    *compose.Pool
	Clients *upstream.Clients
}

// Views serve the routes of language models.
type Views struct {
	Parts
	endpoints compose.Source[compose.None, []controlplane.LLMEndpoint]
	evals     compose.Source[compose.None, []controlplane.Eval]
}

// New refuses a missing part.
func New(p Parts) (*Views, error) {
	if err := service.RequireParts("llmops", p); err != nil {
		return nil, err
	}
	v := &Views{Parts: p}
	v.endpoints = compose.ControlPlaneSource("endpoints", "list endpoints", v.readEndpoints)
	v.evals = compose.ControlPlaneSource("evals", "latest evaluations", v.readEvals)
	return v, nil
}

// Overview serves GET /api/v1/llmops/overview.
func (v *Views) Overview(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	view := v.Pool.Begin(c)
	endpoints := compose.Ask(view, v.endpoints, compose.None{})
	evals := compose.Ask(view, v.evals, compose.None{})
	out := api.LLMView{Endpoints: api.LLMView_Endpoints{Rows: []api.LLMEndpoint{}}, Evals: api.LLMView_Evals{Models: []api.EvalModel{}}}
	if all, ok := endpoints.Get(); ok {
		for _, e := range all {
			out.Endpoints.Rows = append(out.Endpoints.Rows, api.LLMEndpoint{
				Model: e.Model, Engine: e.Engine, HostedModelId: e.HostedModelId, MaxModelLen: e.MaxModelLen, TensorParallel: e.TensorParallel,
				Dtype: e.Dtype, Enabled: e.Enabled,
			})
		}
	}
	if all, ok := evals.Get(); ok {
		for _, e := range all {
			out.Evals.Models = append(out.Evals.Models, evalModel(e))
		}
	}
	out.Endpoints.Count, out.Evals.Count = len(out.Endpoints.Rows), len(out.Evals.Models)
	return view.Answer(out)
}

// evalModel counts what passed itself: a run without metrics has no rate.
func evalModel(e controlplane.Eval) api.EvalModel {
	out := api.EvalModel{Model: e.Model, Suite: e.Suite, Status: string(e.Status), Metrics: make([]api.EvalMetric, len(e.Metrics))}
	passed := 0.
	for i, m := range e.Metrics {
		out.Metrics[i] = api.EvalMetric{Metric: m.Metric, Value: m.Value, Baseline: m.Baseline, Passed: m.Passed}
		if m.Passed {
			passed++
		}
	}
	if n := float64(len(e.Metrics)); n > 0 {
		rate := figure.Round(passed/n, 3)
		out.PassRate = &rate
	}
	return out
}

func (v *Views) readEndpoints(ctx context.Context, who caller.Caller, _ compose.None) ([]controlplane.LLMEndpoint, error) {
	client, err := v.Clients.ControlPlane(who)
	if err != nil {
		return nil, err
	}
	limit := pageLimit
	all, err := compose.ReadPages(ctx, func(ctx context.Context, cursor *string) ([]controlplane.LLMEndpoint, *string, error) {
		page, err := wire.Decode[controlplane.LLMEndpointList](client.ListLLMEndpoints(ctx, &controlplane.ListLLMEndpointsParams{Limit: &limit, Cursor: cursor}))
		return page.Items, page.NextCursor, err
	})
	all = slices.DeleteFunc(all, func(e controlplane.LLMEndpoint) bool { return !upstream.VisibleTo(who, e.Tenant) })
	slices.SortStableFunc(all, func(a, b controlplane.LLMEndpoint) int { return cmp.Compare(a.Model, b.Model) })
	return all, err
}

// readEvals reads the latest run of each model, by model.
func (v *Views) readEvals(ctx context.Context, who caller.Caller, _ compose.None) ([]controlplane.Eval, error) {
	client, err := v.Clients.ControlPlane(who)
	if err != nil {
		return nil, err
	}
	limit, latest := pageLimit, true
	all, err := compose.ReadPages(ctx, func(ctx context.Context, cursor *string) ([]controlplane.Eval, *string, error) {
		page, err := wire.Decode[controlplane.EvalList](client.ListEvals(ctx, &controlplane.ListEvalsParams{Latest: &latest, Limit: &limit, Cursor: cursor}))
		return page.Items, page.NextCursor, err
	})
	all = slices.DeleteFunc(all, func(e controlplane.Eval) bool { return !upstream.VisibleTo(who, e.Tenant) })
	slices.SortStableFunc(all, func(a, b controlplane.Eval) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), b.UpdatedAt.Compare(a.UpdatedAt))
	})
	return slices.CompactFunc(all, func(a, b controlplane.Eval) bool { return a.Model == b.Model }), err
}
