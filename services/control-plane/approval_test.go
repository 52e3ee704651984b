package controlplane_test

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	controlplane "github.com/mlp-platform/platform/services/control-plane"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// A second notice of the same commit finds its record; another commit supersedes it, so that an approver decides on the
// change they saw.
func TestNoticesSupersede(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	first := p.Notice("JPCP", "commit1")
	again := p.Want(200, "POST", "/api/changes", controlplanetest.CI, `{"model_ids":["jpcp","JPCP"],"commit_sha":"commit1"}`).Object(t)
	if len(again["created"].([]any)) != 0 || again["existing"].([]any)[0] != first {
		t.Fatalf(`again %v; want len(again["created"].([]any)) == 0 && again["existing"].([]any)[0] == first`, again)
	}
	out := p.Want(200, "POST", "/api/changes", controlplanetest.CI, `{"model_ids":["JPCP","NEW"],"commit_sha":"commit2"}`).Object(t)
	if len(out["created"].([]any)) != 2 || out["superseded"].([]any)[0] != first || !strings.Contains(fmt.Sprint(out["warnings"]), "NEW") {
		t.Fatalf(`second %v; want len(out["created"].([]any)) == 2 && out["superseded"].([]any)[0] == first && strings.Contains(fmt.Sprint(out["warnings"]), "NEW")`, out)
	}
	second := out["created"].([]any)[0].(string)
	if rec := p.Approval(first); rec["status"] != "expired" || rec["reject_reason"] != "superseded by "+second {
		t.Fatalf(`record %v; want rec["status"] == "expired" && rec["reject_reason"] == "superseded by " + second`, rec)
	}
	r := p.Refused(409, "approval_changed", "POST", "/approve/JPCP", controlplanetest.Operator, map[string]any{"approval_id": first}).Object(t)
	if r["approval_id"] != second {
		t.Fatalf(`refusal %v; want r["approval_id"] == %v`, r, second)
	}
	p.Refused(409, "already_decided", "POST", "/approvals/"+first+"/approve", controlplanetest.Operator, nil)
	p.Refused(400, "no_dataset", "POST", "/approve/NEW", controlplanetest.Operator, nil)
	p.Refused(400, "unknown_dataset", "POST", "/approve/JPCP", controlplanetest.Operator, `{"dataset_name":"IpscJobs"}`)
	p.Want(200, "POST", "/approve/JPCP", controlplanetest.Operator, map[string]any{"approval_id": second, "backend_name": "object_store", "reason": "why not"})
	if b := p.Orchestrator.Bodies[0]; b["backend_name"] != "object_store" || b["commit_sha"] != "commit2" {
		t.Fatalf(`parameters %v; want b["backend_name"] == "object_store" && b["commit_sha"] == "commit2"`, b)
	}
	if got := p.Audits("approval.approved"); got[0]["details"].(map[string]any)["reason"] != "why not" {
		t.Fatalf(`audit %v; want got[0]["details"].(map[string]any)["reason"] == "why not"`, got)
	}
	// Another tenant's records are its own.
	p.Want(200, "POST", "/api/changes", controlplanetest.Foreign, `{"model_ids":["JPCP"],"commit_sha":"commit1"}`)
	newest := p.Want(200, "GET", "/approvals", controlplanetest.Reader, nil).List(t)
	if len(newest) != 3 || newest[0]["requested_at"].(string) < newest[2]["requested_at"].(string) {
		t.Fatalf(`list %v; want len(newest) == 3 && newest[0]["requested_at"].(string) >= newest[2]["requested_at"].(string)`, newest)
	}
	if l := p.Want(200, "GET", "/approvals?status=expired", controlplanetest.Reader, nil).List(t); len(l) != 1 || l[0]["id"] != first {
		t.Fatalf(`expired %v; want len(l) == 1 && l[0]["id"] == first`, l)
	}
}

