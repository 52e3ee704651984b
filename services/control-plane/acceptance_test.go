package controlplane_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// Acceptance row 2: notice as ci, approve as operator, follow the run to its end.
func TestRow02NoticeApproveRun(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "CONTROL_PLANE_SEPARATION_OF_DUTIES=enforce")
	id := p.Notice("jpcp", "abc1234")
	if rec := p.Approval(id); rec["status"] != "pending" || rec["model_id"] != "JPCP" || rec["kind"] != "retrain" ||
		rec["origin"] != "ci" || rec["requested_by"] != "ci" || rec["tenant"] != "default" || rec["resolved_by"] != nil || rec["prefect_run_id"] != nil {
		t.Fatalf(`record %v; want rec["status"] == "pending" && rec["model_id"] == "JPCP" && rec["kind"] == "retrain" && rec["origin"] == "ci" && rec["requested_by"] == "ci" && …`, rec)
	}
	if len(p.Orchestrator.All()) != 0 {
		t.Fatal("a notice started a run")
	}
	out := p.Want(200, "POST", "/approve/JPCP", controlplanetest.Operator, nil).Object(t)
	run, _ := out["flow_run_id"].(string)
	if out["status"] != "approved" || out["approval_id"] != id || out["model_id"] != "JPCP" || out["status_url"] != "/retrain/"+run {
		t.Fatalf(`answer %v; want out["status"] == "approved" && out["approval_id"] == id && out["model_id"] == "JPCP" && out["status_url"] == "/retrain/" + run`, out)
	}
	rec := p.Approval(id)
	if rec["status"] != "approved" || rec["prefect_run_id"] != run || rec["resolved_by"] != "operator" || rec["resolved_at"] == nil {
		t.Fatalf(`record %v; want rec["status"] == "approved" && rec["prefect_run_id"] == run && rec["resolved_by"] == "operator" && rec["resolved_at"] != nil`, rec)
	}
	sent := p.Orchestrator.Bodies[0]
	for k, want := range map[string]any{
		"model_name": "JPCP", "dataset_cls_name": "JobEmbeddings", "is_dummy": false, "backend_name": "local",
		"commit_sha": "abc1234", "tenant": "default", "requested_by": "operator", "approval_id": id,
	} {
		if sent[k] != want {
			t.Errorf("parameter %s is %v, want %v", k, sent[k], want)
		}
	}
	p.Orchestrator.State(run, "RUNNING", "")
	testenv.Eventually(t, 15*time.Second, func() error {
		if len(p.Events("job.started")) != 1 {
			return fmt.Errorf("no job.started")
		}
		return nil
	})
	p.Orchestrator.State(run, "COMPLETED", "")
	testenv.Eventually(t, 15*time.Second, func() error {
		s := p.Want(200, "GET", "/retrain/"+run, controlplanetest.Reader, nil).Object(t)
		if s["state_type"] != "COMPLETED" || s["is_terminal"] != true || s["stale"] != false || s["model_id"] != "JPCP" || s["commit_sha"] != "abc1234" {
			return fmt.Errorf("status %v", s)
		}
		return nil
	})
	for _, name := range []string{"approval.created", "approval.approved", "job.dispatched", "job.completed"} {
		if got := p.Events(name); len(got) != 1 || got[0].Tenant != "default" {
			t.Errorf(`events %s: %v; want len(got) == 1 && got[0].Tenant == "default"`, name, got)
		}
	}
	for action, actor := range map[string]string{
		"approval.created": "ci", "approval.approving": "operator", "approval.approved": "operator", "run.completed": "system:follower",
	} {
		got := p.Audits(action)
		if len(got) != 1 || got[0]["actor"] != actor || got[0]["target"] != "model:JPCP" || got[0]["outcome"] != "ok" || got[0]["source"] != "control-plane" {
			t.Errorf(`audit %s: %v; want len(got) == 1 && got[0]["actor"] == actor && got[0]["target"] == "model:JPCP" && got[0]["outcome"] == "ok" && got[0]["source"] == "control-plane"`, action, got)
		}
	}
}

