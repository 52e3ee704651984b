//lint:file-ignore SA1019 clients still read Endpoints, so they are kept beside the slices

package controllers

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
	"github.com/mlp-platform/platform/libs/samplecluster/program"
)

// backends are the pods a service selects and, per service port, the port they are reached on.
func (p *pass) backends(svc *corev1.Service) []*corev1.Pod {
	if len(svc.Spec.Selector) == 0 {
		return nil
	}
	var pods []*corev1.Pod
	match := labels.SelectorFromSet(svc.Spec.Selector)
	for _, pod := range store.List[*corev1.Pod](p.Tx, resource.Pods, svc.Namespace) {
		if pod.Status.PodIP != "" && !isPodFinished(pod) && match.Matches(labels.Set(pod.Labels)) {
			pods = append(pods, pod)
		}
	}
	return pods
}

func targetPort(port corev1.ServicePort, pod *corev1.Pod) int32 {
	if port.TargetPort.Type == intstr.Int {
		return port.TargetPort.IntVal
	}
	for i := range pod.Spec.Containers {
		if n := program.ContainerPort(port.TargetPort, &pod.Spec.Containers[i]); n != 0 {
			return n
		}
	}
	return 0
}

func (p *pass) endpoints() {
	for _, svc := range store.List[*corev1.Service](p.Tx, resource.Services, "") {
		if len(svc.Spec.Selector) == 0 || svc.Spec.Type == corev1.ServiceTypeExternalName {
			continue
		}
		p.slices(svc)
	}
}

func (p *pass) slices(svc *corev1.Service) {
	slice := resource.Of(resource.EndpointSlices).New().(*discoveryv1.EndpointSlice)
	slice.Name, slice.Namespace = svc.Name+"-"+hashOf(svc.UID)[:5], svc.Namespace
	if old, ok := store.Get[*discoveryv1.EndpointSlice](p.Tx, resource.EndpointSlices, slice.Namespace, slice.Name); ok {
		slice = copyObject(old)
		slice.Endpoints, slice.Ports = nil, nil
	}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: svc.Name, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"}
	slice.OwnerReferences = ownedBy(svc, resource.Services)
	slice.AddressType = discoveryv1.AddressTypeIPv4
	slice.Endpoints = []discoveryv1.Endpoint{}
	legacy := resource.Of(resource.Endpoints).New().(*corev1.Endpoints)
	legacy.Name, legacy.Namespace = svc.Name, svc.Namespace
	var subset corev1.EndpointSubset
	pods := p.backends(svc)
	for _, port := range svc.Spec.Ports {
		number := port.TargetPort.IntVal
		if len(pods) > 0 {
			number = targetPort(port, pods[0])
		}
		if number == 0 {
			continue
		}
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: new(port.Name), Port: new(number), Protocol: new(port.Protocol)})
		subset.Ports = append(subset.Ports, corev1.EndpointPort{Name: port.Name, Port: number, Protocol: port.Protocol})
	}
	for _, pod := range pods {
		if len(slice.Ports) == 0 {
			break
		}
		serving := isPodReady(pod)
		up := serving && pod.DeletionTimestamp == nil
		ref := &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{pod.Status.PodIP}, NodeName: new(pod.Spec.NodeName), TargetRef: ref,
			Conditions: discoveryv1.EndpointConditions{Ready: new(up || svc.Spec.PublishNotReadyAddresses), Serving: new(serving), Terminating: new(pod.DeletionTimestamp != nil)},
		})
		address := corev1.EndpointAddress{IP: pod.Status.PodIP, NodeName: new(pod.Spec.NodeName), TargetRef: ref}
		if up {
			subset.Addresses = append(subset.Addresses, address)
		} else if pod.DeletionTimestamp == nil {
			subset.NotReadyAddresses = append(subset.NotReadyAddresses, address)
		}
	}
	p.keep(resource.EndpointSlices, slice)
	if old, ok := p.Get(resource.Endpoints, legacy.Namespace, legacy.Name); ok {
		legacy = copyObject(old.(*corev1.Endpoints))
		legacy.Subsets = nil
	}
	legacy.OwnerReferences = ownedBy(svc, resource.Services)
	if len(subset.Addresses)+len(subset.NotReadyAddresses) > 0 {
		legacy.Subsets = []corev1.EndpointSubset{subset}
	}
	p.keep(resource.Endpoints, legacy)
}

