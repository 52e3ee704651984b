package network

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

const (
	defaultIngressClass = "ingressclass.kubernetes.io/is-default-class"
	// oldIngressClass is the annotation that named the class before the field existed. Controllers that read it need no
	// IngressClass object.
	oldIngressClass = "kubernetes.io/ingress.class"
)

// checkIngresses explains IngressBackend: ingresses without a working backend or without a
// controller.
func checkIngresses(x *Index) []engine.Finding {
	names := map[string][]string{}
	for i := range x.Services {
		names[x.Services[i].Namespace] = append(names[x.Services[i].Namespace], x.Services[i].Name)
	}
	var found []engine.Finding
	for i := range x.Ingresses {
		in := &x.Ingresses[i]
		if in.DeletionTimestamp != nil {
			continue
		}
		if f, bad := x.ingressClass(in); bad {
			found = append(found, f)
		}
		found = append(found, x.findAbsentCertificates(in)...)
		if x.Unread["services"] {
			continue
		}
		seen := map[networkingv1.IngressServiceBackend]bool{}
		for _, b := range listBackends(in) {
			if seen[*b.service] {
				continue
			}
			seen[*b.service] = true
			f := engine.Finding{Class: engine.IngressBackend, Object: ingressRef(in), Confidence: engine.High}
			f.Evidence = []string{fmt.Sprintf("%s leads to port %s of service %s.", engine.UpperFirst(b.where), engine.QuoteCode(portText(b.service.Port)), engine.QuoteCode(b.service.Name))}
			s := x.ServiceByName[engine.Name{Namespace: in.Namespace, Name: b.service.Name}]
			switch {
			case s == nil:
				explainNoService(&f, in, b, names[in.Namespace])
			case s.Spec.Type == corev1.ServiceTypeExternalName || servesPort(s, b.service.Port):
				// The service's own fault is reported there, and this as a consequence.
				f.Follower, f.Because = true, []operation.Ref{engine.ServiceRef(s)}
				f.Cause = fmt.Sprintf("It leads to the service %s.", engine.QuoteCode(s.Name))
			default:
				explainNoPort(&f, in, b, s)
			}
			found = append(found, f)
		}
	}
	return append(found, x.rivalIngresses()...)
}

func ingressRef(in *networkingv1.Ingress) operation.Ref {
	return operation.Ref{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress", Namespace: in.Namespace, Name: in.Name}
}

// backend is a service that an ingress leads to, with the rule and path.
type backend struct {
	where   string
	service *networkingv1.IngressServiceBackend
	rule    int // of the spec; -1 is the default backend
	path    int
}

func listBackends(in *networkingv1.Ingress) []backend {
	var all []backend
	if b := in.Spec.DefaultBackend; b != nil && b.Service != nil {
		all = append(all, backend{"the default backend", b.Service, -1, 0})
	}
	for i, rule := range in.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for j, path := range rule.HTTP.Paths {
			if path.Backend.Service != nil {
				all = append(all, backend{"the rule for " + engine.QuoteCode(rule.Host+path.Path), path.Backend.Service, i, j})
			}
		}
	}
	return all
}

func portText(p networkingv1.ServiceBackendPort) string {
	if p.Name != "" {
		return p.Name
	}
	return strconv.Itoa(int(p.Number))
}

func servesPort(s *corev1.Service, p networkingv1.ServiceBackendPort) bool {
	return slices.ContainsFunc(s.Spec.Ports, func(have corev1.ServicePort) bool {
		if p.Name != "" {
			return have.Name == p.Name
		}
		return have.Port == p.Number
	})
}

// redirectPath changes the backend of one path. Rules have no merge key, so the patch repeats all of them.
func redirectPath(in *networkingv1.Ingress, b backend, to networkingv1.IngressServiceBackend) *operation.Operation {
	spec := in.Spec.DeepCopy()
	if b.rule < 0 {
		port := engine.Members{"number": nil, "name": nil} // only one of them may be set
		if to.Port.Name != "" {
			port["name"] = to.Port.Name
		} else {
			port["number"] = to.Port.Number
		}
		return engine.NewPatch(ingressRef(in), engine.Members{"spec": engine.Members{"defaultBackend": engine.Members{"service": engine.Members{"name": to.Name, "port": port}}}})
	}
	for _, other := range listBackends(in) {
		if *other.service == *b.service && other.rule >= 0 {
			spec.Rules[other.rule].HTTP.Paths[other.path].Backend.Service = &to
		}
	}
	return engine.NewPatch(ingressRef(in), engine.Members{"spec": engine.Members{"rules": spec.Rules}})
}

func explainNoService(f *engine.Finding, in *networkingv1.Ingress, b backend, services []string) {
	f.Evidence = append(f.Evidence, fmt.Sprintf("Namespace %s was searched: no service has this name.", engine.QuoteCode(in.Namespace)))
	f.Cause = fmt.Sprintf("The service %s that the ingress leads to (port %s) does not exist, so its requests are answered with an error.", engine.QuoteCode(b.service.Name), engine.QuoteCode(portText(b.service.Port)))
	f.Text = "Create the service, or name the right one."
	near, ok := engine.NearestName(b.service.Name, services)
	if !ok {
		return
	}
	f.Cause += fmt.Sprintf(" The service %s is the nearest.", engine.QuoteCode(near))
	to := *b.service
	to.Name = near
	if f.Fix = redirectPath(in, b, to); f.Fix != nil {
		f.Text = fmt.Sprintf("Lead to the service %s, if it is the one that is meant.", engine.QuoteCode(near))
	}
}