// Acceptance row 3: no one approves their own request, but they may reject it.
func TestRow03SeparationOfDuties(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "CONTROL_PLANE_SEPARATION_OF_DUTIES=enforce")
	id := p.Notice("JPCP", "abc")
	p.Refused(403, "own_request", "POST", "/approve/JPCP", controlplanetest.Both, nil)
	p.Refused(403, "own_request", "POST", "/approvals/"+id+"/approve", controlplanetest.Both, nil)
	if s := p.Approval(id)["status"]; s != "pending" {
		t.Fatalf(`status %v; want "pending"`, s)
	}
	if got := p.Audits("approval.approve"); len(got) != 2 || got[0]["outcome"] != "denied" || got[0]["actor"] != "ci" {
		t.Fatalf(`audit %v; want len(got) == 2 && got[0]["outcome"] == "denied" && got[0]["actor"] == "ci"`, got)
	}
	p.Want(200, "POST", "/reject/JPCP", controlplanetest.Both, `{"reason":"mistake"}`)
	if rec := p.Approval(id); rec["status"] != "rejected" || rec["reject_reason"] != "mistake" || rec["resolved_by"] != "ci" {
		t.Fatalf(`record %v; want rec["status"] == "rejected" && rec["reject_reason"] == "mistake" && rec["resolved_by"] == "ci"`, rec)
	}
	// The legacy credential is exempt.
	p.Want(200, "POST", "/api/changes", controlplanetest.Legacy, `{"model_ids":["MACK"],"commit_sha":"x"}`)
	p.Want(200, "POST", "/approve/MACK", controlplanetest.Legacy, nil)
}

// Acceptance row 4, the part of this service: the alias moves, and its history names actor and time.
func TestRow04Promote(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	v := p.Tracker.Add("runtimeclass", controlplanetest.Good("accuracy", 0.9))
	p.Tracker.Models["runtimeclass"].Versions[v].Metrics["baseline_accuracy"] = 0.4
	p.Want(200, "PUT", "/promotion-policies/RuntimeClass", controlplanetest.Operator, `{"metric":"accuracy","operator":"gte","threshold":0.5}`)
	p.Tracker.Move("runtimeclass", "Staging", v)
	before := time.Now().Add(-time.Second)
	out := p.Want(200, "POST", "/promotions", controlplanetest.Operator, map[string]any{"model": "RuntimeClass", "approve": true, "reason": "looks good"}).Object(t)
	if out["state"] != "promoted" || out["version"] != v || out["from"] != "Staging" || out["to"] != "Production" || out["allowed"] != true {
		t.Fatalf(`answer %v; want out["state"] == "promoted" && out["version"] == v && out["from"] == "Staging" && out["to"] == "Production" && out["allowed"] == true`, out)
	}
	if h := p.Tracker.Holder("runtimeclass", "Production"); h != v {
		t.Fatalf("Production is %q; want %v", h, v)
	}
	items := p.Want(200, "GET", "/alias-history?model=runtimeclass&alias=production", controlplanetest.Reader, nil).Object(t)["items"].([]any)
	first := items[0].(map[string]any)
	at, err := time.Parse(time.RFC3339, first["from"].(string))
	if len(items) != 1 || first["actor"] != "operator" || first["version"] != v || first["via"] != "promotion" || first["promotion_id"] != out["id"] || err != nil || at.Before(before) {
		t.Fatalf(`history %v (%v); want len(items) == 1 && first["actor"] == "operator" && first["version"] == v && first["via"] == "promotion" && first["promotion_id"] == out["id"] && !at.Before(before)`, items, err)
	}
	holder := p.Want(200, "GET", "/alias-history?model=runtimeclass&alias=Production&at="+time.Now().UTC().Format(time.RFC3339Nano), controlplanetest.Reader, nil).Object(t)["items"].([]any)
	if len(holder) != 1 {
		t.Fatalf("holder now %v; want len(holder) == 1", holder)
	}
	none := p.Want(200, "GET", "/alias-history?model=runtimeclass&alias=Production&at=2020-01-01T00:00:00Z", controlplanetest.Reader, nil).Object(t)["items"].([]any)
	if len(none) != 0 {
		t.Fatalf("holder in 2020 %v; want len(none) == 0", none)
	}
	for name, tenant := range map[string]string{"deploy.alias_changed": "platform", "deploy.promoted": "platform"} {
		got := p.Events(name)
		if len(got) == 0 || got[len(got)-1].Tenant != tenant || got[len(got)-1].Actor != "operator" || got[len(got)-1].Data["model"] != "RUNTIMECLASS" {
			t.Errorf(`events %s: %v; want len(got) != 0 && got[len(got)-1].Tenant == tenant && got[len(got)-1].Actor == "operator" && got[len(got)-1].Data["model"] == "RUNTIMECLASS"`, name, got)
		}
	}
}

