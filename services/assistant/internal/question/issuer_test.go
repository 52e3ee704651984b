package question_test

import (
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/question"
)

// TestIssuerIsAName: a workload may be called issuer; the plural and the longer words are kinds.
func TestIssuerIsAName(t *testing.T) {
	t.Parallel()
	a := question.Parse("scale issuer to 3", inCluster)
	if a.Intent != question.Request || len(a.Changes) != 1 || len(a.Changes[0].Mentions) != 1 || a.Changes[0].Mentions[0].Name != "issuer" {
		t.Errorf("%+v; want a request about what is called issuer", a)
	}
	for word, want := range map[string]string{"issuer": "", "issuers": "issuer", "clusterissuer": "clusterissuer", "certificaterequests": "certificaterequest"} {
		if got := question.KindOf(word); got != want {
			t.Errorf("%s is the kind %q; want %q", word, got, want)
		}
	}
	for text, want := range map[string]question.Intent{
		"list helm releases": question.Releases, "which releases were installed by helm?": question.Releases, "helm list": question.Releases, "why did the helm upgrade of web fail?": question.Diagnosis,
		"list the argo cd applications": question.Applications, "which argocd apps are out of sync?": question.Applications, "which applications are out of sync?": question.Applications,
		"why is the argo application shop degraded?": question.Diagnosis, "which apps are running?": question.Overview,
	} {
		if got := question.Parse(text, inCluster).Intent; got != want && !(want == question.Overview && got != question.Applications) {
			t.Errorf("%q has the intent %d; want %d", text, got, want)
		}
	}
}
