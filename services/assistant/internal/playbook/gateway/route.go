package gateway

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// checkRoutes explains RouteBackend: routes that no listener accepts, and routes without a working backend.
func checkRoutes(x *Index) []engine.Finding {
	var found []engine.Finding
	for i := range x.Routes {
		r := &x.Routes[i]
		if r.DeletionTimestamp != nil {
			continue
		}
		if len(r.Spec.ParentRefs) == 0 {
			f := newFinding(r)
			f.Cause, f.Confidence = "The route names no gateway, so nothing serves it.", engine.Medium
			f.Evidence = []string{"Its `spec.parentRefs` is empty."}
			f.Text = "Choose the gateway that should serve it."
			found = append(found, f)
		}
		for at, p := range r.Spec.ParentRefs {
			if p.IsGateway() {
				found = append(found, x.checkParent(r, at, p)...)
			}
		}
		found = append(found, x.findUnservedHosts(r)...)
		found = append(found, x.checkBackends(r)...)
		found = append(found, x.checkIntent(r)...)
	}
	return found
}

func newFinding(r *gatewayapi.Route) engine.Finding {
	return engine.Finding{Class: engine.RouteBackend, Object: routeRef(r), Confidence: engine.High}
}

// reasons explains the reasons in the conditions of routes.
var reasons = map[string]string{
	"NotAllowedByListeners":      "no listener of the gateway lets it in, by its kind or by its namespace (`allowedRoutes`)",
	"NoMatchingListenerHostname": "none of its hosts is one of a listener",
	"NoMatchingParent":           "no listener has the name or port that it names",
	"UnsupportedValue":           "it has a value that the controller does not support",
	"UnsupportedProtocol":        "a listener has a protocol that the controller does not support",
	"IncompatibleFilters":        "its filters exclude each other",
	"BackendNotFound":            "a backend that it leads to does not exist",
	"RefNotPermitted":            "it refers to another namespace, and no ReferenceGrant there allows that",
	"InvalidKind":                "it refers to an object of a kind that the controller does not know",
	"Pending":                    "the controller has not reached it yet",
}

func explainReason(c *metav1.Condition) string {
	if text := reasons[c.Reason]; text != "" {
		return engine.QuoteCode(c.Reason) + ", that is, " + text
	}
	return engine.QuoteCode(c.Reason)
}

