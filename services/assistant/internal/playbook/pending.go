package playbook

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// checkPending explains classes 6 and 7 by asking of every node what the scheduler asks.
func checkPending(x *index, pod *corev1.Pod, w *workload) []Finding {
	if !isUnschedulable(pod) || x.waitsForClaim(pod) || len(x.Nodes) == 0 || x.Unread["nodes"] || x.Unread["pods"] {
		return nil
	}
	var open []*corev1.Node
	refused := refusals{}
	required := nodeaffinity.GetRequiredNodeAffinity(pod)
	for _, node := range x.nodesByName() {
		if !refused.add(pod, node, affinityAccepts(required, node)) {
			open = append(open, node)
		}
	}
	f := Finding{Object: w.ref, Confidence: High, because: x.awayFor(pod)}
	if len(open) == 0 {
		f.Class = PendingPlacement
		f.placement(refused, x, pod, w)
		return []Finding{f}
	}
	short := x.shortfalls(pod, open)
	if len(short) < len(open) {
		return checkInterPodRules(pod, w)
	}
	f.Class = PendingResources
	f.resources(short, pod, w, len(open), len(x.Nodes))
	return []Finding{f}
}

// awayFor are the nodes that would take a pod if they were ready.
func (x *index) awayFor(pod *corev1.Pod) []operation.Ref {
	var away []operation.Ref
	required := nodeaffinity.GetRequiredNodeAffinity(pod)
	for _, node := range x.nodesByName() {
		if nodeCondition(node, corev1.NodeReady) == nil || nodeReady(node) || !affinityAccepts(required, node) || len(x.shortfalls(pod, []*corev1.Node{node})) > 0 {
			continue
		}
		// The cluster keeps pods away from such a node by taints of its own.
		if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
			return !strings.HasPrefix(t.Key, "node.kubernetes.io/") && t.Effect != corev1.TaintEffectPreferNoSchedule && !isTolerated(pod, t)
		}) {
			away = append(away, nodeRef(node.Name))
		}
	}
	return away
}

func isUnschedulable(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

func sortedNodes(nodes []corev1.Node) []*corev1.Node {
	sorted := make([]*corev1.Node, 0, len(nodes))
	for i := range nodes {
		sorted = append(sorted, &nodes[i])
	}
	slices.SortFunc(sorted, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return sorted
}

// affinityAccepts says whether selector and required affinity of a pod take a node.
func affinityAccepts(required nodeaffinity.RequiredNodeAffinity, node *corev1.Node) bool {
	ok, err := required.Match(node)
	return err == nil && ok
}

// shortfall is what one node lacks for a pod.
type shortfall struct {
	node string
	kind corev1.ResourceName
	// asked by the pod, free and allocatable on the node.
	asked, free, allocatable resource.Quantity
}

// shortfalls lists, for each node that cannot hold the pod, the first resource it lacks.
func (x *index) shortfalls(pod *corev1.Pod, nodes []*corev1.Node) []shortfall {
	asked := helper.PodRequests(pod, helper.PodResourcesOptions{})
	asked[corev1.ResourcePods] = resource.MustParse("1")
	kinds := slices.Sorted(maps.Keys(asked))
	var short []shortfall
	for _, node := range nodes {
		for _, kind := range kinds {
			free := x.free(node, kind)
			if want := asked[kind]; want.Sign() > 0 && want.Cmp(free) > 0 {
				short = append(short, shortfall{node.Name, kind, want, free, node.Status.Allocatable[kind]})
				break
			}
		}
	}
	return short
}

// free is what the pods on a node have left of a resource.
func (x *index) free(node *corev1.Node, kind corev1.ResourceName) resource.Quantity {
	of := nodeKind{node.Name, kind}
	left, known := x.left[of]
	if !known {
		left = node.Status.Allocatable[kind].DeepCopy()
		left.Sub(x.requested()[node.Name][kind])
		x.left[of] = left
	}
	return left.DeepCopy()
}

// nodeKind is a resource of a node.
type nodeKind struct {
	node string
	kind corev1.ResourceName
}

// requested is what the pods on each node ask for together.
func (x *index) requested() map[string]corev1.ResourceList {
	if x.used == nil {
		x.used = map[string]corev1.ResourceList{}
		for _, pod := range x.byName {
			if on := pod.Spec.NodeName; on != "" && pod.Status.Phase != corev1.PodFailed {
				addRequests(x.used, on, helper.PodRequests(pod, helper.PodResourcesOptions{}))
				addRequests(x.used, on, corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")})
			}
		}
	}
	return x.used
}

func addRequests(used map[string]corev1.ResourceList, node string, more corev1.ResourceList) {
	if used[node] == nil {
		used[node] = corev1.ResourceList{}
	}
	for kind, amount := range more {
		total := used[node][kind].DeepCopy()
		total.Add(amount)
		used[node][kind] = total
	}
}

func (f *Finding) resources(short []shortfall, pod *corev1.Pod, w *workload, open, all int) {
	const most = 10
	f.Evidence = []string{fmt.Sprintf("%d of %s may take the pod.", open, countNoun(all, "node", "nodes"))}
	fits := false // on an empty node
	for i, s := range short {
		lack := s.asked.DeepCopy()
		lack.Sub(s.free)
		if i < most {
			f.Evidence = append(f.Evidence, fmt.Sprintf("Node %s: %s asked %s, free %s of %s, short of %s.",
				quoteCode(s.node), s.kind, s.asked.String(), s.free.String(), s.allocatable.String(), lack.String()))
		}
		fits = fits || s.asked.Cmp(s.allocatable) <= 0
	}
	if len(short) > most {
		f.Evidence = append(f.Evidence, fmt.Sprintf("And %d more nodes.", len(short)-most))
	}
	kind := short[0].kind
	f.Cause = fmt.Sprintf("The pod asks for more %s than any of these nodes has free.", kind)
	f.Text = fmt.Sprintf("Say which %s request %s is to have, or add a larger node.", kind, refTitle(w.ref))
	switch {
	case kind == corev1.ResourcePods:
		f.Cause = "These nodes hold as many pods as they may."
		f.Text = "Add a node, or scale down what is not needed."
		return
	case !fits:
		f.Cause = fmt.Sprintf("The pod asks for more %s than any of these nodes has at all, even when empty.", kind)
	}
	f.oldRequest(w, kind, pod)
}

// oldRequest offers the last revision's smaller request, where one container asks.
func (f *Finding) oldRequest(w *workload, kind corev1.ResourceName, pod *corev1.Pod) {
	if !w.patchable() || kind != corev1.ResourceCPU && kind != corev1.ResourceMemory {
		return
	}
	for _, r := range w.older {
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			then := findContainer(r.template, c.Name)
			if then == nil {
				continue
			}
			old, ok := then.Resources.Requests[kind]
			if now := c.Resources.Requests[kind]; !ok || old.Cmp(now) >= 0 {
				continue
			}
			o := newOperation(operation.SetResources, w.ref)
			o.Container = c.Name
			o.Requests = map[string]string{string(kind): old.String()}
			if f.Fix = validFix(o); f.Fix != nil {
				f.Text = fmt.Sprintf("Give back the %s request of revision %d, %s.", kind, r.number, old.String())
			}
			return
		}
	}
}
