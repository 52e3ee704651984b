package controlplane_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
)

// Acceptance row 2: notice as ci, approve as operator, follow the run to its end.
func TestRow02NoticeApproveRun(t *testing.T) {
	t.Parallel()
	p := start(t, "CONTROL_PLANE_SEPARATION_OF_DUTIES=enforce")
	id := p.notice("jpcp", "abc1234")
	if rec := p.approval(id); rec["status"] != "pending" || rec["model_id"] != "JPCP" || rec["kind"] != "retrain" ||
		rec["origin"] != "ci" || rec["requested_by"] != "ci" || rec["tenant"] != "default" || rec["resolved_by"] != nil || rec["prefect_run_id"] != nil {
		t.Fatalf("record %v", rec)
	}
	if len(p.orchestrator.all()) != 0 {
		t.Fatal("a notice started a run")
	}
	out := p.want(200, "POST", "/approve/JPCP", operator, nil).object(t)
	run, _ := out["flow_run_id"].(string)
	if out["status"] != "approved" || out["approval_id"] != id || out["model_id"] != "JPCP" || out["status_url"] != "/retrain/"+run {
		t.Fatalf("answer %v", out)
	}
	rec := p.approval(id)
	if rec["status"] != "approved" || rec["prefect_run_id"] != run || rec["resolved_by"] != "operator" || rec["resolved_at"] == nil {
		t.Fatalf("record %v", rec)
	}
	sent := p.orchestrator.bodies[0]
	for k, want := range map[string]any{
		"model_name": "JPCP", "dataset_cls_name": "JobEmbeddings", "is_dummy": false, "backend_name": "local",
		"commit_sha": "abc1234", "tenant": "default", "requested_by": "operator", "approval_id": id,
	} {
		if sent[k] != want {
			t.Errorf("parameter %s is %v, want %v", k, sent[k], want)
		}
	}
	p.orchestrator.state(run, "RUNNING", "")
	testenv.Eventually(t, 15*time.Second, func() error {
		if len(p.events("job.started")) != 1 {
			return fmt.Errorf("no job.started")
		}
		return nil
	})
	p.orchestrator.state(run, "COMPLETED", "")
	testenv.Eventually(t, 15*time.Second, func() error {
		s := p.want(200, "GET", "/retrain/"+run, reader, nil).object(t)
		if s["state_type"] != "COMPLETED" || s["is_terminal"] != true || s["stale"] != false || s["model_id"] != "JPCP" || s["commit_sha"] != "abc1234" {
			return fmt.Errorf("status %v", s)
		}
		return nil
	})
	for _, name := range []string{"approval.created", "approval.approved", "job.dispatched", "job.completed"} {
		if got := p.events(name); len(got) != 1 || got[0].Tenant != "default" {
			t.Errorf("events %s: %v", name, got)
		}
	}
	for action, actor := range map[string]string{
		"approval.created": "ci", "approval.approving": "operator", "approval.approved": "operator", "run.completed": "system:follower",
	} {
		got := p.audits(action)
		if len(got) != 1 || got[0]["actor"] != actor || got[0]["target"] != "model:JPCP" || got[0]["outcome"] != "ok" || got[0]["source"] != "control-plane" {
			t.Errorf("audit %s: %v", action, got)
		}
	}
}

// Acceptance row 3: nobody approves their own request, and rejecting it is theirs to do.
func TestRow03SeparationOfDuties(t *testing.T) {
	t.Parallel()
	p := start(t, "CONTROL_PLANE_SEPARATION_OF_DUTIES=enforce")
	id := p.notice("JPCP", "abc")
	p.refused(403, "own_request", "POST", "/approve/JPCP", both, nil)
	p.refused(403, "own_request", "POST", "/approvals/"+id+"/approve", both, nil)
	if s := p.approval(id)["status"]; s != "pending" {
		t.Fatalf("status %v", s)
	}
	if got := p.audits("approval.approve"); len(got) != 2 || got[0]["outcome"] != "denied" || got[0]["actor"] != "ci" {
		t.Fatalf("audit %v", got)
	}
	p.want(200, "POST", "/reject/JPCP", both, `{"reason":"mistake"}`)
	if rec := p.approval(id); rec["status"] != "rejected" || rec["reject_reason"] != "mistake" || rec["resolved_by"] != "ci" {
		t.Fatalf("record %v", rec)
	}
	// The legacy credential is exempt.
	p.want(200, "POST", "/api/changes", legacy, `{"model_ids":["MACK"],"commit_sha":"x"}`)
	p.want(200, "POST", "/approve/MACK", legacy, nil)
}

