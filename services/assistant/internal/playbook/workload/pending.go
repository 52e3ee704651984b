package workload

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
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// checkPending explains PendingResources and PendingPlacement by checking the scheduler's conditions for every node.
func checkPending(x *Index, pod *corev1.Pod, w *engine.Workload) []engine.Finding {
	if !engine.IsUnschedulable(pod) || x.storage.WaitsForClaim(pod) || len(x.Nodes) == 0 || x.Unread["nodes"] || x.Unread["pods"] {
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
	f := engine.Finding{Object: w.Ref, Confidence: engine.High, Because: x.awayFor(pod)}
	if len(open) == 0 {
		f.Class = engine.PendingPlacement
		explainPlacement(&f, refused, x, pod, w)
		return []engine.Finding{f}
	}
	short := x.shortfalls(pod, open)
	if len(short) < len(open) {
		return x.checkSchedulerRules(pod, w)
	}
	f.Class = engine.PendingResources
	explainShortfall(&f, short, pod, w, len(open), len(x.Nodes))
	x.addPriority(&f, pod, w, open)
	return []engine.Finding{f}
}

// awayFor returns the nodes that would accept a pod if they were ready.
func (x *Index) awayFor(pod *corev1.Pod) []operation.Ref {
	var away []operation.Ref
	required := nodeaffinity.GetRequiredNodeAffinity(pod)
	for _, node := range x.nodesByName() {
		if engine.NodeCondition(node, corev1.NodeReady) == nil || engine.NodeReady(node) || !affinityAccepts(required, node) || len(x.shortfalls(pod, []*corev1.Node{node})) > 0 {
			continue
		}
		// The cluster adds its own taints to such a node.
		if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
			return !strings.HasPrefix(t.Key, "node.kubernetes.io/") && t.Effect != corev1.TaintEffectPreferNoSchedule && !isTolerated(pod, t)
		}) {
			away = append(away, engine.NodeRef(node.Name))
		}
	}
	return away
}

func sortedNodes(nodes []corev1.Node) []*corev1.Node {
	sorted := make([]*corev1.Node, 0, len(nodes))
	for i := range nodes {
		sorted = append(sorted, &nodes[i])
	}
	slices.SortFunc(sorted, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return sorted
}

// affinityAccepts reports whether selector and required affinity of a pod accept a node.
func affinityAccepts(required nodeaffinity.RequiredNodeAffinity, node *corev1.Node) bool {
	ok, err := required.Match(node)
	return err == nil && ok
}

// shortfall is a resource of which a node has too little for a pod.
type shortfall struct {
	node string
	kind corev1.ResourceName
	// requested by the pod; free and allocatable on the node.
	asked, free, allocatable resource.Quantity
}

// shortfalls lists, for each node that cannot hold the pod, the first resource it lacks.
func (x *Index) shortfalls(pod *corev1.Pod, nodes []*corev1.Node) []shortfall {
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

// free returns the amount of a resource that the pods on a node leave.
func (x *Index) free(node *corev1.Node, kind corev1.ResourceName) resource.Quantity {
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

// requested returns the sum of the requests of the pods on each node.
func (x *Index) requested() map[string]corev1.ResourceList {
	if x.RequestsByNode == nil {
		x.RequestsByNode = map[string]corev1.ResourceList{}
		for _, pod := range x.LivingPods {
			if on := pod.Spec.NodeName; on != "" && pod.Status.Phase != corev1.PodFailed {
				addRequests(x.RequestsByNode, on, helper.PodRequests(pod, helper.PodResourcesOptions{}))
				addRequests(x.RequestsByNode, on, corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")})
			}
		}
	}
	return x.RequestsByNode
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

func explainShortfall(f *engine.Finding, short []shortfall, pod *corev1.Pod, w *engine.Workload, open, all int) {
	const most = 10
	f.Evidence = []string{fmt.Sprintf("%d of %s may take the pod.", open, engine.CountNoun(all, "node", "nodes"))}
	fits := false // on an empty node
	for i, s := range short {
		lack := s.asked.DeepCopy()
		lack.Sub(s.free)
		if i < most {
			f.Evidence = append(f.Evidence, fmt.Sprintf("Node %s: %s asked %s, free %s of %s, short of %s.",
				engine.QuoteCode(s.node), s.kind, s.asked.String(), s.free.String(), s.allocatable.String(), lack.String()))
		}
		fits = fits || s.asked.Cmp(s.allocatable) <= 0
	}
	if len(short) > most {
		f.Evidence = append(f.Evidence, fmt.Sprintf("And %d more nodes.", len(short)-most))
	}
	kind := short[0].kind
	f.Cause = fmt.Sprintf("The pod requests more %s than any of these nodes has free.", kind)
	f.Text = fmt.Sprintf("Choose a lower %s request for %s, or add a larger node.", kind, engine.RefTitle(w.Ref))
	switch {
	case kind == corev1.ResourcePods:
		f.Cause = "These nodes hold as many pods as they may."
		f.Text = "Add a node, or scale down what is not needed."
		return
	case !fits:
		f.Cause = fmt.Sprintf("The pod requests more %s than any of these nodes has, even when empty.", kind)
	}
	f.OfferOldRequest(w, kind, pod)
}
