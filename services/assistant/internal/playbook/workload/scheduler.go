package workload

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// checkSchedulerRules explains pods that each node would accept alone, but not together with the pods already there, or
// not with their volumes, ports or devices. Only the scheduler weighs all of that; its condition names the rule.
func (x *Index) checkSchedulerRules(pod *corev1.Pod, w *engine.Workload) []engine.Finding {
	said := schedulerMessage(pod)
	a := pod.Spec.Affinity
	f := engine.Finding{Class: engine.PendingPlacement, Object: w.Ref, Confidence: engine.Medium, Evidence: []string{"The scheduler says " + engine.QuoteCode(said) + "."}}
	switch {
	case strings.Contains(said, "existing pods anti-affinity"):
		f.Cause = "Pods that run already keep this one away by their own anti-affinity, and no node is left."
		f.Text = "Add a node, or look which workload's anti-affinity names this pod's labels."
	case a != nil && a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 && strings.Contains(said, "anti-affinity"):
		f.Cause = "The pod's anti-affinity keeps it from every node where another such pod runs, and no node is left."
		f.Text = "Add a node, lower the replicas, or make the anti-affinity a preference."
	case a != nil && a.PodAffinity != nil && strings.Contains(said, "pod affinity"):
		f.Cause = "The pod's affinity wants it beside other pods, and these run where it does not fit, or not at all."
		f.Text = "Check the labels that the affinity names."
		x.explainAffinity(&f, pod, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	case len(pod.Spec.TopologySpreadConstraints) > 0 && strings.Contains(said, "topology spread"):
		x.explainSpread(&f, pod)
	case strings.Contains(said, "PersistentVolume's node affinity"), strings.Contains(said, "volume node affinity conflict"), strings.Contains(said, "no available volume zone"):
		x.explainVolumePlace(&f, pod)
	case strings.Contains(said, "ReadWriteOncePod"):
		x.explainOnePod(&f, pod)
	case strings.Contains(said, "free ports for the requested pod ports"):
		x.explainHostPorts(&f, pod)
	case strings.Contains(said, "exceed max volume count"):
		f.Class, f.Confidence = engine.ClaimUnbound, engine.High
		f.Cause = "The nodes that could take the pod have as many volumes attached as their volume driver allows."
		f.Text = "Add a node, or move pods with volumes away from one."
	case strings.Contains(said, "didn't find available persistent volumes to bind"), strings.Contains(said, "did not have enough free storage"):
		f.Class, f.Confidence = engine.ClaimUnbound, engine.High
		f.Cause = "No node has a volume that the pod's claim could be bound to: it is to be made by hand, or the storage there is used up."
		f.Text = "Look at the claims of the pod: their class, size and access mode against the volumes that there are."
	default:
		return nil // nodes have changed since
	}
	return []engine.Finding{f}
}

// explainVolumePlace explains where the volumes of a pod are, and why no node there accepts the pod.
func (x *Index) explainVolumePlace(f *engine.Finding, pod *corev1.Pod) {
	f.Class, f.Confidence = engine.ClaimUnbound, engine.Medium
	f.Cause = "The pod's volume can be used on some nodes only, and none of these takes the pod."
	f.Text = "Let the pod be placed where its volume is: correct its node selector or affinity, or free a node there. A volume does not move between zones; its data would have to be copied to a new claim."
	required := nodeaffinity.GetRequiredNodeAffinity(pod)
	for _, name := range engine.ClaimsOf(pod) {
		claim := x.ClaimByName()[engine.Name{Namespace: pod.Namespace, Name: name}]
		at := slices.IndexFunc(x.Volumes, func(v corev1.PersistentVolume) bool { return claim != nil && v.Name == claim.Spec.VolumeName })
		if at < 0 || x.Volumes[at].Spec.NodeAffinity == nil || x.Volumes[at].Spec.NodeAffinity.Required == nil {
			continue
		}
		volume := &x.Volumes[at]
		rule := formatNodeSelector(volume.Spec.NodeAffinity.Required)
		f.Evidence = append(f.Evidence, fmt.Sprintf("The volume %s of claim %s can be used only on nodes with %s.", engine.QuoteCode(volume.Name), engine.QuoteCode(name), engine.QuoteCode(rule)))
		selector, err := nodeaffinity.NewNodeSelector(volume.Spec.NodeAffinity.Required)
		if err != nil {
			continue
		}
		near := 0
		for _, node := range x.nodesByName() {
			if !selector.Match(node) {
				continue
			}
			near++
			var why refusals
			if why.add(pod, node, affinityAccepts(required, node)) {
				f.Evidence = append(f.Evidence, fmt.Sprintf("Node %s is there, and %s.", engine.QuoteCode(node.Name), why.text()))
			} else if short := x.shortfalls(pod, []*corev1.Node{node}); len(short) > 0 {
				f.Evidence = append(f.Evidence, fmt.Sprintf("Node %s is there, and has too little %s free.", engine.QuoteCode(node.Name), short[0].kind))
			}
		}
		f.Confidence = engine.High
		f.Cause = fmt.Sprintf("The volume of claim %s can be used only on nodes with %s, and no such node takes the pod.", engine.QuoteCode(name), engine.QuoteCode(rule))
		if near == 0 {
			f.Cause = fmt.Sprintf("The volume of claim %s can be used only on nodes with %s, and there is no such node.", engine.QuoteCode(name), engine.QuoteCode(rule))
		}
	}
}

// text returns the rule by which a single node was refused.
func (r refusals) text() string {
	switch {
	case len(r.selector) > 0:
		return "the pod's node selector or affinity does not match it"
	case len(r.cordoned) > 0:
		return "it is cordoned"
	}
	for taint := range r.taints {
		return "it has the taint " + engine.QuoteCode(formatTaint(taint))
	}
	return "it takes the pod"
}

func formatNodeSelector(s *corev1.NodeSelector) string {
	var terms []string
	for _, t := range s.NodeSelectorTerms {
		var all []string
		for _, e := range slices.Concat(t.MatchExpressions, t.MatchFields) {
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Key, strings.ToLower(string(e.Operator)), strings.Join(e.Values, ","))))
		}
		terms = append(terms, strings.Join(all, " and "))
	}
	return strings.Join(terms, " or ")
}

