package network

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// RouteEnd is one side of the connection in question: pods, with the Service in front of them if it is addressed by
// that, or an external address.
type RouteEnd struct {
	Pods    []*corev1.Pod
	Service *corev1.Service
	Address netip.Addr
}

// Barrier is a policy that blocks a connection.
type Barrier struct {
	Policy *networkingv1.NetworkPolicy
	// Leaves means that the policy blocks egress from the caller; otherwise it blocks ingress to the target.
	Leaves   bool
	Port     int32
	Protocol corev1.Protocol
	// LetsThrough describes what the policy allows in that direction, as part of a sentence.
	LetsThrough string
}

// RouteJudgement is the effect of the policies on a connection.
type RouteJudgement struct {
	Barriers []Barrier // each policy, direction and port once; empty: allowed
	Open     []int32   // ports of the pods that are allowed
	// NoSuchPort means that the Service lacks the requested port.
	NoSuchPort bool
	// NoNames is the policy that keeps the caller from the name server, or nil.
	NoNames *networkingv1.NetworkPolicy
	// Policies means that at least one policy applies to either side.
	Policies bool
}

// JudgeRoute evaluates the policies of both sides of a connection. Port 0 means all ports that the target declares. The
// caller has made sure that pods, policies and namespaces were read.
func (x *Index) JudgeRoute(from, to RouteEnd, port int32) RouteJudgement {
	var j RouteJudgement
	seen := map[Barrier]bool{}
	put := func(b Barrier) {
		if !seen[b] {
			seen[b] = true
			j.Barriers = append(j.Barriers, b)
		}
	}
	t := x.limiting()
	callers, targetPods := t.ofEachKind(from.Pods), t.ofEachKind(to.Pods)
	for _, caller := range callers {
		j.Policies = j.Policies || len(t.isolating(caller, networkingv1.PolicyTypeEgress)) > 0
		if server, down := x.nameServer(); !down && j.NoNames == nil {
			j.NoNames = x.withoutNames(caller, server)
		}
		if to.Address.IsValid() {
			stopping, open := x.blocksAddress(caller, to.Address, port)
			for _, p := range stopping {
				put(Barrier{p, true, port, corev1.ProtocolTCP, letThrough(p, networkingv1.PolicyTypeEgress)})
			}
			for _, at := range open {
				if !slices.Contains(j.Open, at) {
					j.Open = append(j.Open, at)
				}
			}
			continue
		}
		for _, pod := range targetPods {
			j.Policies = j.Policies || len(t.isolating(pod, networkingv1.PolicyTypeIngress)) > 0
			targets, known := routeTargets(to.Service, pod, port)
			j.NoSuchPort = j.NoSuchPort || !known
			for _, at := range targets {
				leaving, entering := x.policyBlocks(caller, at)
				for _, p := range leaving {
					put(Barrier{p, true, at.port, at.protocol, letThrough(p, networkingv1.PolicyTypeEgress)})
				}
				for _, p := range entering {
					put(Barrier{p, false, at.port, at.protocol, letThrough(p, networkingv1.PolicyTypeIngress)})
				}
				if len(leaving)+len(entering) == 0 && !slices.Contains(j.Open, at.port) {
					j.Open = append(j.Open, at.port)
				}
			}
		}
	}
	return j
}

// routeTargets returns the ports of a pod that a call may use; known is false if the Service has no such port.
func routeTargets(s *corev1.Service, pod *corev1.Pod, port int32) (all []target, known bool) {
	if s != nil && len(s.Spec.Ports) > 0 { // a headless Service may have none: its pods are reached on all their ports
		for _, p := range s.Spec.Ports {
			if port == 0 || p.Port == port {
				all = append(all, target{pod, portOn(pod, targetPort(p), p.Protocol), p.Protocol})
			}
		}
		return all, len(all) > 0
	}
	if port != 0 {
		return []target{{pod, port, corev1.ProtocolTCP}}, true
	}
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			all = append(all, target{pod, p.ContainerPort, p.Protocol})
		}
	}
	if len(all) == 0 {
		all = []target{{pod, 0, corev1.ProtocolTCP}}
	}
	return all, true
}

