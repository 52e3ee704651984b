package workload

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// checkBudgets explains BudgetDeadlock: budgets that permit no eviction, so that drains wait forever.
func checkBudgets(x *Index) []engine.Finding {
	if x.Unread["pods"] {
		return nil
	}
	guarded := map[*corev1.Pod][]string{}
	members := map[string][]*corev1.Pod{}
	key := func(b *policyv1.PodDisruptionBudget) string { return b.Namespace + "/" + b.Name }
	for i := range x.Budgets {
		b := &x.Budgets[i]
		for _, pod := range x.PodsByLabel.ChooseBy(b.Namespace, b.Spec.Selector) {
			if pod.Status.Phase != corev1.PodFailed {
				guarded[pod] = append(guarded[pod], b.Name)
				members[key(b)] = append(members[key(b)], pod)
			}
		}
	}
	var found []engine.Finding
	for i := range x.Budgets {
		b := &x.Budgets[i]
		pods := members[key(b)]
		if len(pods) == 0 || b.DeletionTimestamp != nil || b.Status.ObservedGeneration < b.Generation {
			continue
		}
		f := engine.Finding{Class: engine.BudgetDeadlock, Object: budgetRef(b)}
		if explainBudget(&f, x, b, pods, guarded) {
			found = append(found, f)
		}
	}
	return found
}

func budgetRef(b *policyv1.PodDisruptionBudget) operation.Ref {
	return operation.Ref{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget", Namespace: b.Namespace, Name: b.Name}
}

// explainBudget reports whether a budget permits no eviction, and why.
func explainBudget(f *engine.Finding, x *Index, b *policyv1.PodDisruptionBudget, pods []*corev1.Pod, guarded map[*corev1.Pod][]string) bool {
	s := b.Status
	var draining []string
	for _, pod := range pods {
		if node := x.NodeOf(pod); node != nil && node.Spec.Unschedulable {
			draining = append(draining, fmt.Sprintf("Pod %s is on node %s, which is cordoned: a drain waits for it.", engine.QuoteCode(pod.Name), engine.QuoteCode(node.Name)))
		}
	}
	// Without a drain nothing is blocked: then it is a warning, which may be intentional.
	if f.Confidence = engine.Low; len(draining) > 0 {
		f.Confidence = engine.High
	}
	for _, pod := range pods {
		if list := guarded[pod]; len(list) > 1 {
			slices.Sort(list)
			f.Evidence = append([]string{fmt.Sprintf("Pod %s is under the budgets %s.", engine.QuoteCode(pod.Name), engine.QuoteCodes(list))}, draining...)
			f.Cause = "Its pods are under more than one budget, and the eviction API refuses to evict such pods."
			f.Text = "Keep only one budget for these pods."
			return true
		}
	}
	if s.DisruptionsAllowed > 0 {
		return false
	}
	f.Evidence = []string{fmt.Sprintf("The budget sets %s; disruptions allowed 0, healthy %d of %d, wanted healthy %d.", rulesText(b), s.CurrentHealthy, s.ExpectedPods, s.DesiredHealthy)}
	if c := budgetCondition(b); c != nil && c.Reason == policyv1.SyncFailedReason {
		f.Evidence = append(append(f.Evidence, "The controller says "+engine.QuoteCode(c.Message)+"."), draining...)
		f.Cause = "The controller cannot determine how many pods the budget covers, so it allows no evictions."
		f.Text = "Use minAvailable with a number for pods whose owner has no scale subresource."
		return true
	}
	f.Evidence = append(f.Evidence, draining...)
	w := x.WorkloadOf(pods[0])
	if s.CurrentHealthy < s.DesiredHealthy {
		// It works as intended while pods are unhealthy: their problem is the cause.
		f.Follower = true
		for _, pod := range pods {
			f.Because = append(f.Because, x.RootsOf(pod)...)
		}
		f.Cause = fmt.Sprintf("It allows no evictions, because it requires %d healthy pods and has only %d.", s.DesiredHealthy, s.CurrentHealthy)
		f.Text = "Find out why the pods are not ready; the drain then continues automatically."
		// A blocked drain is a finding in its own right, whatever is wrong with the pods.
		f.Follower = len(draining) == 0
		if !policyEvictsUnready(b) {
			f.Text += " With unhealthyPodEvictionPolicy AlwaysAllow the budget would let go of pods that are not ready."
		}
		return true
	}
	if s.DesiredHealthy < s.ExpectedPods || s.ExpectedPods == 0 {
		return false // a disruption is in progress, and the next eviction is permitted after it
	}
	f.Cause = fmt.Sprintf("A deadlock: this PDB wants all %s of %s healthy at all times, so none can ever be evicted, and a drain of their nodes does not end.", engine.CountNoun(int(s.ExpectedPods), "pod", "pods"), engine.RefTitle(w.Ref))
	f.Text = fmt.Sprintf("Scale %s to more than %d, so that one may be evicted, or choose how many the budget should allow to be evicted at a time (maxUnavailable). Keep the budget itself.", engine.RefTitle(w.Ref), s.DesiredHealthy)
	if max := b.Spec.MaxUnavailable; max != nil {
		f.Text = "Choose how many pods the budget should allow to be evicted at a time: with none (maxUnavailable), more replicas do not help. Keep the budget itself."
	}
	return true
}

// policyEvictsUnready reports whether a budget permits evicting pods that are not ready, however few are ready.
func policyEvictsUnready(b *policyv1.PodDisruptionBudget) bool {
	return b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
}

func budgetCondition(b *policyv1.PodDisruptionBudget) *metav1.Condition {
	for i := range b.Status.Conditions {
		if b.Status.Conditions[i].Type == policyv1.DisruptionAllowedCondition {
			return &b.Status.Conditions[i]
		}
	}
	return nil
}

func rulesText(b *policyv1.PodDisruptionBudget) string {
	switch {
	case b.Spec.MinAvailable != nil:
		return "minAvailable " + engine.QuoteCode(b.Spec.MinAvailable.String())
	case b.Spec.MaxUnavailable != nil:
		return "maxUnavailable " + engine.QuoteCode(b.Spec.MaxUnavailable.String())
	}
	return "neither minAvailable nor maxUnavailable, which means maxUnavailable `1`"
}
