package investigate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	netv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
)

// gatewayWords are words for kinds of the Gateway API and cert-manager that people also use as names. They mean all
// objects of the kind if no object has that name; only the cluster can decide.
var gatewayWords = map[string]func(kind string) bool{
	"gateway": isGateway, "gateways": isGateway, "route": isRoute, "routes": isRoute,
	"httproute": isRoute, "grpcroute": isRoute, "tlsroute": isRoute,
	"gatewayclass": func(kind string) bool { return kind == "GatewayClass" },
	"issuer":       isIssuer, "issuers": isIssuer,
}

func isGateway(kind string) bool { return kind == "Gateway" }
func isIssuer(kind string) bool  { return kind == "Issuer" || kind == "ClusterIssuer" }
func isRoute(kind string) bool   { return strings.HasSuffix(kind, "Route") }

// asksState are the intents that ask about the state of named objects.
var asksState = map[question.Intent]bool{question.Diagnosis: true, question.Health: true, question.Unclear: true}

// errorWords are error messages of proxies, which name no gateway of the cluster.
var errorWords = []string{"bad gateway", "gateway time", "gateway error"}

// findByWord treats a word for a kind of the Gateway API as all objects of that kind: those of the place, else the
// gateways that its routes are attached to. It reports whether there are any.
func (t *topic) findByWord(a question.Ask, word string) bool {
	is := gatewayWords[word]
	if is == nil || slices.ContainsFunc(errorWords, func(e string) bool { return strings.Contains(a.Words, e) }) {
		return false
	}
	if slices.ContainsFunc(t.objects, func(r operation.Ref) bool { return is(r.Kind) }) {
		return true // the kind of a named object
	}
	var here, attached []operation.Ref
	for _, o := range nameableObjects(t.snap) {
		if is(o.ref.Kind) && withinNamespace(o.ref, t.namespace) {
			here = append(here, o.ref)
		}
	}
	for i := range t.snap.Routes {
		r := &t.snap.Routes[i]
		for _, p := range r.Spec.ParentRefs {
			if is("Gateway") && r.Namespace == t.namespace && p.IsGateway() {
				attached = append(attached, operation.Ref{Group: gatewayapi.Group, Version: "v1", Kind: "Gateway", Namespace: p.NamespaceFrom(r.Namespace), Name: p.Name})
			}
		}
	}
	if len(here) == 0 {
		here = slices.DeleteFunc(attached, func(r operation.Ref) bool { return findGateway(t.snap, r) == nil })
	}
	t.add(here)
	return len(here) > 0
}

// hasKindCalled reports whether a word means a kind of the Gateway API that has objects.
func hasKindCalled(s *engine.Snapshot, word string) bool {
	is := gatewayWords[word]
	return is != nil && slices.ContainsFunc(nameableObjects(s), func(o thing) bool { return is(o.ref.Kind) })
}

