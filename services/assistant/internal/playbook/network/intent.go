package network

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// Annotations of ingress-nginx that control how it calls a backend. Its times are seconds.
const (
	protocolAnnotation = "nginx.ingress.kubernetes.io/backend-protocol"
	readAnnotation     = "nginx.ingress.kubernetes.io/proxy-read-timeout"
	shortRead          = 1
)

// checkIngressIntent explains IngressBackend: ingresses that are valid but most likely unintended.
func checkIngressIntent(x *Index) []engine.Finding {
	if x.Unread["services"] {
		return nil
	}
	var found []engine.Finding
	for i := range x.Ingresses {
		in := &x.Ingresses[i]
		if in.DeletionTimestamp != nil {
			continue
		}
		if seconds, err := strconv.Atoi(strings.TrimSuffix(in.Annotations[readAnnotation], "s")); err == nil && seconds > 0 && seconds <= shortRead {
			f := engine.Finding{Class: engine.IngressBackend, Object: ingressRef(in), Confidence: engine.Low}
			f.Evidence = []string{fmt.Sprintf("Its annotation %s is %s.", engine.QuoteCode(readAnnotation), engine.QuoteCode(in.Annotations[readAnnotation]))}
			f.Cause = fmt.Sprintf("The ingress gives its backends only %s to answer (timeout): what takes longer is answered with 504.", engine.CountNoun(seconds, "second", "seconds"))
			f.Text = "Choose how long a response may take."
			found = append(found, f)
		}
		seen := map[networkingv1.IngressServiceBackend]bool{}
		for _, b := range listBackends(in) {
			s := x.ServiceByName[engine.Name{Namespace: in.Namespace, Name: b.service.Name}]
			if s == nil {
				continue // which has a separate finding
			}
			if f, ok := otherBackendProtocol(in, b, s); ok && !seen[*b.service] {
				found = append(found, f)
			}
			seen[*b.service] = true
			if f, ok := x.misroutedPath(in, b, s); ok {
				found = append(found, f)
			}
		}
	}
	return found
}

// otherBackendProtocol explains an ingress that calls a port in a protocol other than the port's.
func otherBackendProtocol(in *networkingv1.Ingress, b backend, s *corev1.Service) (f engine.Finding, ok bool) {
	calls := strings.ToLower(in.Annotations[protocolAnnotation])
	i := slices.IndexFunc(s.Spec.Ports, func(p corev1.ServicePort) bool {
		return b.service.Port.Name != "" && p.Name == b.service.Port.Name || b.service.Port.Name == "" && p.Port == b.service.Port.Number
	})
	if i < 0 {
		return f, false
	}
	port := s.Spec.Ports[i]
	speaks, _, _ := strings.Cut(strings.ToLower(engine.ValueOr(port.AppProtocol, port.Name)), "-")
	if !slices.Contains([]string{"http", "https", "grpc", "grpcs"}, speaks) || calls == speaks || calls == "" && speaks == "http" || calls == "auto_http" && speaks == "http" || calls == "grpcs" && speaks == "grpc" {
		return f, false
	}
	if calls == "" {
		calls = "http"
		if in.Annotations["nginx.ingress.kubernetes.io/ssl-passthrough"] != "" || !strings.Contains(engine.ValueOr(in.Spec.IngressClassName, in.Annotations[oldIngressClass]), "nginx") {
			return f, false // other controllers use other annotations, or the name of the port
		}
	}
	f = engine.Finding{Class: engine.IngressBackend, Object: ingressRef(in), Confidence: engine.Medium}
	f.Evidence = []string{fmt.Sprintf("Port %d of the service %s is called %s.", port.Port, engine.QuoteCode(s.Name), engine.QuoteCode(engine.ValueOr(port.AppProtocol, port.Name)))}
	if said := in.Annotations[protocolAnnotation]; said != "" {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Its annotation %s is %s.", engine.QuoteCode(protocolAnnotation), engine.QuoteCode(said)))
	}
	f.Cause = fmt.Sprintf("The ingress calls the service %s by %s, and its port speaks another protocol (%s): the requests are answered with 502 or 400.", engine.QuoteCode(s.Name), strings.ToUpper(calls), strings.ToUpper(speaks))
	f.Text = fmt.Sprintf("Let the annotation %s be %s.", engine.QuoteCode(protocolAnnotation), engine.QuoteCode(strings.ToUpper(speaks)))
	return f, true
}

// misroutedPath explains a path that names another service than the one it leads to.
func (x *Index) misroutedPath(in *networkingv1.Ingress, b backend, s *corev1.Service) (f engine.Finding, ok bool) {
	if b.rule < 0 {
		return f, false
	}
	path := in.Spec.Rules[b.rule].HTTP.Paths[b.path].Path
	var services []string
	for _, other := range x.ServicesIn()[in.Namespace] {
		services = append(services, other.Name)
	}
	other, misrouted := engine.OtherForPath(path, []string{s.Name}, services)
	if !misrouted || !x.pathsTellServices(in.Namespace) {
		return f, false
	}
	f = engine.Finding{Class: engine.IngressBackend, Object: ingressRef(in), Confidence: engine.Low, Order: 1} // names prove nothing
	f.Evidence = []string{fmt.Sprintf("%s leads to the service %s.", engine.UpperFirst(b.where), engine.QuoteCode(s.Name))}
	f.Cause = fmt.Sprintf("The ingress leads the path %s to the service %s, and there is a service %s: most likely the wrong service is named.", engine.QuoteCode(path), engine.QuoteCode(s.Name), engine.QuoteCode(other))
	f.Text = fmt.Sprintf("Let the path lead to %s, if that is meant.", engine.QuoteCode(other))
	return f, true
}

// pathsTellServices reports whether a path of some ingress of a namespace leads to a service of the same name. If none
// does, one program may well answer for all paths.
func (x *Index) pathsTellServices(namespace string) bool {
	for i := range x.Ingresses {
		in := &x.Ingresses[i]
		if in.Namespace == namespace && slices.ContainsFunc(listBackends(in), func(b backend) bool {
			return b.rule >= 0 && engine.ServesPath(b.service.Name, in.Spec.Rules[b.rule].HTTP.Paths[b.path].Path)
		}) {
			return true
		}
	}
	return false
}