// Acceptance row 5: a promotion that must not happen does not, and its record states why.
func TestRow05PromotionDenied(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version controlplanetest.Version
		before  func(*controlplanetest.Plane)
		reason  string
	}{
		"no policy": {controlplanetest.Good("rmse", 10.0), func(p *controlplanetest.Plane) {
			p.Want(204, "DELETE", "/promotion-policies/JPCP", controlplanetest.Operator, nil)
		}, "no enabled promotion policy"},
		"policy disabled": {controlplanetest.Good("rmse", 10.0), func(p *controlplanetest.Plane) {
			p.Want(200, "PUT", "/promotion-policies/JPCP", controlplanetest.Operator, `{"metric":"rmse","operator":"lte","threshold":50,"enabled":false}`)
		}, "no enabled promotion policy"},
		"metric not finite": {controlplanetest.Good("rmse", "NaN"), nil, "metric rmse is not finite"},
		"metric infinite":   {controlplanetest.Good("rmse", -math.MaxFloat64), nil, "metric rmse is not finite"}, // as the tracker keeps -Inf
		"metric absent":     {controlplanetest.Good("mae", 1.0), nil, "metric rmse is absent"},
		"metric too high":   {controlplanetest.Good("rmse", 70.0), nil, "rmse is 70; wanted ≤ 50"},
		"dummy": {controlplanetest.Version{Metrics: map[string]any{"rmse": 10.0}, Tags: map[string]string{"artifact_digest": controlplanetest.Digest, "dummy": "true"}}, nil,
			"version 1 is a dummy; it goes no further than Staging"},
		"dummy by another word": {controlplanetest.Version{Metrics: map[string]any{"rmse": 10.0}, Tags: map[string]string{"artifact_digest": controlplanetest.Digest, "dummy": " Yes"}}, nil,
			"version 1 is a dummy; it goes no further than Staging"},
		"dummy by its run": {controlplanetest.Version{Metrics: map[string]any{"rmse": 10.0}, Tags: map[string]string{"artifact_digest": controlplanetest.Digest, "dummy": "false"}, RunTags: map[string]string{"dummy": "true"}}, nil,
			"version 1 is a dummy; it goes no further than Staging"},
		"digest of another kind": {controlplanetest.Version{Metrics: map[string]any{"rmse": 10.0}, Tags: map[string]string{"artifact_digest": strings.ToUpper(controlplanetest.Digest)}}, nil,
			"tag artifact_digest of version 1 is not 64 lower-case hexadecimal digits"},
		"no digest":    {controlplanetest.Version{Metrics: map[string]any{"rmse": 10.0}, Tags: map[string]string{}}, nil, "version 1 has no tag artifact_digest"},
		"no signature": {controlplanetest.Version{Metrics: map[string]any{"rmse": 10.0}, Unsigned: true}, nil, "version 1 has no signature of its inputs"},
		"evaluation missing": {controlplanetest.Good("rmse", 10.0), func(p *controlplanetest.Plane) {
			p.Want(200, "PUT", "/promotion-policies/JPCP", controlplanetest.Operator, `{"metric":"rmse","operator":"lte","threshold":50,"require_eval":true}`)
		}, "the policy requires an evaluation, and none of version 1 is recorded"},
		"alias moved away": {controlplanetest.Good("rmse", 10.0), func(p *controlplanetest.Plane) { p.Tracker.Move("jpcp", "Staging", "") }, "no version holds Staging"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := controlplanetest.Start(t)
			v := p.Tracker.Add("jpcp", c.version)
			p.Tracker.Move("jpcp", "Staging", v)
			if c.before != nil {
				c.before(p)
			}
			r := p.Refused(409, "promotion_denied", "POST", "/promotions", controlplanetest.Operator, map[string]any{"model": "JPCP", "version": v, "approve": true}).Object(t)
			reasons := fmt.Sprint(r["reasons"])
			if r["allowed"] != false || !strings.Contains(reasons, c.reason) {
				t.Fatalf(`answer %v; want r["allowed"] == false && strings.Contains(reasons, c.reason)`, r)
			}
			if h := p.Tracker.Holder("jpcp", "Production"); h != "" || p.Tracker.Sets != 0 {
				t.Fatalf(`Production is %q after %d moves; want h == "" && p.Tracker.Sets == 0`, h, p.Tracker.Sets)
			}
			if got := p.Events("deploy.promotion_denied"); len(got) != 1 {
				t.Fatalf("events %v; want len(got) == 1", got)
			}
			if got := p.Audits("promotion.denied"); len(got) != 1 || got[0]["outcome"] != "denied" || got[0]["actor"] != "operator" {
				t.Fatalf(`audit %v; want len(got) == 1 && got[0]["outcome"] == "denied" && got[0]["actor"] == "operator"`, got)
			}
			gate := p.Want(200, "GET", "/promotions/jpcp/gate?version="+v, controlplanetest.Reader, nil).Object(t)
			if gate["allowed"] != false || gate["approval"].(map[string]any)["required"] != true {
				t.Fatalf(`gate %v; want gate["allowed"] == false && gate["approval"].(map[string]any)["required"] == true`, gate)
			}
			dry := p.Want(200, "POST", "/promotions", controlplanetest.Operator, map[string]any{"model": "JPCP", "version": v, "dry_run": true}).Object(t)
			if dry["allowed"] != false || dry["id"] != nil {
				t.Fatalf(`dry run %v; want dry["allowed"] == false && dry["id"] == nil`, dry)
			}
		})
	}
}

