package controllers

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

// podRequests returns the resources that a pod requests from its node.
func podRequests(pod *corev1.Pod) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, c := range pod.Spec.Containers {
		for name, q := range c.Resources.Requests {
			total := sum[name]
			total.Add(q)
			sum[name] = total
		}
	}
	return sum
}

func isPodFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// findUntoleratedTaint returns the first taint that keeps new pods away.
func findUntoleratedTaint(pod *corev1.Pod, node *corev1.Node) *corev1.Taint {
	taints := slices.Clone(node.Spec.Taints)
	if node.Spec.Unschedulable && !slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable }) {
		taints = append(taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	for i := range taints {
		t := &taints[i]
		if t.Effect != corev1.TaintEffectNoSchedule && t.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		if !toleratesTaint(pod, t) {
			return t
		}
	}
	return nil
}

func toleratesTaint(pod *corev1.Pod, t *corev1.Taint) bool {
	for _, tol := range pod.Spec.Tolerations {
		if (tol.Effect == "" || tol.Effect == t.Effect) && (tol.Key == t.Key || tol.Key == "" && tol.Operator == corev1.TolerationOpExists) &&
			(tol.Operator == corev1.TolerationOpExists || tol.Value == t.Value) {
			return true
		}
	}
	return false
}

func (p *pass) schedule() {
	nodes := store.List[*corev1.Node](p.Tx, resource.Nodes, "")
	free := map[string]corev1.ResourceList{}
	for _, n := range nodes {
		free[n.Name] = n.Status.Allocatable.DeepCopy()
	}
	take := func(node string, pod *corev1.Pod) {
		left := free[node]
		if left == nil || isPodFinished(pod) {
			return
		}
		spend := podRequests(pod)
		spend[corev1.ResourcePods] = *apiresource.NewQuantity(1, apiresource.DecimalSI)
		for name, q := range spend {
			rest := left[name]
			rest.Sub(q)
			left[name] = rest
		}
	}
	pods := store.List[*corev1.Pod](p.Tx, resource.Pods, "")
	for _, pod := range pods {
		take(pod.Spec.NodeName, pod)
	}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || isPodFinished(pod) {
			continue
		}
		node, why := p.place(pod, nodes, free)
		bound := copyObject(pod)
		if node == "" {
			p.podCondition(bound, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, why)
			if p.Put(resource.Pods, bound) {
				p.note(pod, "default-scheduler", corev1.EventTypeWarning, "FailedScheduling", why)
			}
			continue
		}
		bound.Spec.NodeName = node
		p.podCondition(bound, corev1.PodScheduled, corev1.ConditionTrue, "", "")
		p.Put(resource.Pods, bound)
		p.note(pod, "default-scheduler", corev1.EventTypeNormal, "Scheduled", fmt.Sprintf("Successfully assigned %s/%s to %s", pod.Namespace, pod.Name, node))
		take(node, bound)
	}
}

// place picks the node with the most free processor time, or explains as the scheduler does why there is none.
func (p *pass) place(pod *corev1.Pod, nodes []*corev1.Node, free map[string]corev1.ResourceList) (string, string) {
	head := fmt.Sprintf("0/%d nodes are available: ", len(nodes))
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		claim, ok := store.Get[*corev1.PersistentVolumeClaim](p.Tx, resource.Claims, pod.Namespace, v.PersistentVolumeClaim.ClaimName)
		if !ok {
			return "", head + fmt.Sprintf("persistentvolumeclaim %q not found. preemption: 0/%d nodes are available: %d Preemption is not helpful for scheduling.", v.PersistentVolumeClaim.ClaimName, len(nodes), len(nodes))
		}
		if claim.Status.Phase != corev1.ClaimBound {
			return "", head + fmt.Sprintf("pod has unbound immediate PersistentVolumeClaims. preemption: 0/%d nodes are available: %d Preemption is not helpful for scheduling.", len(nodes), len(nodes))
		}
	}
	affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
	why := map[string]int{}
	hopeless, best, bestFree := 0, "", apiresource.Quantity{}
	for _, node := range nodes {
		if taint := findUntoleratedTaint(pod, node); taint != nil {
			hopeless++
			if taint.Key == corev1.TaintNodeUnschedulable {
				why["node(s) were unschedulable"]++
			} else {
				why[fmt.Sprintf("node(s) had untolerated taint {%s: %s}", taint.Key, taint.Value)]++
			}
			continue
		}
		if match, err := affinity.Match(node); err != nil || !match {
			hopeless++
			why["node(s) didn't match Pod's node affinity/selector"]++
			continue
		}
		short := findShortfall(pod, free[node.Name])
		for _, s := range short {
			why[s]++
		}
		if len(short) > 0 {
			continue
		}
		if cpu := free[node.Name][corev1.ResourceCPU]; best == "" || cpu.Cmp(bestFree) > 0 {
			best, bestFree = node.Name, cpu
		}
	}
	if best != "" {
		return best, ""
	}
	var reasons, rescue []string
	for text, n := range why {
		reasons = append(reasons, fmt.Sprintf("%d %s", n, text))
	}
	slices.Sort(reasons)
	if victims := len(nodes) - hopeless; victims > 0 {
		rescue = append(rescue, fmt.Sprintf("%d No preemption victims found for incoming pod", victims))
	}
	if hopeless > 0 {
		rescue = append(rescue, fmt.Sprintf("%d Preemption is not helpful for scheduling", hopeless))
	}
	slices.Sort(rescue)
	return "", head + strings.Join(reasons, ", ") + fmt.Sprintf(". preemption: 0/%d nodes are available: %s.", len(nodes), strings.Join(rescue, ", "))
}

func findShortfall(pod *corev1.Pod, left corev1.ResourceList) []string {
	var short []string
	if pods := left[corev1.ResourcePods]; pods.Sign() <= 0 {
		short = append(short, "Too many pods")
	}
	for name, q := range podRequests(pod) {
		if rest := left[name]; q.Sign() > 0 && q.Cmp(rest) > 0 {
			short = append(short, "Insufficient "+string(name))
		}
	}
	return short
}