// Ten approvals at once start one run.
func TestApproveAtOnce(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "ADMISSION_MAX_RUNNING=100", "ADMISSION_PER_TENANT=100")
	id := p.Notice("JPCP", "abc")
	var mu sync.Mutex
	codes := map[string]int{}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			r, err := p.Try("POST", "/approvals/"+id+"/approve", controlplanetest.Operator, nil)
			mu.Lock()
			defer mu.Unlock()
			codes[fmt.Sprint(r.Status, " ", r.Code(), err)]++
		})
	}
	wg.Wait()
	ok := 0
	for k, n := range codes {
		switch {
		case strings.HasPrefix(k, "200"):
			ok += n
		case !strings.HasPrefix(k, "409 already_decided") && !strings.HasPrefix(k, "409 approval_in_progress"):
			t.Errorf("%s: %d times", k, n)
		}
	}
	if runs := p.Orchestrator.All(); ok != 1 || len(runs) != 1 || p.Orchestrator.Creates != 1 {
		t.Fatalf("answers %v, %d runs; want ok == 1 && len(runs) == 1 && p.Orchestrator.Creates == 1", codes, len(runs))
	}
}

// Records expire by age, on a decision as well as by the sweep.
func TestExpiry(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "APPROVAL_EXPIRY_HOURS=1")
	id := p.Notice("JPCP", "abc")
	if p.Approval(id)["expires_at"] == nil {
		t.Fatal("no expires_at")
	}
	p.SQL("update control_plane.approvals set expires_at = now() - interval '1 second' where id = $1", id)
	p.Refused(404, "no_pending_approval", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
	if rec := p.Approval(id); rec["status"] != "expired" || rec["reject_reason"] != "not decided within 1h0m0s" {
		t.Fatalf(`record %v; want rec["status"] == "expired" && rec["reject_reason"] == "not decided within 1h0m0s"`, rec)
	}
	if got := p.Events("approval.expired"); len(got) != 1 || got[0].Actor != "system:expiry" {
		t.Fatalf(`events %v; want len(got) == 1 && got[0].Actor == "system:expiry"`, got)
	}
	if m := string(p.Want(200, "GET", "/metrics", "", nil).Body); !strings.Contains(m, "platform_approvals_expired_total 1") {
		t.Fatal("not counted")
	}
}

// A notice that arrives during a failing dispatch of the older one supersedes it.
func TestSupersededWhileApproving(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "PREFECT_CB_FAIL_MAX=1000")
	p.AwaitTarget()
	first := p.Notice("JPCP", "commit1")
	p.Orchestrator.Set(controlplanetest.Hang)
	done := make(chan controlplanetest.Response, 1)
	go func() {
		r, _ := p.Try("POST", "/approve/JPCP", controlplanetest.Operator, nil)
		done <- r
	}()
	testenv.Eventually(t, 20*time.Second, func() error {
		if s := p.Approval(first)["status"]; s != "approving" {
			return fmt.Errorf("status %v", s)
		}
		return nil
	})
	p.Refused(409, "approval_in_progress", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
	p.Refused(409, "approval_in_progress", "POST", "/reject/JPCP", controlplanetest.Operator, nil)
	second := p.Notice("JPCP", "commit2")
	if r := <-done; r.Status != 502 {
		t.Fatalf("%d %s; want r.Status == 502", r.Status, r.Body)
	}
	if rec := p.Approval(first); rec["status"] != "expired" || rec["reject_reason"] != "superseded by "+second {
		t.Fatalf(`record %v; want rec["status"] == "expired" && rec["reject_reason"] == "superseded by " + second`, rec)
	}
	p.Orchestrator.Set(controlplanetest.Well)
	if out := p.Want(200, "POST", "/approve/JPCP", controlplanetest.Operator, nil).Object(t); out["approval_id"] != second {
		t.Fatalf(`answer %v; want out["approval_id"] == %v`, out, second)
	}
}

