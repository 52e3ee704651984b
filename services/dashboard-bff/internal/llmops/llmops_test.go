package llmops_test

import (
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/llmops"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/viewtest"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func setup(t *testing.T) (*viewtest.Kit, *llmops.Views) {
	t.Helper()
	k := viewtest.New(t)
	v, err := llmops.New(llmops.Parts{Pool: k.Pool, Clients: k.Clients})
	if err != nil {
		t.Fatal(err)
	}
	return k, v
}

func TestOverviewShowsEndpointsAndEachModelsLatestRun(t *testing.T) {
	t.Parallel()
	_, v := setup(t)
	got := viewtest.Get(t, v.Overview, "/o", "/o")
	got.WantPartial()
	got.Want(map[string]any{
		"endpoints": map[string]any{"count": 1, "rows": []map[string]any{{
			"model": "CHATTY", "engine": "vllm", "hostedModelId": "org/chatty-7b", "maxModelLen": 8192, "tensorParallel": 2, "dtype": "bfloat16", "enabled": true,
		}}},
		"evals.count": 3, "evals.models.0.model": "CHATTY", "evals.models.1.model": "JPCP", "evals.models.2.model": "MACK",
		"evals.models.2.suite": "fairness", "evals.models.2.status": "failed",
		"evals.models.2.metrics.0": map[string]any{"metric": "gap", "value": 0.4, "baseline": 0.1, "passed": false},
	})
}

func TestPassRateHasThreeDecimalsAndIsNullWithoutMetrics(t *testing.T) {
	t.Parallel()
	_, v := setup(t)
	got := viewtest.Get(t, v.Overview, "/o", "/o")
	got.Want(map[string]any{"evals.models.0.passRate": nil, "evals.models.1.passRate": 1, "evals.models.2.passRate": 0.667})
	if _, ok := got.At("evals.models.0").(map[string]any)["passRate"]; !ok {
		t.Error("passRate is missing, want null")
	}
}

func TestOverviewKeepsItsShapeWithoutTheControlPlane(t *testing.T) {
	t.Parallel()
	k, v := setup(t)
	k.ControlPlane.Break()
	got := viewtest.Get(t, v.Overview, "/o", "/o")
	got.WantPartial("endpoints", "evals")
	got.Want(map[string]any{"endpoints": map[string]any{"rows": []any{}, "count": 0}, "evals": map[string]any{"models": []any{}, "count": 0}})
}

func TestRowsOfOtherTenantsAreLeftOut(t *testing.T) {
	t.Parallel()
	k, v := setup(t)
	for _, path := range []string{"/llm/endpoints", "/evals"} {
		k.ControlPlane.Edit(path, func(body string) string { return strings.Replace(body, `"tenant":"default"`, `"tenant":"other"`, 1) })
	}
	got := viewtest.Get(t, v.Overview, "/o", "/o")
	got.Want(map[string]any{"endpoints.count": 0, "evals.count": 2})
}
