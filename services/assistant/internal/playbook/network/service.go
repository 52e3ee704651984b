package network

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// checkServices explains ServiceWithoutEndpoint and ServicePort.
func checkServices(x *Index) []engine.Finding {
	if x.Unread["pods"] || x.Unread["endpointslices"] {
		return nil
	}
	ready := engine.ReadyEndpoints(x.EndpointSlices)
	_, down := x.nameServer()
	var found []engine.Finding
	for i := range x.Services {
		s := &x.Services[i]
		// Without a selector, the endpoints are managed by others.
		if len(s.Spec.Selector) == 0 || s.Spec.Type == corev1.ServiceTypeExternalName {
			continue
		}
		if down && isDNS(s) {
			continue // which has a separate finding
		}
		pods := x.Selected(s.Namespace, s.Spec.Selector)
		if len(pods) == 0 {
			found = append(found, x.nothingSelected(s))
			continue
		}
		found = append(found, servicePorts(s, pods)...)
		if f, mixed := x.mixedBackends(s, pods); mixed {
			found = append(found, f)
		}
		if ready[engine.Name{Namespace: s.Namespace, Name: s.Name}] == 0 && !slices.ContainsFunc(pods, engine.PodReady) {
			found = append(found, x.noneReady(s, pods))
		}
	}
	return found
}

// otherProtocol explains ServicePort: a target port that its pods declare only for another protocol.
func otherProtocol(s *corev1.Service, port corev1.ServicePort, pods []*corev1.Pod) (f engine.Finding, ok bool) {
	own, number := cmp.Or(port.Protocol, corev1.ProtocolTCP), targetPort(port).IntVal
	has := func(protocol corev1.Protocol) bool {
		return slices.ContainsFunc(portsOf(pods, protocol), func(d corev1.ContainerPort) bool { return d.ContainerPort == number })
	}
	if has(own) {
		return f, false
	}
	for _, other := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP} {
		if other == own || !has(other) {
			continue
		}
		f = engine.Finding{Class: engine.ServicePort, Object: engine.ServiceRef(s), Confidence: engine.Medium}
		f.Evidence = []string{
			fmt.Sprintf("Port %d of the service takes %s and leads to port %d.", port.Port, own, number),
			fmt.Sprintf("Its pods declare port %d for %s, and nothing for %s.", number, other, own),
		}
		f.Cause = fmt.Sprintf("The service forwards %s, and its pods listen on port %d by %s: what clients send by %s is not forwarded.", own, number, other, other)
		f.Text = fmt.Sprintf("Set the protocol of the service's port to %s.", other)
		return f, true
	}
	return f, false
}

// mixedBackends explains ServicePort: a Service that selects pods of several workloads, only some of which declare its
// port. A named target port leads only to the pods that declare it.
func (x *Index) mixedBackends(s *corev1.Service, pods []*corev1.Pod) (f engine.Finding, mixed bool) {
	for _, port := range s.Spec.Ports {
		target := targetPort(port)
		if target.Type == intstr.String {
			continue
		}
		var with, without []string
		for _, pod := range pods {
			if pod.Status.Phase != corev1.PodRunning {
				continue
			}
			name := engine.RefTitle(x.WorkloadOf(pod).Ref)
			switch {
			case declares(pod, target.IntVal, port.Protocol):
				if !slices.Contains(with, name) {
					with = append(with, name)
				}
			case !slices.Contains(without, name):
				without = append(without, name)
			}
		}
		if len(with) == 0 || len(without) == 0 || slices.ContainsFunc(without, func(name string) bool { return slices.Contains(with, name) }) {
			continue
		}
		f = engine.Finding{Class: engine.ServicePort, Object: engine.ServiceRef(s), Confidence: engine.Low} // a port may be open without being declared
		f.Evidence = []string{fmt.Sprintf("Its selector %s chooses pods of %s, and of %s.", selectorText(s), strings.Join(with, ", "), strings.Join(without, ", "))}
		f.Cause = fmt.Sprintf("Its selector also chooses pods of %s, which say nothing of the port %s: if they do not listen on it, the connections that come to them fail.", strings.Join(without, ", "), engine.QuoteCode(target.String()))
		f.Text = fmt.Sprintf("Let the selector want a label that only %s has.", strings.Join(with, ", "))
		return f, true
	}
	return f, false
}

