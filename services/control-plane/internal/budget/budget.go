// Package budget compares what a project spends in a UTC month with what it may.
//
// Spend is the project's own, by the month its jobs were first reported in, and
// without made figures. A budget that is null limits nothing; one of 0 allows
// nothing. Spending all of it is not over it.
package budget

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/alert"
	"github.com/mlp-platform/platform/services/control-plane/internal/cost"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// most bounds a budget, in USD or GPU hours.
const most = 1e12

// Service keeps the budgets.
type Service struct {
	Store *store.Store
	Now   func() time.Time
}

// month is the UTC month that t lies in: from since, before until.
func month(t time.Time) (since, until time.Time) {
	y, m, _ := t.UTC().Date()
	since = time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
	return since, since.AddDate(0, 1, 0)
}

// List serves GET /budgets.
func (s *Service) List(c echo.Context) error {
	ctx := c.Request().Context()
	page, err := wire.PageOf[string](c)
	if err != nil {
		return err
	}
	synthetic, err := cost.Synthetic(c)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	since, until := month(s.Now())
	rows, err := s.Store.ListBudgets(ctx, store.ListBudgetsParams{
		Tenant: p.Tenant, After: page.Start(), Since: since, Until: until, IncludeSynthetic: synthetic, MaxRows: page.Fetch(),
	})
	if err != nil {
		return err
	}
	rows, next := wire.CutPage(page, rows, func(r store.ListBudgetsRow) string { return r.Budget.Project })
	out := api.BudgetList{Items: make([]api.Budget, 0, len(rows)), NextCursor: next}
	if out.ConsumedCostUsd, err = s.Store.SpendOf(ctx, store.SpendOfParams{
		Tenant: p.Tenant, Since: since, Until: until, IncludeSynthetic: synthetic,
	}); err != nil {
		return err
	}
	for _, r := range rows {
		out.Items = append(out.Items, view(r.Budget, r.SpentUsd, r.SpentGpuHours))
	}
	return c.JSON(http.StatusOK, out)
}

