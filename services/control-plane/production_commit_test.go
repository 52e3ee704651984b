package controlplane_test

import (
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// committed is a version that no run of the control plane made, such as one of mlp pipeline run.
func committed(commit string) controlplanetest.Version {
	v := controlplanetest.Good("rmse", 10.0)
	v.Tags = map[string]string{"modelrepo_commit": commit, "artifact_digest": controlplanetest.Digest}
	return v
}

// Freshness counts the commit of the version that holds Production, however it was trained and however the alias moved.
func TestProductionMakesAModelCurrent(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(p *controlplanetest.Plane, version string){
		"reported and promoted": func(p *controlplanetest.Plane, version string) {
			p.Report("JPCP", version)
			expectMembers(t, freshnessOf(p, "JPCP"), doc{"status": "stale", "last_retrain_commit": nil})
			p.Want(200, "POST", "/promotions/"+p.PendingPromotion("JPCP")+"/approve", controlplanetest.Approver, nil)
		},
		"promoted without a report": func(p *controlplanetest.Plane, version string) {
			p.Tracker.Move("jpcp", "Staging", version)
			id := p.Want(200, "POST", "/promotions", controlplanetest.Operator, doc{"model": "JPCP"}).Object(t)["id"].(string)
			p.Want(200, "POST", "/promotions/"+id+"/approve", controlplanetest.Approver, nil)
		},
		"moved at the tracker": func(p *controlplanetest.Plane, version string) {
			p.Tracker.Move("jpcp", "Production", version)
			noticeMoves(p, "JPCP")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := controlplanetest.Start(t)
			p.SQL(`insert into control_plane.freshness (model_id, status, latest_modelrepo_commit, stale_since, updated_at) values ('JPCP', 'stale', 'c0ffee1', now(), now())`)
			move(p, p.Tracker.Add("jpcp", committed("c0ffee1")))
			expectMembers(t, freshnessOf(p, "JPCP"), doc{"status": "current", "last_retrain_commit": "c0ffee1", "stale_since": nil})
			if got := p.Events("event.freshness_changed"); len(got) != 1 || got[0].Data["previous"] != "stale" {
				t.Errorf("got events %v, want one of a model that was stale", got)
			}
		})
	}
}

// A version of an older commit leaves the model stale; dummies and versions that no commit holds do not count; an older
// version that gets Production back does not undo the training of a newer one.
func TestProductionOfAnOlderCommit(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	p.SQL(`insert into control_plane.freshness (model_id, status, latest_modelrepo_commit, stale_since, updated_at) values ('JPCP', 'stale', 'c0ffee9', now(), now())`)
	for _, tag := range []string{"dummy", "modelrepo_dirty"} {
		v := committed("c0ffee9")
		v.Tags[tag] = "true"
		p.Tracker.Move("jpcp", "Production", p.Tracker.Add("jpcp", v))
		noticeMoves(p, "JPCP")
		expectMembers(t, freshnessOf(p, "JPCP"), doc{"status": "stale", "last_retrain_commit": nil})
	}
	promote := func(v controlplanetest.Version) {
		p.Report("JPCP", p.Tracker.Add("jpcp", v))
		p.Want(200, "POST", "/promotions/"+p.PendingPromotion("JPCP")+"/approve", controlplanetest.Approver, nil)
	}
	promote(committed("c0ffee1"))
	expectMembers(t, freshnessOf(p, "JPCP"), doc{"status": "stale", "last_retrain_commit": "c0ffee1"})
	promote(committed("c0ffee2"))
	expectMembers(t, freshnessOf(p, "JPCP"), doc{"status": "stale", "last_retrain_commit": "c0ffee2"})

	p.Want(200, "POST", "/aliases/JPCP/Production/rollback", controlplanetest.Operator, doc{"reason": "worse"})
	expectMembers(t, freshnessOf(p, "JPCP"), doc{"status": "stale", "last_retrain_commit": "c0ffee2"})

	promote(committed("c0ffee9"))
	expectMembers(t, freshnessOf(p, "JPCP"), doc{"status": "current", "last_retrain_commit": "c0ffee9"})
}
