package controlplane_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

const (
	enforce       = "CONTROL_PLANE_SEPARATION_OF_DUTIES=enforce"
	webhookSecret = "webhook-0123456789abcdef"
	autoRetrain   = "MODELREPO_AUTO_RETRAIN=true"
)

// localRepo returns a clone of the sample models, and a function that commits to it under a name.
func localRepo(t *testing.T) (dir string, commit func(author string) string) {
	t.Helper()
	dir = t.TempDir()
	for _, d := range []string{"models", "datasets", "registries"} {
		if err := os.CopyFS(filepath.Join(dir, d), os.DirFS(filepath.Join(controlplanetest.Samples(), d))); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	n := 0
	commit = func(author string) string {
		t.Helper()
		n++
		readme := filepath.Join(dir, "models/power_consumption_prediction/JPCP/README.md")
		if err := os.WriteFile(readme, fmt.Appendf(nil, "change %d\n", n), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", ".")
		git("-c", "user.name="+author, "-c", "user.email="+author+"@example.com", "commit", "-qm", "change")
		return git("rev-parse", "HEAD")
	}
	git("init", "-qb", "main")
	commit("setup")
	return dir, commit
}

// pending returns the only pending record of a model.
func pending(p *controlplanetest.Plane, model string) map[string]any {
	p.T.Helper()
	for _, a := range p.Want(200, "GET", "/approvals?status=pending", controlplanetest.Reader, nil).List(p.T) {
		if a["model_id"] == model {
			return a
		}
	}
	p.T.Fatalf("no pending approval of %s; want one", model)
	return nil
}

func names(v any) []string {
	out := []string{}
	for _, s := range v.([]any) {
		out = append(out, s.(string))
	}
	slices.Sort(out)
	return out
}

// pushA delivers a push of forge A by an account with that name.
func pushA(p *controlplanetest.Plane, account, sha string) {
	p.T.Helper()
	p.Want(200, "POST", "/webhooks/modelrepo/forge-a", "", map[string]any{
		"ref": "refs/heads/main", "checkout_sha": sha, "user_name": "Anybody", "user_username": account, "total_commits_count": 1,
		"commits": []any{map[string]any{"id": sha, "message": "change", "author": map[string]any{"name": "operator"},
			"added": []string{}, "removed": []string{}, "modified": []string{"models/power_consumption_prediction/JPCP/model.yaml"}}},
	}, "X-Gitlab-Token", webhookSecret, "X-Gitlab-Event", "Push Hook", "X-Gitlab-Event-UUID", sha)
}

// A person who commits under their own name and syncs the commit counts as a requester of what follows.
func TestWhoSyncsTheirOwnCommitCannotApproveIt(t *testing.T) {
	t.Parallel()
	dir, commit := localRepo(t)
	p := controlplanetest.Start(t, enforce, autoRetrain, "MODELREPO_DIR="+dir, "MODELREPO_POLL_SECONDS=0")
	p.Want(200, "POST", "/modelrepo/sync", controlplanetest.Operator, nil)
	commit("operator")
	p.Want(200, "POST", "/modelrepo/sync", controlplanetest.Operator, nil)
	a := pending(p, "JPCP")
	if got := names(a["requesters"]); !slices.Equal(got, []string{"operator", "system:modelrepo"}) || a["person_unknown"] != true {
		t.Fatalf("requesters %v, unknown %v; want operator and system:modelrepo, true", got, a["person_unknown"])
	}
	p.Refused(403, "own_request", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
	if n := len(p.Orchestrator.All()); n != 0 {
		t.Fatalf("%d runs; want 0", n)
	}
}

// The person behind the commit is unknown: two others have to approve, and one person counts once.
func TestUnknownPersonNeedsTwoApprovals(t *testing.T) {
	t.Parallel()
	dir, commit := localRepo(t)
	p := controlplanetest.Start(t, enforce, autoRetrain, "MODELREPO_DIR="+dir, "MODELREPO_POLL_SECONDS=0")
	p.Want(200, "POST", "/modelrepo/sync", controlplanetest.Trainer, nil)
	commit("somebody")
	p.Want(200, "POST", "/modelrepo/sync", controlplanetest.Trainer, nil)
	first := p.Want(200, "POST", "/approve/JPCP", controlplanetest.Operator, nil).Object(t)
	if first["status"] != "pending" || first["second_approval_needed"] != true || first["flow_run_id"] != nil {
		t.Fatalf("first approval %v; want pending, with a second one needed and no run", first)
	}
	p.Refused(403, "second_approver_required", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
	if a := pending(p, "JPCP"); a["first_approver"] != "operator" || len(p.Orchestrator.All()) != 0 {
		t.Fatalf("first approver %v, %d runs; want operator, 0", a["first_approver"], len(p.Orchestrator.All()))
	}
	second := p.Want(200, "POST", "/approve/JPCP", controlplanetest.Approver, nil).Object(t)
	if second["status"] != "approved" || second["flow_run_id"] == nil || second["second_approval_needed"] != nil {
		t.Fatalf("second approval %v; want approved with a run", second)
	}
	if got := p.Audits("approval.first_approved"); len(got) != 1 || got[0]["actor"] != "operator" {
		t.Fatalf("facts %v; want one of operator", got)
	}
}

// The forge's account that pushed maps to a principal, who then cannot approve; one other person is enough.
func TestPusherCannotApprove(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, enforce, autoRetrain, "MODELREPO_WEBHOOK_SECRET="+webhookSecret,
		`MODELREPO_IDENTITIES_JSON={"forge-a:olga.p": "Operator"}`)
	pushA(p, "Olga.P", strings.Repeat("5e", 20))
	a := pending(p, "JPCP")
	if a["requested_by"] != "Operator" || a["person_unknown"] != false {
		t.Fatalf("record %v; want requested by Operator, who is known", a)
	}
	p.Refused(403, "own_request", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
	if out := p.Want(200, "POST", "/approve/JPCP", controlplanetest.Approver, nil).Object(t); out["status"] != "approved" {
		t.Fatalf("answer %v; want approved", out)
	}
}

// The author that a commit names is free text: an unmapped account stays unknown, whatever its name.
func TestAuthorAloneIdentifiesNobody(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, enforce, autoRetrain, "MODELREPO_WEBHOOK_SECRET="+webhookSecret, `MODELREPO_IDENTITIES_JSON={"forge-a:olga": "ci"}`)
	pushA(p, "mallory", strings.Repeat("5e", 20))
	if a := pending(p, "JPCP"); a["person_unknown"] != true || a["requested_by"] != "system:modelrepo" {
		t.Fatalf("record %v; want requested by system:modelrepo, with the person unknown", a)
	}
}

// A notice by CI does not remove the pushers of commits that the model was not trained from yet.
func TestNoticeKeepsThePushers(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, enforce, "MODELREPO_WEBHOOK_SECRET="+webhookSecret,
		`MODELREPO_IDENTITIES_JSON={"forge-a:olga": "operator", "forge-a:cid": "ci"}`)
	pushA(p, "olga", strings.Repeat("5e", 20))
	pushA(p, "cid", strings.Repeat("6f", 20))
	p.Notice("JPCP", strings.Repeat("6f", 20))
	p.Refused(403, "own_request", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
	p.Want(200, "POST", "/approve/JPCP", controlplanetest.Approver, nil)
}

// Requesting a change that already waits makes the caller one of its requesters.
func TestEveryoneWhoAsksIsARequester(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, enforce)
	p.Notice("JPCP", "commit1")
	p.Want(200, "POST", "/api/changes", controlplanetest.Operator, `{"model_ids":["JPCP"],"commit_sha":"commit1"}`)
	p.Refused(403, "own_request", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
	// Another commit on top does not remove them as requesters.
	p.Notice("JPCP", "commit2")
	p.Refused(403, "own_request", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
	p.Want(200, "POST", "/approve/JPCP", controlplanetest.Approver, nil)
}

// Under approval_mode run the approval of the training also approves the promotion, unless the approver pushed the
// commit that the version was trained from.
func TestApprovalModeRunWantsAnotherThanThePusher(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ separation, state string }{"enforce": {"enforce", "pending"}, "off": {"off", "pending"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := controlplanetest.Start(t, "CONTROL_PLANE_SEPARATION_OF_DUTIES="+c.separation, "PROMOTION_APPROVAL_MODE_DEFAULT=run",
				"MODELREPO_WEBHOOK_SECRET="+webhookSecret, `MODELREPO_IDENTITIES_JSON={"forge-a:olga": "operator"}`)
			// CI reports a commit other than the one that the trainer reads.
			p.Notice("JPCP", "c0ffee1")
			run := p.Want(200, "POST", "/approve/JPCP", controlplanetest.Operator, nil).Object(t)["flow_run_id"].(string)
			sha := strings.Repeat("5e", 20)
			pushA(p, "olga", sha)
			v := controlplanetest.Good("rmse", 12.0)
			v.RunTags = map[string]string{"prefect_flow_run_id": run, "modelrepo_commit": sha}
			out := p.Report("JPCP", p.Tracker.Add("jpcp", v))
			pr := p.Promotion(out["promotion_id"].(string))
			if pr["state"] != c.state || !slices.Contains(names(pr["requesters"]), "operator") {
				t.Fatalf("promotion %v; want %s, with operator among the requesters", pr, c.state)
			}
			if c.separation == "enforce" {
				p.Refused(403, "own_request", "POST", "/promotions/"+pr["id"].(string)+"/approve", controlplanetest.Operator, nil)
				p.Want(200, "POST", "/promotions/"+pr["id"].(string)+"/approve", controlplanetest.Approver, nil)
			}
		})
	}
}

// A version trained from a commit of an unknown person needs two approvals for its promotion as well.
func TestPromotionOfUnknownPersonNeedsTwo(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, enforce, "MODELREPO_WEBHOOK_SECRET="+webhookSecret)
	sha := strings.Repeat("5e", 20)
	pushA(p, "mallory", sha)
	v := controlplanetest.Good("rmse", 12.0)
	v.RunTags = map[string]string{"modelrepo_commit": sha}
	id := p.Report("JPCP", p.Tracker.Add("jpcp", v))["promotion_id"].(string)
	if pr := p.Want(200, "POST", "/promotions/"+id+"/approve", controlplanetest.Operator, nil).Object(t); pr["state"] != "pending" || pr["first_approver"] != "operator" {
		t.Fatalf("promotion %v; want pending, approved first by operator", pr)
	}
	p.Refused(403, "second_approver_required", "POST", "/promotions/"+id+"/approve", controlplanetest.Operator, nil)
	if pr := p.Want(200, "POST", "/promotions/"+id+"/approve", controlplanetest.Approver, nil).Object(t); pr["state"] != "promoted" {
		t.Fatalf("promotion %v; want promoted", pr)
	}
}