// explainOnePod names the pod that holds a volume of access mode ReadWriteOncePod.
func (x *Index) explainOnePod(f *engine.Finding, pod *corev1.Pod) {
	f.Class, f.Confidence = engine.ClaimUnbound, engine.High
	f.Cause = "The pod's claim has the access mode ReadWriteOncePod, and another pod has it."
	f.Text = "Wait until that pod has ended, or use a claim with another access mode if both are to have it."
	for _, claim := range engine.ClaimsOf(pod) {
		for _, other := range x.Mounts()[engine.Name{Namespace: pod.Namespace, Name: claim}] {
			if other.Name != pod.Name && other.Spec.NodeName != "" {
				f.Evidence = append(f.Evidence, fmt.Sprintf("The claim %s is mounted by pod %s on node %s.", engine.QuoteCode(claim), engine.QuoteCode(other.Name), engine.QuoteCode(other.Spec.NodeName)))
			}
		}
	}
}

// explainHostPorts names the host ports that a pod requests, and the pods that use them.
func (x *Index) explainHostPorts(f *engine.Finding, pod *corev1.Pod) {
	f.Confidence = engine.High
	wanted := hostPorts(pod)
	var ports []string
	for _, p := range wanted {
		ports = append(ports, fmt.Sprint(p.HostPort))
	}
	f.Cause = fmt.Sprintf("The pod wants the host port %s of its node, and on every node that could take it this port is taken.", engine.QuoteCodes(ports))
	f.Text = "A node has each port once: lower the replicas, add a node, or reach the pods through a Service instead of a host port."
	for _, other := range x.LivingPods {
		if other.Spec.NodeName == "" || other.Name == pod.Name && other.Namespace == pod.Namespace {
			continue
		}
		for _, p := range hostPorts(other) {
			if slices.ContainsFunc(wanted, func(w corev1.ContainerPort) bool {
				return w.HostPort == p.HostPort && cmp.Or(w.Protocol, corev1.ProtocolTCP) == cmp.Or(p.Protocol, corev1.ProtocolTCP)
			}) {
				f.Evidence = append(f.Evidence, fmt.Sprintf("On node %s pod %s in namespace %s has port %d.", engine.QuoteCode(other.Spec.NodeName), engine.QuoteCode(other.Name), engine.QuoteCode(other.Namespace), p.HostPort))
			}
		}
	}
}

func hostPorts(pod *corev1.Pod) []corev1.ContainerPort {
	var all []corev1.ContainerPort
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			if p.HostPort != 0 {
				all = append(all, p)
			}
		}
	}
	return all
}