// Put serves PUT /budgets/{project}: what the body leaves out is no limit.
func (s *Service) Put(c echo.Context) error {
	ctx := c.Request().Context()
	var body api.BudgetInput
	if err := wire.Decode(c, &body); err != nil {
		return err
	}
	project := c.Param("project")
	if err := check(project, body); err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	since, until := month(s.Now())
	var out api.Budget
	row := store.PutBudgetParams{
		Tenant: p.Tenant, Project: project, CostBudget: body.CostBudget, GpuHoursBudget: body.GpuHoursBudget, Now: s.Now(), UpdatedBy: p.Name,
	}
	if err := s.Store.InTx(ctx, func(tx store.Tx) error {
		_, details, err := store.Replace(ctx, tx, store.Record[store.Budget]{
			Key: key(p.Tenant, project),
			Get: func() (store.Budget, error) {
				return tx.GetBudget(ctx, store.GetBudgetParams{Tenant: p.Tenant, Project: project})
			},
			Put:  func() (store.Budget, error) { return tx.PutBudget(ctx, row) },
			Told: limits,
		})
		if err != nil {
			return err
		}
		rows, err := tx.ListBudgets(ctx, store.ListBudgetsParams{Tenant: p.Tenant, Project: &project, Since: since, Until: until, MaxRows: 1})
		if err != nil {
			return err
		}
		out = view(rows[0].Budget, rows[0].SpentUsd, rows[0].SpentGpuHours)
		return tx.Emit(ctx, event.Audit(p.Tenant, p.Name, "budget.set", target(project), event.OK, details))
	}); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// Delete serves DELETE /budgets/{project}.
func (s *Service) Delete(c echo.Context) error {
	ctx := c.Request().Context()
	p, _ := auth.FromContext(ctx)
	project := c.Param("project")
	err := s.Store.InTx(ctx, func(tx store.Tx) error {
		if err := tx.LockKeys(ctx, []string{key(p.Tenant, project)}); err != nil {
			return err
		}
		old, err := tx.DeleteBudget(ctx, store.DeleteBudgetParams{Tenant: p.Tenant, Project: project})
		if err != nil {
			return err
		}
		return tx.Emit(ctx, event.Audit(p.Tenant, p.Name, "budget.removed", target(project), event.OK, map[string]any{"old": limits(old)}))
	})
	switch {
	case store.None(err):
		return fault.BudgetNotFound.New("Your tenant has no budget for this project; GET /budgets lists those there are.")
	case err != nil:
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// Firing is one alert per project that is over its budget now.
func (s *Service) Firing(ctx context.Context) ([]alert.Alert, error) {
	since, until := month(s.Now())
	rows, err := s.Store.BudgetsOver(ctx, store.BudgetsOverParams{Since: since, Until: until})
	if err != nil {
		return nil, fmt.Errorf("budgets over: %w", err)
	}
	out := make([]alert.Alert, 0, len(rows))
	for _, r := range rows {
		b := r.Budget
		labels := map[string]string{"project": b.Project, "period": b.Period}
		title := fmt.Sprintf("Project %s is over its budget of this month", b.Project)
		if b.CostBudget != nil && r.SpentUsd > *b.CostBudget {
			title += fmt.Sprintf(": %.2f of %.2f USD", r.SpentUsd, *b.CostBudget)
			labels["cost_budget_usd"], labels["consumed_cost_usd"] = decimal(*b.CostBudget), decimal(r.SpentUsd)
		}
		if b.GpuHoursBudget != nil && r.SpentGpuHours > *b.GpuHoursBudget {
			title += fmt.Sprintf(": %.2f of %.2f GPU hours", r.SpentGpuHours, *b.GpuHoursBudget)
			labels["gpu_hours_budget"], labels["consumed_gpu_hours"] = decimal(*b.GpuHoursBudget), decimal(r.SpentGpuHours)
		}
		out = append(out, alert.Alert{Source: "budget", Key: b.Project, Severity: alert.Error, Title: title + ".", Tenant: b.Tenant, Labels: labels})
	}
	return out, nil
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func target(project string) string { return "project:" + project }

// key is what a budget is locked by.
func key(tenant, project string) string { return "budget:" + tenant + ":" + project }

func limits(b store.Budget) any {
	return map[string]any{"cost_budget": b.CostBudget, "gpu_hours_budget": b.GpuHoursBudget}
}

func check(project string, b api.BudgetInput) error {
	var faults []problem.Field
	if !wire.Label(project) {
		faults = append(faults, problem.Field{Loc: []string{"path", "project"}, Msg: wire.LabelRule})
	}
	for _, f := range []struct {
		name string
		v    *float64
	}{{"cost_budget", b.CostBudget}, {"gpu_hours_budget", b.GpuHoursBudget}} {
		if f.v != nil && !(*f.v >= 0 && *f.v <= most) { // also what is no number
			faults = append(faults, problem.Field{Loc: []string{"body", f.name}, Msg: fmt.Sprintf("must be a number from 0 to %.0f", most)})
		}
	}
	if b.Period != nil && !b.Period.Valid() {
		faults = append(faults, problem.Field{Loc: []string{"body", "period"}, Msg: "must be monthly"})
	}
	return fault.InvalidAll(faults)
}

func view(b store.Budget, usd, gpuHours float64) api.Budget {
	return api.Budget{
		Project: b.Project, Period: api.BudgetPeriod(b.Period),
		CostBudget: b.CostBudget, ConsumedCostUsd: usd, CostRatio: ratio(usd, b.CostBudget),
		GpuHoursBudget: b.GpuHoursBudget, ConsumedGpuHours: gpuHours, GpuHoursRatio: ratio(gpuHours, b.GpuHoursBudget),
		OverBudget: over(usd, b.CostBudget) || over(gpuHours, b.GpuHoursBudget),
		UpdatedAt:  b.UpdatedAt.UTC(), UpdatedBy: b.UpdatedBy,
	}
}

func over(spent float64, budget *float64) bool { return budget != nil && spent > *budget }

// ratio is null without budget, and for one of 0, which no number compares to.
func ratio(spent float64, budget *float64) *float64 {
	if budget == nil || *budget == 0 {
		return nil
	}
	r := cost.Round(spent / *budget)
	return &r
}