// checkParent judges a route at one gateway: by the requirements of both, and by the controller's report.
func (x *Index) checkParent(r *gatewayapi.Route, at int, p gatewayapi.ParentRef) []engine.Finding {
	f := newFinding(r)
	where := fmt.Sprintf("`spec.parentRefs[%d]` names gateway %s in namespace %s", at, engine.QuoteCode(p.Name), engine.QuoteCode(p.NamespaceFrom(r.Namespace)))
	if p.SectionName != nil {
		where += ", and there listener " + engine.QuoteCode(*p.SectionName)
	}
	if p.Port != nil {
		where += fmt.Sprintf(", and there port %d", *p.Port)
	}
	f.Evidence = []string{where + "."}
	said := x.statusAt(r, p)
	g := x.gatewayOf(r, p)
	if g == nil && x.knows("gateways") {
		x.explainNoGateway(&f, r, at, p)
		return []engine.Finding{f}
	}
	accepted := said.condition("Accepted")
	if g != nil && !(accepted != nil && accepted.Status == metav1.ConditionTrue && isCurrent(accepted, r.Generation)) {
		if worst, all, taken := x.judgeParent(r, p, g); !taken {
			f.Cause = fmt.Sprintf("The route is not attached: %s.", worst.what)
			f.Evidence, f.Text = append(f.Evidence, all...), worst.help
			f.Evidence = append(f.Evidence, said.text(r, accepted))
			if isTrue(accepted) { // and stale: a controller, which may know more than these rules, accepted it earlier
				f.Confidence = engine.Medium
				addStale(&f, accepted, r.Generation)
			}
			return []engine.Finding{f}
		}
	}
	switch {
	case isBad(accepted):
		f.Cause = fmt.Sprintf("The controller %s does not accept the route at gateway %s: %s.", engine.QuoteCode(said.ControllerName), engine.QuoteCode(p.Name), explainReason(accepted))
		f.Evidence = append(f.Evidence, said.text(r, accepted))
		f.Text = fmt.Sprintf("Compare the route's `spec` with the listeners of gateway %s.", engine.QuoteCode(p.Name))
		if g != nil { // the server has validated its name, so it can be used in a command
			f.Text = fmt.Sprintf("Compare the route's `spec` with the listeners of gateway %s: `kubectl describe gateway %s -n %s`.", engine.QuoteCode(g.Name), g.Name, g.Namespace)
		}
		addStale(&f, accepted, r.Generation)
		said.addDispute(&f)
	case g == nil:
		return nil
	case accepted == nil || accepted.Status == metav1.ConditionUnknown:
		f.Evidence = append(f.Evidence, said.text(r, accepted))
		f.Cause = fmt.Sprintf("No controller has processed the route: none has written a status for it at gateway %s. The controller may not be running, may not watch namespace %s, or has not reached it yet.", engine.QuoteCode(p.Name), engine.QuoteCode(r.Namespace))
		f.Text = fmt.Sprintf("Look whether the controller of gateway %s runs, and what its log says of the route.", engine.QuoteCode(p.Name))
		if class := x.classes[g.Spec.GatewayClassName]; class != nil {
			f.Text = fmt.Sprintf("Look whether the controller %s of gateway class %s runs, and what its log says of the route.", engine.QuoteCode(class.Spec.ControllerName), engine.QuoteCode(class.Name))
		}
		f.Confidence = engine.Medium
		if !x.isServed(g) { // then the gateway has a finding, and this one follows from it
			f.Because = []operation.Ref{engine.GatewayRef(g), classRef(g.Spec.GatewayClassName)}
		}
	default:
		// The gateway's own fault is reported there, and this as a consequence.
		f.Follower, f.Because = true, []operation.Ref{engine.GatewayRef(g), classRef(g.Spec.GatewayClassName)}
		f.Cause = fmt.Sprintf("It is attached to gateway %s.", engine.QuoteCode(g.Name))
	}
	return []engine.Finding{f}
}

// parentStatus is the status that controllers report for a route at one parent; the zero value means none.
type parentStatus struct {
	gatewayapi.ParentStatus
	disputed bool // several controllers contradict each other
}

func (x *Index) statusAt(r *gatewayapi.Route, p gatewayapi.ParentRef) parentStatus {
	controller := ""
	if g := x.gatewayOf(r, p); g != nil {
		if class := x.classes[g.Spec.GatewayClassName]; class != nil {
			controller = class.Spec.ControllerName
		}
	}
	said, disputed := r.StatusAt(p, controller)
	return parentStatus{said, disputed}
}

// addDispute notes that another controller contradicts this one: which of them serves the gateway is unknown.
func (s parentStatus) addDispute(f *engine.Finding) {
	if s.disputed {
		f.Confidence = engine.Medium
		f.Evidence = append(f.Evidence, "Several controllers have written into its `status.parents` for this gateway, and they contradict each other; which of them serves the gateway is not known.")
	}
}

func (s parentStatus) condition(kind string) *metav1.Condition {
	return gatewayapi.FindCondition(s.Conditions, kind)
}

// text quotes a condition, or notes that there is none.
func (s parentStatus) text(r *gatewayapi.Route, c *metav1.Condition) string {
	switch {
	case c != nil:
		return fmt.Sprintf("Its controller %s says: %s.", engine.QuoteCode(s.ControllerName), quoteCondition(c))
	case len(r.Status.Parents) == 0:
		return "Its `status.parents` is empty: no controller has looked at it."
	}
	return "Its `status.parents` says nothing of this gateway: no controller has looked at it there."
}