// Acceptance row 11: a stopped orchestrator gives 502 and leaves the record
// pending and the service ready; later the approval makes one run.
func TestRow11OrchestratorDown(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{controlplanetest.Down, controlplanetest.Broken, controlplanetest.Garbage, controlplanetest.Nameless} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := controlplanetest.Start(t, "PREFECT_CB_RESET_TIMEOUT=1")
			id := p.Notice("JPCP", "row11")
			p.Orchestrator.Set(mode)
			p.Refused(502, "orchestrator_unreachable", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
			if s := p.Approval(id)["status"]; s != "pending" {
				t.Fatalf(`status %v; want "pending"`, s)
			}
			p.Want(200, "GET", "/readyz", "", nil)
			// Three attempts and then two: the breaker opens, and the answer has Retry-After.
			r := p.Refused(502, "orchestrator_unreachable", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
			if r.Header.Get("Retry-After") == "" {
				t.Errorf(`no Retry-After: %v; want r.Header.Get("Retry-After") != ""`, r.Header)
			}
			if got := p.Events("approval.dispatch_failed"); len(got) != 2 {
				t.Errorf("events %v; want len(got) == 2", got)
			}
			p.Orchestrator.Set(controlplanetest.Well)
			var out map[string]any
			testenv.Eventually(t, 15*time.Second, func() error {
				r := p.Call("POST", "/approve/JPCP", controlplanetest.Operator, nil)
				if r.Status != 200 {
					return fmt.Errorf("%d %s", r.Status, r.Body)
				}
				out = r.Object(t)
				return nil
			})
			if runs := p.Orchestrator.All(); len(runs) != 1 || runs[0].ID != out["flow_run_id"] {
				t.Fatalf(`flow runs %v; want len(runs) == 1 && runs[0].ID == out["flow_run_id"]`, runs)
			}
		})
	}
}