// Acceptance row 4, as far as it is this service's: the alias moves, and its
// history names actor and instant.
func TestRow04Promote(t *testing.T) {
	t.Parallel()
	p := start(t)
	v := p.tracker.add("runtimeclass", good("accuracy", 0.9))
	p.tracker.models["runtimeclass"].versions[v].metrics["baseline_accuracy"] = 0.4
	p.want(200, "PUT", "/promotion-policies/RuntimeClass", operator, `{"metric":"accuracy","operator":"gte","threshold":0.5}`)
	p.tracker.move("runtimeclass", "Staging", v)
	before := time.Now().Add(-time.Second)
	out := p.want(200, "POST", "/promotions", operator, map[string]any{"model": "RuntimeClass", "approve": true, "reason": "looks good"}).object(t)
	if out["state"] != "promoted" || out["version"] != v || out["from"] != "Staging" || out["to"] != "Production" || out["allowed"] != true {
		t.Fatalf("answer %v", out)
	}
	if h := p.tracker.holder("runtimeclass", "Production"); h != v {
		t.Fatalf("Production is %q", h)
	}
	items := p.want(200, "GET", "/alias-history?model=runtimeclass&alias=production", reader, nil).object(t)["items"].([]any)
	first := items[0].(map[string]any)
	at, err := time.Parse(time.RFC3339, first["from"].(string))
	if len(items) != 1 || first["actor"] != "operator" || first["version"] != v || first["via"] != "promotion" || first["promotion_id"] != out["id"] || err != nil || at.Before(before) {
		t.Fatalf("history %v (%v)", items, err)
	}
	holder := p.want(200, "GET", "/alias-history?model=runtimeclass&alias=Production&at="+time.Now().UTC().Format(time.RFC3339Nano), reader, nil).object(t)["items"].([]any)
	if len(holder) != 1 {
		t.Fatalf("holder now %v", holder)
	}
	none := p.want(200, "GET", "/alias-history?model=runtimeclass&alias=Production&at=2020-01-01T00:00:00Z", reader, nil).object(t)["items"].([]any)
	if len(none) != 0 {
		t.Fatalf("holder in 2020 %v", none)
	}
	for name, tenant := range map[string]string{"deploy.alias_changed": "platform", "deploy.promoted": "platform"} {
		got := p.events(name)
		if len(got) == 0 || got[len(got)-1].Tenant != tenant || got[len(got)-1].Actor != "operator" || got[len(got)-1].Data["model"] != "RUNTIMECLASS" {
			t.Errorf("events %s: %v", name, got)
		}
	}
}

