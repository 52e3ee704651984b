package controlplane_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// lateSHA is a commit that CI tells of before the forge does.
var lateSHA = strings.Repeat("5e", 20)

// startLatePush runs a control plane that knows olga's account at the forge as operator, and nobody else's.
func startLatePush(t *testing.T) *controlplanetest.Plane {
	t.Helper()
	return controlplanetest.Start(t, enforce, "MODELREPO_WEBHOOK_SECRET="+webhookSecret, `MODELREPO_IDENTITIES_JSON={"forge-a:olga": "operator"}`)
}

// A notice may come before the push that it is about. Who pushed has asked for what it led to all the same.
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

// A late push of nobody known makes it two who have to approve.
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
