package controlplane_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// otherDigest is the digest of files that were never evaluated.
var otherDigest = strings.Repeat("cd", 32)

// startRunApproval runs a control plane on which the approval of a training run carries its version to Production.
func startRunApproval(t *testing.T) *controlplanetest.Plane {
	t.Helper()
	return controlplanetest.Start(t, enforce, "PROMOTION_APPROVAL_MODE_DEFAULT=run")
}

// approvedRun returns a training run of JPCP requested by ci and approved by operator.
func approvedRun(p *controlplanetest.Plane, commit string) string {
	p.T.Helper()
	p.Notice("JPCP", commit)
	return p.Want(200, "POST", "/approve/JPCP", controlplanetest.Operator, nil).Object(p.T)["flow_run_id"].(string)
}

// addTagged registers a version whose tag names the flow run.
func addTagged(p *controlplanetest.Plane, run string) string {
	p.T.Helper()
	v := controlplanetest.Good("rmse", 12.0)
	v.RunTags = map[string]string{"prefect_flow_run_id": run}
	return p.Tracker.Add("jpcp", v)
}

// wantHolder checks which version is in Production.
func wantHolder(p *controlplanetest.Plane, want string) {
	p.T.Helper()
	if got := p.Tracker.Holder("jpcp", "Production"); got != want {
		p.T.Errorf("Production of jpcp: got version %q, want %q", got, want)
	}
}

// wantPending checks that a report opened a promotion that waits for a decision.
func wantPending(p *controlplanetest.Plane, what string, report map[string]any) {
	p.T.Helper()
	id, _ := report["promotion_id"].(string)
	if id == "" {
		p.T.Errorf("%s: got %v, want one that opened a promotion", what, report)
		return
	}
	if pr := p.Promotion(id); pr["state"] != "pending" {
		p.T.Errorf("%s: got promotion %v, want it pending", what, pr)
	}
}

// A client of the tracker can tag any version with an approved run. The approval of a run covers only the version that
// it produced, however the other is requested.
func TestApprovedRunCarriesItsOwnVersionAlone(t *testing.T) {
	t.Parallel()
	p := startRunApproval(t)
	run := approvedRun(p, "c0ffee1")
	own := addTagged(p, run)
	p.Report("JPCP", own)
	wantHolder(p, own)

	other := addTagged(p, run)
	p.Tracker.Move("jpcp", "Staging", other)
	asked := p.Want(200, "POST", "/promotions", controlplanetest.Approver, map[string]any{"model": "JPCP", "version": other}).Object(t)
	if asked["state"] != "pending" {
		t.Errorf("promotion of another version under the run's tag: got %v, want pending", asked)
	}
	reported := p.Report("JPCP", other)
	wantPending(p, "report of another version under the run's tag", reported)
	wantHolder(p, own)
	if got := p.Want(200, "GET", "/retrain/"+run, controlplanetest.Reader, nil).Object(t); got["model_version"] != own {
		t.Errorf("the run's version: got %v, want %s: it is written once", got["model_version"], own)
	}
	// The trainer's retry of its report still gets its answer.
	if again := p.Report("JPCP", own); again["promotion_id"] == nil {
		t.Errorf("the first report again: got %v, want its promotion", again)
	}
}

// A person who may request or decide cannot name the version of an approved run before the trainer does.
func TestPeopleDoNotNameTheVersionOfARun(t *testing.T) {
	t.Parallel()
	p := startRunApproval(t)
	run := approvedRun(p, "c0ffee1")
	planted := addTagged(p, run)
	out := p.Want(200, "POST", "/versions", controlplanetest.Operator, map[string]any{"model": "JPCP", "version": planted, "flow_run_id": run}).Object(t)
	wantPending(p, "version reported by operator", out)
	wantHolder(p, "")
	trained := addTagged(p, run)
	p.Report("JPCP", trained)
	wantHolder(p, trained)
}

// A run that ended without a version has none to give: no one passes theirs off as its own.
func TestFailedRunApprovesNoVersion(t *testing.T) {
	t.Parallel()
	p := startRunApproval(t)
	run := approvedRun(p, "c0ffee1")
	p.Orchestrator.State(run, "FAILED", "out of memory")
	testenv.Eventually(t, 20*time.Second, func() error {
		if got := p.Want(200, "GET", "/runs?model=JPCP", controlplanetest.Reader, nil).Object(t)["items"].([]any); got[0].(map[string]any)["state_type"] != "FAILED" {
			return fmt.Errorf("run %v, want FAILED", got[0])
		}
		return nil
	})
	out := p.Report("JPCP", addTagged(p, run))
	wantPending(p, "version under the tag of a failed run", out)
	wantHolder(p, "")
}

// The approval of a run covers the files that were reported: others below the same version need a decision.
func TestReplacedFilesNeedADecision(t *testing.T) {
	t.Parallel()
	p := startRunApproval(t)
	run := approvedRun(p, "c0ffee1")
	v := controlplanetest.Good("rmse", 120.0) // not good enough for Production
	v.RunTags = map[string]string{"prefect_flow_run_id": run}
	version := p.Tracker.Add("jpcp", v)
	p.Report("JPCP", version)
	p.Tracker.Change("jpcp", version, func(v *controlplanetest.Version) {
		v.Tags, v.Metrics = map[string]string{"artifact_digest": otherDigest}, map[string]any{"rmse": 12.0}
	})
	asked := p.Want(200, "POST", "/promotions", controlplanetest.Approver, map[string]any{"model": "JPCP", "version": version}).Object(t)
	if asked["state"] != "pending" {
		t.Errorf("promotion of replaced files: got %v, want pending", asked)
	}
	wantHolder(p, "")
}

// A tag that was changed after the report removes no requester of the run.
func TestChangedTagKeepsTheRequesters(t *testing.T) {
	t.Parallel()
	p := startRunApproval(t)
	run := p.Want(200, "POST", "/retrain", controlplanetest.Operator, `{"model_name":"JPCP","dataset_name":"JobEmbeddings"}`).Object(t)["flow_run_id"].(string)
	version := addTagged(p, run)
	p.Report("JPCP", version)
	p.Want(200, "POST", "/promotions/"+p.PendingPromotion("JPCP")+"/reject", controlplanetest.Approver, nil)
	p.Tracker.Change("jpcp", version, func(v *controlplanetest.Version) { v.RunTags = nil })
	asked := p.Want(200, "POST", "/promotions", controlplanetest.Approver, map[string]any{"model": "JPCP", "version": version}).Object(t)
	p.Refused(403, "own_request", "POST", "/promotions/"+asked["id"].(string)+"/approve", controlplanetest.Operator, nil)
}

// A very short training reports its version before its run is recorded; the run gets it all the same.
func TestRunHasAVersionThatWasReportedBeforeIt(t *testing.T) {
	t.Parallel()
	p := startRunApproval(t)
	version := ""
	p.Orchestrator.Mu.Lock()
	p.Orchestrator.Began = func(run string) {
		version = addTagged(p, run)
		p.Report("JPCP", version)
	}
	p.Orchestrator.Mu.Unlock()
	run := approvedRun(p, "c0ffee1")
	if got := p.Want(200, "GET", "/retrain/"+run, controlplanetest.Reader, nil).Object(t); version == "" || got["model_version"] != version {
		t.Errorf("the run's version: got %v, want %q, which was reported before", got["model_version"], version)
	}
}