// Acceptance row 5: what must not be promoted is not, and says why.
func TestRow05PromotionDenied(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version trackedVersion
		before  func(*plane)
		reason  string
	}{
		"no policy": {good("rmse", 10.0), func(p *plane) { p.want(204, "DELETE", "/promotion-policies/JPCP", operator, nil) }, "no enabled promotion policy"},
		"policy disabled": {good("rmse", 10.0), func(p *plane) {
			p.want(200, "PUT", "/promotion-policies/JPCP", operator, `{"metric":"rmse","operator":"lte","threshold":50,"enabled":false}`)
		}, "no enabled promotion policy"},
		"metric not finite": {good("rmse", "NaN"), nil, "metric rmse is not finite"},
		"metric infinite":   {good("rmse", -math.MaxFloat64), nil, "metric rmse is not finite"}, // as the tracker keeps -Inf
		"metric absent":     {good("mae", 1.0), nil, "metric rmse is absent"},
		"metric too high":   {good("rmse", 70.0), nil, "rmse is 70; wanted ≤ 50"},
		"dummy": {trackedVersion{metrics: map[string]any{"rmse": 10.0}, tags: map[string]string{"artifact_digest": digest, "dummy": "true"}}, nil,
			"version 1 is a dummy; it goes no further than Staging"},
		"dummy by another word": {trackedVersion{metrics: map[string]any{"rmse": 10.0}, tags: map[string]string{"artifact_digest": digest, "dummy": " Yes"}}, nil,
			"version 1 is a dummy; it goes no further than Staging"},
		"dummy by its run": {trackedVersion{metrics: map[string]any{"rmse": 10.0}, tags: map[string]string{"artifact_digest": digest, "dummy": "false"}, runTags: map[string]string{"dummy": "true"}}, nil,
			"version 1 is a dummy; it goes no further than Staging"},
		"digest of another kind": {trackedVersion{metrics: map[string]any{"rmse": 10.0}, tags: map[string]string{"artifact_digest": strings.ToUpper(digest)}}, nil,
			"tag artifact_digest of version 1 is not 64 lower-case hexadecimal digits"},
		"no digest":    {trackedVersion{metrics: map[string]any{"rmse": 10.0}, tags: map[string]string{}}, nil, "version 1 has no tag artifact_digest"},
		"no signature": {trackedVersion{metrics: map[string]any{"rmse": 10.0}, unsigned: true}, nil, "version 1 has no signature of its inputs"},
		"evaluation missing": {good("rmse", 10.0), func(p *plane) {
			p.want(200, "PUT", "/promotion-policies/JPCP", operator, `{"metric":"rmse","operator":"lte","threshold":50,"require_eval":true}`)
		}, "the policy requires an evaluation, and none of version 1 is recorded"},
		"alias moved away": {good("rmse", 10.0), func(p *plane) { p.tracker.move("jpcp", "Staging", "") }, "no version holds Staging"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t)
			v := p.tracker.add("jpcp", c.version)
			p.tracker.move("jpcp", "Staging", v)
			if c.before != nil {
				c.before(p)
			}
			r := p.refused(409, "promotion_denied", "POST", "/promotions", operator, map[string]any{"model": "JPCP", "version": v, "approve": true}).object(t)
			reasons := fmt.Sprint(r["reasons"])
			if r["allowed"] != false || !strings.Contains(reasons, c.reason) {
				t.Fatalf("answer %v", r)
			}
			if h := p.tracker.holder("jpcp", "Production"); h != "" || p.tracker.sets != 0 {
				t.Fatalf("Production is %q after %d moves", h, p.tracker.sets)
			}
			if got := p.events("deploy.promotion_denied"); len(got) != 1 {
				t.Fatalf("events %v", got)
			}
			if got := p.audits("promotion.denied"); len(got) != 1 || got[0]["outcome"] != "denied" || got[0]["actor"] != "operator" {
				t.Fatalf("audit %v", got)
			}
			gate := p.want(200, "GET", "/promotions/jpcp/gate?version="+v, reader, nil).object(t)
			if gate["allowed"] != false || gate["approval"].(map[string]any)["required"] != true {
				t.Fatalf("gate %v", gate)
			}
			dry := p.want(200, "POST", "/promotions", operator, map[string]any{"model": "JPCP", "version": v, "dry_run": true}).object(t)
			if dry["allowed"] != false || dry["id"] != nil {
				t.Fatalf("dry run %v", dry)
			}
		})
	}
}

// Acceptance row 11: a stopped orchestrator gives 502 and leaves the record
// pending and the service ready; later the approval makes one run.
func TestRow11OrchestratorDown(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{down, broken, garbage, nameless} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := start(t, "PREFECT_CB_RESET_TIMEOUT=1")
			id := p.notice("JPCP", "row11")
			p.orchestrator.set(mode)
			p.refused(502, "orchestrator_unreachable", "POST", "/approve/JPCP", operator, nil)
			if s := p.approval(id)["status"]; s != "pending" {
				t.Fatalf("status %v", s)
			}
			p.want(200, "GET", "/readyz", "", nil)
			// Three attempts and then two: the breaker opens, and says when to come back.
			r := p.refused(502, "orchestrator_unreachable", "POST", "/approve/JPCP", operator, nil)
			if r.header.Get("Retry-After") == "" {
				t.Errorf("no Retry-After: %v", r.header)
			}
			if got := p.events("approval.dispatch_failed"); len(got) != 2 {
				t.Errorf("events %v", got)
			}
			p.orchestrator.set(well)
			var out map[string]any
			testenv.Eventually(t, 15*time.Second, func() error {
				r := p.call("POST", "/approve/JPCP", operator, nil)
				if r.status != 200 {
					return fmt.Errorf("%d %s", r.status, r.body)
				}
				out = r.object(t)
				return nil
			})
			if runs := p.orchestrator.all(); len(runs) != 1 || runs[0].ID != out["flow_run_id"] {
				t.Fatalf("flow runs %v", runs)
			}
		})
	}
}

