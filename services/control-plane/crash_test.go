package controlplane_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// Acceptance row 12: a control plane killed in the middle of an approval leaves exactly one flow run, whether the kill
// is before or after the dispatch.
func TestRow12KilledMidApprove(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode    string // of the orchestrator until the kill
		carried bool   // the run exists when the process is killed
	}{
		"between command and dispatch": {mode: controlplanetest.Hang},
		"between dispatch and record":  {mode: controlplanetest.Swallow, carried: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := controlplanetest.Neighbours(t)
			kill := p.Spawn("sole")
			id := p.Notice("JPCP", "row12")
			p.AwaitTarget()
			p.Orchestrator.Set(c.mode)
			go func() { _, _ = p.Try("POST", "/approve/JPCP", controlplanetest.Operator, nil) }() // its answer dies with the process
			if c.carried {
				<-p.Orchestrator.Created
			}
			testenv.Eventually(t, 10*time.Second, func() error {
				if s := p.Approval(id)["status"]; s != "approving" {
					return fmt.Errorf("status %v", s)
				}
				return nil
			})
			kill()
			p.Orchestrator.Set(controlplanetest.Well)
			p.Spawn("sole")
			var rec map[string]any
			testenv.Eventually(t, 30*time.Second, func() error {
				if rec = p.Approval(id); rec["status"] != "approved" {
					return fmt.Errorf("record %v", rec)
				}
				return nil
			})
			runs := p.Orchestrator.All()
			if len(runs) != 1 || runs[0].ID != rec["prefect_run_id"] || runs[0].IdempotencyKey != "approval:"+id {
				t.Fatalf(`flow runs %v, record %v; want len(runs) == 1 && runs[0].ID == rec["prefect_run_id"] && runs[0].IdempotencyKey == "approval:" + id`, runs, rec)
			}
			if rec["resolved_by"] != "operator" {
				t.Fatalf(`resolved_by %v; want "operator"`, rec["resolved_by"])
			}
			for _, e := range []string{"approval.approved", "job.dispatched"} {
				if got := p.Events(e); len(got) != 1 {
					t.Errorf("%d events %s; want len(got) == 1", len(got), e)
				}
			}
		})
	}
}

// A process that is not the sole one waits for the lease of the dead one.
func TestCommandIsTakenOverAfterItsLease(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Neighbours(t, "COMMAND_LEASE_SECONDS=15")
	kill := p.Spawn("one of many")
	id := p.Notice("JPCP", "lease")
	p.AwaitTarget()
	p.Orchestrator.Set(controlplanetest.Swallow)
	go func() { _, _ = p.Try("POST", "/approve/JPCP", controlplanetest.Operator, nil) }()
	<-p.Orchestrator.Created
	kill()
	p.Orchestrator.Set(controlplanetest.Well)
	p.Spawn("one of many")
	if s := p.Approval(id)["status"]; s != "approving" {
		t.Fatalf(`status %v right after the restart; want "approving"`, s)
	}
	p.Refused(409, "approval_in_progress", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
	testenv.Eventually(t, 60*time.Second, func() error {
		if s := p.Approval(id)["status"]; s != "approved" {
			return fmt.Errorf("status %v", s)
		}
		return nil
	})
	if n := len(p.Orchestrator.All()); n != 1 {
		t.Fatalf("%d flow runs; want 1", n)
	}
}

// After a kill between the tracker's alias move and its record, the move is found again: history, event and promotion
// appear once.
func TestKilledMidPromotion(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Neighbours(t)
	kill := p.Spawn("sole")
	v := p.Tracker.Add("mack", controlplanetest.Good("accuracy", 0.9))
	p.Want(200, "POST", "/versions", controlplanetest.Trainer, map[string]any{"model": "MACK", "version": v})
	id := p.PendingPromotion("MACK")
	drainSignals(p.Tracker.Seen)
	p.Tracker.Set(controlplanetest.Swallow)
	go func() { _, _ = p.Try("POST", "/promotions/"+id+"/approve", controlplanetest.Operator, nil) }()
	<-p.Tracker.Seen
	kill()
	p.Tracker.Set(controlplanetest.Well)
	p.Spawn("sole")
	testenv.Eventually(t, 90*time.Second, func() error {
		if s := p.Promotion(id)["state"]; s != "promoted" {
			return fmt.Errorf("state %v", s)
		}
		return nil
	})
	if n := len(p.Events("deploy.promoted")); n != 1 {
		t.Fatalf("%d events deploy.promoted; want 1", n)
	}
	items := p.Want(200, "GET", "/alias-history?model=mack&alias=production", controlplanetest.Reader, nil).Object(t)["items"].([]any)
	if len(items) != 1 || items[0].(map[string]any)["via"] != "promotion" {
		t.Fatalf(`history %v; want len(items) == 1 && items[0].(map[string]any)["via"] == "promotion"`, items)
	}
}

// A sole process takes over at its start the poller's lease that a dead one left for three intervals.
func TestDeadPollersLeaseIsTakenOver(t *testing.T) {
	t.Parallel()
	repo, head := newSampleRepository(t)
	p := controlplanetest.Neighbours(t, "MODELREPO_DIR="+repo.Dir, "MODELREPO_POLL_SECONDS=300")
	p.SQL("insert into control_plane.coord_lease (name, owner, fence, expires_at) values ('modelrepo-poller', gen_random_uuid(), 7, now() + interval '900 seconds')")
	p.Spawn("sole")
	testenv.Eventually(t, 20*time.Second, func() error {
		poller := p.Health()["poller"].(map[string]any)
		if poller["leader"] != true {
			return fmt.Errorf("got poller %v of head %s, want it to lead", poller, head)
		}
		return nil
	})
}

func drainSignals(c chan struct{}) {
	for {
		select {
		case <-c:
		default:
			return
		}
	}
}
