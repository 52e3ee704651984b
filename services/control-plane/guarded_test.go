package controlplane_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

const (
	policyPath   = "/promotion-policies/JPCP"
	laxPolicy    = `{"metric": "rmse", "operator": "lte", "threshold": 100000}`
	strictPolicy = `{"metric": "rmse", "operator": "lte", "threshold": 1}`
)

// pendingChange returns the only pending change of a target.
func pendingChange(p *controlplanetest.Plane, target string) map[string]any {
	p.T.Helper()
	for _, v := range p.Want(200, "GET", "/governance/changes?state=pending", controlplanetest.Reader, nil).Object(p.T)["items"].([]any) {
		if c := v.(map[string]any); c["target"] == target {
			return c
		}
	}
	p.T.Fatalf("no pending change of %s; want one", target)
	return nil
}

// showsChange checks that old and new have the same members, so that the decider sees the difference.
func showsChange(t *testing.T, c map[string]any, member string, was, next any) {
	t.Helper()
	before, after := c["old"].(map[string]any), c["new"].(map[string]any)
	if got, want := slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)); !slices.Equal(got, want) {
		t.Errorf("new has the members %v, old has %v; want the same", got, want)
	}
	if before[member] != was || after[member] != next {
		t.Errorf("%s changes from %v to %v; want from %v to %v", member, before[member], after[member], was, next)
	}
}

func threshold(p *controlplanetest.Plane) any {
	p.T.Helper()
	return p.Want(200, "GET", policyPath, controlplanetest.Reader, nil).Object(p.T)["threshold"]
}

// One person cannot change a promotion policy, and the trainer's credential cannot at all.
func TestPolicyNeedsItsScopeAndASecondPerson(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, enforce)
	was := threshold(p)
	for _, method := range []string{"PUT", "DELETE"} {
		r := p.Refused(403, "insufficient_scope", method, policyPath, controlplanetest.Trainer, laxPolicy).Object(t)
		if r["required_scope"] != "govern" {
			t.Errorf("%s: required scope %v; want govern", method, r["required_scope"])
		}
	}
	p.Refused(403, "insufficient_scope", "PUT", policyPath, controlplanetest.Approver, laxPolicy)
	c := p.Want(202, "PUT", policyPath, controlplanetest.Operator, laxPolicy).Object(t)
	if c["state"] != "pending" || c["requested_by"] != "operator" || threshold(p) != was {
		t.Fatalf("change %v, threshold %v; want a pending one of operator, %v", c, threshold(p), was)
	}
	showsChange(t, c, "threshold", was, 100000.0)
	id := c["id"].(string)
	p.Refused(403, "own_request", "POST", "/governance/changes/"+id+"/approve", controlplanetest.Operator, nil)
	p.Refused(403, "insufficient_scope", "POST", "/governance/changes/"+id+"/approve", controlplanetest.Trainer, nil)
	if done := p.Want(200, "POST", "/governance/changes/"+id+"/approve", controlplanetest.Governor, nil).Object(t); done["state"] != "applied" || threshold(p) != 100000.0 {
		t.Fatalf("change %v, threshold %v; want applied, 100000", done, threshold(p))
	}
	p.Refused(409, "already_decided", "POST", "/governance/changes/"+id+"/approve", controlplanetest.Governor, nil)
	// A deletion waits too, and may be rejected.
	gone := p.Want(202, "DELETE", policyPath, controlplanetest.Operator, nil).Object(t)
	p.Want(200, "POST", "/governance/changes/"+gone["id"].(string)+"/reject", controlplanetest.Governor, `{"reason":"no"}`)
	if threshold(p) != 100000.0 {
		t.Fatalf("threshold %v; want 100000", threshold(p))
	}
	p.Refused(404, "change_not_found", "POST", "/governance/changes/01930000-0000-7000-8000-000000000001/approve", controlplanetest.Governor, nil)
	// The legacy token is exempt, and without separation of duties one person is enough.
	p.Want(200, "PUT", policyPath, controlplanetest.Legacy, laxPolicy)
	for action, n := range map[string]int{"guarded_change.proposed": 2, "guarded_change.applied": 1, "guarded_change.rejected": 1, "guarded_change.approve": 1} {
		if got := p.Audits(action); len(got) != n {
			t.Errorf("%d facts %s; want %d", len(got), action, n)
		}
	}
}

func TestPolicyWithoutSeparationIsSetAtOnce(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	p.Want(200, "PUT", policyPath, controlplanetest.Operator, laxPolicy)
	p.Want(200, "PUT", policyPath, controlplanetest.Trainer, laxPolicy) // with the scope manage
	p.Refused(403, "insufficient_scope", "PUT", policyPath, controlplanetest.Approver, laxPolicy)
}

