package gateway

import (
	"fmt"
	"slices"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// shortTimeout is a timeout that many healthy programs exceed now and then.
const shortTimeout = time.Second

// checkIntent explains rules of a route that are valid but most likely unintended: a path that names another service
// than it leads to, and a timeout that cuts off healthy answers.
func (x *Index) checkIntent(r *gatewayapi.Route) []engine.Finding {
	var found []engine.Finding
	for i, rule := range r.Spec.Rules {
		if f, ok := explainTimeouts(r, i, rule); ok {
			found = append(found, f)
		}
		if f, ok := x.explainMisrouted(r, i, rule); ok {
			found = append(found, f)
		}
	}
	return found
}

func explainTimeouts(r *gatewayapi.Route, at int, rule gatewayapi.Rule) (f engine.Finding, ok bool) {
	for _, limit := range []struct{ member, value string }{{"request", rule.Timeouts.Request}, {"backendRequest", rule.Timeouts.BackendRequest}} {
		took, err := time.ParseDuration(limit.value)
		if err != nil || took == 0 || took > shortTimeout { // 0: none
			continue
		}
		f = newFinding(r)
		f.Confidence = engine.Low
		f.Evidence = []string{fmt.Sprintf("`spec.rules[%d].timeouts.%s` is %s.", at, limit.member, engine.QuoteCode(limit.value))}
		f.Cause = fmt.Sprintf("The route gives its backends only %s to answer (timeout): what takes longer is answered with 504.", took)
		f.Text = "Choose how long a response may take."
		return f, true
	}
	return f, false
}

func (x *Index) explainMisrouted(r *gatewayapi.Route, at int, rule gatewayapi.Rule) (f engine.Finding, ok bool) {
	if x.Unread["services"] {
		return f, false
	}
	var leadsTo, services []string
	for _, ref := range rule.BackendRefs {
		if !ref.IsKind("Service", "Service") || ref.NamespaceFrom(r.Namespace) != r.Namespace {
			return f, false
		}
		leadsTo = append(leadsTo, ref.Name)
	}
	for _, s := range x.ServicesIn()[r.Namespace] {
		services = append(services, s.Name)
	}
	if len(leadsTo) == 0 || !x.pathsTellServices(r.Namespace) || !slices.ContainsFunc(services, func(name string) bool { return name == leadsTo[0] }) {
		return f, false
	}
	for _, match := range rule.Matches {
		other, misrouted := engine.OtherForPath(match.Path.Value, leadsTo, services)
		if !misrouted {
			continue
		}
		f = newFinding(r)
		f.Confidence, f.Order = engine.Low, 1 // names prove nothing
		f.Evidence = []string{fmt.Sprintf("`spec.rules[%d]` takes the path %s and leads to %s.", at, engine.QuoteCode(match.Path.Value), engine.QuoteCodes(leadsTo))}
		f.Cause = fmt.Sprintf("The route leads the path %s to the service %s, and there is a service %s: most likely the wrong service is named.", engine.QuoteCode(match.Path.Value), engine.QuoteCodes(leadsTo), engine.QuoteCode(other))
		f.Text = fmt.Sprintf("Let the rule lead to %s, if that is meant.", engine.QuoteCode(other))
		return f, true
	}
	return f, false
}

// pathsTellServices reports whether a path of some route of a namespace leads to a service of the same name. If none
// does, one program may well answer for all paths.
func (x *Index) pathsTellServices(namespace string) bool {
	for i := range x.Routes {
		if x.Routes[i].Namespace != namespace {
			continue
		}
		for _, rule := range x.Routes[i].Spec.Rules {
			for _, match := range rule.Matches {
				if slices.ContainsFunc(rule.BackendRefs, func(b gatewayapi.BackendRef) bool { return engine.ServesPath(b.Name, match.Path.Value) }) {
					return true
				}
			}
		}
	}
	return false
}