// Runs are followed, can be cancelled, are stale while the orchestrator is away,
// and lost when it forgets them.
func TestRuns(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	retrain := func(model string) string {
		return p.Want(200, "POST", "/retrain", controlplanetest.Operator, map[string]any{"model_name": model, "dataset_name": "JobEmbeddings"}).Object(t)["flow_run_id"].(string)
	}
	run := retrain("JPCP")
	if got := p.Want(200, "GET", "/modelrepo/status", controlplanetest.Reader, nil).Object(t)["models"].([]any)[0].(map[string]any); got["model_id"] != "JPCP" || got["active_run"] != run || got["retrain_triggered_at"] == nil || got["status"] != "unknown" {
		t.Fatalf(`freshness %v; want got["model_id"] == "JPCP" && got["active_run"] == run && got["retrain_triggered_at"] != nil && got["status"] == "unknown"`, got)
	}
	out := p.Want(202, "POST", "/retrain/"+run+"/cancel", controlplanetest.Operator, nil).Object(t)
	if out["state_type"] != "CANCELLING" || out["is_terminal"] != false {
		t.Fatalf(`cancel %v; want out["state_type"] == "CANCELLING" && out["is_terminal"] == false`, out)
	}
	p.Orchestrator.State(run, "CANCELLED", "by hand")
	testenv.Eventually(t, 15*time.Second, func() error {
		if n := len(p.Events("job.cancelled")); n != 1 {
			return fmt.Errorf("%d events", n)
		}
		return nil
	})
	p.Refused(409, "run_ended", "POST", "/retrain/"+run+"/cancel", controlplanetest.Operator, nil)
	failed := retrain("MACK")
	p.Orchestrator.State(failed, "FAILED", "no rows")
	lost := retrain("MCBound")
	p.Orchestrator.Forget(lost)
	p.SQL("update control_plane.runs set unknown_since = now() - interval '11 minutes' where flow_run_id = $1", lost)
	testenv.Eventually(t, 15*time.Second, func() error {
		f, l := p.Events("job.failed"), p.Events("job.lost")
		if len(f) != 1 || f[0].Data["reason"] != "no rows" || len(l) != 1 {
			return fmt.Errorf("%v %v", f, l)
		}
		return nil
	})
	if s := p.Want(200, "GET", "/retrain/"+lost, controlplanetest.Reader, nil).Object(t); s["state_type"] != "CRASHED" || s["is_terminal"] != true {
		t.Fatalf(`lost run %v; want s["state_type"] == "CRASHED" && s["is_terminal"] == true`, s)
	}
	// While the orchestrator is away the record is shown, marked as stale.
	away := retrain("JPCP")
	p.Orchestrator.Set(controlplanetest.Down)
	p.SQL("update control_plane.runs set checked_at = now() - interval '1 minute' where flow_run_id = $1", away)
	if s := p.Want(200, "GET", "/retrain/"+away, controlplanetest.Reader, nil).Object(t); s["stale"] != true || s["is_terminal"] != false {
		t.Fatalf(`status %v; want s["stale"] == true && s["is_terminal"] == false`, s)
	}
	p.Refused(502, "orchestrator_unreachable", "POST", "/retrain/"+away+"/cancel", controlplanetest.Operator, nil)
	for model, state := range map[string]string{"MACK": "FAILED", "MCBOUND": "CRASHED", "JPCP": "CANCELLED"} {
		line := fmt.Sprintf("platform_runs_total{model_id=%q,state=%q} 1", model, state)
		if m := string(p.Want(200, "GET", "/metrics", "", nil).Body); !strings.Contains(m, line) {
			t.Errorf("metrics lack %s; want strings.Contains(m, line)", line)
		}
	}
}