// Enabling training without a decision needs a second person; restricting it does not.
func TestDirectGatesNeedASecondPerson(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, enforce)
	direct := `{"auto_retrain": true, "gate": "direct"}`
	p.Refused(403, "insufficient_scope", "PUT", "/modelrepo/config", controlplanetest.Trainer, direct)
	c := p.Want(202, "PUT", "/modelrepo/config", controlplanetest.Operator, direct).Object(t)
	if now := p.Want(200, "GET", "/modelrepo/config", controlplanetest.Reader, nil).Object(t); now["gate"] != "approval" || now["auto_retrain"] != false {
		t.Fatalf("settings %v; want unchanged", now)
	}
	p.Want(200, "POST", "/governance/changes/"+c["id"].(string)+"/approve", controlplanetest.Governor, nil)
	if now := p.Want(200, "GET", "/modelrepo/config", controlplanetest.Reader, nil).Object(t); now["gate"] != "direct" || now["auto_retrain"] != true {
		t.Fatalf("settings %v; want direct, true", now)
	}
	p.Want(200, "PUT", "/modelrepo/config", controlplanetest.Trainer, `{"auto_retrain": false}`)
	p.Want(200, "PUT", "/auto-retrain/JPCP", controlplanetest.Trainer, `{"enabled": true}`)
	p.Refused(403, "insufficient_scope", "PUT", "/auto-retrain/JPCP", controlplanetest.Trainer, `{"enabled": true, "gate": "direct"}`)
	c = p.Want(202, "PUT", "/auto-retrain/JPCP", controlplanetest.Operator, `{"enabled": true, "gate": "direct", "min_z": 4}`).Object(t)
	showsChange(t, c, "min_z", 3.0, 4.0)
	p.Want(200, "POST", "/governance/changes/"+c["id"].(string)+"/approve", controlplanetest.Governor, nil)
	row := p.Want(200, "GET", "/auto-retrain", controlplanetest.Reader, nil).Object(t)["items"].([]any)[0].(map[string]any)
	if row["gate"] != "direct" || row["min_z"] != 4.0 || row["updated_by"] != "governor" {
		t.Fatalf("settings %v; want direct, 4, by governor", row)
	}
}

// One person cannot redirect a gate that starts training without a decision: not to another branch, nor to another
// threshold. Switching it off needs no second person.
func TestDirectGatesAreNotRedirectedByOnePerson(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, enforce)
	for path, c := range map[string]struct{ direct, redirected, off string }{
		"/modelrepo/config":  {`{"auto_retrain": true, "gate": "direct"}`, `{"watch_branch": "mine"}`, `{"auto_retrain": false}`},
		"/auto-retrain/JPCP": {`{"enabled": true, "gate": "direct"}`, `{"enabled": true, "min_z": 0.1, "cooldown_seconds": 0}`, `{"enabled": false}`},
	} {
		p.Want(200, "PUT", path, controlplanetest.Legacy, c.direct)
		p.Refused(403, "insufficient_scope", "PUT", path, controlplanetest.Trainer, c.redirected)
		if waits := p.Want(202, "PUT", path, controlplanetest.Operator, c.redirected).Object(t); waits["state"] != "pending" {
			t.Errorf("%s by operator: got %v, want a pending change", path, waits)
		}
		p.Want(200, "PUT", path, controlplanetest.Trainer, c.off)
	}
	if now := p.Want(200, "GET", "/modelrepo/config", controlplanetest.Reader, nil).Object(t); now["watch_branch"] != "main" || now["auto_retrain"] != false {
		t.Errorf("settings: got %v, want branch main, switched off", now)
	}
}

// A change that takes effect immediately ends a pending one of the same setting: approving that later would undo the
// newer one.
func TestDirectChangeSupersedesAPendingOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, loosen, tighten, by string }{
		"auto-retrain": {"/auto-retrain/JPCP", `{"enabled": true, "gate": "direct"}`, `{"enabled": false}`, controlplanetest.Trainer},
		"modelrepo":    {"/modelrepo/config", `{"auto_retrain": true, "gate": "direct"}`, `{"poll_interval_seconds": 77}`, controlplanetest.Trainer},
		"policy":       {policyPath, laxPolicy, strictPolicy, controlplanetest.Legacy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := controlplanetest.Start(t, enforce)
			pending := p.Want(202, "PUT", c.path, controlplanetest.Operator, c.loosen).Object(t)
			p.Want(200, "PUT", c.path, c.by, c.tighten)
			p.Refused(409, "already_decided", "POST", "/governance/changes/"+pending["id"].(string)+"/approve", controlplanetest.Governor, nil)
			ended := p.Want(200, "GET", "/governance/changes?state=superseded", controlplanetest.Reader, nil).Object(t)["items"].([]any)
			if len(ended) != 1 || ended[0].(map[string]any)["id"] != pending["id"] || len(p.Audits("guarded_change.superseded")) != 1 {
				t.Errorf("superseded: %v; want %v, with a fact", ended, pending["id"])
			}
			if name == "auto-retrain" {
				if row := p.Want(200, "GET", "/auto-retrain", controlplanetest.Reader, nil).Object(t)["items"].([]any)[0].(map[string]any); row["enabled"] != false || row["gate"] != "approval" {
					t.Errorf("settings %v; want disabled, approval", row)
				}
			}
		})
	}
}