// noneReady is a consequence if the pods themselves have a finding.
func (x *Index) noneReady(s *corev1.Service, pods []*corev1.Pod) engine.Finding {
	f := engine.Finding{Class: engine.ServiceWithoutEndpoint, Object: engine.ServiceRef(s), Confidence: engine.High}
	for _, pod := range pods {
		f.Because = append(f.Because, x.RootsOf(pod)...)
	}
	f.Evidence = []string{fmt.Sprintf("Its selector %s chooses %s, none of them ready.", selectorText(s), engine.CountNoun(len(pods), "pod", "pods"))}
	f.Cause = "It has no endpoints, because none of its pods is ready."
	f.Text = "Find out why the pods are not ready: describe one of them."
	return f
}

func selectorText(s *corev1.Service) string {
	return engine.QuoteCode(labels.Set(s.Spec.Selector).String())
}

// near is a workload, or a pod without owner, that has some labels of a selector.
type near struct {
	ref    operation.Ref
	text   string // ref as text, to sort by
	labels map[string]string
	hits   int
}

func (x *Index) nothingSelected(s *corev1.Service) engine.Finding {
	f := engine.Finding{Class: engine.ServiceWithoutEndpoint, Object: engine.ServiceRef(s), Confidence: engine.High}
	f.Evidence = []string{fmt.Sprintf("It has no endpoints: its selector %s chooses no pod.", selectorText(s))}
	best, rival := x.nearTo(s)
	if best == nil {
		f.Cause, f.Confidence = "No workload in the namespace has any of the labels that its selector wants.", engine.Medium
		f.Text = "Create the workload, or choose the one that the service should reach."
		if likely := x.meantBy(s); likely != nil {
			f.Cause += fmt.Sprintf(" Most likely %s is meant, whose pods have %s.", engine.RefTitle(likely.ref), engine.QuoteCode(labels.Set(likely.labels).String()))
			f.Text = fmt.Sprintf("Let the selector want labels that the pods of %s have, if that is the workload to reach.", engine.RefTitle(likely.ref))
			x.addPortFault(&f, s, likely.ref)
		} else if !x.referredTo(s) {
			f.Confidence, f.Order = engine.Low, 1
			f.Evidence = append(f.Evidence, "No variable, ingress, route or stateful set names it: it may be left over.")
		}
		return f
	}
	if best.hits == len(s.Spec.Selector) {
		f.Cause = fmt.Sprintf("The labels fit %s, but it has no pods.", engine.RefTitle(best.ref))
		f.Text = fmt.Sprintf("Find out why %s has none.", engine.RefTitle(best.ref))
		if w := x.Workloads[best.ref]; w != nil && w.Replicas == 0 {
			f.Cause = fmt.Sprintf("The labels fit %s, but it is scaled to 0.", engine.RefTitle(best.ref))
			f.Text = fmt.Sprintf("Choose how many replicas %s should have.", engine.RefTitle(best.ref))
			if callers := x.callers()[s]; len(callers) > 0 {
				f.Order = -1 // callers without a backend cannot be intended
				f.Effects = x.effectsOnCallers(s)
				f.Evidence = append(f.Evidence, fmt.Sprintf("Told to reach it are %s.", strings.Join(callers, ", ")))
			} else {
				f.Confidence = engine.Low // it may be intentional
			}
		}
		f.Because = []operation.Ref{best.ref}
		if ending := x.endingPods(s); len(ending) > 0 {
			f.Cause, f.Confidence = fmt.Sprintf("The pods of %s are being ended, and no others are there yet.", engine.RefTitle(best.ref)), engine.Low
			for _, pod := range ending {
				f.Because = append(f.Because, podRef(pod))
				f.Because = append(f.Because, x.RootsOf(pod)...)
			}
		}
		return f
	}
	var wants, has []string
	change, whole := engine.Members{}, true
	for _, key := range slices.Sorted(maps.Keys(s.Spec.Selector)) {
		value, ok := best.labels[key]
		if value == s.Spec.Selector[key] && ok {
			continue
		}
		wants = append(wants, key+"="+s.Spec.Selector[key])
		if !ok {
			has, whole = append(has, "no "+key), false
			continue
		}
		has, change[key] = append(has, key+"="+value), value
	}
	f.Cause = fmt.Sprintf("The selector wants %s; the pods of %s have %s.", engine.QuoteCodes(wants), engine.RefTitle(best.ref), engine.QuoteCodes(has))
	f.Text = fmt.Sprintf("Make the selector and the labels of %s agree.", engine.RefTitle(best.ref))
	x.addPortFault(&f, s, best.ref)
	// With a second workload equally near, a person has to choose.
	if rival != nil {
		f.Confidence = engine.Medium
		f.Evidence = append(f.Evidence, fmt.Sprintf("As near is %s.", engine.RefTitle(rival.ref)))
		f.Text = "Choose the workload that the service should reach."
		return f
	}
	if whole {
		if f.Fix = engine.NewPatch(f.Object, engine.Members{"spec": engine.Members{"selector": change}}); f.Fix != nil {
			f.Text = strings.Replace(f.Text, fmt.Sprintf("Make the selector and the labels of %s agree.", engine.RefTitle(best.ref)), fmt.Sprintf("Let the selector want %s.", engine.QuoteCodes(has)), 1)
		}
	}
	return f
}

