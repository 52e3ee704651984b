package controlplane_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// expectOneFact asserts that a state change of a record wrote exactly one event and one audit fact with this actor.
func expectOneFact(p *controlplanetest.Plane, id, event, action, actor string) {
	p.T.Helper()
	n := 0
	for _, e := range p.Events(event) {
		if e.Data["id"] == id && e.Actor == actor {
			n++
		}
	}
	if event != "" && n != 1 {
		p.T.Errorf(`%d events %s of %s by %s; want (event == "" || n == 1)`, n, event, id, actor)
	}
	n = 0
	for _, a := range p.Audits(action) {
		if a["details"].(doc)["approval_id"] == id && a["actor"] == actor {
			n++
		}
	}
	if n != 1 {
		p.T.Errorf("%d audit facts %s of %s by %s: %v; want n == 1", n, action, id, actor, p.Audits(action))
	}
}

// How approval records change state.
func TestContractApprovalStates(t *testing.T) {
	t.Parallel()
	p := startForWalk(t, "PREFECT_CB_FAIL_MAX=1000", "APPROVAL_EXPIRY_HOURS=72")
	p.AwaitTarget()
	row := func(name string, f func(t *testing.T, p *controlplanetest.Plane)) {
		t.Helper()
		t.Run(name, func(t *testing.T) { f(t, onSubtest(t, p)) })
	}
	row("none_→_pending", func(t *testing.T, p *controlplanetest.Plane) {
		ids := p.Want(200, "POST", "/api/changes", all, doc{"model_ids": []string{"JPCP", "MACK"}, "commit_sha": "a"}).Object(t)["created"].([]any)
		if len(ids) != 2 {
			t.Fatalf("one record per model id: %v; want len(ids) == 2", ids)
		}
		for _, id := range ids {
			a := p.Approval(id.(string))
			if a["status"] != "pending" || a["tenant"] != "default" || a["requested_by"] != "walker" || a["resolved_by"] != nil || a["resolved_at"] != nil {
				t.Error(a, `want a["status"] == "pending" && a["tenant"] == "default" && a["requested_by"] == "walker" && a["resolved_by"] == nil && a["resolved_at"] == nil`)
			}
			from, err1 := time.Parse(time.RFC3339, a["requested_at"].(string))
			until, err2 := time.Parse(time.RFC3339, a["expires_at"].(string))
			if err1 != nil || err2 != nil || until.Sub(from).Round(time.Second) != 72*time.Hour {
				t.Errorf("expires %v after %v; want until.Sub(from).Round(time.Second) == 72 * time.Hour", until, from)
			}
			expectOneFact(p, id.(string), "approval.created", "approval.created", "walker")
		}
		if n := len(p.Orchestrator.All()); n != 0 {
			t.Errorf("%d runs; want 0", n)
		}
	})
	row("pending_→_approving_→_approved", func(t *testing.T, p *controlplanetest.Plane) {
		id := p.Notice("JPCP", "b")
		p.Orchestrator.Set(controlplanetest.Hang)
		done := sendInBackground(p, "POST", "/approve/JPCP", all, nil)
		testenv.Eventually(t, 20*time.Second, func() error {
			if s := p.Approval(id)["status"]; s != "approving" || p.Count(dispatching) != 1 {
				return fmt.Errorf("status %v, %d commands", s, p.Count(dispatching))
			}
			return nil
		})
		expectOneFact(p, id, "", "approval.approving", "walker")
		p.Orchestrator.Set(controlplanetest.Well)
		r := <-done
		if r.Status != 200 {
			t.Fatalf("%d %s; want r.Status == 200", r.Status, r.Body)
		}
		a := p.Approval(id)
		if a["status"] != "approved" || a["prefect_run_id"] != r.Object(t)["flow_run_id"] || a["resolved_by"] != "walker" || a["resolved_at"] == nil {
			t.Error(a, `want a["status"] == "approved" && a["prefect_run_id"] == r.Object(t)["flow_run_id"] && a["resolved_by"] == "walker" && a["resolved_at"] != nil`)
		}
		expectOneFact(p, id, "approval.approved", "approval.approved", "walker")
		if runs := p.Orchestrator.All(); len(runs) != 1 || runs[0].ID != a["prefect_run_id"] {
			t.Errorf(`runs %v; want len(runs) == 1 && runs[0].ID == a["prefect_run_id"]`, runs)
		}
	})
	row("approving_→_pending", func(t *testing.T, p *controlplanetest.Plane) { // after a crash: TestRow12KilledMidApprove
		id := p.Notice("JPCP", "c")
		p.Orchestrator.Set(controlplanetest.Down)
		p.Refused(502, "orchestrator_unreachable", "POST", "/approve/JPCP", all, nil)
		p.Orchestrator.Set(controlplanetest.Well)
		if a := p.Approval(id); a["status"] != "pending" || a["resolved_by"] != nil || a["prefect_run_id"] != nil {
			t.Error(a, `want a["status"] == "pending" && a["resolved_by"] == nil && a["prefect_run_id"] == nil`)
		}
		expectOneFact(p, id, "approval.dispatch_failed", "approval.dispatch_failed", "walker")
	})
	row("pending_→_rejected", func(t *testing.T, p *controlplanetest.Plane) {
		runs := len(p.Orchestrator.All())
		id := p.Notice("MCBound", "a")
		p.Want(200, "POST", "/reject/MCBound", all, doc{"reason": "no"})
		if a := p.Approval(id); a["status"] != "rejected" || a["reject_reason"] != "no" || a["resolved_by"] != "walker" || a["resolved_at"] == nil || a["prefect_run_id"] != nil {
			t.Error(a, `want a["status"] == "rejected" && a["reject_reason"] == "no" && a["resolved_by"] == "walker" && a["resolved_at"] != nil && a["prefect_run_id"] == nil`)
		}
		expectOneFact(p, id, "approval.rejected", "approval.rejected", "walker")
		if len(p.Orchestrator.All()) != runs {
			t.Error("a rejection started a run")
		}
	})
	row("pending_→_expired_by_age_before_a_decision", func(t *testing.T, p *controlplanetest.Plane) {
		id := p.Notice("MCBound", "b")
		p.SQL("update control_plane.approvals set expires_at = now() - interval '1 second' where id = $1", id)
		p.Refused(404, "no_pending_approval", "POST", "/approve/MCBound", all, nil)
		if a := p.Approval(id); a["status"] != "expired" {
			t.Error(a, `want a["status"] == "expired"`)
		}
		expectOneFact(p, id, "approval.expired", "approval.expired", "system:expiry")
	})
	row("pending_→_expired_superseded", func(t *testing.T, p *controlplanetest.Plane) {
		old := p.Notice("MCBound", "c")
		id := p.Notice("MCBound", "d")
		if a := p.Approval(old); a["status"] != "expired" || a["reject_reason"] != "superseded by "+id {
			t.Error(a, `want a["status"] == "expired" && a["reject_reason"] == "superseded by " + id`)
		}
		expectOneFact(p, old, "approval.expired", "approval.expired", "ci")
		if list := p.Want(200, "GET", "/approvals?status=pending", all, nil).List(t); p.Count(`select count(*) from control_plane.approvals where model_id = 'MCBOUND' and status = 'pending'`) != 1 {
			t.Errorf("pending %v; want p.Count(`select count(*) from control_plane.approvals where model_id = 'MCBOUND' and status = 'pending'`) == 1", list)
		}
	})
	row("decided_moves_no_more", func(t *testing.T, p *controlplanetest.Plane) {
		for _, state := range []string{"approved", "rejected", "expired"} {
			id := p.Want(200, "GET", "/approvals?status="+state, all, nil).List(t)[0]["id"].(string)
			p.Refused(409, "already_decided", "POST", "/approvals/"+id+"/approve", all, nil)
			p.Refused(409, "already_decided", "POST", "/approvals/"+id+"/reject", all, nil)
		}
	})
}