// A person who can edit the environment cannot switch off separation of duties.
func TestSeparationItselfIsGuarded(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Neighbours(t, enforce)
	p.Serve()()
	p.Setenv("CONTROL_PLANE_SEPARATION_OF_DUTIES=off")
	p.Serve()
	own := func() controlplanetest.Response {
		p.Want(200, "POST", "/api/changes", controlplanetest.Operator, `{"model_ids":["JPCP"],"commit_sha":"commit1"}`)
		return p.Call("POST", "/approve/JPCP", controlplanetest.Operator, nil)
	}
	if r := own(); r.Status != 403 || r.Code() != "own_request" {
		t.Fatalf("%d %s; want 403 own_request", r.Status, r.Body)
	}
	c := pendingChange(p, "separation_of_duties")
	if c["person_unknown"] != true || c["old"] != "enforce" || c["new"] != "off" {
		t.Fatalf("change %v; want enforce to off by nobody known", c)
	}
	path := "/governance/changes/" + c["id"].(string) + "/approve"
	if first := p.Want(200, "POST", path, controlplanetest.Governor, nil).Object(t); first["state"] != "pending" {
		t.Fatalf("first approval %v; want pending", first)
	}
	p.Refused(403, "second_approver_required", "POST", path, controlplanetest.Governor, nil)
	p.Want(200, "POST", path, controlplanetest.Operator, nil)
	if r := own(); r.Status != 200 {
		t.Fatalf("%d %s; want 200", r.Status, r.Body)
	}
}

// A credential that gains a scope, or a new one with any, has it only after approval.
func TestScopesAreGuarded(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Neighbours(t, enforce)
	p.Serve()()
	var credentials map[string]map[string]any
	for _, kv := range p.Env {
		if text, ok := strings.CutPrefix(kv, "CONTROL_PLANE_CREDENTIALS_JSON="); ok {
			if err := json.Unmarshal([]byte(text), &credentials); err != nil {
				t.Fatal(err)
			}
		}
	}
	const eve = "eve-0123456789abcdef0123"
	credentials[controlplanetest.Trainer]["scopes"] = []string{"read", "manage", "govern", "approve"}
	credentials[eve] = map[string]any{"principal": "eve", "tenant": "default", "scopes": []string{"read", "write"}}
	p.Setenv("CONTROL_PLANE_CREDENTIALS_JSON=" + controlplanetest.MustJSON(credentials))
	p.Serve()
	p.Notice("JPCP", "commit1")
	p.Refused(403, "insufficient_scope", "POST", "/approve/JPCP", controlplanetest.Trainer, nil)
	p.Refused(403, "insufficient_scope", "PUT", policyPath, controlplanetest.Trainer, laxPolicy)
	p.Refused(403, "insufficient_scope", "POST", "/approve/JPCP", eve, nil)
	p.Want(200, "GET", "/approvals", eve, nil)                                                   // reading loosens nothing
	p.Want(200, "PUT", "/modelrepo/config", controlplanetest.Trainer, `{"auto_retrain": false}`) // scopes that it already held stay
	path := "/governance/changes/" + pendingChange(p, "credential:eve")["id"].(string) + "/approve"
	p.Want(200, "POST", path, controlplanetest.Operator, nil)
	p.Refused(403, "insufficient_scope", "POST", "/approve/JPCP", eve, nil)
	p.Want(200, "POST", path, controlplanetest.Governor, nil)
	p.Want(200, "POST", "/approve/JPCP", eve, nil)
}

// An undecided guarded change expires, and the current settings stay.
func TestGuardedChangeExpires(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Neighbours(t, enforce, "APPROVAL_EXPIRY_HOURS=1")
	stop := p.Serve()
	was := threshold(p)
	id := p.Want(202, "PUT", policyPath, controlplanetest.Operator, laxPolicy).Object(t)["id"].(string)
	stop()
	p.SQL("update control_plane.guarded_changes set expires_at = now() - interval '1 second'")
	p.Serve() // a leader sweeps immediately, and then each minute
	testenv.Eventually(t, 10*time.Second, func() error {
		items := p.Want(200, "GET", "/governance/changes?state=expired", controlplanetest.Reader, nil).Object(t)["items"].([]any)
		if len(items) != 1 || items[0].(map[string]any)["id"] != id {
			return fmt.Errorf("expired changes %v; want %s alone", items, id)
		}
		return nil
	})
	p.Refused(409, "already_decided", "POST", "/governance/changes/"+id+"/approve", controlplanetest.Governor, nil)
	if got := p.Audits("guarded_change.expired"); len(got) != 1 || got[0]["actor"] != "system:expiry" || threshold(p) != was {
		t.Errorf("facts %v, threshold %v; want one of system:expiry, %v", got, threshold(p), was)
	}
}
