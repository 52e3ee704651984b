package playbook

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// droppedExpr is how programs tell of packets that nobody answers, as policies make it.
var droppedExpr = regexp.MustCompile(`(?i)timed? ?out|deadline exceeded|ETIMEDOUT|no route to host|EHOSTUNREACH`)

// checkPolicies explains class 16: connections that pods are told to make, to services that
// have endpoints, and that network policies do not let through.
func checkPolicies(x *index) []Finding {
	if len(x.NetworkPolicies) == 0 || x.Unread["networkpolicies"] || x.Unread["services"] || x.Unread["pods"] {
		return nil
	}
	m := newMerger()
	for _, pod := range x.byName {
		if pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, c := range x.calls(pod) {
			if f, ok := x.blockedCall(pod, c); ok {
				m.add(f, pod.Name)
			}
		}
	}
	found := m.found
	told := map[operation.Ref]bool{}
	for i := range found {
		told[found[i].Object] = true
	}
	for i := range x.NetworkPolicies {
		p := &x.NetworkPolicies[i]
		if told[policyRef(p)] {
			continue
		}
		if f, ok := x.admitsNobody(p); ok {
			found = append(found, f)
		}
	}
	return found
}

func policyRef(p *networkingv1.NetworkPolicy) operation.Ref {
	return operation.Ref{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy", Namespace: p.Namespace, Name: p.Name}
}

// readyBackends are the pods that stand behind a service and take requests.
func (x *index) readyBackends(s *corev1.Service) []*corev1.Pod {
	of := name{Namespace: s.Namespace, Name: s.Name}
	pods, known := x.backends[of]
	if !known && len(s.Spec.Selector) > 0 && s.Spec.Type != corev1.ServiceTypeExternalName {
		pods = slices.DeleteFunc(x.selected(s.Namespace, s.Spec.Selector), func(pod *corev1.Pod) bool { return !podReady(pod) })
		x.backends[of] = pods
	}
	return pods
}

// blockedCall says which policy stops a call, if all ready pods of the service are behind it.
func (x *index) blockedCall(pod *corev1.Pod, c call) (Finding, bool) {
	backends := x.readyBackends(c.service)
	own := podReady(pod) && pod.Namespace == c.service.Namespace && hasAll(pod.Labels, c.service.Spec.Selector)
	if len(backends) == 0 || own {
		return Finding{}, false
	}
	v := x.stopped(pod, c)
	by, leaves := v.by, v.leaves
	if by == nil {
		return Finding{}, false
	}
	w := x.workloadOf(pod)
	f := Finding{Class: PolicyBlocks, Object: policyRef(by), Confidence: Medium}
	f.Evidence = []string{
		fmt.Sprintf("The variable %s tells %s to reach service %s.", quoteCode(c.by), refTitle(w.ref), quoteCode(c.service.Name)),
		fmt.Sprintf("The service is in order: its endpoints exist, %s.", countNoun(len(backends), "ready pod", "ready pods")),
	}
	f.symptoms(x, pod, w)
	if leaves {
		f.Evidence = append(f.Evidence, fmt.Sprintf("The policy %s is about what leaves %s; it lets out %s.", quoteCode(by.Name), refTitle(w.ref), letThrough(by, networkingv1.PolicyTypeEgress)))
		f.Cause = fmt.Sprintf("The network policy %s does not let %s out to service %s.", quoteCode(by.Name), refTitle(w.ref), quoteCode(c.service.Name))
		f.Text = fmt.Sprintf("Add to the policy that it lets out to the pods of service %s, if this connection is wanted.", quoteCode(c.service.Name))
		return f, true
	}
	f.Evidence = append(f.Evidence, fmt.Sprintf("The policy %s is about what reaches the service's pods; it lets in %s.", quoteCode(by.Name), letThrough(by, networkingv1.PolicyTypeIngress)))
	f.Cause = fmt.Sprintf("The network policy %s does not let %s in to service %s.", quoteCode(by.Name), refTitle(w.ref), quoteCode(c.service.Name))
	f.Text = fmt.Sprintf("Add %s to what the policy lets in, if this connection is wanted.", refTitle(w.ref))
	f.missingLabel(x, by, c.service, pod, w)
	return f, true
}

// symptoms looks whether the pod shows what a stopped connection does; that it is not
// ready is then a consequence.
func (f *Finding) symptoms(x *index, pod *corev1.Pod, w *workload) {
	classes := []Class{ReadinessProbe, LivenessProbe, InitContainer, JobFailed, RolloutStuck}
	for _, c := range listContainers(pod) {
		lines := x.lastLines(pod, c)
		if at := slices.IndexFunc(lines, droppedExpr.MatchString); at >= 0 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("The log of pod %s says %s.", quoteCode(pod.Name), quoteCode(lines[at])))
			f.Confidence = High
			classes = append(classes, CrashLoop)
		}
	}
	if !podReady(pod) {
		f.Confidence = High
	}
	f.effects = append(f.effects, effect{of: w.ref, classes: classes, unproved: true})
}

