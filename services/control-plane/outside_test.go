package controlplane_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// startEnforced runs a control plane whose gate is enforced.
func startEnforced(t *testing.T) *controlplanetest.Plane {
	t.Helper()
	return controlplanetest.Start(t, "CONTROL_PLANE_SEPARATION_OF_DUTIES=enforce", "ALERT_SECONDS=1")
}

// noticeMoves makes the control plane notice moves at the tracker without waiting for the watcher.
func noticeMoves(p *controlplanetest.Plane, model string) {
	p.T.Helper()
	p.Refused(404, "no_previous_version", "POST", "/aliases/"+model+"/Canary/rollback", controlplanetest.Operator, map[string]any{"reason": "look"})
}

// promotionsOf lists the pending promotions that moves past the gate opened.
func promotionsOf(p *controlplanetest.Plane, model string) []map[string]any {
	p.T.Helper()
	out := []map[string]any{}
	for _, item := range p.Want(200, "GET", "/promotions?state=pending&model="+model, controlplanetest.Reader, nil).Object(p.T)["items"].([]any) {
		if pr := item.(map[string]any); pr["origin"] == "outside" {
			out = append(out, pr)
		}
	}
	return out
}

func awaitAlert(p *controlplanetest.Plane, id string, fires bool) {
	p.T.Helper()
	testenv.Eventually(p.T, 20*time.Second, func() error {
		body := string(p.Want(200, "GET", "/alerts", controlplanetest.Reader, nil).Body)
		if strings.Contains(body, id) != fires {
			return fmt.Errorf("got alerts %s, want %s to fire: %t", body, id, fires)
		}
		return nil
	})
}

// A client moves Production past an enforced gate: the alias is put back, the move waits as a promotion in the mover's
// name with an alert, and approval serves it.
func TestOutsideMoveIsPutBackAndAskedFor(t *testing.T) {
	t.Parallel()
	p := startEnforced(t)
	v1 := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 12.0))
	p.Report("JPCP", v1)
	p.Want(200, "POST", "/promotions/"+p.PendingPromotion("JPCP")+"/approve", controlplanetest.Approver, nil)
	v2 := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 13.0))

	for range 2 { // the second move requests nothing new
		p.Tracker.Move("jpcp", "Production", v2)
		noticeMoves(p, "JPCP")
		if got := p.Tracker.Holder("jpcp", "Production"); got != v1 {
			t.Fatalf("Production: got version %q, want %s put back", got, v1)
		}
	}
	waiting := promotionsOf(p, "JPCP")
	if len(waiting) != 1 || waiting[0]["version"] != v2 || waiting[0]["requested_by"] != "tracker:unknown" {
		t.Fatalf("got promotions %v, want one of version %s requested by tracker:unknown", waiting, v2)
	}
	const alert = "deploy:JPCP:Production:external_move"
	awaitAlert(p, alert, true)
	history := func() []any {
		return p.Want(200, "GET", "/alias-history?model=JPCP&alias=Production", controlplanetest.Reader, nil).Object(t)["items"].([]any)
	}
	if h := history(); len(h) != 1 || h[0].(map[string]any)["version"] != v1 {
		t.Errorf("got history %v, want version %s alone", h, v1)
	}
	if got := p.Audits("alias.put_back"); len(got) != 2 {
		t.Errorf("got %d audit facts of alias.put_back, want 2: %v", len(got), got)
	}

	// The mover of the alias is unknown: it takes two.
	approve := "/promotions/" + waiting[0]["id"].(string) + "/approve"
	p.Want(200, "POST", approve, controlplanetest.Approver, nil)
	if got := p.Tracker.Holder("jpcp", "Production"); got != v1 {
		t.Errorf("approved once: got version %q, want %s", got, v1)
	}
	p.Want(200, "POST", approve, controlplanetest.Operator, nil)
	if got := p.Tracker.Holder("jpcp", "Production"); got != v2 {
		t.Errorf("approved: got version %q, want %s", got, v2)
	}
	h := history()[0].(map[string]any)
	if h["version"] != v2 || h["via"] != "promotion" || h["digest"] != controlplanetest.Digest {
		t.Errorf("got holder %v, want version %s via promotion with digest %s", h, v2, controlplanetest.Digest)
	}
	awaitAlert(p, alert, false)
	holding := p.Want(200, "GET", "/alias-history?alias=Production&holding=true", controlplanetest.Reader, nil).Object(t)["items"].([]any)
	if len(holding) != 1 || holding[0].(map[string]any)["version"] != v2 {
		t.Errorf("got present holders %v, want version %s alone", holding, v2)
	}
}

// A model that never had a Production has none after a client set it; rejecting ends the request.
func TestOutsideMoveOfANewModel(t *testing.T) {
	t.Parallel()
	p := startEnforced(t)
	v := p.Tracker.Add("mack", controlplanetest.Good("accuracy", 0.9))
	p.Tracker.Move("mack", "Production", v)
	noticeMoves(p, "MACK")
	if got := p.Tracker.Holder("mack", "Production"); got != "" {
		t.Errorf("Production: got version %q, want none", got)
	}
	waiting := promotionsOf(p, "MACK")
	if len(waiting) != 1 {
		t.Fatalf("got promotions %v, want one", waiting)
	}
	p.Want(200, "POST", "/promotions/"+waiting[0]["id"].(string)+"/reject", controlplanetest.Operator, map[string]any{"reason": "no"})
	awaitAlert(p, "deploy:MACK:Production:external_move", false)
}

// The gate's rules apply to a request made past it.
func TestOutsideMoveOfADummyIsNotApproved(t *testing.T) {
	t.Parallel()
	p := startEnforced(t)
	v := p.Tracker.Add("jpcp", controlplanetest.Version{
		Metrics: map[string]any{"rmse": 1.0}, Tags: map[string]string{"artifact_digest": controlplanetest.Digest, "dummy": "true"},
	})
	p.Tracker.Move("jpcp", "Production", v)
	noticeMoves(p, "JPCP")
	waiting := promotionsOf(p, "JPCP")
	if len(waiting) != 1 {
		t.Fatalf("got promotions %v, want one", waiting)
	}
	p.Refused(409, "promotion_denied", "POST", "/promotions/"+waiting[0]["id"].(string)+"/approve", controlplanetest.Operator, nil)
	if got := p.Tracker.Holder("jpcp", "Production"); got != "" {
		t.Errorf("Production: got version %q, want none", got)
	}
}

// A removed alias is restored; one whose version was deleted cannot be, and the history records that.
func TestOutsideRemoval(t *testing.T) {
	t.Parallel()
	p := startEnforced(t)
	v := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 12.0))
	p.Report("JPCP", v)
	p.Want(200, "POST", "/promotions/"+p.PendingPromotion("JPCP")+"/approve", controlplanetest.Approver, nil)
	p.Tracker.Move("jpcp", "Production", "")
	noticeMoves(p, "JPCP")
	if got := p.Tracker.Holder("jpcp", "Production"); got != v {
		t.Errorf("removed: got version %q, want %s put back", got, v)
	}
	p.Tracker.Remove("jpcp", v)
	p.Refused(409, "rollback_denied", "POST", "/aliases/JPCP/Canary/rollback", controlplanetest.Operator, map[string]any{"reason": "look"})
	h := p.Want(200, "GET", "/alias-history?model=JPCP&alias=Production", controlplanetest.Reader, nil).Object(t)["items"].([]any)
	if len(h) != 2 || h[0].(map[string]any)["version"] != nil || h[0].(map[string]any)["via"] != "external" {
		t.Errorf("deleted: got history %v, want the newest without a version, via external", h)
	}
}
