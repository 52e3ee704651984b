package cost

import (
	"context"
	"fmt"
	"strconv"
	"time"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/alert"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// maxBudget limits a budget, in USD or GPU hours.
const maxBudget = 1e12

// Budgets compares a project's spend in a UTC month with its limit.
//
// Spend counts toward the month in which a job was first reported, without mock figures. A null budget sets no limit;
// one of 0 allows nothing. A budget that is spent exactly is not exceeded.
type Budgets struct {
	store *store.Store
	now   func() time.Time
}

// NewBudgets returns Budgets stored in db; now is the clock.
func NewBudgets(db *store.Store, now func() time.Time) *Budgets {
	return &Budgets{store: db, now: now}
}

// monthBounds returns the UTC month that contains t: from since, before until.
func monthBounds(t time.Time) (since, until time.Time) {
	y, m, _ := t.UTC().Date()
	since = time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
	return since, since.AddDate(0, 1, 0)
}

// Firing returns one alert for each project over its budget.
func (s *Budgets) Firing(ctx context.Context) ([]alert.Alert, error) {
	since, until := monthBounds(s.now())
	rows, err := s.store.BudgetsOver(ctx, store.BudgetsOverParams{Since: since, Until: until})
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
			labels["cost_budget_usd"], labels["consumed_cost_usd"] = formatDecimal(*b.CostBudget), formatDecimal(r.SpentUsd)
		}
		if b.GpuHoursBudget != nil && r.SpentGpuHours > *b.GpuHoursBudget {
			title += fmt.Sprintf(": %.2f of %.2f GPU hours", r.SpentGpuHours, *b.GpuHoursBudget)
			labels["gpu_hours_budget"], labels["consumed_gpu_hours"] = formatDecimal(*b.GpuHoursBudget), formatDecimal(r.SpentGpuHours)
		}
		out = append(out, alert.Alert{Source: "budget", Key: b.Project, Severity: alert.Error, Title: title + ".", Tenant: b.Tenant, Labels: labels})
	}
	return out, nil
}

func formatDecimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func auditTarget(project string) string { return "project:" + project }

// budgetKey returns the lock key of a budget.
func budgetKey(tenant, project string) string { return "budget:" + tenant + ":" + project }

func auditBudgetFacts(b store.Budget) any {
	return map[string]any{"cost_budget": b.CostBudget, "gpu_hours_budget": b.GpuHoursBudget}
}

func checkBudgetInput(project string, b api.BudgetInput) error {
	var faults []problem.Field
	if !wire.Label(project) {
		faults = append(faults, problem.Field{Loc: []string{"path", "project"}, Msg: wire.LabelRule})
	}
	for _, f := range []struct {
		name string
		v    *float64
	}{{"cost_budget", b.CostBudget}, {"gpu_hours_budget", b.GpuHoursBudget}} {
		if f.v != nil && !(*f.v >= 0 && *f.v <= maxBudget) { // also NaN
			faults = append(faults, problem.Field{Loc: []string{"body", f.name}, Msg: fmt.Sprintf("must be a number from 0 to %.0f", maxBudget)})
		}
	}
	if b.Period != nil && !b.Period.Valid() {
		faults = append(faults, problem.Field{Loc: []string{"body", "period"}, Msg: "must be monthly"})
	}
	return fault.InvalidAll(faults)
}

func viewBudget(b store.Budget, usd, gpuHours float64) api.Budget {
	return api.Budget{
		Project: b.Project, Period: api.BudgetPeriod(b.Period),
		CostBudget: b.CostBudget, ConsumedCostUsd: usd, CostRatio: budgetRatio(usd, b.CostBudget),
		GpuHoursBudget: b.GpuHoursBudget, ConsumedGpuHours: gpuHours, GpuHoursRatio: budgetRatio(gpuHours, b.GpuHoursBudget),
		OverBudget: exceedsBudget(usd, b.CostBudget) || exceedsBudget(gpuHours, b.GpuHoursBudget),
		UpdatedAt:  b.UpdatedAt.UTC(), UpdatedBy: b.UpdatedBy,
	}
}

func exceedsBudget(spent float64, budget *float64) bool { return budget != nil && spent > *budget }

// budgetRatio is null without a budget, and for one of 0, where the ratio is undefined.
func budgetRatio(spent float64, budget *float64) *float64 {
	if budget == nil || *budget == 0 {
		return nil
	}
	r := Round(spent / *budget)
	return &r
}
