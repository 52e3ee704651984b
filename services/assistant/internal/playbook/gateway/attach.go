package gateway

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// The stages in which a listener is judged, in order. The listener that fails at the latest stage gives the
// explanation.
const (
	stageName = iota
	stageKind
	stageNamespace
	stageHost
)

// refusal is the reason why a listener does not accept a route.
type refusal struct {
	stage         int
	what, because string // a clause, and the field that says so
	help          string
}

// judgeParent explains why no listener of a gateway accepts a route, from the requirements of both sides; taken reports
// that one does.
func (x *Index) judgeParent(r *gatewayapi.Route, p gatewayapi.ParentRef, g *gatewayapi.Gateway) (worst refusal, all []string, taken bool) {
	listeners, missing := chooseListeners(g, p)
	if missing != "" {
		return refusal{stage: stageName, what: missing, help: fmt.Sprintf("Name one of the listeners of gateway %s, or leave out `sectionName` and `port`: then all of them are tried.", engine.QuoteCode(g.Name))}, nil, false
	}
	if slices.ContainsFunc(listeners, func(l *gatewayapi.Listener) bool { return x.acceptsRoute(r, g, l) }) {
		return refusal{}, nil, true
	}
	for _, l := range listeners {
		refused := x.judgeListener(r, g, l)
		all = append(all, fmt.Sprintf("Listener %s of gateway %s: %s.", engine.QuoteCode(l.Name), engine.QuoteCode(g.Name), refused.because))
		if refused.stage > worst.stage {
			worst = refused
		}
	}
	return worst, all, false
}

// chooseListeners returns the listeners that a parentRef selects; if there are none, missing is a clause that explains
// it.
func chooseListeners(g *gatewayapi.Gateway, p gatewayapi.ParentRef) (found []*gatewayapi.Listener, missing string) {
	for i := range g.Spec.Listeners {
		l := &g.Spec.Listeners[i]
		if (p.SectionName == nil || *p.SectionName == l.Name) && (p.Port == nil || *p.Port == l.Port) {
			found = append(found, l)
		}
	}
	if len(found) > 0 {
		return found, ""
	}
	if len(g.Spec.Listeners) == 0 {
		return nil, fmt.Sprintf("gateway %s has no listeners", engine.QuoteCode(g.Name))
	}
	var have, wants []string
	for _, l := range g.Spec.Listeners {
		have = append(have, fmt.Sprintf("%s (port %d)", engine.QuoteCode(l.Name), l.Port))
	}
	if p.SectionName != nil {
		wants = append(wants, "with the name "+engine.QuoteCode(*p.SectionName))
	}
	if p.Port != nil {
		wants = append(wants, fmt.Sprintf("on port %d", *p.Port))
	}
	return nil, fmt.Sprintf("gateway %s has no listener %s; it has %s", engine.QuoteCode(g.Name), strings.Join(wants, " "), strings.Join(have, ", "))
}

// acceptsRoute reports whether a listener accepts a route.
func (x *Index) acceptsRoute(r *gatewayapi.Route, g *gatewayapi.Gateway, l *gatewayapi.Listener) bool {
	return l.TakesKind(r.Kind) && !x.refusesNamespace(r, g, l) && servesAny(l, r.Spec.Hostnames)
}

// refusesNamespace reports whether a listener rejects routes of a route's namespace. If the rule cannot be evaluated it
// returns false.
func (x *Index) refusesNamespace(r *gatewayapi.Route, g *gatewayapi.Gateway, l *gatewayapi.Listener) bool {
	switch from, selector := l.NamespacesFrom(); from {
	case "Same":
		return r.Namespace != g.Namespace
	case "None":
		return true
	case "Selector":
		if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
			return false // how the controller interprets it is unknown
		}
		space := x.Spaces()[r.Namespace]
		return space != nil && selector != nil && !gatewayapi.Selects(selector, space.Labels)
	}
	return false
}

