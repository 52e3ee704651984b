package controlplane_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// The effect shown to the approver is the effect of the approval, in each mode.
func TestEffectOfAnApprovalIsWhatApprovalDoes(t *testing.T) {
	t.Parallel()
	const rule = `{"metric":"rmse","operator":"lte","threshold":50,"approval_mode":%q,"enabled":%t}`
	for name, c := range map[string]struct {
		policy               string
		moves, action, tells string
	}{
		"each":  {fmt.Sprintf(rule, "each", true), "after_another_approval", "Approve and train", "waits for another approval"},
		"run":   {fmt.Sprintf(rule, "run", true), "by_this_approval", "Approve, train and promote", "without another question"},
		"off":   {fmt.Sprintf(rule, "run", false), "never", "Approve and train", "is switched off"},
		"other": {"", "never", "Approve and train", "has no promotion policy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := controlplanetest.Start(t)
			if c.policy != "" {
				p.Want(200, "PUT", "/promotion-policies/JPCP", controlplanetest.Operator, c.policy)
			} else {
				p.SQL("update control_plane.policies set removed_at = now() where model_id = 'JPCP'")
			}
			e := p.Want(200, "GET", "/approvals/"+p.Notice("JPCP", "abc")+"/effect", controlplanetest.Operator, nil).Object(t)
			if e["moves"] != c.moves || e["action"] != c.action || !strings.Contains(fmt.Sprint(e["sentences"]), c.tells) || e["starts_training"] != true {
				t.Errorf("effect %v; want moves %q, action %q and %q", e, c.moves, c.action, c.tells)
			}
		})
	}
}

func TestEffectOfAPromotionNamesWhatItReplaces(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	_, _, v := p.Trained("JPCP", "JobEmbeddings", controlplanetest.Good("rmse", 12.0))
	id := p.Promotion(p.Report("JPCP", v)["promotion_id"].(string))["approval_id"].(string)
	e := p.Want(200, "GET", "/approvals/"+id+"/effect", controlplanetest.Operator, nil).Object(t)
	if e["kind"] != "promotion" || e["new_version"] != v || e["target"] != "Production" || e["moves"] != "by_this_approval" || e["starts_training"] != false {
		t.Errorf("effect %v; want version %s under Production by this approval, and no training", e, v)
	}
	p.Want(200, "POST", "/approvals/"+id+"/approve", controlplanetest.Approver, nil)
	e = p.Want(200, "GET", "/approvals/"+id+"/effect", controlplanetest.Operator, nil).Object(t)
	if e["decidable"] != false || e["moves"] != "never" || e["current_version"] != nil && e["current_version"] != v {
		t.Errorf("effect of a decided record %v; want that it cannot be approved any more", e)
	}
}
