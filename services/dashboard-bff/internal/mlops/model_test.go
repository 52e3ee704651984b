package mlops_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/viewtest"
)

func (f *fixture) model(t *testing.T, name string) viewtest.Answer {
	t.Helper()
	return viewtest.Get(t, f.views.Model, "/api/v1/mlops/model/:name", "/api/v1/mlops/model/"+name)
}

func TestModelShowsWhatEachSourceKnows(t *testing.T) {
	t.Parallel()
	f := setup(t).withRules()
	got := f.model(t, "JPCP")
	got.WantPartial()
	got.Want(map[string]any{
		"detail.name": "JPCP", "detail.trackerName": "jpcp",
		"detail.cost":            map[string]any{"runs": 1, "gpu_hours": 3.142, "cost_usd": 7.85, "synthetic_cost_usd": 51.85},
		"detail.drift.samples":   100,
		"detail.drift.status":    "OK",
		"detail.drift.overall":   "OK",
		"detail.traffic":         map[string]any{"configured": true, "rules": map[string]any{"Production": 90, "Canary": 10}, "updated_at": "2026-11-23T08:00:00Z"},
		"detail.promotion.model": "JPCP", "detail.promotion.approval.required": true,
		"detail.versions.0.version": 1, "detail.versions.0.aliases": []string{"Canary", "Production", "Staging"},
		"detail.versions.0.tags.dummy": "false", "detail.versions.0.params.model_name": "JPCP",
		"detail.aliasHistory.0.alias": "Production", "detail.aliasHistory.0.version": 1, "detail.aliasHistory.0.via": "promotion",
	})
	if rmse, _ := got.At("detail.versions.0.metrics.rmse").(float64); rmse < 1 || rmse > 50 {
		t.Errorf("rmse of version 1 is %v, want that of its run", got.At("detail.versions.0.metrics.rmse"))
	}
	if latest, _ := got.At("detail.drift.latest").(string); !strings.HasPrefix(latest, "2026-11-22T22:23:3") {
		t.Errorf("drift.latest is %q, want the time of the newest prediction", latest)
	}
	if all, _ := got.At("detail.drift.measures").([]any); len(all) != 4 {
		t.Errorf("drift.measures %v, want z_score, psi, ks and wasserstein", all)
	}
}

func TestModelMeanPredictionHasFourDecimals(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.editDrift(t, "JPCP", "Production", map[string]any{"live_mean": 239.10592842})
	f.model(t, "jpcp").Want(map[string]any{"detail.drift.mean_prediction": 239.1059})
}

func TestModelNameIsTakenInAnyCase(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, name := range []string{"jpcp", "JPCP", "JpCp"} {
		f.model(t, name).Want(map[string]any{"detail.name": "JPCP", "detail.trackerName": "jpcp", "detail.versions.0.version": 1})
	}
	f.model(t, "external-MODEL").Want(map[string]any{
		"detail.name": "EXTERNAL-MODEL", "detail.trackerName": "External-Model", "detail.description": "made elsewhere",
		"detail.versions.0.metrics": map[string]any{"rmse": 1.5}, "detail.versions.0.params": map[string]any{"depth": "3"},
	})
}

// The tracker's ILIKE folds the case of ASCII letters alone, on SQLite as on Postgres with the locale C.
func TestModelNamedInOtherLettersThanASCII(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.ControlPlane.Break()
	f.Serving.Break()
	f.Tracker.Answer("/api/2.0/mlflow/model-versions/search", http.StatusOK, `{}`)
	f.Tracker.Handle(searchModels, func(w http.ResponseWriter, r *http.Request) {
		filter := r.URL.Query().Get("filter")
		if filter != "name ILIKE 'K_LN-__'" {
			t.Errorf("the tracker is asked for %s", filter)
		}
		_, _ = w.Write([]byte(`{"registered_models":[{"name":"Köln-模型"},{"name":"kaln-ab"}]}`))
	})
	f.model(t, "Köln-模型").Want(map[string]any{"detail.name": "KÖLN-模型", "detail.trackerName": "Köln-模型"})
}

func TestModelUnknownToTheTrackerIs404(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, name := range []string{"nosuch", "jpc%25", "jpc_"} { // neither is a pattern
		viewtest.Do(t, viewtest.Request{Route: "/m/:name", Path: "/m/" + name, Handler: f.views.Model}).WantProblem(404, "model_not_found")
	}
	viewtest.Do(t, viewtest.Request{Route: "/m/:name", Path: "/m/" + strings.Repeat("x", 1100), Handler: f.views.Model}).WantProblem(422, "validation_failed")
}