// An orchestrator that hangs costs at most the budget, and a started run is found again.
func TestOrchestratorHangs(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "PREFECT_CB_FAIL_MAX=100")
	p.Notice("JPCP", "hang")
	p.AwaitTarget()
	p.Orchestrator.Set(controlplanetest.Swallow) // carried out, never answered
	begin := time.Now()
	p.Refused(502, "orchestrator_unreachable", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
	if took := time.Since(begin); took > 30*time.Second { // 12 s, on a machine that is also busy
		t.Fatalf("took %v; want took <= 30 * time.Second", took)
	}
	p.Orchestrator.Set(controlplanetest.Well)
	p.Want(200, "POST", "/approve/JPCP", controlplanetest.Operator, nil)
	if runs := p.Orchestrator.All(); len(runs) != 1 {
		t.Fatalf("%d flow runs; want 1", len(runs))
	}
}

// The orchestrator's own refusal is not retried; a missing deployment is reported as such.
func TestOrchestratorRefuses(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	p.Notice("JPCP", "x")
	p.AwaitTarget()
	p.Orchestrator.Set(controlplanetest.Refusing)
	p.Refused(502, "orchestrator_rejected", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
	if p.Orchestrator.Creates != 1 {
		t.Fatalf("%d calls; want 1", p.Orchestrator.Creates)
	}
	p.Orchestrator.Set(controlplanetest.Well)
	p.Orchestrator.Mu.Lock()
	had := p.Orchestrator.Deployment
	p.Orchestrator.Deployment = nil
	p.Orchestrator.Mu.Unlock()
	p.Refused(503, "dispatch_target_missing", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
	if d := p.Health()["dispatch"].(map[string]any); d["state"] != "missing" {
		t.Fatalf(`dispatch %v; want d["state"] == "missing"`, d)
	}
	p.Want(200, "GET", "/readyz", "", nil)
	p.Orchestrator.Mu.Lock()
	p.Orchestrator.Deployment, p.Orchestrator.Lacks = had, "is_dummy"
	p.Orchestrator.Mu.Unlock()
	p.Refused(503, "dispatch_target_missing", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
	if d := p.Health()["dispatch"].(map[string]any); d["state"] != "incompatible" {
		t.Fatalf(`dispatch %v; want d["state"] == "incompatible"`, d)
	}
}

// Acceptance row 13: one run for one key, and a conflict for another body.
func TestRow13Idempotency(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	body := map[string]any{"model_name": "jpcp", "dataset_name": "JobEmbeddings", "parameters": map[string]any{"seed": 7}}
	first := p.Want(200, "POST", "/retrain", controlplanetest.Operator, body, "Idempotency-Key", "k1")
	if first.Header.Get("Idempotency-Replayed") != "" {
		t.Fatal("the first answer claims to be a replay")
	}
	again := p.Want(200, "POST", "/retrain", controlplanetest.Operator, body, "X-Idempotency-Key", "k1")
	if again.Header.Get("Idempotency-Replayed") != "true" || again.Object(t)["flow_run_id"] != first.Object(t)["flow_run_id"] {
		t.Fatalf(`replay %v %s; want again.Header.Get("Idempotency-Replayed") == "true" && again.Object(t)["flow_run_id"] == first.Object(t)["flow_run_id"]`, again.Header, again.Body)
	}
	out := first.Object(t)
	if out["deployment"] != "training_flow/platform-dispatch" || out["status_url"] != "/retrain/"+out["flow_run_id"].(string) {
		t.Fatalf(`answer %v; want out["deployment"] == "training_flow/platform-dispatch" && out["status_url"] == "/retrain/" + out["flow_run_id"].(string)`, out)
	}
	body["is_dummy"] = true
	p.Refused(409, "idempotency_conflict", "POST", "/retrain", controlplanetest.Operator, body, "Idempotency-Key", "k1")
	// Another principal's key is another key.
	p.Want(200, "POST", "/retrain", controlplanetest.Legacy, body, "Idempotency-Key", "k1")
	// An equivalent body is the same request.
	for _, same := range []string{
		`{"model_name":"JPCP","dataset_name":"jobembeddings","is_dummy":true,"parameters":{"seed":7}}`,
		`{"parameters":{"seed":7},"is_dummy":true,"dataset_name":"JobEmbeddings","model_name":"jpcp"}`,
	} {
		if r := p.Want(200, "POST", "/retrain", controlplanetest.Legacy, same, "Idempotency-Key", "k1"); r.Header.Get("Idempotency-Replayed") != "true" {
			t.Fatalf(`%s: %s; want r.Header.Get("Idempotency-Replayed") == "true"`, same, r.Body)
		}
	}
	if n := len(p.Orchestrator.All()); n != 2 {
		t.Fatalf("%d flow runs; want 2", n)
	}
	p.Refused(400, "invalid_idempotency_key", "POST", "/retrain", controlplanetest.Operator, body, "Idempotency-Key", "a", "X-Idempotency-Key", "b")
	p.Refused(400, "invalid_idempotency_key", "POST", "/retrain", controlplanetest.Operator, body, "Idempotency-Key", strings.Repeat("k", 256))
	p.Refused(400, "invalid_idempotency_key", "POST", "/retrain", controlplanetest.Operator, body, "Idempotency-Key", "schlüssel")
	// A key whose dispatch failed may be sent again, and keeps its run.
	body["parameters"] = map[string]any{"seed": 8}
	p.Orchestrator.Set(controlplanetest.Down)
	p.Refused(502, "orchestrator_unreachable", "POST", "/retrain", controlplanetest.Operator, body, "Idempotency-Key", "k2")
	p.Orchestrator.Set(controlplanetest.Well)
	p.Want(200, "POST", "/retrain", controlplanetest.Operator, body, "Idempotency-Key", "k2")
	// After 30 days the key is new again.
	p.SQL("update control_plane.commands set created_at = now() - interval '31 days'")
	r := p.Want(200, "POST", "/retrain", controlplanetest.Operator, map[string]any{"model_name": "MACK", "dataset_name": "JobEmbeddings"}, "Idempotency-Key", "k1")
	if r.Header.Get("Idempotency-Replayed") != "" {
		t.Fatal("replayed after 30 days")
	}
}

// While a dispatch waits, the same key, the same training and requests over the limit are refused.
func TestDispatchesAtOnce(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "PREFECT_CB_FAIL_MAX=1000")
	p.AwaitTarget()
	p.Orchestrator.Set(controlplanetest.Hang)
	body := func(model string) map[string]any {
		return map[string]any{"model_name": model, "dataset_name": "JobEmbeddings"}
	}
	done := make(chan controlplanetest.Response, 2)
	for _, model := range []string{"JPCP", "MACK"} {
		go func() {
			r, _ := p.Try("POST", "/retrain", controlplanetest.Operator, body(model), "Idempotency-Key", model)
			done <- r
		}()
	}
	testenv.Eventually(t, 20*time.Second, func() error {
		if n := len(p.Audits("retrain.requested")); n != 2 {
			return fmt.Errorf("%d commands", n)
		}
		return nil
	})
	p.Refused(409, "command_in_progress", "POST", "/retrain", controlplanetest.Operator, body("JPCP"), "Idempotency-Key", "JPCP")
	p.Refused(429, "admission_full", "POST", "/retrain", controlplanetest.Operator, body("MCBound"))
	p.Orchestrator.Set(controlplanetest.Well)
	for range 2 {
		if r := <-done; r.Status != 200 && r.Status != 502 {
			t.Fatalf("%d %s; want (r.Status == 200 || r.Status == 502)", r.Status, r.Body)
		}
	}
}

// A record that is being approved is reported as such while no more dispatches are admitted, and so is an absent one.
func TestDecidedBeforeAdmission(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "PREFECT_CB_FAIL_MAX=1000")
	p.AwaitTarget()
	p.Notice("JPCP", "abc")
	p.Notice("MACK", "abc")
	p.Notice("MCBound", "abc")
	p.Orchestrator.Set(controlplanetest.Hang)
	var wg sync.WaitGroup
	for _, model := range []string{"JPCP", "MACK"} {
		wg.Go(func() { _, _ = p.Try("POST", "/approve/"+model, controlplanetest.Operator, nil) })
	}
	testenv.Eventually(t, 20*time.Second, func() error {
		if n := len(p.Audits("approval.approving")); n != 2 {
			return fmt.Errorf("%d commands", n)
		}
		return nil
	})
	p.Refused(409, "approval_in_progress", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
	p.Refused(404, "no_pending_approval", "POST", "/approve/NOPE", controlplanetest.Operator, nil)
	p.Refused(429, "admission_full", "POST", "/approve/MCBound", controlplanetest.Operator, nil)
	p.Orchestrator.Set(controlplanetest.Well)
	wg.Wait()
	p.Want(200, "POST", "/approve/MCBound", controlplanetest.Operator, nil)
}

// Of many concurrent requests with one key, one starts the run; the others get its answer, or a report that it is in
// progress.
func TestOneKeyAtOnce(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "RETRAIN_RATE_LIMIT_PER_MIN=0")
	p.AwaitTarget()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			r, err := p.Try("POST", "/retrain", controlplanetest.Operator, `{"model_name":"JPCP","dataset_name":"JobEmbeddings"}`, "Idempotency-Key", "one")
			if err != nil || r.Status != 200 && r.Code() != "command_in_progress" {
				t.Errorf(`%d %s %v; want (r.Status == 200 || r.Code() == "command_in_progress")`, r.Status, r.Body, err)
			}
		})
	}
	wg.Wait()
	if n := len(p.Orchestrator.All()); n != 1 {
		t.Fatalf("%d flow runs; want 1", n)
	}
}

