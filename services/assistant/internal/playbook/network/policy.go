package network

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
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// droppedExpr matches messages about unanswered packets, the effect of a policy.
var droppedExpr = regexp.MustCompile(`(?i)timed? ?out|deadline exceeded|ETIMEDOUT|no route to host|EHOSTUNREACH`)

// checkPolicies explains PolicyBlocks: connections that pods are configured to open, to services that have endpoints,
// and that network policies block.
func checkPolicies(x *Index) []engine.Finding {
	if len(x.NetworkPolicies) == 0 || x.Unread["networkpolicies"] || x.Unread["services"] || x.Unread["pods"] {
		return nil
	}
	m := engine.NewMerger()
	for _, pod := range x.LivingPods {
		if pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, c := range x.calls(pod) {
			if f, ok := x.blockedCall(pod, c); ok {
				m.Add(f, pod.Name)
			}
		}
	}
	found := m.Found
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
		} else if f, ok := x.admitsServicePort(p); ok {
			found = append(found, f)
		}
	}
	return found
}

// admitsServicePort explains PolicyBlocks: a policy that opens the port of a Service, although its pods listen on
// another one that no policy opens.
func (x *Index) admitsServicePort(p *networkingv1.NetworkPolicy) (f engine.Finding, ok bool) {
	if !governsDirection(p, networkingv1.PolicyTypeIngress) {
		return f, false
	}
	open, all := openPorts(p)
	if all || len(open) == 0 {
		return f, false
	}
	for i := range x.Services {
		s := &x.Services[i]
		named := slices.ContainsFunc(s.Spec.Ports, func(port corev1.ServicePort) bool { return open[portKey(port.Protocol, port.Port)] })
		if s.Namespace != p.Namespace || len(s.Spec.Selector) == 0 || s.Spec.ClusterIP == corev1.ClusterIPNone || !named {
			continue
		}
		at := slices.IndexFunc(x.Selected(s.Namespace, s.Spec.Selector), func(pod *corev1.Pod) bool {
			return pod.Status.Phase == corev1.PodRunning && !pod.Spec.HostNetwork && x.limiting().matches(&p.Spec.PodSelector, pod.Labels)
		})
		if at < 0 {
			continue
		}
		pod := x.Selected(s.Namespace, s.Spec.Selector)[at]
		for _, port := range s.Spec.Ports {
			target := portOn(pod, targetPort(port), port.Protocol)
			if !open[portKey(port.Protocol, port.Port)] || target == 0 || target == port.Port || declares(pod, port.Port, port.Protocol) || x.opensPort(pod, portKey(port.Protocol, target)) {
				continue
			}
			f = engine.Finding{Class: engine.PolicyBlocks, Object: policyRef(p), Confidence: engine.Medium}
			f.Evidence = []string{
				fmt.Sprintf("The policy allows connections on port %d. That is the port of the Service %s, which leads to port %d of its pods.", port.Port, engine.QuoteCode(s.Name), target),
				"A policy applies at the pods, so it must name the port that they listen on.",
			}
			f.Cause = fmt.Sprintf("The network policy opens port %d, and the pods behind the Service %s listen on %d, which no policy opens.", port.Port, engine.QuoteCode(s.Name), target)
			f.Text = fmt.Sprintf("Let the policy name port %d, if the Service is to be reached.", target)
			return f, true
		}
	}
	return f, false
}

// portKey returns a key for a port with its protocol.
func portKey(protocol corev1.Protocol, port int32) string {
	return fmt.Sprintf("%s/%d", cmp.Or(protocol, corev1.ProtocolTCP), port)
}

// openPorts returns the ports that a policy's ingress rules list by number; all means that some rule opens every port,
// or lists ports in another form.
func openPorts(p *networkingv1.NetworkPolicy) (open map[string]bool, all bool) {
	open = map[string]bool{}
	for _, rule := range p.Spec.Ingress {
		if len(rule.Ports) == 0 {
			return open, true
		}
		for _, port := range rule.Ports {
			if port.Port == nil || port.Port.Type != intstr.Int || port.EndPort != nil {
				return open, true
			}
			open[portKey(engine.ValueOr(port.Protocol, corev1.ProtocolTCP), port.Port.IntVal)] = true
		}
	}
	return open, false
}