// explainNoGateway explains that a gateway does not exist, and suggests the one that may be meant: one of the same name
// in another namespace, or one with a similar name.
func (x *Index) explainNoGateway(f *engine.Finding, r *gatewayapi.Route, at int, p gatewayapi.ParentRef) {
	namespace := p.NamespaceFrom(r.Namespace)
	f.Cause = fmt.Sprintf("The gateway %s that the route is to be attached to does not exist in namespace %s, so nothing serves the route.", engine.QuoteCode(p.Name), engine.QuoteCode(namespace))
	f.Text = "Create the gateway, or name the right one."
	var elsewhere, here []string
	for i := range x.Gateways {
		g := &x.Gateways[i]
		if g.Name == p.Name {
			elsewhere = append(elsewhere, g.Namespace)
		}
		if g.Namespace == namespace {
			here = append(here, g.Name)
		}
	}
	slices.Sort(elsewhere)
	to := p
	near, ok := engine.NearestName(p.Name, here)
	switch {
	case len(elsewhere) == 1:
		f.Cause += fmt.Sprintf(" Namespace %s has a gateway of that name.", engine.QuoteCode(elsewhere[0]))
		to.Namespace = &elsewhere[0]
		f.Text = fmt.Sprintf("Let the reference name namespace %s, if its gateway is the one that is meant.", engine.QuoteCode(elsewhere[0]))
	case len(elsewhere) > 1:
		f.Cause += fmt.Sprintf(" Namespaces %s have a gateway of that name.", engine.QuoteCodes(elsewhere))
		f.Text = "Choose one of them."
		return
	case ok:
		f.Cause += fmt.Sprintf(" The gateway %s is the nearest.", engine.QuoteCode(near))
		to.Name = near
		f.Text = fmt.Sprintf("Attach it to gateway %s, if it is the one that is meant.", engine.QuoteCode(near))
	default:
		return
	}
	parents := slices.Clone(r.Spec.ParentRefs) // a list of custom resources has no merge key, so the patch repeats all entries
	parents[at] = to
	f.Fix = engine.NewPatch(f.Object, engine.Members{"spec": engine.Members{"parentRefs": parents}})
}

// findUnservedHosts explains hosts of a route that none of its listeners serves, while others are served: the route's
// status does not report these.
func (x *Index) findUnservedHosts(r *gatewayapi.Route) []engine.Finding {
	var served []string
	for _, p := range r.Spec.ParentRefs {
		g := x.gatewayOf(r, p)
		if g == nil {
			return nil
		}
		listeners, _ := chooseListeners(g, p)
		for _, l := range listeners {
			if x.acceptsRoute(r, g, l) {
				served = append(served, l.Hostname)
			}
		}
	}
	if len(served) == 0 {
		return nil // it is attached nowhere, which has a separate finding
	}
	var left []string
	for _, host := range r.Spec.Hostnames {
		if !slices.ContainsFunc(served, func(pattern string) bool { return gatewayapi.Intersects(pattern, host) || pattern == "" }) {
			left = append(left, host)
		}
	}
	if len(left) == 0 {
		return nil
	}
	f := newFinding(r)
	f.Confidence = engine.Medium // another listener may be about to be added
	f.Cause = fmt.Sprintf("No listener that the route is attached to serves %s, so requests for it get an error (404) or no connection.", engine.QuoteCodes(left))
	f.Evidence = []string{fmt.Sprintf("Its `spec.hostnames` are %s; the listeners that take it serve %s.", engine.QuoteCodes(r.Spec.Hostnames), engine.QuoteCodes(served))}
	f.Text = "Add a listener for that host, or correct the host."
	return []engine.Finding{f}
}

// controllerOf names the controller of a gateway's class, for a sentence.
func (x *Index) controllerOf(g *gatewayapi.Gateway) string {
	if class := x.classes[g.Spec.GatewayClassName]; class != nil {
		return engine.QuoteCode(class.Spec.ControllerName)
	}
	return "of class " + engine.QuoteCode(cmp.Or(g.Spec.GatewayClassName, "(none)"))
}