// judgeListener explains why a listener does not accept a route, in the order in which controllers check: kind,
// namespace, host.
func (x *Index) judgeListener(r *gatewayapi.Route, g *gatewayapi.Gateway, l *gatewayapi.Listener) refusal {
	if !l.TakesKind(r.Kind) {
		return refusal{stage: stageKind,
			what:    fmt.Sprintf("listener %s takes no %s", engine.QuoteCode(l.Name), r.Kind),
			because: kindsText(l),
			help:    fmt.Sprintf("Add %s to the listener's `allowedRoutes.kinds` if its protocol can carry it, or attach the route to another listener.", engine.QuoteCode(r.Kind))}
	}
	if x.refusesNamespace(r, g, l) {
		return x.explainNamespace(r, g, l)
	}
	return refusal{stage: stageHost,
		what:    fmt.Sprintf("listener %s serves %s, and the route is for %s", engine.QuoteCode(l.Name), engine.QuoteCode(l.Hostname), engine.QuoteCodes(r.Spec.Hostnames)),
		because: fmt.Sprintf("its `hostname` is %s, and the route's `spec.hostnames` are %s", engine.QuoteCode(l.Hostname), engine.QuoteCodes(r.Spec.Hostnames)),
		help:    "Let the route have a host of the listener, or add a listener for its host."}
}

// servesAny reports whether a listener serves one of the hosts of a route; a route without hosts takes those of the
// listener.
func servesAny(l *gatewayapi.Listener, hosts []string) bool {
	return l.Hostname == "" || len(hosts) == 0 || slices.ContainsFunc(hosts, func(h string) bool { return gatewayapi.Intersects(h, l.Hostname) })
}

func kindsText(l *gatewayapi.Listener) string {
	if l.AllowedRoutes == nil || len(l.AllowedRoutes.Kinds) == 0 {
		return fmt.Sprintf("its `protocol` is %s", engine.QuoteCode(l.Protocol))
	}
	var kinds []string
	for _, k := range l.AllowedRoutes.Kinds {
		kinds = append(kinds, k.Kind)
	}
	return fmt.Sprintf("its `allowedRoutes.kinds` are %s", engine.QuoteCodes(kinds))
}

// explainNamespace explains why a listener rejects routes of a namespace.
func (x *Index) explainNamespace(r *gatewayapi.Route, g *gatewayapi.Gateway, l *gatewayapi.Listener) refusal {
	from, selector := l.NamespacesFrom()
	refused := refusal{stage: stageNamespace, because: fmt.Sprintf("its `allowedRoutes.namespaces.from` is %s", engine.QuoteCode(from))}
	switch from {
	case "Same":
		refused.what = fmt.Sprintf("listener %s accepts routes only from its namespace %s, and the route is in namespace %s", engine.QuoteCode(l.Name), engine.QuoteCode(g.Namespace), engine.QuoteCode(r.Namespace))
		refused.help = fmt.Sprintf("Set the listener's `allowedRoutes.namespaces.from` to `All`, or to `Selector` with a label of namespace %s; or attach the route to a gateway in the route's namespace.", engine.QuoteCode(r.Namespace))
	case "None":
		refused.what = fmt.Sprintf("listener %s accepts routes from no namespace", engine.QuoteCode(l.Name))
		refused.help = "Set the listener's `allowedRoutes.namespaces.from` to `Same`, `Selector` or `All`, or attach the route to another listener."
	case "Selector":
		wants := engine.QuoteCode(selectorText(selector.MatchLabels, len(selector.MatchExpressions)))
		refused.because += fmt.Sprintf(" with the selector %s, and namespace %s has %s", wants, engine.QuoteCode(r.Namespace), labelsText(x.Spaces()[r.Namespace].Labels))
		refused.what = fmt.Sprintf("listener %s accepts routes only from namespaces labelled %s, and namespace %s lacks that label", engine.QuoteCode(l.Name), wants, engine.QuoteCode(r.Namespace))
		refused.help = fmt.Sprintf("Give namespace %s the labels that the listener wants, if it may use the gateway, or let the selector choose it.", engine.QuoteCode(r.Namespace))
	}
	return refused
}

func labelsText(have map[string]string) string {
	if len(have) == 0 {
		return "no labels"
	}
	return "the labels " + engine.QuoteCode(labels.Set(have).String())
}

func selectorText(match map[string]string, expressions int) string {
	text := labels.Set(match).String()
	if expressions > 0 {
		text = strings.TrimPrefix(text+fmt.Sprintf(" and %s", engine.CountNoun(expressions, "expression", "expressions")), " and ")
	}
	return text
}