// blocksAddress lists the policies that block a pod's egress to an address, or none if one of them allows it. For all
// ports (0), it also lists those that are open nevertheless.
func (x *Index) blocksAddress(from *corev1.Pod, to netip.Addr, port int32) (stopping []*networkingv1.NetworkPolicy, some []int32) {
	at := target{&corev1.Pod{}, port, corev1.ProtocolTCP}
	for _, i := range x.limiting().isolating(from, networkingv1.PolicyTypeEgress) {
		for _, r := range i.rules {
			open := len(r.peers) == 0 || slices.ContainsFunc(r.peers, func(peer networkingv1.NetworkPolicyPeer) bool {
				return peer.IPBlock != nil && inBlock(peer.IPBlock, to.String())
			})
			switch {
			case !open:
			case port != 0 && r.allowsPort(at), len(r.ports) == 0:
				return nil, nil
			case port == 0:
				for _, p := range r.ports {
					if p.Port == nil && engine.ValueOr(p.Protocol, corev1.ProtocolTCP) == corev1.ProtocolTCP {
						return nil, nil
					}
					if p.Port != nil && p.Port.IntVal != 0 {
						some = append(some, p.Port.IntVal)
					}
				}
			}
		}
		stopping = append(stopping, i.policy)
	}
	return stopping, some
}

// withoutNames returns the policy that keeps a pod from the name server, or nil.
func (x *Index) withoutNames(pod *corev1.Pod, server *corev1.Service) *networkingv1.NetworkPolicy {
	if leaving := x.blocks(pod, x.nameServerOf(server), networkingv1.PolicyTypeEgress); len(leaving) > 0 {
		return leaving[0]
	}
	return nil
}

// ReadyBackends returns the ready pods behind a Service.
func (x *Index) ReadyBackends(s *corev1.Service) []*corev1.Pod { return x.readyBackends(s) }

// ClosedServices explains policies that close Services with ready pods to all callers. These are not findings of a
// diagnosis, since they may be intentional, but a user who asks about such a Service has to see them.
func (x *Index) ClosedServices() []engine.Finding {
	if x.Unread["networkpolicies"] || x.Unread["pods"] || x.Unread["services"] {
		return nil
	}
	closed := map[*networkingv1.NetworkPolicy][]string{}
	var order []*networkingv1.NetworkPolicy
	for i := range x.Services {
		s := &x.Services[i]
		if len(s.Spec.Selector) == 0 || s.DeletionTimestamp != nil {
			continue
		}
		by := x.closedBy(s)
		if by == nil {
			continue
		}
		if closed[by] == nil {
			order = append(order, by)
		}
		closed[by] = append(closed[by], s.Name)
	}
	found := make([]engine.Finding, 0, len(order))
	for _, by := range order {
		found = append(found, closedFinding(by, slices.Sorted(slices.Values(closed[by]))))
	}
	return found
}

// closedBy returns the policy, first by name, that closes the ready pods of a Service to all callers, or nil.
func (x *Index) closedBy(s *corev1.Service) *networkingv1.NetworkPolicy {
	var by *networkingv1.NetworkPolicy
	for _, pod := range x.kindsBehind(s) {
		all := x.limiting().isolating(pod, networkingv1.PolicyTypeIngress)
		if len(all) == 0 || slices.ContainsFunc(all, func(i *isolation) bool { return len(i.rules) > 0 }) {
			return nil
		}
		by = slices.MinFunc(all, func(a, b *isolation) int { return strings.Compare(a.policy.Name, b.policy.Name) }).policy
	}
	return by
}

func closedFinding(by *networkingv1.NetworkPolicy, services []string) engine.Finding {
	f := engine.Finding{Class: engine.PolicyBlocks, Object: policyRef(by), Confidence: engine.Low}
	f.Evidence = []string{
		fmt.Sprintf("It selects the pods behind %s, which are ready; it allows no ingress, and neither does any other policy.", engine.QuoteCodes(services)),
	}
	f.Cause = fmt.Sprintf("The network policy %s blocks all ingress to service %s. This may be intentional.", engine.QuoteCode(by.Name), engine.QuoteCodes(services))
	f.Text = "If they should be reachable, name their callers and add a policy that allows ingress from them."
	return f
}