func TestModelWithoutASource(t *testing.T) {
	t.Parallel()
	f := setup(t).withRules()
	f.Tracker.Break()
	got := f.model(t, "jpcp")
	got.WantPartial("tracker")
	got.Want(map[string]any{"detail.name": "JPCP", "detail.versions": nil, "detail.cost.runs": 1})

	f = setup(t).withRules()
	f.ControlPlane.Break()
	got = f.model(t, "jpcp")
	got.WantPartial("cost", "promotion")
	got.Want(map[string]any{"detail.cost": nil, "detail.promotion": nil, "detail.aliasHistory": nil, "detail.drift.samples": 100})

	f = setup(t).withRules()
	f.Serving.Break()
	got = f.model(t, "jpcp")
	got.WantPartial("drift", "traffic")
	got.Want(map[string]any{"detail.drift": nil, "detail.traffic": nil})
}

func TestModelWithoutTrafficRulesIsNotConfigured(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Serving.Answer("/traffic-rules", http.StatusOK, `{"items":[],"next_cursor":null}`)
	f.model(t, "jpcp").Want(map[string]any{"detail.traffic": map[string]any{"configured": false, "rules": map[string]any{}, "updated_at": nil}})
}

func (f *fixture) promotion(t *testing.T, name string) viewtest.Answer {
	t.Helper()
	return viewtest.Get(t, f.views.Promotion, "/api/v1/mlops/promotion/:name", "/api/v1/mlops/promotion/"+name)
}

// gate is the control plane's answer of a version that may be promoted.
const gate = `{"model":"JPCP","trackerName":"jpcp","version":"2","policy":{"allow":true,"reasons":[]},
 "eval":{"pass":true,"metrics":{"rmse":17.02,"baseline_rmse":101.1}},"approval":{"required":true,"state":"approved"},"allowed":true,
 "checks":[{"name":"policy","pass":true,"detail":"enabled: rmse ≤ 50"},{"name":"policy_metric","pass":true,"detail":"rmse is 17.02; wanted ≤ 50"}]}`

const (
	policy = `{"model":"JPCP","metric":"rmse","operator":"lte","threshold":50,"from_alias":"Staging","to_alias":"Production","enabled":true,"require_eval":true,"approval_mode":"each","updated_at":"2026-11-22T22:00:00Z","updated_by":"a"}`
	evals  = `{"items":[{"id":"01a20572-f4bb-7349-9403-b53cc738501f","tenant":"default","model":"JPCP","version":"2","suite":"fairness","status":"passed","metrics":[{"metric":"gap","value":0.1,"baseline":0.2,"passed":true}],"run_id":null,"passRate":1,"updated_at":"2026-11-22T22:00:00Z","updated_by":"a"}],"next_cursor":null}`
)

// withGate answers a gate, its policy and its evaluations.
func (f *fixture) withGate(gate, policy, evals string) *fixture {
	f.ControlPlane.Answer("/promotions/JPCP/gate", http.StatusOK, gate)
	f.ControlPlane.Answer("/promotion-policies/JPCP", http.StatusOK, policy)
	f.ControlPlane.Answer("/evals", http.StatusOK, evals)
	return f
}

func TestGateAllowsWhenPolicyEvaluationAndApprovalAreWell(t *testing.T) {
	t.Parallel()
	got := setup(t).withGate(gate, policy, evals).promotion(t, "jpcp")
	got.WantPartial()
	got.Want(map[string]any{
		"promotion.model": "JPCP", "promotion.trackerName": "jpcp", "promotion.version": 2, "promotion.allowed": true,
		"promotion.policy":       map[string]any{"allow": true, "reasons": []any{}},
		"promotion.approval":     map[string]any{"required": true, "state": "approved"},
		"promotion.eval.pass":    true,
		"promotion.eval.state":   "passed",
		"promotion.eval.metrics": map[string]any{"rmse": map[string]any{"value": 17.02, "baseline": 101.1, "threshold": 50, "passed": true}, "gap": map[string]any{"value": 0.1, "baseline": 0.2, "passed": true}},
	})
}

