package promotion_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

const requiring = `{"metric":"rmse","operator":"lte","threshold":50,"require_eval":true}`

func recordEvaluation(p *controlplanetest.Plane, bearer, version, suite, status string, metrics ...map[string]any) {
	p.T.Helper()
	if metrics == nil {
		metrics = []map[string]any{}
	}
	p.Want(200, "POST", "/evals", bearer, map[string]any{"model": "JPCP", "version": version, "suite": suite, "status": status, "metrics": metrics})
}

// gateEvaluation returns the gate's eval, and the details of its evaluation checks with their results.
func gateEvaluation(t *testing.T, p *controlplanetest.Plane, bearer, version string) (map[string]any, string) {
	t.Helper()
	gate := p.Want(200, "GET", "/promotions/JPCP/gate?version="+version, bearer, nil).Object(t)
	var checks []string
	for _, v := range gate["checks"].([]any) {
		if c := v.(map[string]any); c["name"] == "evaluation" {
			checks = append(checks, fmt.Sprint(c["pass"], " ", c["detail"]))
		}
	}
	return gate["eval"].(map[string]any), strings.Join(checks, "; ")
}

// Where the policy requires it, the latest evaluation of each suite of that
// version must have passed.
func TestRequireEval(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	v := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 12.0))
	p.Tracker.Move("jpcp", "Staging", v)
	p.Want(200, "PUT", "/promotion-policies/JPCP", controlplanetest.Operator, requiring)
	denied := func(reason string) {
		t.Helper()
		r := p.Refused(409, "promotion_denied", "POST", "/promotions", controlplanetest.Operator, `{"model":"JPCP"}`).Object(t)
		if reasons := fmt.Sprint(r["reasons"]); !strings.Contains(reasons, reason) {
			t.Errorf("reasons %s, want %s", reasons, reason)
		}
		if doc, checks := gateEvaluation(t, p, controlplanetest.Reader, v); doc["pass"] != false || !strings.Contains(checks, "false ") || !strings.Contains(checks, reason) {
			t.Errorf(`gate %v, %s; want doc["pass"] == false && strings.Contains(checks, "false ") && strings.Contains(checks, reason)`, doc, checks)
		}
	}
	denied("the policy requires an evaluation, and none of version 1 is recorded")
	recordEvaluation(p, controlplanetest.Trainer, "2", "s", "passed") // another version's
	recordEvaluation(p, controlplanetest.Foreign, v, "s", "passed")   // another tenant's
	denied("none of version 1 is recorded")
	recordEvaluation(p, controlplanetest.Trainer, v, "s", "failed", map[string]any{"metric": "bias", "value": 3, "passed": false}, map[string]any{"metric": "mae", "value": 2, "passed": true})
	denied("by suite s, of ")
	denied(" failed: bias")
	recordEvaluation(p, controlplanetest.Trainer, v, "s", "error")
	denied("broke off and says nothing of the model")
	// One suite does not compensate for another.
	recordEvaluation(p, controlplanetest.Trainer, v, "easy", "passed")
	denied("by suite s, of ")
	recordEvaluation(p, controlplanetest.Trainer, v, "s", "passed", map[string]any{"metric": "bias", "value": 1, "passed": true})
	if doc, checks := gateEvaluation(t, p, controlplanetest.Reader, v); doc["pass"] != true || strings.Contains(checks, "false") || strings.Count(checks, "true ") != 2 {
		t.Fatalf(`gate %v, %s; want doc["pass"] == true && !strings.Contains(checks, "false") && strings.Count(checks, "true ") == 2`, doc, checks)
	}
	p.Refused(404, "model_not_found", "GET", "/promotions/JPCP/gate", controlplanetest.Foreign, nil)
	// It is evaluated again at the decision.
	id := p.Want(200, "POST", "/promotions", controlplanetest.Operator, `{"model":"JPCP"}`).Object(t)["id"].(string)
	recordEvaluation(p, controlplanetest.Trainer, v, "s", "failed")
	p.Refused(409, "promotion_denied", "POST", "/promotions/"+id+"/approve", controlplanetest.Operator, nil)
	if h := p.Tracker.Holder("jpcp", "Production"); h != "" {
		t.Fatalf(`Production is %q; want ""`, h)
	}
	recordEvaluation(p, controlplanetest.Trainer, v, "s", "passed")
	if pr := p.Want(200, "POST", "/promotions/"+id+"/approve", controlplanetest.Operator, nil).Object(t); pr["state"] != "promoted" {
		t.Fatalf(`promotion %v; want pr["state"] == "promoted"`, pr)
	}
}

