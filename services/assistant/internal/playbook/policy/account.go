package policy

import (
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// noAccountExpr matches the refusal of a pod whose service account does not exist.
var noAccountExpr = regexp.MustCompile(`error looking up service account ([a-z0-9-]+)/([a-z0-9.-]+): ` +
	`serviceaccount "([a-z0-9.-]+)" not found`)

// checkAccounts explains MissingServiceAccount: without its service account no pod is created at all, so only the pod's
// owner shows the fault.
func checkAccounts(x *Index) []engine.Finding {
	if x.Unread["serviceaccounts"] {
		return nil
	}
	exists := map[engine.Name]bool{}
	for i := range x.ServiceAccounts {
		exists[engine.Name{Namespace: x.ServiceAccounts[i].Namespace, Name: x.ServiceAccounts[i].Name}] = true
	}
	var found []engine.Finding
	told := map[operation.Ref]bool{}
	for _, r := range x.rejected() {
		told[r.Ref] = true
		m := noAccountExpr.FindStringSubmatch(r.said)
		if m == nil || m[1] != r.Ref.Namespace || exists[engine.Name{Namespace: m[1], Name: m[2]}] {
			continue
		}
		f := engine.Finding{Class: engine.MissingServiceAccount, Object: r.Ref, Confidence: engine.High, Evidence: []string{r.lacks(), "The API server says " + engine.QuoteCode(r.said) + "."}}
		explainMissingAccount(&f, m[2], r.Workload)
		found = append(found, f)
	}
	// Events last an hour: without one, an absent account and the lack of any pod are the evidence.
	for _, w := range x.Workloads {
		if told[w.Ref] || w.Template == nil || w.Replicas == 0 || w.Ref.Kind == "Job" || x.Unread["pods"] || len(x.PodsOf(w.Ref)) > 0 {
			continue
		}
		if account := w.Template.Spec.ServiceAccountName; account != "" && !exists[engine.Name{Namespace: w.Ref.Namespace, Name: account}] {
			f := engine.Finding{Class: engine.MissingServiceAccount, Object: w.Ref, Confidence: engine.Medium}
			explainMissingAccount(&f, account, w)
			found = append(found, f)
		}
	}
	return found
}

func explainMissingAccount(f *engine.Finding, account string, w *engine.Workload) {
	f.Evidence = append(f.Evidence, fmt.Sprintf("Namespace %s was searched: no service account has the name %s.", engine.QuoteCode(w.Ref.Namespace), engine.QuoteCode(account)))
	f.Cause = fmt.Sprintf("The service account %s does not exist, so the API server takes no pod that names it.", engine.QuoteCode(account))
	f.Text = fmt.Sprintf("Create the service account %s in namespace %s, or correct serviceAccountName. Service accounts are not written from here.", engine.QuoteCode(account), engine.QuoteCode(w.Ref.Namespace))
	fix, text := engine.UndoRollout(w, func(older *corev1.PodTemplateSpec) bool { return older.Spec.ServiceAccountName != account })
	if fix != nil {
		f.Fix, f.Text = fix, text
	}
}