func TestGateDeniesWithAReasonForEachFailingPart(t *testing.T) {
	t.Parallel()
	const (
		disabledReason = "no enabled promotion policy"
		failedReason   = "the latest evaluation of version 2 by suite fairness failed: gap"
		pendingReason  = "the promotion is not approved (pending)"
	)
	disabled := strings.NewReplacer(`"enabled":true`, `"enabled":false`).Replace(policy)
	failedEvals := strings.NewReplacer(`"status":"passed"`, `"status":"failed"`, `"passed":true`, `"passed":false`).Replace(evals)
	denied := strings.NewReplacer(`"allowed":true`, `"allowed":false`)
	for name, test := range map[string]struct {
		gate, policy, evals string
		reasons             []string
		state               string
	}{
		"policy disabled": {
			strings.NewReplacer(`"allow":true,"reasons":[]`, `"allow":false,"reasons":["`+disabledReason+`"]`).Replace(denied.Replace(gate)), disabled, evals,
			[]string{disabledReason}, "passed",
		},
		"evaluation failed": {
			strings.NewReplacer(`"reasons":[]`, `"reasons":["`+failedReason+`"]`, `"pass":true,"metrics"`, `"pass":false,"metrics"`,
				`"checks":[`, `"checks":[{"name":"evaluation","pass":false,"detail":"`+failedReason+`"},`).Replace(denied.Replace(gate)), policy, failedEvals,
			[]string{failedReason}, "failed",
		},
		"evaluation failed though the policy does not require one": {
			strings.NewReplacer(`"pass":true,"metrics"`, `"pass":false,"metrics"`).Replace(gate), policy, failedEvals,
			[]string{"the latest evaluation failed"}, "failed",
		},
		"not approved": {
			strings.NewReplacer(`"state":"approved"`, `"state":"pending"`).Replace(denied.Replace(gate)), policy, evals,
			[]string{pendingReason}, "passed",
		},
		"all three": {
			strings.NewReplacer(`"state":"approved"`, `"state":"pending"`, `"allow":true,"reasons":[]`, `"allow":false,"reasons":["`+disabledReason+`","`+failedReason+`"]`,
				`"pass":true,"metrics"`, `"pass":false,"metrics"`, `"checks":[`, `"checks":[{"name":"evaluation","pass":false,"detail":"`+failedReason+`"},`).Replace(denied.Replace(gate)),
			disabled, failedEvals, []string{disabledReason, failedReason, pendingReason}, "failed",
		},
		"not evaluated": {
			strings.NewReplacer(`"pass":true,"metrics"`, `"pass":false,"metrics"`, `,{"name":"policy_metric","pass":true,"detail":"rmse is 17.02; wanted ≤ 50"}`, ``).Replace(denied.Replace(gate)), policy,
			`{"items":[],"next_cursor":null}`, []string{"the evaluation has not run"}, "not_run",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := setup(t).withGate(test.gate, test.policy, test.evals).promotion(t, "jpcp")
			got.Want(map[string]any{
				"promotion.allowed": false, "promotion.policy.reasons": test.reasons, "promotion.eval.state": test.state, "promotion.approval.required": true,
			})
		})
	}
}

func TestGateFollowsTheControlPlaneWhereItDenies(t *testing.T) {
	t.Parallel()
	got := setup(t).promotion(t, "jpcp") // as recorded: Production holds the version already
	got.Want(map[string]any{
		"promotion.allowed": false, "promotion.policy.allow": false, "promotion.policy.reasons": []string{"Production holds version 1 already"},
		"promotion.eval.state": "passed", "promotion.eval.metrics.rmse.threshold": 50, "promotion.eval.metrics.bias.passed": true,
	})
}

func TestGateOfAnUnknownModelDenies(t *testing.T) {
	t.Parallel()
	got := setup(t).promotion(t, "nosuch")
	got.WantPartial()
	got.Want(map[string]any{
		"promotion.model": "NOSUCH", "promotion.allowed": false, "promotion.policy.allow": false, "promotion.policy.reasons": []string{"there is no such model", "no enabled promotion policy"},
		"promotion.eval": map[string]any{"pass": false, "state": "not_run", "metrics": map[string]any{}}, "promotion.approval.required": true,
	})
}

func TestGateThatCannotBeReadDenies(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.ControlPlane.Break()
	got := f.promotion(t, "jpcp")
	got.WantPartial("promotion")
	got.Want(map[string]any{"promotion.allowed": false, "promotion.policy.allow": false, "promotion.approval.required": true})
	if reasons, _ := got.At("promotion.policy.reasons").([]any); len(reasons) == 0 {
		t.Error("no reasons, want why it is denied")
	}
}

func TestGateIgnoresEvaluationsOfOtherTenants(t *testing.T) {
	t.Parallel()
	got := setup(t).withGate(gate, policy, strings.ReplaceAll(evals, `"default"`, `"other"`)).promotion(t, "jpcp")
	got.Want(map[string]any{"promotion.eval.metrics.gap": nil})
}
