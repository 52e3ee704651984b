package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// refusals groups the nodes that do not accept a pod, by rule.
type refusals struct {
	selector, cordoned []string
	taints             map[corev1.Taint][]string
}

// add files a node under the first rule that excludes the pod, if one does.
func (r *refusals) add(pod *corev1.Pod, node *corev1.Node, takes bool) bool {
	if !takes {
		r.selector = append(r.selector, node.Name)
		return true
	}
	if node.Spec.Unschedulable {
		r.cordoned = append(r.cordoned, node.Name)
		return true
	}
	for _, t := range node.Spec.Taints {
		if t.Effect == corev1.TaintEffectPreferNoSchedule || isTolerated(pod, t) {
			continue
		}
		t.TimeAdded = nil
		if r.taints == nil {
			r.taints = map[corev1.Taint][]string{}
		}
		r.taints[t] = append(r.taints[t], node.Name)
		return true
	}
	return false
}

// isTolerated follows the API's rule: no effect means every effect, Exists without a key
// means every taint.
func isTolerated(pod *corev1.Pod, t corev1.Taint) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(tol corev1.Toleration) bool {
		if tol.Effect != "" && tol.Effect != t.Effect {
			return false
		}
		if tol.Operator == corev1.TolerationOpExists {
			return tol.Key == "" || tol.Key == t.Key
		}
		return tol.Key == t.Key && tol.Value == t.Value
	})
}

// schedulerMessage returns the scheduler's message on why a pod cannot be placed.
func schedulerMessage(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// explainPlacement names the rules that keep the pod from every node, and offers a remedy for the one that excludes the
// most.
func explainPlacement(f *engine.Finding, r refusals, x *Index, pod *corev1.Pod, w *engine.Workload) {
	if said := schedulerMessage(pod); said != "" {
		f.Evidence = append(f.Evidence, "The scheduler says "+engine.QuoteCode(said)+".")
	}
	taints := slices.SortedFunc(maps.Keys(r.taints), func(a, b corev1.Taint) int {
		return strings.Compare(formatTaint(a), formatTaint(b))
	})
	tainted := 0
	for _, t := range taints {
		tainted += len(r.taints[t])
		f.Evidence = append(f.Evidence, fmt.Sprintf("The taint %s keeps it from %s, for it has no toleration.", engine.QuoteCode(formatTaint(t)), engine.QuoteCodes(r.taints[t])))
	}
	if len(r.selector) > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Its node selector or required affinity does not match %s.", engine.QuoteCodes(r.selector)))
	}
	if len(r.cordoned) > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Cordoned are %s.", engine.QuoteCodes(r.cordoned)))
	}
	// A node counts as tainted or cordoned only if the selector matches it. So if there is one, the label exists, and
	// correcting the selector would not help. Control plane nodes are not meant for the pod, as long as others refuse it
	// too.
	workers := refusals{selector: x.withoutControlPlane(r.selector), cordoned: x.withoutControlPlane(r.cordoned)}
	taintedWorkers := 0
	for _, t := range taints {
		taintedWorkers += len(x.withoutControlPlane(r.taints[t]))
	}
	switch {
	case tainted == 0 && len(r.cordoned) == 0, len(workers.selector) > 0 && len(workers.cordoned) == 0 && taintedWorkers == 0:
		explainSelector(f, x, pod, w)
	case tainted >= len(r.cordoned):
		explainTaint(f, taints, pod, w)
	default:
		f.Cause = "The nodes that could take the pod are cordoned."
		f.Text = "Uncordon one when its maintenance is over."
	}
}

// withoutControlPlane drops control plane nodes from a list.
func (x *Index) withoutControlPlane(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(x.nodesByName(), func(node *corev1.Node) bool { return node.Name == name && engine.IsControlPlane(node) })
	})
}

func formatTaint(t corev1.Taint) string {
	if t.Value == "" {
		return t.Key + ":" + string(t.Effect)
	}
	return t.Key + "=" + t.Value + ":" + string(t.Effect)
}

func explainTaint(f *engine.Finding, taints []corev1.Taint, pod *corev1.Pod, w *engine.Workload) {
	f.Cause = "Every node that could take the pod has a taint, and the pod has no toleration for it."
	f.Text = "Add the toleration of the nodes that are meant, or remove the taint from one."
	if slices.ContainsFunc(taints, func(t corev1.Taint) bool { return strings.HasPrefix(t.Key, "node.kubernetes.io/") }) {
		// The cluster manages these taints itself: they indicate a problem of the node.
		f.Text = "The cluster set this taint because of the node's state: repair the node, do not tolerate it."
		return
	}
	if len(taints) != 1 || w.Template == nil {
		return
	}
	t := taints[0]
	// The list is replaced as a whole, so the patch repeats the existing entries.
	list := []any{}
	for _, old := range w.Template.Spec.Tolerations {
		list = append(list, old)
	}
	list = append(list, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect})
	if f.Fix = engine.PatchPodSpec(w, engine.Members{"tolerations": list}); f.Fix != nil {
		f.Text = fmt.Sprintf("Give the pod the toleration for %s, if it belongs on these nodes.", engine.QuoteCode(formatTaint(t)))
	}
}

// explainSelector compares a node selector with the labels that nodes have.
func explainSelector(f *engine.Finding, x *Index, pod *corev1.Pod, w *engine.Workload) {
	f.Cause = "No node has all the labels together that the pod's node selector and required affinity name."
	f.Text = "Correct the selector or the affinity, or label a node."
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		want := pod.Spec.NodeSelector[key]
		values := map[string]bool{}
		for i := range x.Nodes {
			if v, ok := x.Nodes[i].Labels[key]; ok {
				values[v] = true
			}
		}
		if values[want] {
			continue
		}
		f.Cause = fmt.Sprintf("The node selector wants %s, and no node has this label.", engine.QuoteCode(key+"="+want))
		f.Text = "Correct the node selector, or label a node."
		if len(values) == 0 {
			return
		}
		have := slices.Sorted(maps.Keys(values))
		f.Evidence = append(f.Evidence, fmt.Sprintf("Nodes have for %s: %s.", engine.QuoteCode(key), engine.QuoteCodes(have)))
		if len(have) != 1 {
			return
		}
		if f.Fix = engine.PatchPodSpec(w, engine.Members{"nodeSelector": engine.Members{key: have[0]}}); f.Fix != nil {
			f.Text = fmt.Sprintf("Let the node selector want %s.", engine.QuoteCode(key+"="+have[0]))
		}
		return
	}
}
