package finops_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/finops"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/viewtest"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func setup(t *testing.T) (*viewtest.Kit, *finops.Views) {
	t.Helper()
	k := viewtest.New(t)
	v, err := finops.New(finops.Parts{Pool: k.Pool, Clients: k.Clients})
	if err != nil {
		t.Fatal(err)
	}
	return k, v
}

func TestOverviewHasTheHighestCostFirst(t *testing.T) {
	t.Parallel()
	_, v := setup(t)
	got := viewtest.Get(t, v.Overview, "/o", "/o")
	got.WantPartial()
	got.Want(map[string]any{
		"cost": map[string]any{"rows": []map[string]any{
			{"dimension": "model", "key": "JPCP", "gpuHours": 3.142, "costUsd": 7.85, "runs": 1}, {"dimension": "model", "key": "MACK", "gpuHours": 1.5, "costUsd": 3.75, "runs": 1},
		}, "total_gpu_hours": 4.642, "total_cost_usd": 11.6},
		"unitEconomics":      map[string]any{"costPerTrainingRun": 5.8},
		"carbon.co2e_kg":     0.947986,
		"carbon.totals":      map[string]any{"kwh": 3.159954, "co2e_g": 947.9862},
		"carbon.uncertainty": 0.3,
	})
	if text, _ := got.At("carbon.methodology").(string); len(text) < 100 {
		t.Errorf("carbon.methodology is %q, want the control plane's", text)
	}
}

func TestEqualCostsAreByKeyAndTotalsComeFromUnroundedValues(t *testing.T) {
	t.Parallel()
	k, v := setup(t)
	k.ControlPlane.Answer("/costs/summary", http.StatusOK, `{"cost":{"rows":[{"dimension":"model","key":"C","gpuHours":0.0004,"costUsd":0.004,"runs":1},
		{"dimension":"model","key":"B","gpuHours":0.0004,"costUsd":0.004,"runs":1},{"dimension":"model","key":"A","gpuHours":0.0004,"costUsd":0.004,"runs":1}],
		"total_gpu_hours":0.0012,"total_cost_usd":0.012},"unitEconomics":{"costPerTrainingRun":0.004},"next_cursor":null}`)
	viewtest.Get(t, v.Overview, "/o", "/o").Want(map[string]any{
		"cost.rows.0.key": "A", "cost.rows.1.key": "B", "cost.rows.2.key": "C", "cost.rows.0.costUsd": 0, "cost.total_cost_usd": 0.01, "cost.total_gpu_hours": 0.001,
	})
}

func TestBudgetOfZeroIsOverWithSpendAndHasNoRatio(t *testing.T) {
	t.Parallel()
	k, v := setup(t)
	k.ControlPlane.Edit("/budgets", func(body string) string { // project default has spent as well
		return strings.Replace(body, `"consumedCostUsd":0,"consumedGpuHours":0,"costBudget":100`, `"consumedCostUsd":7.85432,"consumedGpuHours":0,"costBudget":100`, 1)
	})
	got := viewtest.Get(t, v.Overview, "/o", "/o")
	got.Want(map[string]any{"budget.consumed_cost_usd": 11.6, "budget.budgets.0.project": "default", "budget.budgets.2.project": "nobudget"})
	for project, want := range map[string]map[string]any{
		"materials": {"costRatio": nil, "overBudget": true, "budgetUsd": 0., "spentUsd": 3.75, "period": "monthly"},
		"default":   {"costRatio": 0.0785, "overBudget": false, "budgetUsd": 100., "spentUsd": 7.85},
		"nobudget":  {"costRatio": nil, "overBudget": false, "budgetUsd": nil, "spentUsd": 0.},
	} {
		row := got.Find("budget.budgets", "project", project)
		for member, value := range want {
			if row[member] != value {
				t.Errorf("%s of %s is %v, want %v", member, project, row[member], value)
			}
		}
		if _, ok := row["costRatio"]; !ok {
			t.Errorf("costRatio of %s is missing, want null", project)
		}
	}
}

func TestOverviewLeavesOutWhatGaveNoAnswer(t *testing.T) {
	t.Parallel()
	k, v := setup(t)
	k.ControlPlane.Answer("/budgets", http.StatusInternalServerError, `{"code":"internal","status":500,"title":"x","detail":"x"}`)
	got := viewtest.Get(t, v.Overview, "/o", "/o")
	got.WantPartial("budget")
	got.Want(map[string]any{"budget": nil, "cost.total_cost_usd": 11.6})
	k, v = setup(t)
	k.ControlPlane.Break()
	got = viewtest.Get(t, v.Overview, "/o", "/o")
	got.WantPartial("budget", "carbon", "cost")
	got.Want(map[string]any{"budget": nil, "cost": nil, "carbon": nil, "unitEconomics": nil})
}
