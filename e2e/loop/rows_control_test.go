//go:build e2e

package loop

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/libs/tracker"
)

// Acceptance row 3: the person who filed a notice cannot approve it, although they hold the scope to approve.
func TestRow03_OwnRequest(t *testing.T) {
	const ci, operator = "7d2f4c1be96a4d0fb8e35a90c6172ed4", "c19be07a5f3846d2a4710d8e62fb9335"
	credentials, err := json.Marshal(map[string]any{
		ci:       map[string]any{"principal": "ci", "tenant": "default", "scopes": []string{"read", "changes", "approve"}},
		operator: map[string]any{"principal": "operator", "tenant": "default", "scopes": []string{"read", "write"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	p := harness.New(t, "PLATFORM_SEED=false", "CONTROL_PLANE_CREDENTIALS_JSON="+string(credentials))
	p.Start(t, time.Minute)
	cp := p.Env["CONTROL_PLANE_URL"]
	notice := map[string]any{"model_ids": []string{"JPCP"}, "commit_sha": "row3", "commit_msg": "deeper trees", "changed_files": []string{"models/x"}}
	created := harness.Want(t, 200, "POST", cp+"/api/changes", ci, notice).JSON(t)
	id := created["created"].([]any)[0].(string)
	for _, path := range []string{"/approve/JPCP", "/approvals/" + id + "/approve"} {
		if a := harness.Want(t, 403, "POST", cp+path, ci, nil).JSON(t); a["code"] != "own_request" {
			t.Errorf("%s: got %v, want own_request", path, a)
		}
	}
	if rec := p.Approval(t, id); rec["status"] != "pending" || rec["requested_by"] != "ci" {
		t.Errorf("record %v; want pending, requested by ci", rec)
	}
	if runs := flowRuns(t, p); len(runs) != 0 {
		t.Errorf("flow runs %v; want none", runs)
	}
	// The same record, decided by another person.
	if a := harness.Want(t, 200, "POST", cp+"/approve/JPCP", operator, nil).JSON(t); a["status"] != "approved" || a["approval_id"] != id {
		t.Errorf("by somebody else: got %v, want %s approved", a, id)
	}
}

// Acceptance row 5: without a policy, with a metric that is not a number, and as a dummy, a version is not promoted;
// the reasons state this, and Production stays.
func TestRow05_PromotionDenied(t *testing.T) {
	p := sharedPlatform(t)
	cp, legacy := p.Env["CONTROL_PLANE_URL"], p.Env["CONTROL_PLANE_TOKEN"]
	before := productionVersion(t, p, "mcbound")
	tr := tracker.New(p.Env["TRACKING_URI"], nil, tracker.Token(p.Env["MLFLOW_TRACKING_TOKEN"]))
	ctx := t.Context()
	experiment, err := tr.EnsureExperiment(ctx, "row-5")
	if err != nil {
		t.Fatal(err)
	}
	register := func(accuracy any, tags map[string]string) string {
		t.Helper()
		run, err := tr.CreateRun(ctx, tracker.NewRun{ExperimentID: experiment.ID, Name: "row-5"})
		if err != nil {
			t.Fatal(err)
		}
		harness.Want(t, 200, "POST", p.Tracker()+"/api/2.0/mlflow/runs/log-metric", "", map[string]any{
			"run_id": run.ID, "key": "accuracy", "value": accuracy, "timestamp": time.Now().UnixMilli()})
		v, err := tr.CreateModelVersion(ctx, "mcbound", "runs:/"+run.ID+"/model", run.ID, tags)
		if err != nil {
			t.Fatal(err)
		}
		return v.Version
	}
	policy := harness.Want(t, 200, "GET", cp+"/promotion-policies/MCBOUND", legacy, nil).JSON(t)
	restore := map[string]any{}
	for _, name := range []string{"metric", "operator", "threshold", "enabled", "approval_mode", "from_alias", "to_alias", "require_eval", "conditions"} {
		if v, ok := policy[name]; ok && v != nil {
			restore[name] = v
		}
	}
	for _, c := range []struct {
		name, version, reason string
		withoutPolicy         bool
	}{
		{"without a policy", register(0.9, nil), "no enabled promotion policy", true},
		{"a metric that is not a number", register("NaN", nil), "is not finite", false},
		{"a dummy", register(0.9, map[string]string{"dummy": "true"}), "is a dummy", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.withoutPolicy {
				harness.Want(t, 204, "DELETE", cp+"/promotion-policies/MCBOUND", legacy, nil)
				defer harness.Want(t, 200, "PUT", cp+"/promotion-policies/MCBOUND", legacy, restore)
			}
			a := harness.Want(t, 409, "POST", cp+"/promotions", p.Secret(t, "operator_token"), map[string]any{"model": "MCBOUND", "version": c.version, "approve": true}).JSON(t)
			reasons, _ := a["reasons"].([]any)
			if a["code"] != "promotion_denied" || len(reasons) == 0 || !strings.Contains(fmt.Sprint(reasons), c.reason) {
				t.Errorf("got %v; want promotion_denied because %q", a, c.reason)
			}
			if now := productionVersion(t, p, "mcbound"); now != before {
				t.Errorf("Production is version %s; want %s still", now, before)
			}
		})
	}
}

// Acceptance row 23: a trigger whose dispatch fails does not use up the cooldown, so that the next one trains once the
// orchestrator is back.
func TestRow23_TriggerWhileTheOrchestratorIsAway(t *testing.T) {
	p, proxy := behindProxy(t)
	cp, inf := p.Env["CONTROL_PLANE_URL"], p.Env["SERVING_URL"]
	operator, serving := p.Secret(t, "operator_token"), p.Env["SERVING_TOKEN"]
	serveMACK(t, p)
	for k := range 60 {
		harness.Want(t, 200, "POST", inf+"/infer-pipeline/infer", serving, pipelineBody(0, k))
	}
	harness.Eventually(t, 60*time.Second, func() error {
		a := harness.Call(t, "POST", inf+"/drift/input/MACK/baseline", serving, map[string]any{})
		if a.Status != 200 || a.JSON(t)["n"].(float64) < 60 {
			return fmt.Errorf("baseline: %d %s; want 60 snapshots", a.Status, a.Body)
		}
		return nil
	})
	for k := range 100 {
		harness.Want(t, 200, "POST", inf+"/infer-pipeline/infer", serving, pipelineBody(1, k))
	}
	harness.Eventually(t, 60*time.Second, func() error {
		rows := harness.Want(t, 200, "GET", inf+"/drift/input/status?model=MACK&alias=Production", serving, nil).List(t)
		if len(rows) != 1 || rows[0]["overall"] != "CRITICAL" {
			return fmt.Errorf("input drift %v; want CRITICAL", rows)
		}
		return nil
	})
	before := len(flowRuns(t, p))
	setting := func() map[string]any {
		t.Helper()
		for _, row := range listItems(t, harness.Want(t, 200, "GET", cp+"/auto-retrain", operator, nil)) {
			if row["model"] == "MACK" {
				return row
			}
		}
		t.Fatal("no auto-retrain setting of MACK")
		return nil
	}
	trigger := func() map[string]any {
		t.Helper()
		results := harness.Want(t, 200, "POST", cp+"/drift/trigger", operator, map[string]any{"model": "MACK"}).JSON(t)["results"].([]any)
		if len(results) != 1 {
			t.Fatalf("results %v; want one", results)
		}
		return results[0].(map[string]any)
	}

	proxy.Refuse()
	harness.Want(t, 200, "PUT", cp+"/auto-retrain/MACK", p.Env["CONTROL_PLANE_TOKEN"], map[string]any{"enabled": true, "kind": "input", "gate": "direct"})
	harness.Eventually(t, 60*time.Second, func() error { // the leader may be dispatching
		if r := trigger(); r["outcome"] != "failed" || r["reason"] == nil {
			return fmt.Errorf("orchestrator away: %v; want failed, with a reason", r)
		}
		return nil
	})
	if row := setting(); row["last_triggered_at"] != nil || row["last_outcome"] != "failed" {
		t.Errorf("setting %v; want the outcome failed and no cooldown begun", row)
	}

	proxy.Forward()
	harness.Eventually(t, 60*time.Second, func() error { // until the breaker allows a call, by this trigger or the leader's
		r := trigger()
		if row := setting(); row["last_outcome"] != "dispatched" || row["last_triggered_at"] == nil {
			return fmt.Errorf("orchestrator back: %v, setting %v; want dispatched", r, row)
		}
		return nil
	})
	if r := trigger(); r["outcome"] != "cooling_down" && r["outcome"] != "already_pending" {
		t.Errorf("after the dispatch: %v; want cooling_down", r)
	}
	if runs := flowRuns(t, p); len(runs) != before+1 {
		t.Errorf("%d flow runs; want %d, for one was dispatched", len(runs), before+1)
	}
}

// serveMACK trains the sample MACK and has its version promoted and served.
func serveMACK(t *testing.T, p *harness.Platform) {
	t.Helper()
	cp, operator := p.Env["CONTROL_PLANE_URL"], p.Secret(t, "operator_token")
	started := harness.Want(t, 200, "POST", cp+"/retrain", p.Secret(t, "seed_token"), map[string]any{"model_name": "MACK", "dataset_name": "JobEmbeddings"}).JSON(t)
	if run := p.WaitRun(t, started["flow_run_id"].(string), 3*time.Minute); run["state_type"] != "COMPLETED" {
		t.Fatalf("run %v; want COMPLETED", run)
	}
	harness.Eventually(t, 30*time.Second, func() error {
		for _, x := range listItems(t, harness.Want(t, 200, "GET", cp+"/promotions?model=MACK&state=pending", operator, nil)) {
			harness.Want(t, 200, "POST", cp+"/promotions/"+fmt.Sprint(x["id"])+"/approve", operator, nil)
			return nil
		}
		return fmt.Errorf("no pending promotion of MACK")
	})
	harness.Eventually(t, 30*time.Second, func() error {
		a := harness.Call(t, "POST", p.Env["SERVING_URL"]+"/infer-pipeline/infer", p.Env["SERVING_TOKEN"], pipelineBody(0, 0), "X-Platform-Probe", "1")
		if a.Status != 200 {
			return fmt.Errorf("%d %s; want MACK served", a.Status, a.Body)
		}
		return nil
	})
}

// Acceptance row 24, the costs: a job reported twice is one record, and the mock scheduler's figures are listed but in
// no sum.
func TestRow24_CostsCountOnce(t *testing.T) {
	p := sharedPlatform(t)
	cp, token := p.Env["CONTROL_PLANE_URL"], p.Env["CONTROL_PLANE_TOKEN"]
	report := func(recorded, synthetic bool, cost map[string]any) {
		t.Helper()
		body := map[string]any{"model": "JPCP", "version": "1", "project": "row24"}
		for k, v := range cost {
			body[k] = v
		}
		if a := harness.Want(t, 200, "POST", cp+"/costs", token, body).JSON(t); a["recorded"] != recorded || a["synthetic"] != synthetic {
			t.Errorf("%v: got %v, want recorded %v and synthetic %v", cost, a, recorded, synthetic)
		}
	}
	report(true, false, map[string]any{"scheduler": "slurm", "job_id": "24", "gpu_hours": 6, "cpu_hours": 48})
	report(false, false, map[string]any{"scheduler": "slurm", "job_id": "24", "gpu_hours": 8, "cpu_hours": 48})
	report(true, true, map[string]any{"scheduler": "mock", "job_id": "mock-00000024"})
	if rows := listItems(t, harness.Want(t, 200, "GET", cp+"/costs?project=row24", token, nil)); len(rows) != 2 {
		t.Errorf("%d records %v; want one of the job and one of the mock job", len(rows), rows)
	}
	summary := func(query string) (hours, usd float64) {
		t.Helper()
		q := url.Values{"by": {"project"}, "project": {"row24"}}.Encode() + query
		cost := harness.Want(t, 200, "GET", cp+"/costs/summary?"+q, token, nil).JSON(t)["cost"].(map[string]any)
		return cost["total_gpu_hours"].(float64), cost["total_cost_usd"].(float64)
	}
	if hours, usd := summary(""); hours != 8 || usd != 20 {
		t.Errorf("sums %v GPU hours, %v USD; want 8 and 20, the job's last report alone", hours, usd)
	}
	if hours, usd := summary("&include_synthetic=true"); hours < 12 || usd < 30 { // the mock's hours are 4 at least
		t.Errorf("with the mock job %v GPU hours, %v USD; want at least 12 and 30", hours, usd)
	}
}
