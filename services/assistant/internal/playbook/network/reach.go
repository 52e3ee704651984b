package network

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// target is a port of a pod.
type target struct {
	pod      *corev1.Pod
	port     int32 // 0: any
	protocol corev1.Protocol
}

// governsDirection reports whether a policy applies to a direction. Without policyTypes it applies to ingress, and to
// egress if it has egress rules.
func governsDirection(p *networkingv1.NetworkPolicy, direction networkingv1.PolicyType) bool {
	if len(p.Spec.PolicyTypes) > 0 {
		return slices.Contains(p.Spec.PolicyTypes, direction)
	}
	return direction == networkingv1.PolicyTypeIngress || len(p.Spec.Egress) > 0
}

// rule is one of a policy's rules, in either direction.
type rule struct {
	ports []networkingv1.NetworkPolicyPort
	peers []networkingv1.NetworkPolicyPeer // none: all
}

func rulesOf(p *networkingv1.NetworkPolicy, direction networkingv1.PolicyType) []rule {
	var all []rule
	if direction == networkingv1.PolicyTypeEgress {
		for _, r := range p.Spec.Egress {
			all = append(all, rule{r.Ports, r.To})
		}
		return all
	}
	for _, r := range p.Spec.Ingress {
		all = append(all, rule{r.Ports, r.From})
	}
	return all
}

func (r rule) allowsPort(to target) bool {
	if len(r.ports) == 0 || to.port == 0 {
		return true
	}
	return slices.ContainsFunc(r.ports, func(p networkingv1.NetworkPolicyPort) bool {
		if engine.ValueOr(p.Protocol, corev1.ProtocolTCP) != cmp.Or(to.protocol, corev1.ProtocolTCP) {
			return false
		}
		if p.Port == nil {
			return true
		}
		first := portOn(to.pod, *p.Port, to.protocol)
		return first == to.port || p.EndPort != nil && first <= to.port && to.port <= *p.EndPort
	})
}

// portOn resolves a port on a pod; 0 for a name that the pod does not declare.
func portOn(pod *corev1.Pod, port intstr.IntOrString, protocol corev1.Protocol) int32 {
	if port.Type == intstr.Int {
		return port.IntVal
	}
	for _, list := range [2][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for _, p := range list[i].Ports {
				if p.Name == port.StrVal && cmp.Or(p.Protocol, corev1.ProtocolTCP) == cmp.Or(protocol, corev1.ProtocolTCP) {
					return p.ContainerPort
				}
			}
		}
	}
	return 0
}

// isPeer reports whether a policy's peer selects a pod.
func (x *Index) isPeer(peer networkingv1.NetworkPolicyPeer, namespace string, pod *corev1.Pod) bool {
	if b := peer.IPBlock; b != nil {
		return inBlock(b, pod.Status.PodIP)
	}
	if peer.NamespaceSelector == nil {
		if pod.Namespace != namespace {
			return false
		}
	} else if have, known := x.namespaceLabels(pod.Namespace); known && !x.limiting().matches(peer.NamespaceSelector, have) {
		return false
	}
	return peer.PodSelector == nil || x.limiting().matches(peer.PodSelector, pod.Labels)
}

func inBlock(b *networkingv1.IPBlock, ip string) bool {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return true
	}
	in := func(cidr string) bool {
		prefix, err := netip.ParsePrefix(cidr)
		return err == nil && prefix.Contains(addr)
	}
	return in(b.CIDR) && !slices.ContainsFunc(b.Except, in)
}

func (x *Index) namespaceLabels(namespace string) (have map[string]string, known bool) {
	n := x.Spaces()[namespace]
	if n == nil {
		return nil, false
	}
	return n.Labels, true
}

func matchesSelector(s *metav1.LabelSelector, have map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err != nil || selector.Matches(labels.Set(have))
}

// call is a service that a pod is configured to call.
type call struct {
	service *corev1.Service
	port    int32 // 0: unknown
	by      string
}

// telling are substrings of the names of variables that hold an address.
var telling = []string{"HOST", "ADDR", "URL", "URI", "ENDPOINT", "SERVER", "DSN", "WAIT_FOR", "BROKER"}

// calls returns the services that the variables of a pod name.
func (x *Index) calls(pod *corev1.Pod) []call {
	all, known := x.asks[pod]
	if known {
		return all
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for _, e := range list[i].Env {
				for _, a := range x.addresses(e) {
					s := x.ServiceNamed(a.host, pod.Namespace)
					if s != nil && !slices.ContainsFunc(all, func(c call) bool { return c.service == s && c.port == a.port }) {
						all = append(all, call{s, a.port, e.Name})
					}
				}
			}
		}
	}
	x.asks[pod] = all
	return all
}

// hostKey is a variable's value, and whether its name indicates an address.
type hostKey struct {
	value string
	sure  bool
}

// addresses finds host names in a variable. They are cached, since all pods of a workload have the same variables.
func (x *Index) addresses(e corev1.EnvVar) []address {
	sure := slices.ContainsFunc(telling, func(part string) bool { return strings.Contains(strings.ToUpper(e.Name), part) })
	of := hostKey{e.Value, sure}
	all, known := x.hosts[of]
	if !known {
		all = findAddresses(e.Value, sure)
		x.hosts[of] = all
	}
	return all
}

// callerTable returns the workloads whose variables name a service, the first five for each.
func (x *Index) callerTable() map[*corev1.Service][]string {
	callers := map[*corev1.Service][]string{}
	for _, pod := range x.LivingPods {
		for _, c := range x.calls(pod) {
			list := callers[c.service]
			if len(list) == 5 {
				continue
			}
			if caller := engine.RefTitle(x.WorkloadOf(pod).Ref); !slices.Contains(list, caller) {
				callers[c.service] = append(list, caller)
			}
		}
	}
	return callers
}

type address struct {
	host string
	port int32
}

// findAddresses finds host names in a value. A bare word counts only if the variable's name indicates an address.
func findAddresses(value string, sure bool) []address {
	var all []address
	for part := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune(" ,;\t\n", r) }) {
		_, rest, isURL := strings.Cut(part, "://")
		if isURL {
			part = rest
		}
		part, _, _ = strings.Cut(part, "/")
		part = part[strings.LastIndex(part, "@")+1:]
		host, digits, _ := strings.Cut(part, ":")
		port, err := parsePort(digits)
		if err != nil || !isHost(host) || !isURL && port == 0 && !sure && !strings.Contains(host, ".svc") {
			continue
		}
		all = append(all, address{strings.TrimSuffix(host, "."), port})
	}
	return all
}

func parsePort(digits string) (int32, error) {
	if digits == "" {
		return 0, nil
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	return int32(port), err
}

// isHost reports whether a text may be a host name, and not a numeric address.
func isHost(s string) bool {
	return len(validation.IsDNS1123Subdomain(strings.TrimSuffix(s, "."))) == 0 && strings.ContainsFunc(s, unicode.IsLetter)
}