// The same training twice at once, without keys: one is refused.
func TestRetrainInFlight(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "PREFECT_CB_FAIL_MAX=1000")
	p.AwaitTarget()
	p.Orchestrator.Set(controlplanetest.Hang)
	body := map[string]any{"model_name": "JPCP", "dataset_name": "JobEmbeddings"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = p.Try("POST", "/retrain", controlplanetest.Operator, body)
	}()
	testenv.Eventually(t, 20*time.Second, func() error {
		if n := len(p.Audits("retrain.requested")); n != 1 {
			return fmt.Errorf("%d commands", n)
		}
		return nil
	})
	p.Refused(409, "retrain_in_flight", "POST", "/retrain", controlplanetest.Operator, body)
	p.Orchestrator.Set(controlplanetest.Well)
	<-done
}

// Acceptance row 14: a malformed map refuses every bearer; another tenant's id is absent.
func TestRow14FailClosedAndForeignTenant(t *testing.T) {
	t.Parallel()
	t.Run("malformed", func(t *testing.T) {
		t.Parallel()
		p := controlplanetest.Neighbours(t, "CONTROL_PLANE_CREDENTIALS_JSON={")
		p.NoWait = true
		p.Serve()
		p.Refused(503, "auth_misconfigured", "GET", "/approvals", controlplanetest.Legacy, nil)
		p.Refused(503, "auth_misconfigured", "GET", "/approvals", "", nil)
		p.Want(200, "GET", "/models", "", nil)
		if h := p.Health(); !strings.HasPrefix(h["startup_checks"].(map[string]any)["token"].(string), "fail: ") || h["ready"] != false {
			t.Fatalf(`health %v; want strings.HasPrefix(h["startup_checks"].(map[string]any)["token"].(string), "fail: ") && h["ready"] == false`, h)
		}
		if r := p.Want(503, "GET", "/readyz", "", nil).Object(t); r["status"] != "not_ready" {
			t.Fatalf(`readyz %v; want r["status"] == "not_ready"`, r)
		}
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		p := controlplanetest.Neighbours(t, "CONTROL_PLANE_TOKEN=", "CONTROL_PLANE_CREDENTIALS_JSON=")
		p.Serve()
		p.Refused(503, "auth_not_configured", "GET", "/approvals", controlplanetest.Legacy, nil)
		if h := p.Health(); h["auth_configured"] != false {
			t.Fatalf(`health %v; want h["auth_configured"] == false`, h)
		}
	})
	t.Run("foreign", func(t *testing.T) {
		t.Parallel()
		p := controlplanetest.Start(t)
		id := p.Notice("JPCP", "abc")
		run := p.Want(200, "POST", "/retrain", controlplanetest.Operator, `{"model_name":"MACK","dataset_name":"JobEmbeddings"}`).Object(t)["flow_run_id"].(string)
		p.Tracker.Move(p.Staged("mack"), "Staging", "1")
		promotion := p.Want(200, "POST", "/promotions", controlplanetest.Operator, `{"model":"MACK"}`).Object(t)["id"].(string)
		p.Refused(404, "approval_not_found", "GET", "/approvals/"+id, controlplanetest.Foreign, nil)
		p.Refused(404, "approval_not_found", "POST", "/approvals/"+id+"/approve", controlplanetest.Foreign, nil)
		p.Refused(404, "approval_not_found", "POST", "/approvals/"+id+"/reject", controlplanetest.Foreign, nil)
		p.Refused(404, "no_pending_approval", "POST", "/approve/JPCP", controlplanetest.Foreign, nil)
		p.Refused(404, "run_not_found", "GET", "/retrain/"+run, controlplanetest.Foreign, nil)
		p.Refused(404, "run_not_found", "POST", "/retrain/"+run+"/cancel", controlplanetest.Foreign, nil)
		p.Refused(404, "promotion_not_found", "GET", "/promotions/"+promotion, controlplanetest.Foreign, nil)
		p.Refused(404, "promotion_not_found", "POST", "/promotions/"+promotion+"/approve", controlplanetest.Foreign, nil)
		for _, path := range []string{"/runs", "/promotions"} {
			if items := p.Want(200, "GET", path, controlplanetest.Foreign, nil).Object(t)["items"].([]any); len(items) != 0 {
				t.Errorf("%s: %v; want len(items) == 0", path, items)
			}
		}
		if list := p.Want(200, "GET", "/approvals", controlplanetest.Foreign, nil).List(t); len(list) != 0 {
			t.Errorf("approvals: %v; want len(list) == 0", list)
		}
		// The legacy credential finds runs of every tenant.
		theirs := p.Want(200, "POST", "/retrain", controlplanetest.Foreign, `{"model_name":"JPCP","dataset_name":"JobEmbeddings"}`).Object(t)["flow_run_id"].(string)
		p.Want(200, "GET", "/retrain/"+theirs, controlplanetest.Legacy, nil)
		p.Refused(404, "run_not_found", "GET", "/retrain/"+theirs, controlplanetest.Operator, nil)
	})
}