// addPriority notes where pods of a higher priority hold what a pod lacks, and which pods of the workload were
// preempted for one.
func (x *Index) addPriority(f *engine.Finding, pod *corev1.Pod, w *engine.Workload, open []*corev1.Node) {
	const most = 5
	own := engine.ValueOr(pod.Spec.Priority, 0)
	var above []string
	lower := 0
	for _, other := range x.LivingPods {
		if other.Spec.NodeName == "" || other.Name == "" || other.Status.Phase == corev1.PodFailed || !slices.ContainsFunc(open, func(n *corev1.Node) bool { return n.Name == other.Spec.NodeName }) {
			continue
		}
		priority := engine.ValueOr(other.Spec.Priority, 0)
		if priority > own && priority < systemPriority {
			above = append(above, fmt.Sprintf("%s/%s (priority %d, node %s)", other.Namespace, other.Name, priority, other.Spec.NodeName))
		}
		if priority < own {
			lower++
		}
	}
	if len(above) > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Pods of a higher priority than its own (%d) are there, which it cannot displace: %s.", own, engine.QuoteCodes(above[:min(len(above), most)])))
	}
	if lower > 0 && pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s of a lower priority %s there, but its preemptionPolicy is Never.", engine.UpperFirst(engine.CountNoun(lower, "pod", "pods")), map[bool]string{true: "is", false: "are"}[lower == 1]))
	}
	if gone := x.preempted(w.Ref); len(gone) > 0 {
		f.Evidence = append(f.Evidence, gone...)
		f.Cause += " Its earlier pods were preempted: ended to make room for pods of a higher priority."
	}
}

// systemPriority is the lowest priority of the cluster's own classes.
const systemPriority = 2_000_000_000

// workloadOfName returns the workload that a deleted pod belonged to: the one with the longest name that is a prefix of
// the pod's. Zero if there is none.
func (x *Index) workloadOfName(namespace, pod string) (of operation.Ref) {
	for ref := range x.Workloads {
		if ref.Kind != "ReplicaSet" && ref.Namespace == namespace && strings.HasPrefix(pod, ref.Name+"-") && len(ref.Name) > len(of.Name) {
			of = ref
		}
	}
	return of
}

// preempted returns the recent events about preempted pods of a workload.
func (x *Index) preempted(of operation.Ref) []string {
	var all []string
	for i := range x.Events {
		e := &x.Events[i]
		if e.Reason != "Preempted" || e.InvolvedObject.Namespace != of.Namespace || x.Taken.Sub(engine.LastSeen(e).Time) > engine.Recent {
			continue
		}
		if e.InvolvedObject.Name == of.Name || x.workloadOfName(of.Namespace, e.InvolvedObject.Name) == of {
			all = append(all, fmt.Sprintf("The scheduler says of pod %s: %s.", engine.QuoteCode(e.InvolvedObject.Name), engine.QuoteCode(e.Message)))
		}
	}
	slices.Sort(all)
	return all[:min(len(all), 5)]
}

// deviceExpr matches the scheduler's messages about resource claims.
var deviceExpr = regexp.MustCompile(`(?i)\bresource ?claims?\b|\ballocate all claims\b|\bdevice class`)

// checkResourceClaims explains pods that wait for a device: their claim was not created, or no device fits it.
func checkResourceClaims(x *Index, pod *corev1.Pod, w *engine.Workload) []engine.Finding {
	if len(pod.Spec.ResourceClaims) == 0 || pod.Spec.NodeName != "" || pod.Status.Phase != corev1.PodPending {
		return nil
	}
	f := engine.Finding{Class: engine.PendingResources, Object: w.Ref, Confidence: engine.High}
	said := schedulerMessage(pod)
	if said != "" {
		f.Evidence = []string{"The scheduler says " + engine.QuoteCode(said) + "."}
	}
	if e := x.EventOf(pod.UID, func(e *corev1.Event) bool { return e.Reason == "FailedResourceClaimCreation" }); e != nil {
		f.Evidence = append(f.Evidence, "The claim controller says "+engine.QuoteCode(e.Message)+".")
		f.Cause = "The resource claim of the pod could not be made from its template."
		f.Text = "Repair what the message names, or correct resourceClaimTemplateName in the pod."
		for _, c := range pod.Spec.ResourceClaims {
			if name := engine.ValueOr(c.ResourceClaimTemplateName, ""); name != "" && strings.Contains(e.Message, "not found") {
				f.Cause = fmt.Sprintf("The resource claim %s of the pod is to be made from the template %s, which does not exist.", engine.QuoteCode(c.Name), engine.QuoteCode(name))
				f.Text = "Create the ResourceClaimTemplate, or correct its name in the pod."
			}
		}
		return []engine.Finding{f}
	}
	if !deviceExpr.MatchString(said) {
		return nil // a persistentvolumeclaim is handled elsewhere
	}
	f.Cause = "No node can give the pod the devices that its resource claim asks for."
	f.Text = "Look which ResourceSlices the driver publishes and which claims hold their devices; free one, or correct the claim."
	for _, c := range pod.Spec.ResourceClaims {
		name := engine.ValueOr(c.ResourceClaimName, "")
		for _, s := range pod.Status.ResourceClaimStatuses {
			if s.Name == c.Name && s.ResourceClaimName != nil {
				name = *s.ResourceClaimName
			}
		}
		x.describeClaim(&f, pod.Namespace, name)
	}
	return []engine.Finding{f}
}

