package workload

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// pressures are the conditions of a node that is short of a resource.
var pressures = []struct {
	kind        corev1.NodeConditionType
	what, text  string
	resourceFor string // its name in eviction messages
}{
	{corev1.NodeMemoryPressure, "memory", "Find the pods that use more memory than they request, and give them limits; drain the node if it does not recover.", "memory"},
	{corev1.NodeDiskPressure, "disk space", "Clear what fills the node's disk: images, container logs, emptyDir volumes; drain the node if it does not recover.", "ephemeral-storage"},
	{corev1.NodePIDPressure, "process ids", "Find the pod that starts processes without end.", "pids"},
	{corev1.NodeNetworkUnavailable, "network", "Look whether the network plug-in runs on the node.", ""},
}

// checkNodes explains NodeTrouble: nodes that are not ready, or short of a resource.
func checkNodes(x *Index) []engine.Finding {
	if x.Unread["nodes"] {
		return nil
	}
	on := map[string][]*corev1.Pod{}
	for i := range x.Pods { // including terminating ones
		if pod := &x.Pods[i]; pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded {
			on[pod.Spec.NodeName] = append(on[pod.Spec.NodeName], pod)
		}
	}
	for _, pods := range on {
		slices.SortFunc(pods, func(a, b *corev1.Pod) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
	}
	var found []engine.Finding
	for _, node := range x.nodesByName() {
		pods := on[node.Name]
		f := engine.Finding{Class: engine.NodeTrouble, Object: engine.NodeRef(node.Name), Confidence: engine.High}
		// A node without the condition was never seen by a kubelet.
		switch c := engine.NodeCondition(node, corev1.NodeReady); {
		case c == nil && x.lease(node.Name) == nil:
			continue
		case !engine.NodeReady(node):
			explainNotReady(&f, x, node, c, pods)
		default:
			if !explainPressure(&f, x, node, pods) && !explainAbsence(&f, x, node, c) {
				continue
			}
		}
		found = append(found, f)
	}
	return found
}

// lease returns the time at which the kubelet of a node last renewed its lease, or nil.
func (x *Index) lease(node string) *metav1.Time {
	for i := range x.Leases {
		l := &x.Leases[i]
		if l.Namespace == corev1.NamespaceNodeLease && l.Name == node && l.Spec.RenewTime != nil {
			return &metav1.Time{Time: l.Spec.RenewTime.Time}
		}
	}
	return nil
}

func explainNotReady(f *engine.Finding, x *Index, node *corev1.Node, c *corev1.NodeCondition, pods []*corev1.Pod) {
	if c == nil {
		c = &corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Message: "no condition"}
	}
	f.Evidence = []string{fmt.Sprintf("Its condition Ready is %s: %s.", c.Status, engine.QuoteCode(c.Message))}
	if !c.LastTransitionTime.IsZero() {
		f.Evidence[0] = fmt.Sprintf("Its condition Ready is %s since %s (%s ago): %s.", c.Status, c.LastTransitionTime.UTC().Format(time.RFC3339), x.Since(c.LastTransitionTime), engine.QuoteCode(c.Message))
	}
	if renewed := x.lease(node.Name); renewed != nil {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Its kubelet last renewed its lease at %s, %s ago.", renewed.UTC().Format(time.RFC3339), x.Since(*renewed)))
	}
	for _, p := range pressures {
		if other := engine.NodeCondition(node, p.kind); other != nil && other.Status == corev1.ConditionTrue {
			f.Evidence = append(f.Evidence, fmt.Sprintf("Its condition %s is True: %s.", p.kind, engine.QuoteCode(other.Message)))
		}
	}
	addAffectedPods(f, x, pods)
	switch {
	case c.Status == corev1.ConditionUnknown:
		f.Cause = fmt.Sprintf("The kubelet of node %s has stopped reporting: the machine is down, cut off from the API server, or its kubelet does not run.", engine.QuoteCode(node.Name))
		f.Text = "Look at the machine and its network, then at its kubelet."
	case strings.Contains(c.Message, "NetworkPluginNotReady") || strings.Contains(c.Message, "cni plugin not initialized"):
		f.Cause = fmt.Sprintf("The network plug-in of node %s is not ready, so the kubelet starts no pods.", engine.QuoteCode(node.Name))
		f.Text = "Look at the pod of the network plug-in on this node."
	case strings.Contains(c.Message, "container runtime") || strings.Contains(c.Message, "PLEG"):
		f.Cause = fmt.Sprintf("The container runtime%s of node %s does not answer its kubelet.", runtimeName(node), engine.QuoteCode(node.Name))
		f.Text = "Restart the container runtime on the machine, and look in its log."
	default:
		f.Cause = fmt.Sprintf("The kubelet of node %s says itself that it is not ready.", engine.QuoteCode(node.Name))
		f.Text = "Look in the kubelet's log on the machine."
	}
	offerCordon(f, node)
}