// opensPort reports whether some policy for a pod opens one of its ports: policies are additive.
func (x *Index) opensPort(pod *corev1.Pod, key string) bool {
	for i := range x.NetworkPolicies {
		p := &x.NetworkPolicies[i]
		if p.Namespace != pod.Namespace || !governsDirection(p, networkingv1.PolicyTypeIngress) || !x.limiting().matches(&p.Spec.PodSelector, pod.Labels) {
			continue
		}
		if open, all := openPorts(p); all || open[key] {
			return true
		}
	}
	return false
}

// declares reports whether a container of a pod declares a port.
func declares(pod *corev1.Pod, port int32, protocol corev1.Protocol) bool {
	return slices.ContainsFunc(portsOf([]*corev1.Pod{pod}, protocol), func(p corev1.ContainerPort) bool { return p.ContainerPort == port })
}

func policyRef(p *networkingv1.NetworkPolicy) operation.Ref {
	return operation.Ref{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy", Namespace: p.Namespace, Name: p.Name}
}

// readyBackends returns the ready pods behind a service.
func (x *Index) readyBackends(s *corev1.Service) []*corev1.Pod {
	of := engine.Name{Namespace: s.Namespace, Name: s.Name}
	pods, known := x.Backends[of]
	if !known && len(s.Spec.Selector) > 0 && s.Spec.Type != corev1.ServiceTypeExternalName {
		pods = slices.DeleteFunc(x.Selected(s.Namespace, s.Spec.Selector), func(pod *corev1.Pod) bool { return !engine.PodReady(pod) })
		x.Backends[of] = pods
	}
	return pods
}

// blockedCall returns the policy that blocks a call, if it covers all ready pods of the
// service.
func (x *Index) blockedCall(pod *corev1.Pod, c call) (engine.Finding, bool) {
	backends := x.readyBackends(c.service)
	own := engine.PodReady(pod) && pod.Namespace == c.service.Namespace && engine.HasAll(pod.Labels, c.service.Spec.Selector)
	if len(backends) == 0 || own {
		return engine.Finding{}, false
	}
	v := x.stopped(pod, c)
	by, leaves := v.by, v.leaves
	if by == nil {
		return engine.Finding{}, false
	}
	w := x.WorkloadOf(pod)
	f := engine.Finding{Class: engine.PolicyBlocks, Object: policyRef(by), Confidence: engine.Medium}
	f.Evidence = []string{
		fmt.Sprintf("The variable %s tells %s to reach service %s.", engine.QuoteCode(c.by), engine.RefTitle(w.Ref), engine.QuoteCode(c.service.Name)),
		fmt.Sprintf("The service is in order: its endpoints exist, %s.", engine.CountNoun(len(backends), "ready pod", "ready pods")),
	}
	addSymptoms(&f, x, pod, w)
	if leaves {
		f.Evidence = append(f.Evidence, fmt.Sprintf("The policy %s restricts egress from %s; it allows %s.", engine.QuoteCode(by.Name), engine.RefTitle(w.Ref), letThrough(by, networkingv1.PolicyTypeEgress)))
		f.Cause = fmt.Sprintf("The network policy %s blocks egress from %s to service %s.", engine.QuoteCode(by.Name), engine.RefTitle(w.Ref), engine.QuoteCode(c.service.Name))
		f.Text = fmt.Sprintf("If this connection is wanted, allow egress to the pods of service %s in the policy.", engine.QuoteCode(c.service.Name))
		return f, true
	}
	f.Evidence = append(f.Evidence, fmt.Sprintf("The policy %s restricts ingress to the service's pods; it allows %s.", engine.QuoteCode(by.Name), letThrough(by, networkingv1.PolicyTypeIngress)))
	f.Cause = fmt.Sprintf("The network policy %s blocks ingress from %s to service %s.", engine.QuoteCode(by.Name), engine.RefTitle(w.Ref), engine.QuoteCode(c.service.Name))
	f.Text = fmt.Sprintf("If this connection is wanted, allow ingress from %s in the policy.", engine.RefTitle(w.Ref))
	offerMissingLabel(&f, x, by, c.service, pod, w)
	return f, true
}

// addSymptoms checks whether the pod shows the symptoms of a blocked connection; if it is not ready, that is then a
// consequence.
func addSymptoms(f *engine.Finding, x *Index, pod *corev1.Pod, w *engine.Workload) {
	classes := []engine.Class{engine.ReadinessProbe, engine.LivenessProbe, engine.InitContainer, engine.JobFailed, engine.RolloutStuck}
	for _, c := range engine.ListContainers(pod) {
		lines := x.LastLines(pod, c)
		if at := slices.IndexFunc(lines, droppedExpr.MatchString); at >= 0 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("The log of pod %s says %s.", engine.QuoteCode(pod.Name), engine.QuoteCode(lines[at])))
			f.Confidence = engine.High
			classes = append(classes, engine.CrashLoop)
		}
	}
	if !engine.PodReady(pod) {
		f.Confidence = engine.High
	}
	f.Effects = append(f.Effects, engine.Effect{Of: w.Ref, Classes: classes, Unproved: true})
}