// describeClaim describes what a resource claim requests, and who holds it.
func (x *Index) describeClaim(f *engine.Finding, namespace, name string) {
	for i := range x.ResourceClaims {
		c := &x.ResourceClaims[i]
		if c.Name != name || c.Namespace != namespace {
			continue
		}
		for _, r := range c.Spec.Devices.Requests {
			if r.Exactly != nil {
				f.Evidence = append(f.Evidence, fmt.Sprintf("The resource claim %s asks for %d of the device class %s.", engine.QuoteCode(name), max(r.Exactly.Count, 1), engine.QuoteCode(r.Exactly.DeviceClassName)))
			}
		}
		if len(c.Status.ReservedFor) > 0 {
			var by []string
			for _, r := range c.Status.ReservedFor {
				by = append(by, r.Name)
			}
			f.Evidence = append(f.Evidence, fmt.Sprintf("It is reserved for %s.", engine.QuoteCodes(by)))
		}
	}
}

// explainSpread explains which label the pod is to be spread by, and whether any node has it.
func (x *Index) explainSpread(f *engine.Finding, pod *corev1.Pod) {
	var keys, unknown []string
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable != corev1.DoNotSchedule || slices.Contains(keys, c.TopologyKey) {
			continue
		}
		keys = append(keys, c.TopologyKey)
		if !slices.ContainsFunc(x.Nodes, func(n corev1.Node) bool { _, has := n.Labels[c.TopologyKey]; return has }) {
			unknown = append(unknown, c.TopologyKey)
		}
	}
	if len(unknown) > 0 {
		f.Confidence = engine.High
		f.Cause = fmt.Sprintf("The pod's topology spread constraints spread it by the node label %s, which no node has.", engine.QuoteCodes(unknown))
		f.Text = "Label the nodes, spread by a label that they have, or let the constraint be ScheduleAnyway."
		return
	}
	f.Cause = "The pod's topology spread constraints leave no node."
	if len(keys) > 0 {
		f.Cause = fmt.Sprintf("The pod's topology spread constraints, by the node label %s, leave no node.", engine.QuoteCodes(keys))
	}
	f.Text = "Add a node in the domain with the fewest pods, or let the constraint be ScheduleAnyway."
}

// explainAffinity explains which labels a required affinity selects that no pod has.
func (x *Index) explainAffinity(f *engine.Finding, pod *corev1.Pod, terms []corev1.PodAffinityTerm) {
	if x.Unread["pods"] {
		return
	}
	for _, term := range terms {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err != nil || term.NamespaceSelector != nil || len(term.Namespaces) > 0 {
			continue // the pods meant may be in other namespaces
		}
		values := map[string][]string{} // by key
		there := false
		for i := range x.Pods {
			other := &x.Pods[i]
			if other.Namespace != pod.Namespace || other.UID == pod.UID {
				continue
			}
			there = there || selector.Matches(labels.Set(other.Labels))
			for key, value := range other.Labels {
				values[key] = append(values[key], value)
			}
		}
		if there || selector.Matches(labels.Set(pod.Labels)) { // the first pod of a self-selecting group can be placed
			continue
		}
		text := metav1.FormatLabelSelector(term.LabelSelector)
		f.Confidence = engine.High
		f.Cause = fmt.Sprintf("The pod's affinity wants it beside pods with %s, and no pod in the namespace has that.", engine.QuoteCode(text))
		for _, key := range slices.Sorted(maps.Keys(term.LabelSelector.MatchLabels)) {
			want := term.LabelSelector.MatchLabels[key]
			if near, ok := engine.NearestName(want, values[key]); ok && near != want {
				f.Cause += fmt.Sprintf(" There are pods with %s.", engine.QuoteCode(key+"="+near))
			}
		}
		f.Text = "Correct the labels that the affinity names, or make it a preference."
		return
	}
}