// An evaluation of the platform's counts for every tenant.
func TestPlatformEval(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	p.Tracker.Move("jpcp", "Staging", p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 12.0)))
	p.Want(200, "PUT", "/promotion-policies/JPCP", controlplanetest.Operator, requiring)
	recordEvaluation(p, controlplanetest.Trainer, "1", "s", "passed")
	p.SQL("update control_plane.evals set tenant = 'platform'")
	for _, bearer := range []string{controlplanetest.Reader, controlplanetest.Operator} {
		if doc, checks := gateEvaluation(t, p, bearer, "1"); doc["pass"] != true || !strings.HasPrefix(checks, "true ") {
			t.Errorf(`gate %v, %s; want doc["pass"] == true && strings.HasPrefix(checks, "true ")`, doc, checks)
		}
	}
	// The ladder requests them in the name of the version's reporter.
	if out := p.Report("JPCP", p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 11.0))); out["promotion_id"] != nil || !strings.Contains(fmt.Sprint(out["rungs"]), "none of version 2 is recorded") {
		t.Fatalf(`report %v; want out["promotion_id"] == nil && strings.Contains(fmt.Sprint(out["rungs"]), "none of version 2 is recorded")`, out)
	}
	next := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 10.0))
	recordEvaluation(p, controlplanetest.Trainer, next, "s", "passed")
	if out := p.Report("JPCP", next); out["promotion_id"] == nil {
		t.Fatalf(`report %v; want out["promotion_id"] != nil`, out)
	}
}

// The gate shows the latest evaluation, even where the policy does not require one; a failed one is then shown and does
// not block.
func TestGateShowsEval(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	v := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 12.0))
	p.Tracker.Move("jpcp", "Staging", v)
	if doc, checks := gateEvaluation(t, p, controlplanetest.Reader, v); doc["pass"] != true || fmt.Sprint(doc["metrics"]) != "map[rmse:12]" || checks != "" {
		t.Fatalf(`gate %v, %s; want doc["pass"] == true && fmt.Sprint(doc["metrics"]) == "map[rmse:12]" && checks == ""`, doc, checks)
	}
	recordEvaluation(p, controlplanetest.Trainer, v, "old", "passed", map[string]any{"metric": "bias", "value": 9, "passed": true})
	recordEvaluation(p, controlplanetest.Trainer, v, "s", "failed", map[string]any{"metric": "bias", "value": 3, "passed": false}, map[string]any{"metric": "mae", "value": 2, "passed": true})
	if doc, _ := gateEvaluation(t, p, controlplanetest.Reader, v); doc["pass"] != false || fmt.Sprint(doc["metrics"]) != "map[bias:3 mae:2 rmse:12]" {
		t.Fatalf(`gate %v; want doc["pass"] == false && fmt.Sprint(doc["metrics"]) == "map[bias:3 mae:2 rmse:12]"`, doc)
	}
	if out := p.Want(200, "POST", "/promotions", controlplanetest.Operator, `{"model":"JPCP","dry_run":true}`).Object(t); out["allowed"] != true {
		t.Fatalf(`dry run %v; want out["allowed"] == true`, out)
	}
	// Without a policy there is no other measure.
	recordEvaluation(p, controlplanetest.Trainer, v, "s", "passed")
	p.Want(204, "DELETE", "/promotion-policies/JPCP", controlplanetest.Operator, nil)
	if doc, _ := gateEvaluation(t, p, controlplanetest.Reader, v); doc["pass"] != true {
		t.Fatalf(`gate %v; want doc["pass"] == true`, doc)
	}
}