// effectsOnCallers returns the findings that a service without any backend causes in its callers.
func (x *Index) effectsOnCallers(s *corev1.Service) []engine.Effect {
	var effects []engine.Effect
	for _, pod := range x.LivingPods {
		w := x.WorkloadOf(pod)
		if slices.ContainsFunc(x.calls(pod), func(c call) bool { return c.service == s }) && !slices.ContainsFunc(effects, func(e engine.Effect) bool { return e.Of == w.Ref }) {
			effects = append(effects, engine.Effect{Of: w.Ref, Classes: []engine.Class{engine.CrashLoop, engine.LivenessProbe, engine.ReadinessProbe, engine.InitContainer, engine.RolloutStuck}, Unproved: true})
		}
	}
	return effects
}

// referredTo reports whether any object names a service; true if some kinds were not read.
func (x *Index) referredTo(s *corev1.Service) bool {
	if len(x.callers()[s]) > 0 || s.Spec.Type == corev1.ServiceTypeLoadBalancer || s.Spec.Type == corev1.ServiceTypeNodePort {
		return true
	}
	for i := range x.Ingresses {
		if in := &x.Ingresses[i]; in.Namespace == s.Namespace && slices.ContainsFunc(listBackends(in), func(b backend) bool { return b.service.Name == s.Name }) {
			return true
		}
	}
	for i := range x.Routes {
		for _, rule := range x.Routes[i].Spec.Rules {
			if slices.ContainsFunc(rule.BackendRefs, func(b gatewayapi.BackendRef) bool { return b.Name == s.Name }) {
				return true
			}
		}
	}
	return slices.ContainsFunc(x.StatefulSets, func(set appsv1.StatefulSet) bool {
		return set.Namespace == s.Namespace && set.Spec.ServiceName == s.Name
	})
}

