// Package gateway explains what is wrong with gateways, their classes and the routes of the Gateway API.
package gateway

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// Index finds the objects of a snapshot.
type Index struct {
	*engine.Index

	gateways map[engine.Name]*gatewayapi.Gateway
	classes  map[string]*gatewayapi.GatewayClass
	ready    func() map[engine.Name]int

	routeNamespaces func() map[*gatewayapi.Gateway][]string
}

// New returns the index of this package over x, for one diagnosis.
func New(x *engine.Index) *Index {
	own := &Index{Index: x, gateways: map[engine.Name]*gatewayapi.Gateway{}, classes: map[string]*gatewayapi.GatewayClass{}}
	for i := range x.Gateways {
		own.gateways[engine.NameOf(&x.Gateways[i])] = &x.Gateways[i]
	}
	for i := range x.GatewayClasses {
		own.classes[x.GatewayClasses[i].Name] = &x.GatewayClasses[i]
	}
	own.ready = sync.OnceValue(func() map[engine.Name]int { return engine.ReadyEndpoints(x.EndpointSlices) })
	own.routeNamespaces = sync.OnceValue(own.mapRouteNamespaces)
	return own
}

// Checks returns the checks of this package.
func (x *Index) Checks() engine.Checks {
	return engine.Checks{Objects: engine.BindObjectChecks(x, checkClasses, checkGateways, checkRoutes)}
}

// knows reports whether an object of a kind, plural, that is not in the snapshot is absent from the cluster.
func (x *Index) knows(kind string) bool {
	return !x.Unread[kind] && (x.GatewayKinds == nil || x.GatewayKinds[kind])
}

func classRef(name string) operation.Ref {
	return operation.Ref{Group: gatewayapi.Group, Version: "v1", Kind: "GatewayClass", Name: name}
}

func routeRef(r *gatewayapi.Route) operation.Ref {
	version := strings.TrimPrefix(r.APIVersion, gatewayapi.Group+"/")
	return operation.Ref{Group: gatewayapi.Group, Version: cmp.Or(version, "v1"), Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// mapRouteNamespaces lists the namespaces of each gateway's routes, which share its problems.
func (x *Index) mapRouteNamespaces() map[*gatewayapi.Gateway][]string {
	all := map[*gatewayapi.Gateway][]string{}
	seen := map[*gatewayapi.Gateway]map[string]bool{}
	for i := range x.Routes {
		r := &x.Routes[i]
		for _, p := range r.Spec.ParentRefs {
			g := x.gatewayOf(r, p)
			if g == nil || seen[g][r.Namespace] {
				continue
			}
			if seen[g] == nil {
				seen[g] = map[string]bool{}
			}
			seen[g][r.Namespace] = true
			all[g] = append(all[g], r.Namespace)
		}
	}
	return all
}

// gatewayOf returns the gateway that a route names, or nil.
func (x *Index) gatewayOf(r *gatewayapi.Route, p gatewayapi.ParentRef) *gatewayapi.Gateway {
	if !p.IsGateway() {
		return nil
	}
	return x.gateways[engine.Name{Namespace: p.NamespaceFrom(r.Namespace), Name: p.Name}]
}

// quoteCondition quotes a condition of a status.
func quoteCondition(c *metav1.Condition) string {
	text := fmt.Sprintf("`%s` is %s, with reason %s", c.Type, engine.QuoteCode(string(c.Status)), engine.QuoteCode(c.Reason))
	if c.Message != "" {
		text += ": " + engine.QuoteLine(c.Message)
	}
	return text
}

// isBad reports whether a condition, which is good when true, is false.
func isBad(c *metav1.Condition) bool { return c != nil && c.Status == metav1.ConditionFalse }

func isTrue(c *metav1.Condition) bool { return c != nil && c.Status == metav1.ConditionTrue }

// isCurrent reports whether a condition describes the object's current generation.
func isCurrent(c *metav1.Condition, generation int64) bool {
	return c != nil && (c.ObservedGeneration == 0 || c.ObservedGeneration >= generation)
}

// addStale notes that a condition describes an earlier generation of the object.
func addStale(f *engine.Finding, c *metav1.Condition, generation int64) {
	if !isCurrent(c, generation) {
		f.Evidence = append(f.Evidence, fmt.Sprintf("That is about generation %d of the object, and it is at %d now: its controller has not looked at the last change.", c.ObservedGeneration, generation))
	}
}
