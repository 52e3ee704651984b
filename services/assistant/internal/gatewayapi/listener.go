package gatewayapi

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// kindsOf maps protocols to the kinds of routes that controllers accept if a listener names none.
var kindsOf = map[string][]string{
	"HTTP": {"HTTPRoute", "GRPCRoute"}, "HTTPS": {"HTTPRoute", "GRPCRoute"}, "TLS": {"TLSRoute", "TCPRoute"}, "TCP": {"TCPRoute"}, "UDP": {"UDPRoute"},
}

// TakesKind reports whether a listener accepts a kind of route. A listener with an implementation-specific protocol may
// accept any.
func (l *Listener) TakesKind(kind string) bool {
	if l.AllowedRoutes != nil && len(l.AllowedRoutes.Kinds) > 0 {
		return slices.ContainsFunc(l.AllowedRoutes.Kinds, func(k RouteKind) bool { return valueOr(k.Group, Group) == Group && k.Kind == kind })
	}
	all, known := kindsOf[l.Protocol]
	return !known || slices.Contains(all, kind)
}

// NamespacesFrom returns the field from of a listener, which restricts the namespaces of its routes, and the namespace
// selector.
func (l *Listener) NamespacesFrom() (from string, selector *metav1.LabelSelector) {
	if l.AllowedRoutes == nil || l.AllowedRoutes.Namespaces == nil || l.AllowedRoutes.Namespaces.From == "" {
		return "Same", nil
	}
	return l.AllowedRoutes.Namespaces.From, l.AllowedRoutes.Namespaces.Selector
}

// Selects reports whether a namespace selector matches these labels.
func Selects(selector *metav1.LabelSelector, have map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(have))
}

// FindCondition returns the condition of a type, or nil.
func FindCondition(all []metav1.Condition, kind string) *metav1.Condition {
	for i := range all {
		if all[i].Type == kind {
			return &all[i]
		}
	}
	return nil
}