// runtimeName returns the name of a node's container runtime in brackets, if its kubelet ever reported it.
func runtimeName(node *corev1.Node) string {
	name, _, _ := strings.Cut(node.Status.NodeInfo.ContainerRuntimeVersion, "://")
	if name == "" {
		return ""
	}
	return " (" + engine.QuoteCode(name) + ")"
}

// offerCordon keeps new pods away; the text mentions draining, which moves running pods.
func offerCordon(f *engine.Finding, node *corev1.Node) {
	if node.Spec.Unschedulable {
		f.Evidence = append(f.Evidence, "It is cordoned, perhaps for maintenance.")
		f.Text += " If it stays away, drain it, so that its pods start elsewhere."
		return
	}
	if f.Fix = engine.ValidFix(engine.NewOperation(operation.Cordon, engine.NodeRef(node.Name))); f.Fix != nil {
		f.Text += " Meanwhile cordon it, so that no new pods come; if it stays away, drain it."
	}
}

// addAffectedPods lists the pods on a node that is not ready, and the findings of theirs that it explains.
func addAffectedPods(f *engine.Finding, x *Index, pods []*corev1.Pod) {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Namespace+"/"+pod.Name)
		f.Pods = append(f.Pods, pod.Name)
		if !slices.Contains(f.Namespaces, pod.Namespace) {
			f.Namespaces = append(f.Namespaces, pod.Namespace)
		}
	}
	owners := map[operation.Ref]bool{}
	for _, pod := range pods {
		w := x.WorkloadOf(pod)
		if !owners[w.Ref] {
			owners[w.Ref] = true
			f.Effects = append(f.Effects, engine.Effect{Of: w.Ref, Classes: []engine.Class{engine.LivenessProbe, engine.ReadinessProbe, engine.ReadinessGate, engine.Sidecar}, Pods: f.Pods})
		}
	}
	if len(names) > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("It hits %s: %s.", engine.CountNoun(len(names), "pod", "pods"), engine.QuoteCodes(names)))
	}
	f.Pods = nil                                        // the evidence names them with their namespaces
	f.Namespaces = append(f.Namespaces, x.Waiting()...) // pending pods may be waiting for it
}

// explainPressure reports whether a ready node is short of a resource, or recently was and evicted pods for it.
func explainPressure(f *engine.Finding, x *Index, node *corev1.Node, pods []*corev1.Pod) bool {
	evicted := map[string][]string{}
	var waiting []string
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil && len(pod.Status.ContainerStatuses) == 0 {
			waiting = append(waiting, pod.Namespace+"/"+pod.Name)
			f.Touches = append(f.Touches, x.WorkloadOf(pod).Ref)
		}
		if short, ok := x.evictedFor(pod); ok {
			evicted[short] = append(evicted[short], pod.Namespace+"/"+pod.Name)
			if !slices.Contains(f.Namespaces, pod.Namespace) {
				f.Namespaces = append(f.Namespaces, pod.Namespace)
			}
		}
	}
	for _, p := range pressures {
		c := engine.NodeCondition(node, p.kind)
		now := c != nil && c.Status == corev1.ConditionTrue
		if !now && len(evicted[p.resourceFor]) == 0 {
			continue
		}
		if f.Cause == "" {
			f.Cause = fmt.Sprintf("Node %s runs short of %s.", engine.QuoteCode(node.Name), p.what)
			f.Text = p.text
			if !now {
				f.Confidence = engine.Medium
				f.Cause = fmt.Sprintf("Node %s ran short of %s and evicted pods; it now has enough again.", engine.QuoteCode(node.Name), p.what)
			} else {
				for _, pod := range pods {
					if !slices.Contains(f.Namespaces, pod.Namespace) {
						f.Namespaces = append(f.Namespaces, pod.Namespace)
					}
				}
			}
		}
		if now {
			f.Evidence = append(f.Evidence, fmt.Sprintf("Its condition %s is True since %s: %s.", p.kind, c.LastTransitionTime.UTC().Format(time.RFC3339), engine.QuoteCode(c.Message)))
		}
		if list := evicted[p.resourceFor]; len(list) > 0 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("Evicted for %s: %s.", p.what, engine.QuoteCodes(list)))
		}
	}
	if len(waiting) > 0 && f.Cause != "" {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Placed on it and not started: %s.", engine.QuoteCodes(waiting)))
	}
	return f.Cause != ""
}

const (
	// settled is the age from which a node's change to ready is not its first.
	settled = 10 * time.Minute
	// absenceShown is how long a node's absence is a finding after its end.
	absenceShown = time.Hour
)

