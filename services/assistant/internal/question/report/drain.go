package report

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// DrainStep describes what happens to one pod when its node is drained.
type DrainStep struct {
	Namespace, Pod string
	What           string // a phrase, in Markdown
	Holds          bool   // it blocks the drain
}

// DrainSteps lists what draining a node would do to each of its pods.
func (v View) DrainSteps(node string) []DrainStep {
	var steps []DrainStep
	owner := v.Owners()
	for i := range v.Pods {
		pod := &v.Pods[i]
		if pod.Name == "" || pod.Spec.NodeName != node || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		what, holds := v.onDrain(pod, owner)
		steps = append(steps, DrainStep{pod.Namespace, pod.Name, what, holds})
	}
	slices.SortStableFunc(steps, func(a, b DrainStep) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod))
	})
	return steps
}

// DrainPlan shows what draining the nodes would do to each of their pods.
func DrainPlan(v View, nodes []string) string {
	text := ""
	for _, node := range nodes {
		t := newTable("Namespace", "Pod", "What happens")
		blocked, moved := 0, 0
		for _, step := range v.DrainSteps(node) {
			if step.Holds {
				blocked++
			} else {
				moved++
			}
			t.add(tableCell(step.Namespace), tableCell(step.Pod), step.What)
		}
		head := fmt.Sprintf("Draining node %s would cordon it first. %s go or stay as their rows say", Code(node), countNoun(moved, "pod would", "pods would"))
		if blocked > 0 {
			head += "; " + countNoun(blocked, "pod holds", "pods hold") + " the drain up"
		}
		text += t.under(head+":", "No pods run on node "+Code(node)+"; draining it would only cordon it.").String() + "\n"
	}
	return text
}

// onDrain describes what happens to a pod, and whether it blocks the drain.
func (v View) onDrain(pod *corev1.Pod, top func(*corev1.Pod) operation.Ref) (what string, holds bool) {
	owner := metav1.GetControllerOf(pod)
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return "stays: the kubelet itself runs it", false
	}
	if owner != nil && owner.Kind == "DaemonSet" {
		return "stays: it belongs to a daemon set", false
	}
	for i := range v.Budgets {
		b := &v.Budgets[i]
		if b.Namespace != pod.Namespace || b.Status.DisruptionsAllowed > 0 || !budgetSelects(b, pod) {
			continue
		}
		return fmt.Sprintf("**held back**: disruption budget %s allows no disruption now (%d healthy, %d wanted)", tableCell(b.Name), b.Status.CurrentHealthy, b.Status.DesiredHealthy), true
	}
	if owner == nil {
		return "**held back**: it has no owner, so it would not be replaced", true
	}
	what = "evicted; its " + kindName(top(pod)) + " makes a new one elsewhere"
	if slices.ContainsFunc(pod.Spec.Volumes, func(vol corev1.Volume) bool { return vol.EmptyDir != nil }) {
		what += ", and what it keeps in emptyDir is lost"
	}
	return what, false
}

func budgetSelects(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}