// An orchestrator that hangs costs at most the budget, and a started run is found again.
func TestOrchestratorHangs(t *testing.T) {
	t.Parallel()
	p := start(t, "PREFECT_CB_FAIL_MAX=100")
	p.notice("JPCP", "hang")
	p.awaitTarget()
	p.orchestrator.set(swallow) // carried out, never answered
	begin := time.Now()
	p.refused(502, "orchestrator_unreachable", "POST", "/approve/JPCP", operator, nil)
	if took := time.Since(begin); took > 14*time.Second {
		t.Fatalf("took %v", took)
	}
	p.orchestrator.set(well)
	p.want(200, "POST", "/approve/JPCP", operator, nil)
	if runs := p.orchestrator.all(); len(runs) != 1 {
		t.Fatalf("%d flow runs", len(runs))
	}
}

// The orchestrator's own refusal is not retried; a missing deployment is told apart.
func TestOrchestratorRefuses(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.notice("JPCP", "x")
	p.awaitTarget()
	p.orchestrator.set(refusing)
	p.refused(502, "orchestrator_rejected", "POST", "/approve/JPCP", operator, nil)
	if p.orchestrator.creates != 1 {
		t.Fatalf("%d calls", p.orchestrator.creates)
	}
	p.orchestrator.set(well)
	p.orchestrator.mu.Lock()
	had := p.orchestrator.deployment
	p.orchestrator.deployment = nil
	p.orchestrator.mu.Unlock()
	p.refused(503, "dispatch_target_missing", "POST", "/approve/JPCP", operator, nil)
	if d := p.health()["dispatch"].(map[string]any); d["state"] != "missing" {
		t.Fatalf("dispatch %v", d)
	}
	p.want(200, "GET", "/readyz", "", nil)
	p.orchestrator.mu.Lock()
	p.orchestrator.deployment, p.orchestrator.lacks = had, "is_dummy"
	p.orchestrator.mu.Unlock()
	p.refused(503, "dispatch_target_missing", "POST", "/approve/JPCP", operator, nil)
	if d := p.health()["dispatch"].(map[string]any); d["state"] != "incompatible" {
		t.Fatalf("dispatch %v", d)
	}
}

// Acceptance row 13: one run for one key, and a conflict for another body.
func TestRow13Idempotency(t *testing.T) {
	t.Parallel()
	p := start(t)
	body := map[string]any{"model_name": "jpcp", "dataset_name": "JobEmbeddings", "parameters": map[string]any{"seed": 7}}
	first := p.want(200, "POST", "/retrain", operator, body, "Idempotency-Key", "k1")
	if first.header.Get("Idempotency-Replayed") != "" {
		t.Fatal("the first answer claims to be a replay")
	}
	again := p.want(200, "POST", "/retrain", operator, body, "X-Idempotency-Key", "k1")
	if again.header.Get("Idempotency-Replayed") != "true" || again.object(t)["flow_run_id"] != first.object(t)["flow_run_id"] {
		t.Fatalf("replay %v %s", again.header, again.body)
	}
	out := first.object(t)
	if out["deployment"] != "training_flow/platform-dispatch" || out["status_url"] != "/retrain/"+out["flow_run_id"].(string) {
		t.Fatalf("answer %v", out)
	}
	body["is_dummy"] = true
	p.refused(409, "idempotency_conflict", "POST", "/retrain", operator, body, "Idempotency-Key", "k1")
	// Another principal's key is another key.
	p.want(200, "POST", "/retrain", legacy, body, "Idempotency-Key", "k1")
	if n := len(p.orchestrator.all()); n != 2 {
		t.Fatalf("%d flow runs", n)
	}
	p.refused(400, "invalid_idempotency_key", "POST", "/retrain", operator, body, "Idempotency-Key", "a", "X-Idempotency-Key", "b")
	p.refused(400, "invalid_idempotency_key", "POST", "/retrain", operator, body, "Idempotency-Key", strings.Repeat("k", 256))
	p.refused(400, "invalid_idempotency_key", "POST", "/retrain", operator, body, "Idempotency-Key", "schlüssel")
	// A key whose dispatch failed may be sent again, and keeps its run.
	body["parameters"] = map[string]any{"seed": 8}
	p.orchestrator.set(down)
	p.refused(502, "orchestrator_unreachable", "POST", "/retrain", operator, body, "Idempotency-Key", "k2")
	p.orchestrator.set(well)
	p.want(200, "POST", "/retrain", operator, body, "Idempotency-Key", "k2")
	// After 30 days the key is new again.
	p.sql("update control_plane.commands set created_at = now() - interval '31 days'")
	r := p.want(200, "POST", "/retrain", operator, map[string]any{"model_name": "MACK", "dataset_name": "JobEmbeddings"}, "Idempotency-Key", "k1")
	if r.header.Get("Idempotency-Replayed") != "" {
		t.Fatal("replayed after 30 days")
	}
}

