// Package release explains Helm releases whose last operation failed or never ended, by names and labels alone.
package release

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// longOperation is how long an operation may run before it is a problem: Helm itself waits for five minutes.
const longOperation = 10 * time.Minute

// Index finds the objects of a snapshot.
type Index struct{ *engine.Index }

// New returns the index of this package over x, for one diagnosis.
func New(x *engine.Index) *Index { return &Index{x} }

// Checks returns the checks of this package.
func (x *Index) Checks() engine.Checks {
	return engine.Checks{Objects: engine.BindObjectChecks(x, checkReleases)}
}

// checkReleases explains ReleaseNotDeployed.
func checkReleases(x *Index) []engine.Finding {
	var found []engine.Finding
	for _, r := range x.Releases() {
		f := engine.Finding{Class: engine.ReleaseNotDeployed, Object: r.Ref, Confidence: engine.Medium}
		f.Evidence = []string{fmt.Sprintf("Revision %d of release %s has been %s for %s.", r.Revision, engine.QuoteCode(r.Name), engine.QuoteCode(r.Status), x.Since(metav1.NewTime(r.Created)))}
		switch {
		case r.Status == "failed":
			x.explainFailed(&f, r)
		case r.IsPending() && x.Taken.Sub(r.Created) > longOperation:
			explainPending(&f, r)
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}

// explainFailed follows the workloads of the release: Helm gives up when they do not become ready in time.
func (x *Index) explainFailed(f *engine.Finding, r engine.Release) {
	f.Cause = fmt.Sprintf("The last operation of Helm on release %s failed. What it applied until then is in the cluster.", engine.QuoteCode(r.Name))
	f.Text = fmt.Sprintf("Read its message, which is stored in the release and is not read here: `helm history %s -n %s`.", r.Name, r.Ref.Namespace)
	if r.Deployed > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("The last revision that was deployed is %d.", r.Deployed))
		f.Text += fmt.Sprintf(" To go back: `helm rollback %s %d -n %s`.", r.Name, r.Deployed, r.Ref.Namespace)
	} else {
		f.Evidence = append(f.Evidence, "No revision of it is deployed.")
	}
	f.Because = x.WorkloadsOfRelease(r.Ref.Namespace, r.Name)
}

func explainPending(f *engine.Finding, r engine.Release) {
	f.Cause = fmt.Sprintf("An operation of Helm on release %s has not ended: its process was most likely killed. Helm refuses further ones, since `another operation (install/upgrade/rollback) is in progress`.", engine.QuoteCode(r.Name))
	f.Text = "If no Helm is at work on it any more, "
	switch {
	case r.Status == "uninstalling":
		f.Text += fmt.Sprintf("uninstall it again: `helm uninstall %s -n %s`.", r.Name, r.Ref.Namespace)
	case r.Deployed > 0:
		f.Evidence = append(f.Evidence, fmt.Sprintf("The last revision that was deployed is %d.", r.Deployed))
		f.Text += fmt.Sprintf("go back to the last revision that was deployed: `helm rollback %s %d -n %s`. Then try again.", r.Name, r.Deployed, r.Ref.Namespace)
	default:
		f.Text += fmt.Sprintf("take it away and install it again: `helm uninstall %s -n %s`.", r.Name, r.Ref.Namespace)
	}
}
