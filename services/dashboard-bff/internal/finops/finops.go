// Package finops holds the view of cost, budgets and carbon.
package finops

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

// Views serve the route of cost.
type Views struct {
	Parts
	cost   compose.Source[compose.None, controlplane.CostSummary]
	budget compose.Source[compose.None, controlplane.BudgetList]
	carbon compose.Source[compose.None, controlplane.Carbon]
}

// New refuses a missing part.
func New(p Parts) (*Views, error) {
	if err := service.RequireParts("finops", p); err != nil {
		return nil, err
	}
	v := &Views{Parts: p}
	v.cost = compose.ControlPlaneSource("cost", "cost by model", v.readCost)
	v.budget = compose.ControlPlaneSource("budget", "list budgets", v.readBudgets)
	v.carbon = compose.ControlPlaneSource("carbon", "carbon", v.readCarbon)
	return v, nil
}

// Overview serves GET /api/v1/finops/overview.
func (v *Views) Overview(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	view := v.Pool.Begin(c)
	cost := compose.Ask(view, v.cost, compose.None{})
	budget := compose.Ask(view, v.budget, compose.None{})
	carbon := compose.Ask(view, v.carbon, compose.None{})
	var out api.FinOpsView
	if s, ok := cost.Get(); ok {
		out.Cost = costView(s.Cost)
		out.UnitEconomics = &api.FinOpsView_UnitEconomics{CostPerTrainingRun: figure.RoundPointer(s.UnitEconomics.CostPerTrainingRun, 2)}
	}
	if b, ok := budget.Get(); ok {
		out.Budget = budgetView(b)
	}
	if e, ok := carbon.Get(); ok {
		out.Carbon = &api.FinOpsView_Carbon{
			Totals: api.FinOpsView_Carbon_Totals{Kwh: e.Totals.Kwh, Co2eG: e.Totals.Co2eG}, Co2eKg: e.Co2eKg, Uncertainty: e.Uncertainty, Methodology: e.Methodology,
		}
	}
	return view.Answer(out)
}

// costView lists the highest cost first. The totals are the control plane's, computed from unrounded values.
func costView(c controlplane.CostTotals) *api.FinOpsView_Cost {
	rows := slices.SortedFunc(slices.Values(c.Rows), func(a, b controlplane.CostRow) int {
		return cmp.Or(cmp.Compare(b.CostUsd, a.CostUsd), cmp.Compare(a.Key, b.Key))
	})
	out := &api.FinOpsView_Cost{Rows: make([]api.CostRow, len(rows)), TotalGpuHours: figure.Round(c.TotalGpuHours, 3), TotalCostUsd: figure.Round(c.TotalCostUsd, 2)}
	for i, r := range rows {
		out.Rows[i] = api.CostRow{Dimension: string(r.Dimension), Key: r.Key, GpuHours: figure.Round(r.GpuHours, 3), CostUsd: figure.Round(r.CostUsd, 2), Runs: int(r.Runs)}
	}
	return out
}

// budgetView returns each project's own spend. A budget of 0 has no ratio, and is exceeded by anything spent.
func budgetView(b controlplane.BudgetList) *api.FinOpsView_Budget {
	items := slices.SortedFunc(slices.Values(b.Items), func(a, b controlplane.Budget) int {
		return cmp.Or(cmp.Compare(b.ConsumedCostUsd, a.ConsumedCostUsd), cmp.Compare(a.Project, b.Project))
	})
	out := &api.FinOpsView_Budget{Budgets: make([]api.BudgetRow, len(items)), ConsumedCostUsd: figure.Round(b.ConsumedCostUsd, 2)}
	for i, p := range items {
		spent := figure.Round(p.ConsumedCostUsd, 2)
		row := api.BudgetRow{Project: p.Project, Period: string(p.Period), OverBudget: p.OverBudget, BudgetUsd: figure.RoundPointer(p.CostBudget, 2), SpentUsd: &spent}
		if p.CostBudget != nil {
			row.OverBudget = row.OverBudget || p.ConsumedCostUsd > *p.CostBudget
			if *p.CostBudget > 0 {
				ratio := figure.Round(p.ConsumedCostUsd / *p.CostBudget, 4)
				row.CostRatio = &ratio
			}
		}
		out.Budgets[i] = row
	}
	return out
}

// readCost reads the cost of all models; each page has the totals of all.
func (v *Views) readCost(ctx context.Context, who caller.Caller, _ compose.None) (controlplane.CostSummary, error) {
	client, err := v.Clients.ControlPlane(who)
	if err != nil {
		return controlplane.CostSummary{}, err
	}
	var last controlplane.CostSummary
	limit, by := pageLimit, controlplane.CostDimension("model")
	rows, err := compose.ReadPages(ctx, func(ctx context.Context, cursor *string) ([]controlplane.CostRow, *string, error) {
		page, err := wire.Decode[controlplane.CostSummary](client.CostSummary(ctx, &controlplane.CostSummaryParams{By: &by, Limit: &limit, Cursor: cursor}))
		last = page
		return page.Cost.Rows, page.NextCursor, err
	})
	last.Cost.Rows = rows
	return last, err
}

// readBudgets reads all budgets; each page has the spend of all projects.
func (v *Views) readBudgets(ctx context.Context, who caller.Caller, _ compose.None) (controlplane.BudgetList, error) {
	client, err := v.Clients.ControlPlane(who)
	if err != nil {
		return controlplane.BudgetList{}, err
	}
	var last controlplane.BudgetList
	limit := pageLimit
	items, err := compose.ReadPages(ctx, func(ctx context.Context, cursor *string) ([]controlplane.Budget, *string, error) {
		page, err := wire.Decode[controlplane.BudgetList](client.ListBudgets(ctx, &controlplane.ListBudgetsParams{Limit: &limit, Cursor: cursor}))
		last = page
		return page.Items, page.NextCursor, err
	})
	last.Items = items
	return last, err
}

func (v *Views) readCarbon(ctx context.Context, who caller.Caller, _ compose.None) (controlplane.Carbon, error) {
	client, err := v.Clients.ControlPlane(who)
	if err != nil {
		return controlplane.Carbon{}, err
	}
	limit := 1 // the totals are those of all models
	return wire.Decode[controlplane.Carbon](client.Carbon(ctx, &controlplane.CarbonParams{Limit: &limit}))
}