// The sweep expires records that were not decided; 0 hours means never.
func TestContractApprovalExpiry(t *testing.T) {
	t.Parallel()
	t.Run("sweep", func(t *testing.T) {
		t.Parallel()
		p := controlplanetest.Neighbours(t)
		stop := p.Serve()
		id := p.Notice("JPCP", "a")
		stop()
		p.SQL("update control_plane.approvals set expires_at = now() - interval '1 second' where id = $1", id)
		p.Serve() // a leader sweeps immediately, and then each minute
		testenv.Eventually(t, 20*time.Second, func() error {
			if n := p.Count(`select count(*) from control_plane.approvals where status = 'expired'`); n != 1 {
				return fmt.Errorf("%d expired", n)
			}
			return nil
		})
	})
	t.Run("0_is_never", func(t *testing.T) {
		t.Parallel()
		p := startForWalk(t, "APPROVAL_EXPIRY_HOURS=0")
		if a := p.Approval(p.Notice("JPCP", "a")); a["expires_at"] != nil {
			t.Error(a, `want a["expires_at"] == nil`)
		}
	})
}

// Promotions: pending → approved → promoted | failed; pending → rejected, expired, superseded.
func TestContractPromotionStates(t *testing.T) {
	t.Parallel()
	p := startForWalk(t)
	opened := func(p *controlplanetest.Plane, model string) (id, version string) {
		p.T.Helper()
		version = p.Tracker.Add(model, controlplanetest.Version{Metrics: doc{"accuracy": 0.95, "rmse": 10.0, "baseline_accuracy": 0.1, "f1_macro": 0.9, "baseline_f1_macro": 0.1}})
		p.Tracker.Move(model, "Staging", version)
		return p.Want(200, "POST", "/promotions", all, doc{"model": model}).Object(p.T)["id"].(string), version
	}
	state := func(p *controlplanetest.Plane, id, want string) doc {
		p.T.Helper()
		d := p.Promotion(id)
		if d["state"] != want {
			p.T.Errorf("state %v, want %s", d["state"], want)
		}
		return d
	}
	row := func(name string, f func(t *testing.T, p *controlplanetest.Plane)) {
		t.Helper()
		t.Run(name, func(t *testing.T) { f(t, onSubtest(t, p)) })
	}
	row("pending_→_approved_→_promoted", func(t *testing.T, p *controlplanetest.Plane) {
		id, version := opened(p, "jpcp")
		record := state(p, id, "pending")["approval_id"].(string)
		if a := p.Approval(record); a["kind"] != "promotion" || a["origin"] != "promotion" || a["promotion_id"] != id || a["status"] != "pending" {
			t.Error(a, `want a["kind"] == "promotion" && a["origin"] == "promotion" && a["promotion_id"] == id && a["status"] == "pending"`)
		}
		// Its record is decided by id only, and that decides the promotion.
		p.Refused(404, "no_pending_approval", "POST", "/approve/JPCP", all, nil)
		p.Want(200, "POST", "/approvals/"+record+"/approve", all, nil)
		state(p, id, "promoted")
		if h := p.Tracker.Holder("jpcp", "Production"); h != version || p.Approval(record)["status"] != "approved" {
			t.Errorf(`Production is %s; %v; want h == version && p.Approval(record)["status"] == "approved"`, h, p.Approval(record))
		}
		if len(p.Audits("promotion.approved")) != 1 || len(p.Audits("promotion.promoted")) != 1 {
			t.Error("approved and promoted are not both audited")
		}
	})
	row("approved_→_failed", func(t *testing.T, p *controlplanetest.Plane) {
		id, _ := opened(p, "mack")
		p.Tracker.Set(controlplanetest.Refusing)
		r := p.Call("POST", "/promotions/"+id+"/approve", all, nil)
		p.Tracker.Set(controlplanetest.Well)
		if r.Status != 200 { // the decision stands
			t.Errorf("%d %s; want r.Status == 200", r.Status, r.Body)
		}
		state(p, id, "failed")
	})
	row("pending_→_rejected", func(t *testing.T, p *controlplanetest.Plane) {
		id, _ := opened(p, "mack")
		p.Want(200, "POST", "/promotions/"+id+"/reject", all, doc{"reason": "no"})
		if d := state(p, id, "rejected"); d["reason"] != "no" || d["decided_by"] != "walker" {
			t.Error(d, `want d["reason"] == "no" && d["decided_by"] == "walker"`)
		}
	})
	row("pending_→_superseded", func(t *testing.T, p *controlplanetest.Plane) {
		id, _ := opened(p, "mcbound")
		next, _ := opened(p, "mcbound")
		state(p, id, "superseded")
		state(p, next, "pending")
	})
	row("pending_→_expired", func(t *testing.T, p *controlplanetest.Plane) {
		id, _ := opened(p, "mack")
		p.SQL("update control_plane.approvals set expires_at = now() - interval '1 second' where promotion_id = $1", id)
		p.SQL("update control_plane.promotions set expires_at = now() - interval '1 second' where id = $1", id)
		p.Refused(409, "already_decided", "POST", "/promotions/"+id+"/approve", all, nil)
		state(p, id, "expired")
	})
}
