package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// NodeCapacity holds the allocatable resources of a node, and the requests of its pods.
type NodeCapacity struct {
	Node             string
	Ready, Cordoned  bool
	Requested, Total corev1.ResourceList
	Pods             int
}

// NodeCapacities lists the nodes by name.
func (v View) NodeCapacities() []NodeCapacity {
	asked, number := map[string]corev1.ResourceList{}, map[string]int{}
	for i := range v.Pods {
		pod := &v.Pods[i]
		if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		number[pod.Spec.NodeName]++
		if asked[pod.Spec.NodeName] == nil {
			asked[pod.Spec.NodeName] = corev1.ResourceList{}
		}
		for kind, q := range helper.PodRequests(pod, helper.PodResourcesOptions{}) {
			sum := asked[pod.Spec.NodeName][kind]
			sum.Add(q)
			asked[pod.Spec.NodeName][kind] = sum
		}
	}
	var all []NodeCapacity
	for i := range v.Nodes {
		n := &v.Nodes[i]
		all = append(all, NodeCapacity{n.Name, nodeReady(n), n.Spec.Unschedulable, asked[n.Name], n.Status.Allocatable, number[n.Name]})
	}
	slices.SortFunc(all, func(a, b NodeCapacity) int { return cmp.Compare(a.Node, b.Node) })
	return all
}

// Capacity shows what each node has for pods and what its pods request.
func Capacity(v View) Answer {
	t := newTable("Node", "State", "CPU requested / allocatable", "Memory requested / allocatable", "Pods")
	placed := 0
	for _, n := range v.NodeCapacities() {
		placed += n.Pods
		state := "ready"
		if !n.Ready {
			state = "not ready"
		}
		if n.Cordoned {
			state += ", cordoned"
		}
		share := func(kind corev1.ResourceName) string {
			has, want := n.Total[kind], n.Requested[kind]
			return fmt.Sprintf("%s / %s (%s)", want.String(), has.String(), formatPercent(want, has))
		}
		pods := n.Total[corev1.ResourcePods]
		t.add(tableCell(n.Node), state, share(corev1.ResourceCPU), share(corev1.ResourceMemory), fmt.Sprintf("%d / %s", n.Pods, pods.String()))
	}
	head := "Pod requests on each node, out of its allocatable resources:"
	if v.Unread["pods"] || v.Namespace != "" && placed == 0 {
		head = "Allocatable resources of each node (not all pods of other namespaces were read):"
	}
	return t.under(head, "No nodes could be read.")
}

func formatPercent(part, whole resource.Quantity) string {
	if whole.IsZero() {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*part.AsApproximateFloat64()/whole.AsApproximateFloat64())
}

// Quotas shows the used part of each quota.
func Quotas(v View) Answer {
	quotas := slices.SortedFunc(slices.Values(v.Snapshot.Quotas), func(a, b corev1.ResourceQuota) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	t := newTable("Namespace", "Quota", "Resource", "Used", "Hard", "Share")
	for i := range quotas {
		q := &quotas[i]
		if !v.about("ResourceQuota", q) {
			continue
		}
		for _, kind := range slices.Sorted(maps.Keys(q.Status.Hard)) {
			used, hard := q.Status.Used[kind], q.Status.Hard[kind]
			t.add(tableCell(q.Namespace), tableCell(q.Name), tableCell(string(kind)), used.String(), hard.String(), formatPercent(used, hard))
		}
	}
	return t.under("Quotas "+v.where()+":", "There is no quota "+v.where()+".")
}

// Events lists events, newest first; with warnings only those.
func Events(v View, warnings bool) Answer {
	what, none := "Events "+v.where()+v.period()+", the newest first:", "There are no events "+v.where()+v.period()+"."
	if warnings {
		what, none = "Warnings "+v.where()+v.period()+", the newest first:", "There are no warnings "+v.where()+v.period()+"."
	}
	var all []*corev1.Event
	pods := map[string]bool{}
	if len(v.Objects) > 0 {
		for _, pod := range v.pods() {
			pods[pod.Namespace+"/"+pod.Name] = true
		}
	}
	for i := range v.Snapshot.Events {
		e := &v.Snapshot.Events[i]
		on := e.InvolvedObject
		about := len(v.Objects) == 0 || on.Kind == "Pod" && pods[on.Namespace+"/"+on.Name]
		for _, r := range v.Objects {
			about = about || r.Kind == on.Kind && r.Name == on.Name && r.Namespace == on.Namespace
		}
		if about && v.has(e.Namespace) && (!warnings || e.Type == corev1.EventTypeWarning) && v.within(engine.LastSeen(e).Time) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *corev1.Event) int {
		return cmp.Or(engine.LastSeen(b).Compare(engine.LastSeen(a).Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	t := newTable("When", "Namespace", "Object", "Reason", "Times", "Message")
	for _, e := range all {
		times := max(int(e.Count), 1)
		if e.Series != nil {
			times = int(e.Series.Count)
		}
		t.add(formatAge(v.Taken, engine.LastSeen(e).Time)+" ago", tableCell(e.Namespace), tableCell(e.InvolvedObject.Kind+"/"+e.InvolvedObject.Name), tableCell(e.Reason), strconv.Itoa(times), tableCell(e.Message))
	}
	return t.under(what, none)
}