// keep creates an object or replaces the one there is.
func (p *pass) keep(key groupResource, o resource.Object) {
	if _, ok := p.Get(key, o.GetNamespace(), o.GetName()); ok {
		p.Put(key, o)
		return
	}
	_ = p.create(key, o) // refused only while the namespace ends; the next pass sees that
}

// reach returns why a pod cannot reach host:port, or "" if it can.
func (p *pass) reach(from *corev1.Pod, address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Sprintf("dial tcp: address %q: missing port in address", address)
	}
	name, rest, _ := strings.Cut(host, ".")
	namespace, _, _ := strings.Cut(rest, ".")
	if namespace == "" {
		namespace = from.Namespace
	}
	svc, ok := store.Get[*corev1.Service](p.Tx, resource.Services, namespace, name)
	if !ok {
		return fmt.Sprintf("dial tcp: lookup %s: no such host", host)
	}
	number, _ := strconv.Atoi(port) // a name is no number and matches no port
	at := slices.IndexFunc(svc.Spec.Ports, func(sp corev1.ServicePort) bool { return int(sp.Port) == number })
	target := net.JoinHostPort(svc.Spec.ClusterIP, port)
	if at < 0 {
		return fmt.Sprintf("dial tcp %s: i/o timeout", target)
	}
	blocked := false
	for _, pod := range p.backends(svc) {
		if !isPodReady(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		if p.allowed(from, pod, targetPort(svc.Spec.Ports[at], pod)) {
			return ""
		}
		blocked = true
	}
	if blocked {
		return fmt.Sprintf("dial tcp %s: i/o timeout", target)
	}
	return fmt.Sprintf("dial tcp %s: connect: connection refused", target)
}

// allowed reports whether network policies let one pod speak to another's port.
func (p *pass) allowed(from, to *corev1.Pod, port int32) bool {
	return p.admitted(from, to, to, port, networkingv1.PolicyTypeIngress) && p.admitted(from, to, from, port, networkingv1.PolicyTypeEgress)
}

func (p *pass) admitted(from, to, at *corev1.Pod, port int32, direction networkingv1.PolicyType) bool {
	isolated := false
	for _, policy := range store.List[*networkingv1.NetworkPolicy](p.Tx, resource.NetworkPolicies, at.Namespace) {
		if !slices.Contains(policy.Spec.PolicyTypes, direction) || !selectorMatches(&policy.Spec.PodSelector, at.Labels) {
			continue
		}
		isolated = true
		if direction == networkingv1.PolicyTypeIngress {
			for _, rule := range policy.Spec.Ingress {
				if p.peers(rule.From, policy.Namespace, from) && allowsPort(rule.Ports, to, port) {
					return true
				}
			}
			continue
		}
		for _, rule := range policy.Spec.Egress {
			if p.peers(rule.To, policy.Namespace, to) && allowsPort(rule.Ports, to, port) {
				return true
			}
		}
	}
	return !isolated
}

func selectorMatches(s *metav1.LabelSelector, set map[string]string) bool {
	match, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && match.Matches(labels.Set(set))
}

func (p *pass) peers(list []networkingv1.NetworkPolicyPeer, namespace string, pod *corev1.Pod) bool {
	if len(list) == 0 {
		return true
	}
	for _, peer := range list {
		if peer.IPBlock != nil {
			if _, block, err := net.ParseCIDR(peer.IPBlock.CIDR); err == nil && block.Contains(net.ParseIP(pod.Status.PodIP)) {
				return true
			}
			continue
		}
		home := pod.Namespace == namespace
		if peer.NamespaceSelector != nil {
			ns, ok := p.Get(resource.Namespaces, "", pod.Namespace)
			home = ok && selectorMatches(peer.NamespaceSelector, ns.GetLabels())
		}
		if home && (peer.PodSelector == nil || selectorMatches(peer.PodSelector, pod.Labels)) {
			return true
		}
	}
	return false
}

func allowsPort(list []networkingv1.NetworkPolicyPort, to *corev1.Pod, port int32) bool {
	if len(list) == 0 {
		return true
	}
	for _, rule := range list {
		if rule.Port == nil {
			return true
		}
		for i := range to.Spec.Containers {
			first := program.ContainerPort(*rule.Port, &to.Spec.Containers[i])
			if port == first || rule.EndPort != nil && port > first && port <= *rule.EndPort {
				return true
			}
		}
	}
	return false
}