// While a dispatch waits, the same key, the same training and too many others are refused.
func TestDispatchesAtOnce(t *testing.T) {
	t.Parallel()
	p := start(t, "PREFECT_CB_FAIL_MAX=1000")
	p.awaitTarget()
	p.orchestrator.set(hang)
	body := func(model string) map[string]any {
		return map[string]any{"model_name": model, "dataset_name": "JobEmbeddings"}
	}
	done := make(chan response, 2)
	for _, model := range []string{"JPCP", "MACK"} {
		go func() {
			r, _ := p.try("POST", "/retrain", operator, body(model), "Idempotency-Key", model)
			done <- r
		}()
	}
	testenv.Eventually(t, 5*time.Second, func() error {
		if n := len(p.audits("retrain.requested")); n != 2 {
			return fmt.Errorf("%d commands", n)
		}
		return nil
	})
	p.refused(409, "command_in_progress", "POST", "/retrain", operator, body("JPCP"), "Idempotency-Key", "JPCP")
	p.refused(429, "admission_full", "POST", "/retrain", operator, body("MCBound"))
	p.orchestrator.set(well)
	for range 2 {
		if r := <-done; r.status != 200 && r.status != 502 {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
}

// A record that is being approved says so while no more dispatches are admitted,
// and so does one that is not there.
func TestDecidedBeforeAdmission(t *testing.T) {
	t.Parallel()
	p := start(t, "PREFECT_CB_FAIL_MAX=1000")
	p.awaitTarget()
	p.notice("JPCP", "abc")
	p.notice("MACK", "abc")
	p.notice("MCBound", "abc")
	p.orchestrator.set(hang)
	var wg sync.WaitGroup
	for _, model := range []string{"JPCP", "MACK"} {
		wg.Go(func() { _, _ = p.try("POST", "/approve/"+model, operator, nil) })
	}
	testenv.Eventually(t, 5*time.Second, func() error {
		if n := len(p.audits("approval.approving")); n != 2 {
			return fmt.Errorf("%d commands", n)
		}
		return nil
	})
	p.refused(409, "approval_in_progress", "POST", "/approve/JPCP", operator, nil)
	p.refused(404, "no_pending_approval", "POST", "/approve/NOPE", operator, nil)
	p.refused(429, "admission_full", "POST", "/approve/MCBound", operator, nil)
	p.orchestrator.set(well)
	wg.Wait()
	p.want(200, "POST", "/approve/MCBound", operator, nil)
}

// Of many requests with one key at once, one starts the run; the others get its
// answer, or are told that it is in progress.
func TestOneKeyAtOnce(t *testing.T) {
	t.Parallel()
	p := start(t, "RETRAIN_RATE_LIMIT_PER_MIN=0")
	p.awaitTarget()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			r, err := p.try("POST", "/retrain", operator, `{"model_name":"JPCP","dataset_name":"JobEmbeddings"}`, "Idempotency-Key", "one")
			if err != nil || r.status != 200 && r.code() != "command_in_progress" {
				t.Errorf("%d %s %v", r.status, r.body, err)
			}
		})
	}
	wg.Wait()
	if n := len(p.orchestrator.all()); n != 1 {
		t.Fatalf("%d flow runs", n)
	}
}

// The same training twice at once, without keys: one is refused.
func TestRetrainInFlight(t *testing.T) {
	t.Parallel()
	p := start(t, "PREFECT_CB_FAIL_MAX=1000")
	p.awaitTarget()
	p.orchestrator.set(hang)
	body := map[string]any{"model_name": "JPCP", "dataset_name": "JobEmbeddings"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = p.try("POST", "/retrain", operator, body)
	}()
	testenv.Eventually(t, 5*time.Second, func() error {
		if n := len(p.audits("retrain.requested")); n != 1 {
			return fmt.Errorf("%d commands", n)
		}
		return nil
	})
	p.refused(409, "retrain_in_flight", "POST", "/retrain", operator, body)
	p.orchestrator.set(well)
	<-done
}