// explainAbsence reports whether a ready node recently was not: what ran on it may show traces that nothing else
// explains. c is its condition Ready.
func explainAbsence(f *engine.Finding, x *Index, node *corev1.Node, c *corev1.NodeCondition) bool {
	away := map[string][]*corev1.Event{}
	for i := range x.Events {
		e := &x.Events[i]
		if e.InvolvedObject.Kind == "Node" && e.InvolvedObject.Name == node.Name && (e.Reason == "NodeNotReady" || e.Reason == "Rebooted") && x.Taken.Sub(engine.LastSeen(e).Time) <= absenceShown {
			away[e.Reason] = append(away[e.Reason], e)
		}
	}
	back := c != nil && !node.CreationTimestamp.IsZero() && x.Taken.Sub(c.LastTransitionTime.Time) <= absenceShown && c.LastTransitionTime.Sub(node.CreationTimestamp.Time) > settled
	if !back && len(away) == 0 {
		return false
	}
	f.Confidence = engine.Medium
	f.Cause = fmt.Sprintf("Node %s was not ready for a time and is ready again.", engine.QuoteCode(node.Name))
	f.Text = "Look in the kubelet's log and at the machine for that time; what broke meanwhile may have recovered since."
	if back {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Its condition Ready is True since %s (%s ago); the node is older.", c.LastTransitionTime.UTC().Format(time.RFC3339), x.Since(c.LastTransitionTime)))
	}
	for _, reason := range slices.Sorted(maps.Keys(away)) {
		newest := slices.MaxFunc(away[reason], func(a, b *corev1.Event) int { return engine.LastSeen(a).Compare(engine.LastSeen(b).Time) })
		f.Evidence = append(f.Evidence, fmt.Sprintf("Event %s, %s ago: %s.", engine.QuoteCode(reason), x.Since(engine.LastSeen(newest)), engine.QuoteCode(newest.Message)))
		if reason == "Rebooted" {
			f.Cause = fmt.Sprintf("Node %s has rebooted.", engine.QuoteCode(node.Name))
		}
	}
	return true
}

// evictedFor returns the resource that a node lacked when it recently evicted a pod.
func (x *Index) evictedFor(pod *corev1.Pod) (short string, ok bool) {
	if pod.Status.Phase != corev1.PodFailed || pod.Status.Reason != "Evicted" {
		return "", false
	}
	at := pod.Status.StartTime
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget {
			at = &c.LastTransitionTime
		}
	}
	if at == nil || x.Taken.Sub(at.Time) > engine.Recent {
		return "", false
	}
	_, rest, found := strings.Cut(pod.Status.Message, "low on resource: ")
	short, _, _ = strings.Cut(rest, ".")
	if short == "inodes" {
		short = "ephemeral-storage"
	}
	return short, found
}

// checkEphemeralStorage explains pods that were evicted because they wrote more to the node's disk than their own
// limits permit: the node is healthy.
func checkEphemeralStorage(x *Index, pod *corev1.Pod, w *engine.Workload) []engine.Finding {
	message := x.evictionMessage(pod)
	if !overStorageLimit(message) {
		return nil
	}
	f := engine.Finding{Class: engine.NodeTrouble, Object: w.Ref, Confidence: engine.High}
	f.Evidence = []string{"The kubelet says " + engine.QuoteCode(strings.TrimSpace(message)) + "."}
	f.Cause = "The pod wrote more to its node's disk than its local storage limit allows, and was evicted; the node is not at fault."
	f.Text = fmt.Sprintf("Choose a higher ephemeral-storage limit (or emptyDir sizeLimit) for %s, or write less.", engine.RefTitle(w.Ref))
	return []engine.Finding{f}
}

// overStorageLimit reports whether a message of the kubelet means that a pod exceeded its own limit for local storage.
// The message about a node that ran short also has "exceeds its request", for which no pod is evicted on a healthy
// node.
func overStorageLimit(message string) bool {
	message = strings.ToLower(message)
	return strings.Contains(message, "exceed") && strings.Contains(message, "limit") && !strings.Contains(message, "low on resource") &&
		(strings.Contains(message, "storage") || strings.Contains(message, "emptydir"))
}

// evictionMessage returns the reason for which the kubelet recently evicted a pod. The event comes first: until the
// containers have ended, the pod's status is still Running.
func (x *Index) evictionMessage(pod *corev1.Pod) string {
	if pod.Status.Phase == corev1.PodFailed {
		if at := pod.Status.StartTime; pod.Status.Reason != "Evicted" || at == nil || x.Taken.Sub(at.Time) > engine.Recent {
			return ""
		}
		return pod.Status.Message
	}
	e := x.EventOf(pod.UID, func(e *corev1.Event) bool {
		return e.Reason == "Evicted" && x.Taken.Sub(engine.LastSeen(e).Time) <= engine.Recent
	})
	if e == nil {
		return ""
	}
	return e.Message
}
