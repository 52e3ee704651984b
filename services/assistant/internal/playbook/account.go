package playbook

import (
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// noAccountExpr is what the admission of pods says of an account that is not there.
var noAccountExpr = regexp.MustCompile(`error looking up service account ([a-z0-9-]+)/([a-z0-9.-]+): serviceaccount "([a-z0-9.-]+)" not found`)

// missingAccounts explains class 25: without its service account no pod is created at all,
// so that only its owner tells of it.
func missingAccounts(x *index) []Finding {
	if x.Unread["serviceaccounts"] {
		return nil
	}
	exists := map[name]bool{}
	for i := range x.ServiceAccounts {
		exists[name{Namespace: x.ServiceAccounts[i].Namespace, Name: x.ServiceAccounts[i].Name}] = true
	}
	var found []Finding
	told := map[operation.Ref]bool{}
	for _, r := range x.rejected() {
		told[r.ref] = true
		m := noAccountExpr.FindStringSubmatch(r.said)
		if m == nil || m[1] != r.ref.Namespace || exists[name{Namespace: m[1], Name: m[2]}] {
			continue
		}
		f := Finding{Class: MissingServiceAccount, Object: r.ref, Confidence: High, Evidence: []string{r.lacks(), "The API server says " + quoteCode(r.said) + "."}}
		f.missingAccount(m[2], r.workload)
		found = append(found, f)
	}
	// Events last an hour: without one, an absent account and no pod at all say the same.
	for _, w := range x.workloads {
		if told[w.ref] || w.template == nil || w.replicas == 0 || w.ref.Kind == "Job" || x.Unread["pods"] || len(x.podsOf(w.ref)) > 0 {
			continue
		}
		if account := w.template.Spec.ServiceAccountName; account != "" && !exists[name{Namespace: w.ref.Namespace, Name: account}] {
			f := Finding{Class: MissingServiceAccount, Object: w.ref, Confidence: Medium}
			f.missingAccount(account, w)
			found = append(found, f)
		}
	}
	return found
}

func (f *Finding) missingAccount(account string, w *workload) {
	f.Evidence = append(f.Evidence, fmt.Sprintf("Namespace %s was searched: no service account has the name %s.", quoteCode(w.ref.Namespace), quoteCode(account)))
	f.Cause = fmt.Sprintf("The service account %s does not exist, so the API server takes no pod that names it.", quoteCode(account))
	f.Text = fmt.Sprintf("Create the service account %s in namespace %s, or correct serviceAccountName. Service accounts are not written from here.", quoteCode(account), quoteCode(w.ref.Namespace))
	fix, text := undoRollout(w, func(older *corev1.PodTemplateSpec) bool { return older.Spec.ServiceAccountName != account })
	if fix != nil {
		f.Fix, f.Text = fix, text
	}
}

// accountOf is the service account that a pod acts as.
func accountOf(pod *corev1.Pod) string {
	if pod.Spec.ServiceAccountName == "" {
		return "default"
	}
	return pod.Spec.ServiceAccountName
}

// holdsToken says whether any container of a pod can act as its service account.
func holdsToken(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil })
	}) || accountOf(pod) != "default" && (pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken)
}