// meantBy returns the workload that a Service without any matching label most likely belongs to: the one of the same
// name, else the one with nearly the label that the selector requires. Nil: none, or several.
func (x *Index) meantBy(s *corev1.Service) *near {
	var found *near
	several := false
	for _, n := range x.nearby().Choose(s.Namespace, nil) {
		if n.ref.Name == s.Name && n.ref.Kind != "Pod" {
			return n
		}
		for key, want := range s.Spec.Selector {
			if have, ok := n.labels[key]; ok {
				if _, isNear := engine.NearestName(want, []string{have}); isNear {
					several = several || found != nil && found.ref != n.ref
					found = n
				}
			}
		}
	}
	if several {
		return nil
	}
	return found
}

// addPortFault adds that the ports do not match either: with only the selector corrected, calls would still fail.
func (x *Index) addPortFault(f *engine.Finding, s *corev1.Service, to operation.Ref) {
	w := x.Workloads[to]
	if w == nil || w.Template == nil {
		return
	}
	for _, wrong := range servicePorts(s, []*corev1.Pod{{Spec: w.Template.Spec}}) {
		f.Evidence = append(f.Evidence, wrong.Evidence...)
		f.Cause += " Its port is wrong, too: " + strings.ToLower(wrong.Cause[:1]) + wrong.Cause[1:]
		f.Text += " After that: " + strings.ToLower(wrong.Text[:1]) + wrong.Text[1:]
	}
}

// endingPods returns the terminating pods of a service, by name.
func (x *Index) endingPods(s *corev1.Service) []*corev1.Pod {
	pods := x.Ending().Choose(s.Namespace, s.Spec.Selector)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods
}

func podRef(pod *corev1.Pod) operation.Ref {
	return operation.Ref{Version: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}
}

// nearTable returns the objects that a service could select, by label.
func (x *Index) nearTable() *engine.Chooser[*near] {
	all := engine.NewChooser(func(n *near) map[string]string { return n.labels })
	add := func(ref operation.Ref, have map[string]string) {
		all.Add(ref.Namespace, &near{ref: ref, text: ref.String(), labels: have})
	}
	for ref, w := range x.Workloads {
		if w.Template != nil && ref.Kind != "Job" {
			add(ref, w.Template.Labels)
		}
	}
	for _, pod := range x.LivingPods {
		if w := x.WorkloadOf(pod); w.Ref.Kind == "Pod" {
			add(w.Ref, pod.Labels)
		}
	}
	return all
}

// nearTo returns the object that has the most labels of a service's selector, the first by name, and another with
// equally many, or nil.
func (x *Index) nearTo(s *corev1.Service) (best, rival *near) {
	var there []engine.Pair // labels that some object has
	for key, value := range s.Spec.Selector {
		if p := (engine.Pair{Namespace: s.Namespace, Key: key, Value: value}); len(x.nearby().Having[p]) > 0 {
			there = append(there, p)
		}
	}
	slices.SortFunc(there, func(a, b engine.Pair) int { return cmp.Compare(a.Key, b.Key) })
	of := fmt.Sprintf("%q", there)
	known, ok := x.closest[of]
	if !ok {
		known = x.nearBy(there)
		x.closest[of] = known
	}
	return known.best, known.rival
}

// closest holds the one or two objects with the most matching labels.
type closest struct{ best, rival *near }

func (x *Index) nearBy(want []engine.Pair) closest {
	lists := make([][]*near, 0, len(want))
	for _, p := range want {
		lists = append(lists, x.nearby().Having[p])
	}
	slices.SortFunc(lists, func(a, b []*near) int { return cmp.Compare(len(a), len(b)) })
	var found closest
	seen := map[*near]bool{}
	for i, list := range lists {
		// An object in none of the lists so far matches at most one label for each remaining list.
		if found.best != nil && found.best.hits > len(lists)-i {
			break
		}
		for _, n := range list {
			if !seen[n] {
				seen[n] = true
				found.weigh(n, want)
			}
		}
	}
	return found
}

func (f *closest) weigh(candidate *near, want []engine.Pair) {
	n := *candidate
	for _, p := range want {
		if value, ok := n.labels[p.Key]; ok && value == p.Value {
			n.hits++
		}
	}
	switch {
	case f.best == nil || n.hits > f.best.hits:
		f.best, f.rival = &n, nil
	case n.hits < f.best.hits:
	case n.text < f.best.text:
		f.best, f.rival = &n, f.best
	case f.rival == nil || n.text < f.rival.text:
		f.rival = &n
	}
}