// Redis coordinates as Postgres does. While it is unavailable retrains are refused, and each process limits decisions
// on its own.
func TestRedisCoordinator(t *testing.T) {
	t.Parallel()
	t.Run("there", func(t *testing.T) {
		t.Parallel()
		p := controlplanetest.Start(t, "REDIS_URL="+testenv.Redis(t), "RETRAIN_RATE_LIMIT_PER_MIN=1000000")
		testenv.Eventually(t, 20*time.Second, func() error {
			if r := p.Health()["runtime"].(map[string]any); r["configured_coordinator"] != "redis" || r["active_coordination"] != "redis" {
				return fmt.Errorf(`runtime %v; want r["configured_coordinator"] == "redis" && r["active_coordination"] == "redis"`, r)
			}
			return nil
		})
		p.Notice("JPCP", "abc")
		p.Want(200, "POST", "/approve/JPCP", controlplanetest.Operator, nil)
		p.Want(200, "POST", "/retrain", controlplanetest.Operator, `{"model_name":"MACK","dataset_name":"JobEmbeddings"}`)
	})
	t.Run("away", func(t *testing.T) {
		t.Parallel()
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := ln.Addr().String()
		_ = ln.Close()
		p := controlplanetest.Start(t, "REDIS_URL=redis://"+addr, "DECISION_RATE_LIMIT_PER_MIN=3")
		p.Refused(503, "coordinator_unavailable", "POST", "/retrain", controlplanetest.Operator, `{"model_name":"JPCP","dataset_name":"JobEmbeddings"}`)
		id := p.Notice("JPCP", "abc")
		p.Want(200, "POST", "/approvals/"+id+"/approve", controlplanetest.Operator, nil)
		testenv.Eventually(t, 20*time.Second, func() error {
			h := p.Health()
			if r := h["runtime"].(map[string]any); r["active_coordination"] != "none" || !strings.Contains(fmt.Sprint(r["horizontal_scaling_blockers"]), "coordinator_unreachable") {
				return fmt.Errorf(`runtime %v; want r["active_coordination"] == "none" && strings.Contains(fmt.Sprint(r["horizontal_scaling_blockers"]), "coordinator_unreachable")`, r)
			}
			if h["status"] != "degraded" || h["ready"] != true || h["circuit_breaker"].(map[string]any)["state"] != "unknown" {
				return fmt.Errorf(`health %v; want h["status"] == "degraded" && h["ready"] == true && h["circuit_breaker"].(map[string]any)["state"] == "unknown"`, h)
			}
			return nil
		})
		p.Refused(404, "no_pending_approval", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
		p.Refused(404, "no_pending_approval", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
		p.Refused(429, "rate_limited", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
	})
}

// Two replicas on one database share limits, leader and commands.
func TestTwoReplicas(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "DECISION_RATE_LIMIT_PER_MIN=4")
	one := p.URL
	p.Serve()
	two := p.URL
	run := p.Want(200, "POST", "/retrain", controlplanetest.Operator, `{"model_name":"MACK","dataset_name":"JobEmbeddings"}`, "Idempotency-Key", "k").Object(t)["flow_run_id"].(string)
	p.URL = one
	r := p.Want(200, "POST", "/retrain", controlplanetest.Operator, `{"model_name":"MACK","dataset_name":"JobEmbeddings"}`, "Idempotency-Key", "k")
	if r.Header.Get("Idempotency-Replayed") != "true" || r.Object(t)["flow_run_id"] != run {
		t.Fatalf(`%v %s; want r.Header.Get("Idempotency-Replayed") == "true" && r.Object(t)["flow_run_id"] == run`, r.Header, r.Body)
	}
	for i := range 4 {
		p.URL = []string{one, two}[i%2]
		p.Refused(404, "no_pending_approval", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
	}
	p.Refused(429, "rate_limited", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
	p.Orchestrator.State(run, "COMPLETED", "")
	testenv.Eventually(t, 20*time.Second, func() error {
		if n := len(p.Events("job.completed")); n != 1 {
			return fmt.Errorf("%d events", n)
		}
		return nil
	})
	if n := len(p.Events("job.started")); n != 0 { // never seen running
		t.Errorf("%d events job.started; want 0", n)
	}
}

// A version trained from the head of the model repository makes the model
// current; one from another commit does not.
func TestFreshness(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	p.SQL(`insert into control_plane.freshness (model_id, status, latest_modelrepo_commit, stale_since, updated_at) values ('JPCP', 'stale', 'c0ffee1', now(), now())`)
	status := func() map[string]any {
		for _, m := range p.Want(200, "GET", "/modelrepo/status", controlplanetest.Reader, nil).Object(t)["models"].([]any) {
			if m.(map[string]any)["model_id"] == "JPCP" {
				return m.(map[string]any)
			}
		}
		return nil
	}
	complete := func(run string, v controlplanetest.Version, commit string) {
		v.RunTags = map[string]string{"prefect_flow_run_id": run, "modelrepo_commit": commit}
		p.Report("JPCP", p.Tracker.Add("jpcp", v))
		p.Orchestrator.State(run, "COMPLETED", "")
		testenv.Eventually(t, 15*time.Second, func() error {
			if s := p.Want(200, "GET", "/retrain/"+run, controlplanetest.Reader, nil).Object(t); s["is_terminal"] != true {
				return fmt.Errorf("run %v", s)
			}
			return nil
		})
	}
	finish := func(v controlplanetest.Version, commit string) {
		complete(p.Want(200, "POST", "/retrain", controlplanetest.Operator, `{"model_name":"JPCP","dataset_name":"JobEmbeddings"}`).Object(t)["flow_run_id"].(string), v, commit)
	}
	finish(controlplanetest.Good("rmse", 20.0), "another")
	if s := status(); s["status"] != "stale" || s["last_retrain_commit"] != "another" {
		t.Fatalf(`freshness %v; want s["status"] == "stale" && s["last_retrain_commit"] == "another"`, s)
	}
	finish(controlplanetest.Version{Metrics: map[string]any{"rmse": 1.0}, Tags: map[string]string{"dummy": "true"}}, "c0ffee1")
	if s := status(); s["status"] != "stale" {
		t.Fatalf(`freshness after a dummy %v; want s["status"] == "stale"`, s)
	}
	// Requested from that commit, but trained from files that no commit holds.
	p.Notice("JPCP", "c0ffee1")
	complete(p.Want(200, "POST", "/approve/JPCP", controlplanetest.Operator, map[string]any{"dataset_name": "JobEmbeddings"}).Object(t)["flow_run_id"].(string),
		controlplanetest.Good("rmse", 20.0), "")
	if s := status(); s["status"] != "stale" || s["last_retrain_commit"] != "another" {
		t.Fatalf("freshness after a version that claims no commit %v; want stale, still from another", s)
	}
	finish(controlplanetest.Good("rmse", 20.0), "c0ffee1")
	if s := status(); s["status"] != "current" || s["stale_since"] != nil || s["last_retrain_commit"] != "c0ffee1" {
		t.Fatalf(`freshness %v; want s["status"] == "current" && s["stale_since"] == nil && s["last_retrain_commit"] == "c0ffee1"`, s)
	}
	if got := p.Events("event.freshness_changed"); len(got) != 1 || got[0].Tenant != "platform" || got[0].Data["previous"] != "stale" {
		t.Fatalf(`events %v; want len(got) == 1 && got[0].Tenant == "platform" && got[0].Data["previous"] == "stale"`, got)
	}
}

// All configuration errors are reported together, and placeholders prevent the start.
func TestConfig(t *testing.T) {
	t.Parallel()
	_, err := controlplane.LoadConfig([]string{
		"CONTROL_PLANE_TOKEN=changeme", "CONTROL_PLANE_SEPARATION_OF_DUTIES=maybe", "PREFECT_API_URL=nowhere", "PREFECT_DEPLOYMENT_NAME=x",
		"ADMISSION_PER_TENANT=0", "COMMAND_LEASE_SECONDS=1", "PROMOTION_APPROVAL_MODE_DEFAULT=never",
	})
	for _, name := range []string{
		"PLATFORM_DATABASE_URL", "CONTROL_PLANE_TOKEN", "CONTROL_PLANE_SEPARATION_OF_DUTIES", "PREFECT_API_URL", "PREFECT_DEPLOYMENT_NAME",
		"ADMISSION_PER_TENANT", "COMMAND_LEASE_SECONDS", "PROMOTION_APPROVAL_MODE_DEFAULT",
	} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not name %s: %v; want an error && strings.Contains(err.Error(), name)", name, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "changeme") {
		t.Errorf(`the error shows the secret: %v; want (err == nil || !strings.Contains(err.Error(), "changeme"))`, err)
	}
}