// Acceptance row 14: a malformed map refuses every bearer; another tenant's id is absent.
func TestRow14FailClosedAndForeignTenant(t *testing.T) {
	t.Parallel()
	t.Run("malformed", func(t *testing.T) {
		t.Parallel()
		p := neighbours(t, "CONTROL_PLANE_CREDENTIALS_JSON={")
		p.noWait = true
		p.serve()
		p.refused(503, "auth_misconfigured", "GET", "/approvals", legacy, nil)
		p.refused(503, "auth_misconfigured", "GET", "/approvals", "", nil)
		p.want(200, "GET", "/models", "", nil)
		if h := p.health(); !strings.HasPrefix(h["startup_checks"].(map[string]any)["token"].(string), "fail: ") || h["ready"] != false {
			t.Fatalf("health %v", h)
		}
		if r := p.want(503, "GET", "/readyz", "", nil).object(t); r["status"] != "not_ready" {
			t.Fatalf("readyz %v", r)
		}
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		p := neighbours(t, "CONTROL_PLANE_TOKEN=", "CONTROL_PLANE_CREDENTIALS_JSON=")
		p.serve()
		p.refused(503, "auth_not_configured", "GET", "/approvals", legacy, nil)
		if h := p.health(); h["auth_configured"] != false {
			t.Fatalf("health %v", h)
		}
	})
	t.Run("foreign", func(t *testing.T) {
		t.Parallel()
		p := start(t)
		id := p.notice("JPCP", "abc")
		run := p.want(200, "POST", "/retrain", operator, `{"model_name":"MACK","dataset_name":"JobEmbeddings"}`).object(t)["flow_run_id"].(string)
		p.tracker.move(p.staged("mack"), "Staging", "1")
		promotion := p.want(200, "POST", "/promotions", operator, `{"model":"MACK"}`).object(t)["id"].(string)
		p.refused(404, "approval_not_found", "GET", "/approvals/"+id, foreign, nil)
		p.refused(404, "approval_not_found", "POST", "/approvals/"+id+"/approve", foreign, nil)
		p.refused(404, "approval_not_found", "POST", "/approvals/"+id+"/reject", foreign, nil)
		p.refused(404, "no_pending_approval", "POST", "/approve/JPCP", foreign, nil)
		p.refused(404, "run_not_found", "GET", "/retrain/"+run, foreign, nil)
		p.refused(404, "run_not_found", "POST", "/retrain/"+run+"/cancel", foreign, nil)
		p.refused(404, "promotion_not_found", "GET", "/promotions/"+promotion, foreign, nil)
		p.refused(404, "promotion_not_found", "POST", "/promotions/"+promotion+"/approve", foreign, nil)
		for _, path := range []string{"/runs", "/promotions"} {
			if items := p.want(200, "GET", path, foreign, nil).object(t)["items"].([]any); len(items) != 0 {
				t.Errorf("%s: %v", path, items)
			}
		}
		if list := p.want(200, "GET", "/approvals", foreign, nil).list(t); len(list) != 0 {
			t.Errorf("approvals: %v", list)
		}
		// The legacy credential looks runs up operator-wide.
		theirs := p.want(200, "POST", "/retrain", foreign, `{"model_name":"JPCP","dataset_name":"JobEmbeddings"}`).object(t)["flow_run_id"].(string)
		p.want(200, "GET", "/retrain/"+theirs, legacy, nil)
		p.refused(404, "run_not_found", "GET", "/retrain/"+theirs, operator, nil)
	})
}

// staged registers a version that would pass the sample policies.
func (p *plane) staged(model string) string {
	p.tracker.add(model, trackedVersion{metrics: map[string]any{"accuracy": 0.95, "rmse": 10.0}})
	return model
}

// Acceptance row 15: notices are limited, decisions still served.
func TestRow15RateLimit(t *testing.T) {
	t.Parallel()
	p := start(t)
	limited := 0
	for i := range 200 {
		r := p.call("POST", "/api/changes", ci, map[string]any{"model_ids": []string{"JPCP"}, "commit_sha": fmt.Sprint("c", i)})
		switch r.status {
		case 200:
		case 429:
			limited++
			if r.code() != "rate_limited" || r.header.Get("Retry-After") == "" || r.header.Get("RateLimit-Remaining") != "0" || r.header.Get("RateLimit-Limit") != "120" {
				t.Fatalf("%s %v", r.body, r.header)
			}
		default:
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	if limited != 80 {
		t.Fatalf("%d of 200 were limited", limited)
	}
	r := p.want(200, "POST", "/reject/JPCP", operator, nil)
	if r.header.Get("RateLimit-Limit") != "120" || r.header.Get("RateLimit-Remaining") != "119" || r.header.Get("RateLimit-Reset") == "" {
		t.Fatalf("%v", r.header)
	}
	p.want(200, "POST", "/api/changes", foreign, `{"model_ids":["JPCP"],"commit_sha":"x"}`) // another tenant's own count
}