// servicePorts explains ServicePort: target ports that no selected pod has.
func servicePorts(s *corev1.Service, pods []*corev1.Pod) []engine.Finding {
	var found []engine.Finding
	for _, port := range s.Spec.Ports {
		target := targetPort(port)
		declared := portsOf(pods, port.Protocol)
		f := engine.Finding{Class: engine.ServicePort, Object: engine.ServiceRef(s), Confidence: engine.High}
		if target.Type == intstr.String {
			if slices.ContainsFunc(declared, func(d corev1.ContainerPort) bool { return d.Name == target.StrVal }) {
				continue
			}
		} else {
			if f, ok := otherProtocol(s, port, pods); ok {
				found = append(found, f)
				continue
			}
			// A container may listen on ports that it does not declare.
			if len(declared) == 0 || slices.ContainsFunc(declared, func(d corev1.ContainerPort) bool { return d.ContainerPort == target.IntVal }) {
				continue
			}
			if f.Confidence = engine.Medium; len(declared) > 1 {
				f.Confidence = engine.Low
			}
		}
		has := []string{}
		for _, d := range declared {
			text := strconv.Itoa(int(d.ContainerPort))
			if d.Name != "" {
				text += " (" + d.Name + ")"
			}
			has = append(has, text)
		}
		f.Evidence = []string{fmt.Sprintf("Port %d of the service leads to target port %s.", port.Port, engine.QuoteCode(target.String()))}
		f.Cause = fmt.Sprintf("Target port %s is none of the ports of its pods: these declare no port.", engine.QuoteCode(target.String()))
		f.Text = "Choose the pod port that the service should reach."
		if len(has) > 0 {
			f.Cause = fmt.Sprintf("Target port %s is none of the ports of its pods: these declare %s.", engine.QuoteCode(target.String()), engine.QuoteCodes(has))
		}
		offerOnlyPort(&f, s, port, target, declared)
		found = append(found, f)
	}
	return found
}

// portsOf lists what the pods declare for a protocol, each port once.
func portsOf(pods []*corev1.Pod, protocol corev1.Protocol) []corev1.ContainerPort {
	seen := map[corev1.ContainerPort]bool{}
	for _, pod := range pods {
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				for _, p := range list[i].Ports {
					if cmp.Or(p.Protocol, corev1.ProtocolTCP) == cmp.Or(protocol, corev1.ProtocolTCP) {
						seen[corev1.ContainerPort{Name: p.Name, ContainerPort: p.ContainerPort}] = true
					}
				}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b corev1.ContainerPort) int {
		return cmp.Or(cmp.Compare(a.ContainerPort, b.ContainerPort), cmp.Compare(a.Name, b.Name))
	})
}

// offerOnlyPort offers the pods' port, if they have one.
func offerOnlyPort(f *engine.Finding, s *corev1.Service, port corev1.ServicePort, target intstr.IntOrString, declared []corev1.ContainerPort) {
	// Ports merge by number: a patch cannot distinguish two with the same number.
	same := 0
	for _, p := range s.Spec.Ports {
		if p.Port == port.Port {
			same++
		}
	}
	if len(declared) != 1 || same != 1 {
		return
	}
	to := intstr.FromInt32(declared[0].ContainerPort)
	if target.Type == intstr.String && declared[0].Name != "" {
		to = intstr.FromString(declared[0].Name)
	}
	if f.Fix = engine.NewPatch(f.Object, engine.Members{"spec": engine.Members{"ports": []any{engine.Members{"port": port.Port, "targetPort": to}}}}); f.Fix != nil {
		f.Text = fmt.Sprintf("Let port %d lead to target port %s.", port.Port, engine.QuoteCode(to.String()))
	}
}