// hostsNamed returns the Service that pods call by a host, else the ingresses and routes with the best matching rule,
// else the gateways with the best matching listeners: an exact host before a wildcard, and a long wildcard before a
// short one.
func hostsNamed(s *engine.Snapshot, host string) []operation.Ref {
	if !strings.Contains(host, ".") {
		return nil
	}
	name, rest, _ := strings.Cut(host, ".")
	namespace, domain, _ := strings.Cut(rest, ".")
	for i := range s.Services {
		if v := &s.Services[i]; v.Name == name && v.Namespace == namespace && (domain == "" || domain == "svc" || domain == "svc.cluster.local") {
			return []operation.Ref{engine.ServiceRef(v)}
		}
	}
	var rules, listeners bestFit
	for i := range s.Ingresses {
		in := &s.Ingresses[i]
		ref := operation.Ref{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress", Namespace: in.Namespace, Name: in.Name}
		for _, r := range in.Spec.Rules {
			// The wildcard of an Ingress matches exactly one label, that of the Gateway API one or more.
			if strings.Count(r.Host, ".") == strings.Count(host, ".") {
				rules.add(ref, r.Host, host)
			}
		}
	}
	for i := range s.Routes {
		r := &s.Routes[i]
		for _, pattern := range r.Spec.Hostnames {
			rules.add(operation.Ref{Group: gatewayapi.Group, Version: "v1", Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}, pattern, host)
		}
	}
	for i := range s.Gateways {
		g := &s.Gateways[i]
		for _, l := range g.Spec.Listeners {
			listeners.add(engine.GatewayRef(g), l.Hostname, host)
		}
	}
	if len(rules.refs) > 0 {
		return rules.refs
	}
	return listeners.refs
}

// bestFit collects the objects whose patterns match a host best.
type bestFit struct {
	refs   []operation.Ref
	length int // of their patterns
}

// add adds an object if its pattern matches the host and no other matches better. An empty pattern matches every host
// but names none.
func (b *bestFit) add(ref operation.Ref, pattern, host string) {
	if pattern == "" || !gatewayapi.MatchesHost(pattern, host) {
		return
	}
	if length := len(strings.TrimPrefix(pattern, "*")); length > b.length {
		b.refs, b.length = nil, length
	} else if length < b.length {
		return
	}
	if !slices.Contains(b.refs, ref) {
		b.refs = append(b.refs, ref)
	}
}

// hostExpr matches a name that looks like a host outside the cluster; file names match, too.
var hostExpr = regexp.MustCompile(`^([a-z0-9-]+\.)+[a-z]{2,}$`)

// lacksHost reports whether a name is a host that the cluster should serve but does not. A third party's host, such as
// a cloud's, is no mistake, so the name must be a neighbour of a host that is served.
func (t *topic) lacksHost(name string, served []string) bool {
	switch {
	case !hostExpr.MatchString(name), strings.HasSuffix(name, ".svc"), strings.HasSuffix(name, ".cluster.local"):
		return false
	case len(served) == 0, t.namespace != "", t.snap.Within != "", servesAllHosts(t.snap):
		return false
	}
	for _, kind := range []string{"ingresses", "gateways", "httproutes", "grpcroutes", "tlsroutes"} {
		if t.snap.Unread[kind] {
			return false
		}
	}
	return slices.ContainsFunc(served, func(s string) bool { return areNeighbours(name, s) })
}

// areNeighbours reports whether two hosts share a parent domain, or one is the parent of the other. Top-level domains
// do not count.
func areNeighbours(a, b string) bool {
	b = strings.ToLower(strings.TrimPrefix(b, "*."))
	_, parent, _ := strings.Cut(a, ".")
	_, other, _ := strings.Cut(b, ".")
	isIn := func(host, domain string) bool {
		return strings.Contains(domain, ".") && (host == domain || strings.HasSuffix(host, "."+domain))
	}
	return isIn(a, b) || isIn(a, other) || isIn(b, parent)
}

// servesAllHosts reports whether an ingress or route accepts requests for every host.
func servesAllHosts(s *engine.Snapshot) bool {
	for i := range s.Ingresses {
		spec := &s.Ingresses[i].Spec
		if spec.DefaultBackend != nil || slices.ContainsFunc(spec.Rules, func(r netv1.IngressRule) bool { return r.Host == "" }) {
			return true
		}
	}
	for i := range s.Routes {
		r := &s.Routes[i]
		if len(r.Spec.Hostnames) > 0 {
			continue
		}
		for _, p := range r.Spec.ParentRefs {
			g := findGateway(s, operation.Ref{Namespace: p.NamespaceFrom(r.Namespace), Name: p.Name})
			if p.IsGateway() && g != nil && slices.ContainsFunc(g.Spec.Listeners, func(l gatewayapi.Listener) bool { return l.Hostname == "" }) {
				return true
			}
		}
	}
	return false
}

// servedHosts returns the hosts of ingresses, routes and listeners, by name.
func servedHosts(s *engine.Snapshot) []string {
	var all []string
	for i := range s.Ingresses {
		for _, r := range s.Ingresses[i].Spec.Rules {
			all = append(all, r.Host)
		}
	}
	for i := range s.Routes {
		all = append(all, s.Routes[i].Spec.Hostnames...)
	}
	for i := range s.Gateways {
		for _, l := range s.Gateways[i].Spec.Listeners {
			all = append(all, l.Hostname)
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(host string) bool { return host == "" })
}

func findGateway(s *engine.Snapshot, r operation.Ref) *gatewayapi.Gateway {
	for i := range s.Gateways {
		if g := &s.Gateways[i]; g.Name == r.Name && g.Namespace == r.Namespace {
			return g
		}
	}
	return nil
}

// describeGateway describes where a gateway listens, and how many routes its controller has attached.
func describeGateway(s *engine.Snapshot, r operation.Ref, head string) string {
	g := findGateway(s, r)
	if g == nil {
		return ""
	}
	address := "no address"
	if len(g.Status.Addresses) > 0 {
		address = "the address " + report.Code(g.Status.Addresses[0].Value)
	}
	var listeners []string
	for _, l := range g.Spec.Listeners {
		text := fmt.Sprintf("%s (%s, port %d", report.Code(l.Name), report.Code(l.Protocol), l.Port)
		if l.Hostname != "" {
			text += ", host " + report.Code(l.Hostname)
		}
		if at := slices.IndexFunc(g.Status.Listeners, func(s gatewayapi.ListenerStatus) bool { return s.Name == l.Name }); at >= 0 {
			text += ", " + engine.CountNoun(int(g.Status.Listeners[at].AttachedRoutes), "attached route", "attached routes")
		}
		listeners = append(listeners, text+")")
	}
	return fmt.Sprintf("%s has the class %s, %s, and the listeners %s.", head, report.Code(g.Spec.GatewayClassName), address, strings.Join(listeners, ", "))
}

// describeRoute describes the hosts and backends of a route, where it is attached, and whether its controllers accept
// it.
func describeRoute(s *engine.Snapshot, r operation.Ref, head string) string {
	for i := range s.Routes {
		route := &s.Routes[i]
		if route.Name != r.Name || route.Namespace != r.Namespace || route.Kind != r.Kind {
			continue
		}
		hosts := "the hosts of its listeners"
		if len(route.Spec.Hostnames) > 0 {
			hosts = engine.QuoteCodes(route.Spec.Hostnames)
		}
		var parents []string
		for _, p := range route.Spec.ParentRefs {
			if !p.IsGateway() {
				continue
			}
			state := "not accepted yet"
			said, disputed := route.StatusAt(p, controllerAt(s, route, p))
			if c := gatewayapi.FindCondition(said.Conditions, "Accepted"); c != nil && c.Status != metav1.ConditionUnknown {
				state = map[metav1.ConditionStatus]string{metav1.ConditionTrue: "accepted", metav1.ConditionFalse: "not accepted"}[c.Status]
			}
			if disputed {
				state = "its controllers contradict each other"
			}
			parents = append(parents, fmt.Sprintf("%s in namespace %s (%s)", report.Code(p.Name), report.Code(p.NamespaceFrom(route.Namespace)), state))
		}
		if len(parents) == 0 {
			return fmt.Sprintf("%s is for %s.", head, hosts)
		}
		return fmt.Sprintf("%s is for %s, at gateway %s.", head, hosts, strings.Join(parents, ", "))
	}
	return ""
}

// controllerAt returns the controller of a route's gateway, as its class names it; empty if unknown.
func controllerAt(s *engine.Snapshot, r *gatewayapi.Route, p gatewayapi.ParentRef) string {
	g := findGateway(s, operation.Ref{Namespace: p.NamespaceFrom(r.Namespace), Name: p.Name})
	if g == nil {
		return ""
	}
	for i := range s.GatewayClasses {
		if class := &s.GatewayClasses[i]; class.Name == g.Spec.GatewayClassName {
			return class.Spec.ControllerName
		}
	}
	return ""
}

// describeClass names the controller that serves the gateways of a class.
func describeClass(s *engine.Snapshot, r operation.Ref, head string) string {
	for i := range s.GatewayClasses {
		if class := &s.GatewayClasses[i]; class.Name == r.Name {
			n := 0
			for j := range s.Gateways {
				if s.Gateways[j].Spec.GatewayClassName == class.Name {
					n++
				}
			}
			return fmt.Sprintf("%s is of the controller %s and has %s.", head, report.Code(class.Spec.ControllerName), engine.CountNoun(n, "gateway", "gateways"))
		}
	}
	return ""
}

// gateways joins routes with the services they lead to and the gateways they are attached to; a gateway that was asked
// about also with its class, its routes and its certificates, and a class with its gateways. The backends of a
// gateway's routes are unrelated to the gateway.
func (r *relations) gateways(asked []operation.Ref) {
	isAsked := func(kind, namespace, name string) bool {
		return slices.ContainsFunc(asked, func(o operation.Ref) bool {
			return o.Kind == kind && o.Namespace == namespace && o.Name == name
		})
	}
	for i := range r.Routes {
		route := &r.Routes[i]
		near := r.has(route.Kind, route.Namespace, route.Name)
		for _, rule := range route.Spec.Rules {
			for _, b := range rule.BackendRefs {
				if !b.IsKind("Service", "Service") {
					continue
				}
				namespace := b.NamespaceFrom(route.Namespace)
				if near {
					r.put("Service", namespace, b.Name)
				} else if r.has("Service", namespace, b.Name) {
					r.put(route.Kind, route.Namespace, route.Name)
				}
			}
		}
	}
	for i := range r.Routes {
		route := &r.Routes[i]
		for _, p := range route.Spec.ParentRefs {
			if !p.IsGateway() {
				continue
			}
			namespace := p.NamespaceFrom(route.Namespace)
			if r.has(route.Kind, route.Namespace, route.Name) {
				r.put("Gateway", namespace, p.Name)
			}
			if isAsked("Gateway", namespace, p.Name) {
				r.put(route.Kind, route.Namespace, route.Name)
			}
		}
	}
	for i := range r.Gateways {
		g := &r.Gateways[i]
		if isAsked("GatewayClass", "", g.Spec.GatewayClassName) {
			r.put("Gateway", g.Namespace, g.Name)
		}
		if !r.has("Gateway", g.Namespace, g.Name) {
			continue
		}
		r.put("GatewayClass", "", g.Spec.GatewayClassName)
		for _, l := range g.Spec.Listeners {
			if l.TLS == nil {
				continue
			}
			for _, ref := range l.TLS.CertificateRefs {
				r.put("Secret", ref.NamespaceFrom(g.Namespace), ref.Name)
			}
		}
	}
}
