package controlplane_test

import (
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// A run requested from one commit and trained from another shows the one it was trained from, once its version is
// known. Its record keeps the first: the pusher of that commit is a requester of the run.
func TestRunsShowTheTrainedCommit(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	p.Notice("JPCP", "a5ced01")
	run := p.Want(200, "POST", "/approve/JPCP", controlplanetest.Operator, map[string]any{"dataset_name": "JobEmbeddings"}).Object(t)["flow_run_id"].(string)
	shown := func(want string) {
		t.Helper()
		items := p.Want(200, "GET", "/runs?model=JPCP", controlplanetest.Reader, nil).Object(t)["items"].([]any)
		if len(items) != 1 || items[0].(map[string]any)["commit_sha"] != want {
			t.Errorf("runs %v; want one of commit %s", items, want)
		}
		if status := p.Want(200, "GET", "/retrain/"+run, controlplanetest.Reader, nil).Object(t); status["commit_sha"] != want {
			t.Errorf("status %v; want commit %s", status, want)
		}
	}
	shown("a5ced01")
	v := controlplanetest.Good("rmse", 12.0)
	v.RunTags = map[string]string{"prefect_flow_run_id": run, "modelrepo_commit": "7ra1ned"}
	p.Report("JPCP", p.Tracker.Add("jpcp", v))
	shown("7ra1ned")
	if n := p.Count("select count(*) from control_plane.runs where flow_run_id = '" + run + "' and commit_sha = 'a5ced01'"); n != 1 {
		t.Errorf("%d records keep the commit that was asked for; want 1", n)
	}
}

// A run shows who filed its request first, then everybody else; and of its version what the trainer reported.
func TestRunsShowWhoAskedAndWhatCameOfIt(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	p.Notice("JPCP", "a5ced01")
	run := p.Want(200, "POST", "/approve/JPCP", controlplanetest.Operator, map[string]any{"dataset_name": "JobEmbeddings"}).Object(t)["flow_run_id"].(string)
	listed := func() map[string]any {
		t.Helper()
		return p.Want(200, "GET", "/runs?model=JPCP", controlplanetest.Reader, nil).Object(t)["items"].([]any)[0].(map[string]any)
	}
	before := listed()
	if asked, _ := before["requesters"].([]any); before["requested_by"] != "operator" || len(asked) == 0 || asked[0] != "ci" || before["is_dummy"] != false || before["dispatched_at"] == nil {
		t.Errorf("run %v; want one that ci requested and operator approved, with the time of its dispatch", before)
	}
	if before["metrics"] != nil || before["is_generated"] != nil {
		t.Errorf("run %v; want no metrics before there is a version", before)
	}
	v := controlplanetest.Good("rmse", 12.0)
	v.RunTags = map[string]string{"prefect_flow_run_id": run}
	p.Report("JPCP", p.Tracker.Add("jpcp", v))
	after := listed()
	if metrics, _ := after["metrics"].(map[string]any); metrics["rmse"] != 12.0 || after["is_generated"] != false || after["tracker_run_id"] == nil {
		t.Errorf("run %v; want the version's rmse 12 and the tracker's run", after)
	}
}
