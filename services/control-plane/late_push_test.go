package controlplane_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// lateSHA is a commit that CI reports before the forge does.
var lateSHA = strings.Repeat("5e", 20)

// startLatePush runs a control plane whose only known forge account is olga's, as operator.
func startLatePush(t *testing.T) *controlplanetest.Plane {
	t.Helper()
	return controlplanetest.Start(t, enforce, "MODELREPO_WEBHOOK_SECRET="+webhookSecret, `MODELREPO_IDENTITIES_JSON={"forge-a:olga": "operator"}`)
}

// A notice may arrive before its push. The pusher counts as a requester of what followed all the same.
func TestPusherOfALatePushCannotApprove(t *testing.T) {
	t.Parallel()
	p := startLatePush(t)
	p.Notice("JPCP", lateSHA)
	if a := pending(p, "JPCP"); slices.Contains(names(a["requesters"]), "operator") {
		t.Fatalf("record before the push: got %v, want it without operator", a)
	}
	pushA(p, "olga", lateSHA)
	p.Refused(403, "own_request", "POST", "/approve/JPCP", controlplanetest.Operator, nil)
	if a := pending(p, "JPCP"); !slices.Contains(names(a["requesters"]), "operator") {
		t.Errorf("record after the refusal: got %v, want operator among the requesters", a)
	}
	if got := p.Audits("approval.pushers_joined"); len(got) != 1 {
		t.Errorf("got facts %v, want one that the pusher joined", got)
	}
	if out := p.Want(200, "POST", "/approve/JPCP", controlplanetest.Approver, nil).Object(t); out["status"] != "approved" {
		t.Errorf("approval of another: got %v, want approved: the pusher is known", out)
	}
}

// A late push of an unknown person makes two approvals necessary.
func TestLatePushOfAnUnknownPersonNeedsTwoApprovals(t *testing.T) {
	t.Parallel()
	p := startLatePush(t)
	p.Notice("JPCP", lateSHA)
	pushA(p, "mallory", lateSHA)
	first := p.Want(200, "POST", "/approve/JPCP", controlplanetest.Operator, nil).Object(t)
	if first["status"] != "pending" || first["second_approval_needed"] != true {
		t.Fatalf("first approval: got %v, want pending, with a second one needed", first)
	}
	if second := p.Want(200, "POST", "/approve/JPCP", controlplanetest.Approver, nil).Object(t); second["status"] != "approved" {
		t.Errorf("second approval: got %v, want approved", second)
	}
}

// The same for a promotion, whichever way it is approved.
func TestPusherOfALatePushCannotPromote(t *testing.T) {
	t.Parallel()
	p := startLatePush(t)
	v := controlplanetest.Good("rmse", 12.0)
	v.RunTags = map[string]string{"modelrepo_commit": lateSHA}
	version := p.Tracker.Add("jpcp", v)
	p.Report("JPCP", version)
	id := p.PendingPromotion("JPCP")
	pushA(p, "olga", lateSHA)
	asked := p.Want(200, "POST", "/promotions", controlplanetest.Operator, map[string]any{"model": "JPCP", "version": version, "approve": true}).Object(t)
	if asked["state"] != "pending" {
		t.Errorf("asking for it approved: got %v, want pending", asked)
	}
	p.Refused(403, "own_request", "POST", "/promotions/"+id+"/approve", controlplanetest.Operator, nil)
	wantHolder(p, "")
	if pr := p.Promotion(id); !slices.Contains(names(pr["requesters"]), "operator") {
		t.Errorf("promotion: got %v, want operator among the requesters", pr)
	}
	if pr := p.Want(200, "POST", "/promotions/"+id+"/approve", controlplanetest.Approver, nil).Object(t); pr["state"] != "promoted" {
		t.Errorf("approval of another: got %v, want promoted", pr)
	}
}

// A push outlives its retention while a version or a run names its commit: it determines who may not approve them.
func TestPushesOfVersionsAndRunsAreKept(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Neighbours(t, enforce, "MODELREPO_WEBHOOK_SECRET="+webhookSecret, `MODELREPO_IDENTITIES_JSON={"forge-a:olga": "operator"}`, "PUSH_RETENTION_DAYS=30")
	stop := p.Serve()
	commit := func(digits string) string { return strings.Repeat(digits, 20) }
	version, run, nothing, head := commit("a1"), commit("b1"), commit("c1"), commit("d1")
	for _, sha := range []string{version, run, nothing, head} {
		p.Want(200, "POST", "/webhooks/modelrepo/forge-a", "", map[string]any{
			"ref": "refs/heads/main", "checkout_sha": sha, "user_username": "olga", "total_commits_count": 1,
			"commits": []any{map[string]any{"id": sha, "modified": []string{"README.md"}}},
		}, "X-Gitlab-Token", webhookSecret, "X-Gitlab-Event", "Push Hook", "X-Gitlab-Event-UUID", sha)
	}
	v := controlplanetest.Good("rmse", 12.0)
	v.RunTags = map[string]string{"modelrepo_commit": version}
	p.Report("JPCP", p.Tracker.Add("jpcp", v))
	stop()
	p.SQL(`insert into control_plane.runs (flow_run_id, id, tenant, model_id, dataset_name, is_dummy, origin, requested_by, commit_sha, state_type, state_name, terminal, dispatched_at, checked_at)
		values ('r', gen_random_uuid(), 'default', 'JPCP', 'd', false, 'api', 'x', $1, 'COMPLETED', 'Completed', true, now(), now())`, run)
	p.SQL("update control_plane.pushes set received_at = received_at - interval '40 days', work_until = null")
	p.SQL("update control_plane.push_deliveries set received_at = received_at - interval '40 days'")
	p.Serve()
	testenv.Eventually(t, 30*time.Second, func() error {
		if n := p.Count("select count(*) from control_plane.pushes where commit_sha = '" + nothing + "'"); n != 0 {
			return fmt.Errorf("%d pushes that nothing names", n)
		}
		return nil
	})
	for what, sha := range map[string]string{"a version": version, "a run": run, "the branch, as its head,": head} {
		if n := p.Count("select count(*) from control_plane.pushes where commit_sha = '" + sha + "'"); n != 1 {
			t.Errorf("%d pushes of the commit that %s names, want 1", n, what)
		}
	}
}