func explainNoPort(f *engine.Finding, in *networkingv1.Ingress, b backend, s *corev1.Service) {
	var has []string
	for _, p := range s.Spec.Ports {
		text := strconv.Itoa(int(p.Port))
		if p.Name != "" {
			text += " (" + p.Name + ")"
		}
		has = append(has, text)
	}
	f.Cause = fmt.Sprintf("The ingress leads to port %s of service %s, and the service has only %s: such a request is answered with an error (503).", engine.QuoteCode(portText(b.service.Port)), engine.QuoteCode(s.Name), engine.QuoteCodes(has))
	f.Text = "Choose one of the service's ports."
	if len(s.Spec.Ports) != 1 {
		return
	}
	to := *b.service
	to.Port = networkingv1.ServiceBackendPort{Number: s.Spec.Ports[0].Port}
	if f.Fix = redirectPath(in, b, to); f.Fix != nil {
		f.Text = fmt.Sprintf("Lead to port %d, the only one of the service.", s.Spec.Ports[0].Port)
	}
}

// ingressClass explains why no controller serves an ingress. An ingress with an address is served.
func (x *Index) ingressClass(in *networkingv1.Ingress) (engine.Finding, bool) {
	f := engine.Finding{Class: engine.IngressBackend, Object: ingressRef(in), Confidence: engine.High}
	if x.Unread["ingressclasses"] || len(in.Status.LoadBalancer.Ingress) > 0 {
		return f, false
	}
	var have []string
	byDefault := false
	for i := range x.IngressClasses {
		have = append(have, x.IngressClasses[i].Name)
		byDefault = byDefault || x.IngressClasses[i].Annotations[defaultIngressClass] == "true"
	}
	slices.Sort(have)
	f.Evidence = []string{"No controller has given the ingress an address.", "The cluster has no ingress class."}
	if len(have) > 0 {
		f.Evidence[1] = fmt.Sprintf("The ingress classes that exist are %s.", engine.QuoteCodes(have))
	}
	switch class := in.Spec.IngressClassName; {
	case class != nil && !slices.Contains(have, *class):
		f.Cause = fmt.Sprintf("The ingress class %s does not exist, so no controller serves the ingress.", engine.QuoteCode(*class))
	case class == nil && in.Annotations[oldIngressClass] == "" && !byDefault:
		f.Cause, f.Confidence = "The ingress names no class and none is the default, so most controllers leave it alone.", engine.Medium
	default:
		return f, false
	}
	f.Text = "Choose a class for the ingress; if there is none, install an ingress controller."
	if len(have) == 1 {
		if f.Fix = engine.NewPatch(f.Object, engine.Members{"spec": engine.Members{"ingressClassName": have[0]}}); f.Fix != nil {
			f.Text = fmt.Sprintf("Give the ingress the only class there is, %s.", engine.QuoteCode(have[0]))
		}
	}
	return f, true
}

// findAbsentCertificates explains TLSSecret: Secrets that an ingress names for its certificate and that do not exist or
// contain none.
func (x *Index) findAbsentCertificates(in *networkingv1.Ingress) []engine.Finding {
	if x.Unread["secrets"] {
		return nil
	}
	var found []engine.Finding
	for _, tls := range in.Spec.TLS {
		if tls.SecretName == "" {
			continue
		}
		f := engine.Finding{Class: engine.TLSSecret, Object: ingressRef(in), Confidence: engine.High}
		f.Evidence = []string{fmt.Sprintf("Its certificate is to come from the Secret %s.", engine.QuoteCode(tls.SecretName))}
		if len(tls.Hosts) > 0 {
			f.Evidence[0] = fmt.Sprintf("Its certificate for %s is to come from the Secret %s.", engine.QuoteCodes(tls.Hosts), engine.QuoteCode(tls.SecretName))
		}
		keys, exists := x.SecretKeys[engine.Name{Namespace: in.Namespace, Name: tls.SecretName}]
		var lacks []string
		for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
			if !slices.Contains(keys, key) {
				lacks = append(lacks, key)
			}
		}
		switch {
		case !exists:
			f.Cause = fmt.Sprintf("The Secret %s with the ingress's certificate does not exist: clients see another certificate, or an error.", engine.QuoteCode(tls.SecretName))
			f.Text = "Create the Secret yourself with certificate and key: no secret value passes through here."
			if issuer := issuerOf(in); issuer != "" {
				f.Evidence = append(f.Evidence, fmt.Sprintf("The issuer %s is to make it.", engine.QuoteCode(issuer)))
				f.Confidence = engine.Medium
				f.Text = "Look what the Certificate and its requests in the namespace say: their issuer has not made the Secret."
			}
		case len(lacks) > 0:
			f.Cause = fmt.Sprintf("The Secret %s does not hold a certificate and its key: it lacks %s.", engine.QuoteCode(tls.SecretName), engine.QuoteCodes(lacks))
			f.Text = "Create the Secret anew, of type kubernetes.io/tls."
		default:
			continue
		}
		x.FollowCertificate(&f, in.Namespace, tls.SecretName)
		found = append(found, f)
	}
	return found
}

// issuerOf names the issuer of an ingress's certificate, if there is one.
func issuerOf(in *networkingv1.Ingress) string {
	for _, key := range []string{"cert-manager.io/cluster-issuer", "cert-manager.io/issuer"} {
		if v := in.Annotations[key]; v != "" {
			return v
		}
	}
	return ""
}