// targetPort is where a service's port leads; none means the same number.
func targetPort(port corev1.ServicePort) intstr.IntOrString {
	if port.TargetPort.Type == intstr.Int && port.TargetPort.IntVal == 0 {
		return intstr.FromInt32(port.Port)
	}
	return port.TargetPort
}

// letThrough lists what a policy allows in one direction, for a sentence.
func letThrough(p *networkingv1.NetworkPolicy, direction networkingv1.PolicyType) string {
	var all []string
	for _, r := range rulesOf(p, direction) {
		ports := ""
		if len(r.ports) > 0 {
			var list []string
			for _, port := range r.ports {
				text := "any port"
				if port.Port != nil {
					text = port.Port.String()
				}
				list = append(list, string(valueOr(port.Protocol, corev1.ProtocolTCP))+" "+text)
			}
			ports = " on " + quoteCodes(list)
		}
		if len(r.peers) == 0 {
			all = append(all, "everybody"+ports)
		}
		for _, peer := range r.peers {
			all = append(all, peerText(peer)+ports)
		}
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(slices.Compact(all[:min(len(all), 10)]), "; ")
}

func peerText(peer networkingv1.NetworkPolicyPeer) string {
	if peer.IPBlock != nil {
		return "addresses in " + quoteCode(peer.IPBlock.CIDR)
	}
	text := "all pods"
	if peer.PodSelector != nil && !equalValues(*peer.PodSelector, metav1.LabelSelector{}) {
		text = "only pods with " + quoteCode(metav1.FormatLabelSelector(peer.PodSelector))
	}
	if peer.NamespaceSelector != nil {
		if equalValues(*peer.NamespaceSelector, metav1.LabelSelector{}) {
			return text + " of every namespace"
		}
		return text + " of namespaces with " + quoteCode(metav1.FormatLabelSelector(peer.NamespaceSelector))
	}
	return text
}

// missingLabel offers the labels by which the policy would let a workload in, where these
// are plain and all that is missing.
func (f *Finding) missingLabel(x *index, p *networkingv1.NetworkPolicy, s *corev1.Service, pod *corev1.Pod, w *workload) {
	wanted := wantedLabels(x, p, pod.Namespace)
	if wanted == nil {
		return
	}
	var lacks, has []string
	change := members{}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		value, ok := pod.Labels[key]
		if ok && value == wanted[key] {
			continue
		}
		lacks, change[key] = append(lacks, key+"="+wanted[key]), wanted[key]
		if ok {
			has = append(has, key+"="+value)
		}
	}
	if len(lacks) == 0 {
		return // it is the port that the policy does not let through
	}
	f.Cause = fmt.Sprintf("The network policy %s lets only pods with the label %s in to service %s, and the pods of %s do not have it.", quoteCode(p.Name), quoteCodes(lacks), quoteCode(s.Name), refTitle(w.ref))
	if len(has) > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("The pods of %s have %s.", refTitle(w.ref), quoteCodes(has)))
	}
	f.Text = fmt.Sprintf("Give the pods of %s the label %s if they are to be let in, or let the policy name a label that they have.", refTitle(w.ref), quoteCodes(lacks))
	// A label that chooses the pods for something else cannot be changed by the way.
	if w.patchable() && !x.chosenBy(pod, change) {
		f.Fix = newPatch(w.ref, members{"spec": members{"template": members{"metadata": members{"labels": change}}}})
	}
}

// wantedLabels are the labels of the one kind of peer that a policy lets in, or nil.
func wantedLabels(x *index, p *networkingv1.NetworkPolicy, namespace string) map[string]string {
	var wanted map[string]string
	for _, r := range rulesOf(p, networkingv1.PolicyTypeIngress) {
		for _, peer := range r.peers {
			s := peer.PodSelector
			if wanted != nil || s == nil || len(s.MatchExpressions) > 0 || len(s.MatchLabels) == 0 {
				return nil
			}
			if have, known := x.namespaceLabels(namespace); peer.NamespaceSelector == nil && namespace != p.Namespace || peer.NamespaceSelector != nil && (!known || !matchesSelector(peer.NamespaceSelector, have)) {
				return nil // the namespace is not let in, whatever the label
			}
			wanted = s.MatchLabels
		}
	}
	return wanted
}