// Acceptance row 15: notices are limited, decisions still served.
func TestRow15RateLimit(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	limited := 0
	for i := range 200 {
		r := p.Call("POST", "/api/changes", controlplanetest.CI, map[string]any{"model_ids": []string{"JPCP"}, "commit_sha": fmt.Sprint("c", i)})
		switch r.Status {
		case 200:
		case 429:
			limited++
			if r.Code() != "rate_limited" || r.Header.Get("Retry-After") == "" || r.Header.Get("RateLimit-Remaining") != "0" || r.Header.Get("RateLimit-Limit") != "120" {
				t.Fatalf(`%s %v; want r.Code() == "rate_limited" && r.Header.Get("Retry-After") != "" && r.Header.Get("RateLimit-Remaining") == "0" && r.Header.Get("RateLimit-Limit") == "120"`, r.Body, r.Header)
			}
		default:
			t.Fatalf("%d %s", r.Status, r.Body)
		}
	}
	if limited != 80 {
		t.Fatalf("%d of 200 were limited; want 80", limited)
	}
	r := p.Want(200, "POST", "/reject/JPCP", controlplanetest.Operator, nil)
	if r.Header.Get("RateLimit-Limit") != "120" || r.Header.Get("RateLimit-Remaining") != "119" || r.Header.Get("RateLimit-Reset") == "" {
		t.Fatalf(`%v; want r.Header.Get("RateLimit-Limit") == "120" && r.Header.Get("RateLimit-Remaining") == "119" && r.Header.Get("RateLimit-Reset") != ""`, r.Header)
	}
	p.Want(200, "POST", "/api/changes", controlplanetest.Foreign, `{"model_ids":["JPCP"],"commit_sha":"x"}`) // another tenant has a separate count
}
