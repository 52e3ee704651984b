package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// Endpoints counts the ready endpoints of a service.
func (v View) Endpoints(namespace, service string) int {
	return engine.ReadyEndpoints(v.EndpointSlices)[types.NamespacedName{Namespace: namespace, Name: service}]
}

func (v View) services() []*corev1.Service {
	all := make([]*corev1.Service, 0, len(v.Services))
	for i := range v.Services {
		all = append(all, &v.Services[i])
	}
	slices.SortFunc(all, func(a, b *corev1.Service) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// isEmptyService reports whether a service has a selector but no ready endpoint.
func isEmptyService(s *corev1.Service, ready map[types.NamespacedName]int) bool {
	return len(s.Spec.Selector) > 0 && ready[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}] == 0
}

// EmptyServices lists services with a selector that lead to no ready pod.
func EmptyServices(v View) Answer {
	t := newTable("Namespace", "Service", "Selector", "Pods chosen")
	ready, pods := engine.ReadyEndpoints(v.EndpointSlices), engine.NewChooser(engine.PodLabels)
	for i := range v.Pods {
		pods.Add(v.Pods[i].Namespace, &v.Pods[i])
	}
	for _, s := range v.services() {
		if !v.in(s) || s.Spec.Type == corev1.ServiceTypeExternalName || !isEmptyService(s, ready) {
			continue
		}
		chosen := len(pods.Choose(s.Namespace, s.Spec.Selector))
		t.add(tableCell(s.Namespace), tableCell(s.Name), tableCell(labels.Set(s.Spec.Selector).String()), strconv.Itoa(chosen))
	}
	answer := t.under("Services "+v.where()+" without a ready endpoint:", "Every service "+v.where()+" that has a selector has ready endpoints.")
	if len(v.Objects) > 0 {
		for _, s := range v.services() {
			switch {
			case !v.in(s) || len(s.Spec.Selector) > 0 && s.Spec.Type != corev1.ServiceTypeExternalName:
			case s.Spec.Type == corev1.ServiceTypeExternalName:
				answer.add("Service %s leads outside, to %s: such a service never has endpoints, and that is no fault.", Code(s.Name), Code(s.Spec.ExternalName))
			default:
				answer.add("Service %s has no selector: its endpoints are managed by hand.", Code(s.Name))
			}
		}
	}
	return answer
}

// External lists what can be reached from outside the cluster.
func External(v View) Answer {
	t := newTable("Namespace", "Object", "How", "Address", "Ports")
	for _, s := range v.services() {
		if !v.in(s) || s.Spec.Type != corev1.ServiceTypeLoadBalancer && s.Spec.Type != corev1.ServiceTypeNodePort && s.Spec.Type != corev1.ServiceTypeExternalName && len(s.Spec.ExternalIPs) == 0 {
			continue
		}
		var addresses, ports []string
		for _, in := range s.Status.LoadBalancer.Ingress {
			addresses = append(addresses, cmp.Or(in.IP, in.Hostname))
		}
		addresses = append(addresses, s.Spec.ExternalIPs...)
		if s.Spec.ExternalName != "" {
			addresses = append(addresses, s.Spec.ExternalName)
		}
		if s.Spec.Type == corev1.ServiceTypeLoadBalancer && len(addresses) == 0 {
			addresses = []string{"none given yet"}
		}
		for _, p := range s.Spec.Ports {
			port := strconv.Itoa(int(p.Port))
			if p.NodePort != 0 {
				port += fmt.Sprintf(" (node port %d)", p.NodePort)
			}
			ports = append(ports, port)
		}
		t.add(tableCell(s.Namespace), "service "+tableCell(s.Name), string(s.Spec.Type), tableCells(addresses), joinList(ports))
	}
	for _, in := range slices.SortedFunc(slices.Values(v.Ingresses), func(a, b networkingv1.Ingress) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}) {
		if !v.in(&in) {
			continue
		}
		var hosts []string
		for _, r := range in.Spec.Rules {
			hosts = append(hosts, cmp.Or(r.Host, "any host"))
		}
		ports := "80"
		if len(in.Spec.TLS) > 0 {
			ports = "80, 443"
		}
		t.add(tableCell(in.Namespace), "ingress "+tableCell(in.Name), "Ingress", tableCells(hosts), ports)
	}
	for _, g := range slices.SortedFunc(slices.Values(v.Gateways), func(a, b gatewayapi.Gateway) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}) {
		if v.in(&g) {
			addresses, ports := []string{}, []string{}
			for _, a := range g.Status.Addresses {
				addresses = append(addresses, a.Value)
			}
			if len(addresses) == 0 {
				addresses = []string{"none given yet"}
			}
			for _, l := range g.Spec.Listeners {
				ports = append(ports, fmt.Sprintf("%d (%s)", l.Port, cmp.Or(l.Hostname, "any host")))
			}
			t.add(tableCell(g.Namespace), "gateway "+tableCell(g.Name), "Gateway", tableCells(addresses), tableCells(ports))
		}
	}
	return t.under("What can be reached from outside, "+v.where()+":", "No service, ingress or gateway "+v.where()+" can be reached from outside of the cluster.")
}