// chosenBy says whether something chooses the pod by a label that would change.
func (x *index) chosenBy(pod *corev1.Pod, change members) bool {
	return slices.ContainsFunc(x.holds().may(pod.Namespace, pod.Labels), func(want map[string]string) bool {
		if !hasAll(pod.Labels, want) {
			return false
		}
		for key := range change {
			if _, ok := want[key]; ok {
				return true
			}
		}
		return false
	})
}

// admitsNobody tells of a policy in front of a service that wants callers with a label
// which nothing has. That a policy closes a service on purpose looks another way.
func (x *index) admitsNobody(p *networkingv1.NetworkPolicy) (Finding, bool) {
	if !governsDirection(p, networkingv1.PolicyTypeIngress) {
		return Finding{}, false
	}
	var wanted []map[string]string
	for _, r := range rulesOf(p, networkingv1.PolicyTypeIngress) {
		if len(r.peers) == 0 {
			return Finding{}, false
		}
		for _, peer := range r.peers {
			s := peer.PodSelector
			if s == nil || peer.NamespaceSelector != nil || len(s.MatchExpressions) > 0 || len(s.MatchLabels) == 0 || x.hasLabels(p.Namespace, s.MatchLabels) {
				return Finding{}, false
			}
			wanted = append(wanted, s.MatchLabels)
		}
	}
	if len(wanted) == 0 {
		return Finding{}, false // it lets nobody in, which somebody wrote so
	}
	s, endpoints := x.serviceBehind(p)
	if s == nil || x.opened(s, p) {
		return Finding{}, false
	}
	var texts []string
	for _, w := range wanted {
		texts = append(texts, labels.Set(w).String())
	}
	slices.Sort(texts)
	f := Finding{Class: PolicyBlocks, Object: policyRef(p), Confidence: Low}
	f.Evidence = []string{
		fmt.Sprintf("The policy is about what reaches the pods of service %s, whose endpoints exist: %s.", quoteCode(s.Name), countNoun(endpoints, "ready pod", "ready pods")),
		fmt.Sprintf("It lets in %s.", letThrough(p, networkingv1.PolicyTypeIngress)),
	}
	f.Cause = fmt.Sprintf("The network policy %s lets only pods with the label %s in to service %s, and no pod of the namespace has it.", quoteCode(p.Name), quoteCodes(texts), quoteCode(s.Name))
	f.Text = fmt.Sprintf("Give the label %s to the pods that are to reach the service; say which these are.", quoteCodes(texts))
	return f, true
}

// opened says whether another policy lets somebody in to a service: policies add up.
func (x *index) opened(s *corev1.Service, p *networkingv1.NetworkPolicy) bool {
	for _, pod := range x.kindsBehind(s) {
		if slices.ContainsFunc(x.limiting().isolating(pod, networkingv1.PolicyTypeIngress), func(other *isolation) bool {
			return other.policy.Namespace == p.Namespace && other.policy.Name != p.Name && len(other.policy.Spec.Ingress) > 0
		}) {
			return true
		}
	}
	return false
}

// hasLabels says whether a pod has these labels, or would have them.
func (x *index) hasLabels(namespace string, want map[string]string) bool {
	if x.templates().any(namespace, want) {
		return true
	}
	for i := range x.CronJobs {
		if c := &x.CronJobs[i]; c.Namespace == namespace && hasAll(c.Spec.JobTemplate.Spec.Template.Labels, want) {
			return true
		}
	}
	return x.pods.any(namespace, want)
}

// serviceBehind is the first service, by name, whose ready pods a policy is about.
func (x *index) serviceBehind(p *networkingv1.NetworkPolicy) (*corev1.Service, int) {
	t := x.limiting()
	all := x.servicesIn()[p.Namespace]
	if want := p.Spec.PodSelector.MatchLabels; len(want) > 0 && t.selector(&p.Spec.PodSelector) != nil {
		// Only those in front of a pod that the policy is about.
		near := map[*corev1.Service]bool{}
		for _, pod := range x.pods.Choose(p.Namespace, want) {
			for _, s := range x.fronts().may(pod.Namespace, pod.Labels) {
				near[s] = true
			}
		}
		all = slices.SortedFunc(maps.Keys(near), func(a, b *corev1.Service) int { return cmp.Compare(a.Name, b.Name) })
	}
	for _, s := range all {
		pods := x.readyBackends(s)
		if len(pods) > 0 && !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return !t.matches(&p.Spec.PodSelector, pod.Labels) }) {
			return s, len(pods)
		}
	}
	return nil, 0
}
