package controlplane_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// replaceFiles replaces the files of a version, and the digest in its tag.
func replaceFiles(p *controlplanetest.Plane, version string) {
	p.Tracker.Change("jpcp", version, func(v *controlplanetest.Version) { v.Tags = map[string]string{"artifact_digest": otherDigest} })
}

// wantFilesChanged approves a promotion whose files were replaced, and checks that it ends with the reason.
func wantFilesChanged(p *controlplanetest.Plane, id, bearer string) {
	p.T.Helper()
	r := p.Refused(409, "artifact_changed", "POST", "/promotions/"+id+"/approve", bearer, nil).Object(p.T)
	if detail := fmt.Sprint(r["detail"]); !strings.Contains(detail, controlplanetest.Digest) || !strings.Contains(detail, otherDigest) {
		p.T.Errorf("refusal: got %v, want both digests in its detail", r)
	}
	if pr := p.Promotion(id); pr["state"] != "superseded" || pr["digest"] != controlplanetest.Digest {
		p.T.Errorf("promotion: got %v, want superseded, with the digest that was shown", pr)
	}
	wantHolder(p, "")
}

// A client of the tracker replaces the files between the request and the approval: no one has looked at them.
func TestApprovalIsOfTheFilesThatWereShown(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, enforce)
	version := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 12.0))
	p.Report("JPCP", version)
	id := p.PendingPromotion("JPCP")
	if pr := p.Promotion(id); pr["digest"] != controlplanetest.Digest {
		t.Fatalf("promotion: got digest %v, want %s", pr["digest"], controlplanetest.Digest)
	}
	replaceFiles(p, version)
	wantFilesChanged(p, id, controlplanetest.Approver)
	// The new files can be requested, and looked at.
	asked := p.Want(200, "POST", "/promotions", controlplanetest.Operator, map[string]any{"model": "JPCP", "version": version}).Object(t)
	if pr := p.Promotion(asked["id"].(string)); pr["digest"] != otherDigest {
		t.Errorf("new promotion: got digest %v, want %s", pr["digest"], otherDigest)
	}
	p.Want(200, "POST", "/promotions/"+asked["id"].(string)+"/approve", controlplanetest.Approver, nil)
	wantHolder(p, version)
}

// Where two have to approve, both approve the same files.
func TestBothApprovalsAreOfTheSameFiles(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, enforce)
	version := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 12.0))
	p.Tracker.Move("jpcp", "Production", version)
	noticeMoves(p, "JPCP")
	id := promotionsOf(p, "JPCP")[0]["id"].(string)
	if pr := p.Want(200, "POST", "/promotions/"+id+"/approve", controlplanetest.Approver, nil).Object(t); pr["first_approver"] != "approver" || pr["digest"] != controlplanetest.Digest {
		t.Fatalf("first approval: got %v, want one of approver for %s", pr, controlplanetest.Digest)
	}
	replaceFiles(p, version)
	wantFilesChanged(p, id, controlplanetest.Operator)
}

// Moving the alias again after replacing the files requests the new ones: the former request does not cover them.
func TestOutsideMoveAfterReplacingTheFilesIsAnotherRequest(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, enforce)
	version := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 12.0))
	p.Tracker.Move("jpcp", "Production", version)
	noticeMoves(p, "JPCP")
	first := promotionsOf(p, "JPCP")[0]["id"].(string)
	replaceFiles(p, version)
	p.Tracker.Move("jpcp", "Production", version)
	noticeMoves(p, "JPCP")
	waiting := promotionsOf(p, "JPCP")
	if len(waiting) != 1 || waiting[0]["id"] == first || waiting[0]["digest"] != otherDigest {
		t.Errorf("pending promotions: got %v, want another one than %s, for %s", waiting, first, otherDigest)
	}
}

// A promotion without a digest, such as one from before digests were recorded, is not approved unseen.
func TestDigestIsShownBeforeItIsApproved(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, enforce)
	version := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 12.0))
	p.Report("JPCP", version)
	id := p.PendingPromotion("JPCP")
	p.SQL("update control_plane.promotions set digest = null where id = $1", id)
	p.Refused(409, "artifact_changed", "POST", "/promotions/"+id+"/approve", controlplanetest.Approver, nil)
	if pr := p.Promotion(id); pr["state"] != "pending" || pr["digest"] != controlplanetest.Digest {
		t.Fatalf("promotion: got %v, want pending, with its digest", pr)
	}
	p.Want(200, "POST", "/promotions/"+id+"/approve", controlplanetest.Approver, nil)
	wantHolder(p, version)
}

// A move that waited for the tracker is not made if the files have been replaced.
func TestApprovedMoveOfReplacedFilesFails(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, enforce)
	version := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 12.0))
	p.Report("JPCP", version)
	id := p.PendingPromotion("JPCP")
	p.Tracker.Set(controlplanetest.FailMoves)
	if pr := p.Want(200, "POST", "/promotions/"+id+"/approve", controlplanetest.Approver, nil).Object(t); pr["state"] != "approved" {
		t.Fatalf("promotion: got %v, want approved while the tracker refuses the move", pr)
	}
	replaceFiles(p, version)
	p.Tracker.Set(controlplanetest.Well)
	p.SQL("update control_plane.alias_moves set next_attempt_at = now() where state = 'moving'")
	testenv.Eventually(t, 30*time.Second, func() error {
		if pr := p.Promotion(id); pr["state"] != "failed" || !strings.Contains(fmt.Sprint(pr["reason"]), otherDigest) {
			return fmt.Errorf("got promotion %v, want failed for %s", pr, otherDigest)
		}
		return nil
	})
	wantHolder(p, "")
}

// A version that holds Production without a digest, such as one from before digests were recorded, gets the one in its
// tag: from then on no other files are admitted for it.
func TestHolderWithoutADigestGetsOne(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	version := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 12.0))
	p.Tracker.Move("jpcp", "Staging", version)
	p.Want(200, "POST", "/promotions", controlplanetest.Legacy, map[string]any{"model": "JPCP", "version": version, "approve": true})
	p.SQL("update control_plane.alias_history set digest = null where alias = 'Production'")
	holder := func() map[string]any {
		items := p.Want(200, "GET", "/alias-history?model=JPCP&alias=Production&holding=true", controlplanetest.Reader, nil).Object(t)["items"].([]any)
		if len(items) != 1 {
			return nil
		}
		return items[0].(map[string]any)
	}
	testenv.Eventually(t, 60*time.Second, func() error {
		if h := holder(); h["version"] != version || h["digest"] != controlplanetest.Digest {
			return fmt.Errorf("got holder %v, want version %s with digest %s", h, version, controlplanetest.Digest)
		}
		return nil
	})
	if got := p.Audits("alias.digest_recorded"); len(got) != 1 {
		t.Errorf("got facts %v, want one of the recorded digest", got)
	}
}