// targetPort returns the target of a service's port; without one it is the same number.
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
				list = append(list, string(engine.ValueOr(port.Protocol, corev1.ProtocolTCP))+" "+text)
			}
			ports = " on " + engine.QuoteCodes(list)
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
		return "addresses in " + engine.QuoteCode(peer.IPBlock.CIDR)
	}
	text := "all pods"
	if peer.PodSelector != nil && !engine.EqualValues(*peer.PodSelector, metav1.LabelSelector{}) {
		text = "only pods with " + engine.QuoteCode(metav1.FormatLabelSelector(peer.PodSelector))
	}
	if peer.NamespaceSelector != nil {
		if engine.EqualValues(*peer.NamespaceSelector, metav1.LabelSelector{}) {
			return text + " of every namespace"
		}
		return text + " of namespaces with " + engine.QuoteCode(metav1.FormatLabelSelector(peer.NamespaceSelector))
	}
	return text
}

// offerMissingLabel offers the labels by which the policy would admit a workload, if these are plain and all that is
// missing.
func offerMissingLabel(f *engine.Finding, x *Index, p *networkingv1.NetworkPolicy, s *corev1.Service, pod *corev1.Pod, w *engine.Workload) {
	wanted := wantedLabels(x, p, pod.Namespace)
	if wanted == nil {
		return
	}
	var lacks, has []string
	change := engine.Members{}
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
		return // the policy blocks the port
	}
	f.Cause = fmt.Sprintf("The network policy %s allows only pods with the label %s to reach service %s, and the pods of %s do not have it.", engine.QuoteCode(p.Name), engine.QuoteCodes(lacks), engine.QuoteCode(s.Name), engine.RefTitle(w.Ref))
	if len(has) > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("The pods of %s have %s.", engine.RefTitle(w.Ref), engine.QuoteCodes(has)))
	}
	f.Text = fmt.Sprintf("If they should have access, give the pods of %s the label %s, or let the policy name a label that they have.", engine.RefTitle(w.Ref), engine.QuoteCodes(lacks))
	// A label by which another object selects the pods must not change as a side effect.
	if w.Patchable() && !x.chosenBy(pod, change) {
		f.Fix = engine.NewPatch(w.Ref, engine.Members{"spec": engine.Members{"template": engine.Members{"metadata": engine.Members{"labels": change}}}})
	}
}

// wantedLabels returns the labels of the only kind of peer that a policy admits, or nil.
func wantedLabels(x *Index, p *networkingv1.NetworkPolicy, namespace string) map[string]string {
	var wanted map[string]string
	for _, r := range rulesOf(p, networkingv1.PolicyTypeIngress) {
		for _, peer := range r.peers {
			s := peer.PodSelector
			if wanted != nil || s == nil || len(s.MatchExpressions) > 0 || len(s.MatchLabels) == 0 {
				return nil
			}
			if have, known := x.namespaceLabels(namespace); peer.NamespaceSelector == nil && namespace != p.Namespace || peer.NamespaceSelector != nil && (!known || !matchesSelector(peer.NamespaceSelector, have)) {
				return nil // the namespace is not admitted, whatever the label
			}
			wanted = s.MatchLabels
		}
	}
	return wanted
}