// checkUnseenPods explains PendingPlacement: pods that their scheduler has not processed, since it does not run or does
// not work.
func checkUnseenPods(x *Index, pod *corev1.Pod, w *engine.Workload) []engine.Finding {
	const patience = time.Minute // a scheduler takes a moment, and more with many pods
	seen := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	if pod.Spec.NodeName != "" || pod.Status.Phase != corev1.PodPending || pod.DeletionTimestamp != nil || seen || len(pod.Spec.SchedulingGates) > 0 || x.Taken.Sub(pod.CreationTimestamp.Time) < patience {
		return nil
	}
	name := cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName)
	if x.newestPlaced()[name].After(pod.CreationTimestamp.Time) {
		return nil // it works, and has not got to this one
	}
	f := engine.Finding{Class: engine.PendingPlacement, Object: w.Ref, Confidence: engine.Medium}
	f.Evidence = []string{fmt.Sprintf("The pod's `schedulerName` is %s. It is on no node, and its status has no condition PodScheduled, which a scheduler sets when it looks at a pod.", engine.QuoteCode(name))}
	f.Cause = fmt.Sprintf("No scheduler has looked at the pod: its scheduler, %s, does not run or does not work.", engine.QuoteCode(name))
	f.Text = "Install or repair that scheduler; without one, leave `schedulerName` out, so that the default scheduler takes the pod."
	if name == corev1.DefaultSchedulerName {
		x.addScheduler(&f)
	}
	return []engine.Finding{f}
}

// addScheduler notes where the cluster's scheduler runs, and the findings there.
func (x *Index) addScheduler(f *engine.Finding) {
	f.Text = "Look at kube-scheduler in kube-system and its log."
	var masters []string
	for _, node := range x.nodesByName() {
		if engine.IsControlPlane(node) {
			masters = append(masters, node.Name)
			f.Touches = append(f.Touches, engine.NodeRef(node.Name))
		}
	}
	if len(masters) > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("kube-scheduler runs on the control plane: %s.", engine.QuoteCodes(masters)))
		f.Text = fmt.Sprintf("Look at kube-scheduler on %s: its pod in kube-system, or its service on the machine, and its log.", engine.QuoteCodes(masters))
	}
	var down, up []string
	for i := range x.Pods {
		pod := &x.Pods[i]
		if pod.Namespace != metav1.NamespaceSystem || pod.Labels["component"] != "kube-scheduler" && !strings.HasPrefix(pod.Name, "kube-scheduler") {
			continue
		}
		if engine.PodReady(pod) {
			up = append(up, pod.Name)
		} else {
			down = append(down, pod.Name)
		}
	}
	switch {
	case len(up) > 0:
		f.Evidence = append(f.Evidence, fmt.Sprintf("Its pods that are ready are %s: it may lack the lease, or rights.", engine.QuoteCodes(up)))
	case len(down) > 0:
		f.Confidence = engine.High
		f.Evidence = append(f.Evidence, fmt.Sprintf("Its pods are not ready: %s.", engine.QuoteCodes(down)))
	case x.Within != "":
		f.Confidence = engine.Low
		f.Evidence = append(f.Evidence, fmt.Sprintf("Only the namespace %s was read: whether pods elsewhere are placed would tell more.", engine.QuoteCode(x.Within)))
	}
}

// newestPlaced returns the creation time of the newest pod that each scheduler placed. The kubelet's static pods need
// no scheduler.
func newestPlaced(pods []corev1.Pod) map[string]time.Time {
	newest := map[string]time.Time{}
	for i := range pods {
		pod := &pods[i]
		name := cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName)
		if _, static := pod.Annotations[corev1.MirrorPodAnnotationKey]; !static && pod.Spec.NodeName != "" && pod.CreationTimestamp.After(newest[name]) {
			newest[name] = pod.CreationTimestamp.Time
		}
	}
	return newest
}