// chosenBy reports whether an object selects the pod by a label that would change.
func (x *Index) chosenBy(pod *corev1.Pod, change engine.Members) bool {
	return slices.ContainsFunc(x.Holds().May(pod.Namespace, pod.Labels), func(want map[string]string) bool {
		if !engine.HasAll(pod.Labels, want) {
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

// admitsNobody explains a policy in front of a service that admits only callers with a label that no pod has. A policy
// that closes a service on purpose has no such rule.
func (x *Index) admitsNobody(p *networkingv1.NetworkPolicy) (engine.Finding, bool) {
	if !governsDirection(p, networkingv1.PolicyTypeIngress) {
		return engine.Finding{}, false
	}
	var wanted []map[string]string
	for _, r := range rulesOf(p, networkingv1.PolicyTypeIngress) {
		if len(r.peers) == 0 {
			return engine.Finding{}, false
		}
		for _, peer := range r.peers {
			s := peer.PodSelector
			if s == nil || peer.NamespaceSelector != nil || len(s.MatchExpressions) > 0 || len(s.MatchLabels) == 0 || x.hasLabels(p.Namespace, s.MatchLabels) {
				return engine.Finding{}, false
			}
			wanted = append(wanted, s.MatchLabels)
		}
	}
	if len(wanted) == 0 {
		return engine.Finding{}, false // it admits no callers, which is deliberate
	}
	s, endpoints := x.serviceBehind(p)
	if s == nil || x.opened(s, p) {
		return engine.Finding{}, false
	}
	var texts []string
	for _, w := range wanted {
		texts = append(texts, labels.Set(w).String())
	}
	slices.Sort(texts)
	f := engine.Finding{Class: engine.PolicyBlocks, Object: policyRef(p), Confidence: engine.Low}
	f.Evidence = []string{
		fmt.Sprintf("The policy restricts ingress to the pods of service %s, which has endpoints: %s.", engine.QuoteCode(s.Name), engine.CountNoun(endpoints, "ready pod", "ready pods")),
		fmt.Sprintf("It allows %s.", letThrough(p, networkingv1.PolicyTypeIngress)),
	}
	f.Cause = fmt.Sprintf("The network policy %s allows only pods with the label %s to reach service %s, and no pod in the namespace has it.", engine.QuoteCode(p.Name), engine.QuoteCodes(texts), engine.QuoteCode(s.Name))
	f.Text = fmt.Sprintf("Choose which pods should reach the service, and give them the label %s.", engine.QuoteCodes(texts))
	return f, true
}

// opened reports whether another policy admits some traffic to a service: policies are additive.
func (x *Index) opened(s *corev1.Service, p *networkingv1.NetworkPolicy) bool {
	for _, pod := range x.kindsBehind(s) {
		if slices.ContainsFunc(x.limiting().isolating(pod, networkingv1.PolicyTypeIngress), func(other *isolation) bool {
			return other.policy.Namespace == p.Namespace && other.policy.Name != p.Name && len(other.policy.Spec.Ingress) > 0
		}) {
			return true
		}
	}
	return false
}

// hasLabels reports whether a pod has these labels, or would have them.
func (x *Index) hasLabels(namespace string, want map[string]string) bool {
	if x.Templates().Any(namespace, want) {
		return true
	}
	for i := range x.CronJobs {
		if c := &x.CronJobs[i]; c.Namespace == namespace && engine.HasAll(c.Spec.JobTemplate.Spec.Template.Labels, want) {
			return true
		}
	}
	return x.PodsByLabel.Any(namespace, want)
}

// serviceBehind returns the first service, by name, with ready pods that a policy applies to.
func (x *Index) serviceBehind(p *networkingv1.NetworkPolicy) (*corev1.Service, int) {
	t := x.limiting()
	all := x.ServicesIn()[p.Namespace]
	if want := p.Spec.PodSelector.MatchLabels; len(want) > 0 && t.selector(&p.Spec.PodSelector) != nil {
		// Only those in front of a pod that the policy applies to.
		near := map[*corev1.Service]bool{}
		for _, pod := range x.PodsByLabel.Choose(p.Namespace, want) {
			for _, s := range x.Fronts().May(pod.Namespace, pod.Labels) {
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
