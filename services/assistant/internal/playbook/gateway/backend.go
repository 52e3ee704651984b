package gateway

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// backend is a reference in a route to a Service.
type backend struct {
	gatewayapi.BackendRef
	path      string // within spec, as a person reads it
	pointer   string // the same, as a JSON pointer
	namespace string
}

// checkBackends explains backends of a route that do not exist, may not be referred to, or do not answer.
func (x *Index) checkBackends(r *gatewayapi.Route) []engine.Finding {
	var found []engine.Finding
	sure := false // a finding names the fault of a reference
	seen := map[string]bool{}
	for i, rule := range r.Spec.Rules {
		if f, bad := explainEmptyRule(r, i, rule); bad {
			found = append(found, f)
		}
		for j, ref := range rule.BackendRefs {
			b := backend{ref, fmt.Sprintf("rules[%d].backendRefs[%d]", i, j), fmt.Sprintf("/spec/rules/%d/backendRefs/%d", i, j), ref.NamespaceFrom(r.Namespace)}
			if !ref.IsKind("Service", "Service") || x.Unread["services"] {
				continue // the controller reports in the status whether it knows that kind
			}
			key := fmt.Sprint(b.namespace, "/", ref.Name, ":", engine.ValueOr(ref.Port, 0), ref.Share() == 0)
			if seen[key] {
				continue
			}
			seen[key] = true
			if f, bad := x.checkBackend(r, b); bad {
				sure = sure || !f.Follower && f.Class == engine.RouteBackend
				found = append(found, f)
			}
		}
	}
	for _, p := range r.Spec.ParentRefs {
		said := x.statusAt(r, p)
		resolved := said.condition("ResolvedRefs")
		if !isBad(resolved) {
			continue
		}
		if sure {
			for i := range found {
				if !found[i].Follower {
					found[i].Evidence = append(found[i].Evidence, said.text(r, resolved))
				}
			}
			break
		}
		f := newFinding(r)
		f.Cause = fmt.Sprintf("The controller %s cannot resolve what the route refers to: %s.", engine.QuoteCode(said.ControllerName), explainReason(resolved))
		f.Evidence = []string{said.text(r, resolved)}
		f.Text = "Correct the reference that the condition names."
		addStale(&f, resolved, r.Generation)
		said.addDispute(&f)
		found = append(found, f)
		break
	}
	return append(found, x.checkLeftOutRules(r)...)
}

// checkLeftOutRules explains rules that the controller ignores in an accepted route.
func (x *Index) checkLeftOutRules(r *gatewayapi.Route) []engine.Finding {
	for _, p := range r.Spec.ParentRefs {
		s := x.statusAt(r, p)
		c := s.condition("PartiallyInvalid")
		if !isTrue(c) {
			continue
		}
		f := newFinding(r)
		f.Cause = fmt.Sprintf("The controller %s leaves out some rules of the route, or serves older ones: %s.", engine.QuoteCode(s.ControllerName), explainReason(c))
		f.Evidence = []string{s.text(r, c)}
		f.Text = "Correct the rules that the condition names."
		return []engine.Finding{f}
	}
	return nil
}

// explainEmptyRule explains a rule that has no backend and no filter that answers in its place.
func explainEmptyRule(r *gatewayapi.Route, at int, rule gatewayapi.Rule) (f engine.Finding, bad bool) {
	if len(rule.Filters) > 0 || slices.ContainsFunc(rule.BackendRefs, func(b gatewayapi.BackendRef) bool { return b.Share() > 0 }) {
		return f, false // a filter may answer, as a redirect does
	}
	f = newFinding(r)
	f.Confidence = engine.Medium
	f.Cause = fmt.Sprintf("Rule %d of the route has no backend that gets requests, so they are answered with an error (500).", at+1)
	f.Evidence = []string{fmt.Sprintf("Its `spec.rules[%d].backendRefs` is empty.", at)}
	if len(rule.BackendRefs) > 0 {
		f.Evidence = []string{fmt.Sprintf("All its `spec.rules[%d].backendRefs` have the weight 0.", at)}
	}
	f.Text = "Choose the service that should receive the requests."
	return f, true
}

func (x *Index) checkBackend(r *gatewayapi.Route, b backend) (f engine.Finding, bad bool) {
	f = newFinding(r)
	port := "no port"
	if b.Port != nil {
		port = fmt.Sprintf("port `%d`", *b.Port)
	}
	f.Evidence = []string{fmt.Sprintf("`spec.%s` leads to %s of service %s in namespace %s.", b.path, port, engine.QuoteCode(b.Name), engine.QuoteCode(b.namespace))}
	if b.Share() == 0 {
		f.Confidence = engine.Medium // it gets no requests now
		f.Evidence = append(f.Evidence, "Its weight is 0, so it gets no requests now.")
	}
	s := x.ServiceByName[engine.Name{Namespace: b.namespace, Name: b.Name}]
	switch {
	case !x.permits(f.Object, "Service", b.namespace, b.Name):
		explainRefusal(&f, "Service", b.namespace, b.Name, "such requests are answered with an error (500)")
		if s == nil {
			f.Evidence = append(f.Evidence, fmt.Sprintf("Namespace %s has no such service either.", engine.QuoteCode(b.namespace)))
		}
	case s == nil:
		x.explainNoService(&f, b)
	case b.Port == nil || !slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == *b.Port }):
		explainNoPort(&f, b, s)
	case b.Share() == 0 || s.Spec.Type == corev1.ServiceTypeExternalName || len(s.Spec.Selector) == 0:
		return f, false
	case x.Within != "" && x.Within != b.namespace:
		// The pods behind it were not read, so the service has no separate finding here.
		if x.Unread["endpointslices"] || x.ready()[engine.NameOf(s)] > 0 {
			return f, false
		}
		f.Cause = fmt.Sprintf("The service %s in namespace %s that the route leads to has no ready endpoints, so its requests are answered with an error (503).", engine.QuoteCode(b.Name), engine.QuoteCode(b.namespace))
		f.Text = fmt.Sprintf("Ask what is wrong with service %s in namespace %s.", engine.QuoteCode(b.Name), engine.QuoteCode(b.namespace))
	default:
		// The service's own fault is reported there, and this as a consequence.
		f.Follower, f.Because = true, []operation.Ref{engine.ServiceRef(s)}
		f.Cause = fmt.Sprintf("It leads to the service %s.", engine.QuoteCode(s.Name))
	}
	return f, true
}

func (x *Index) explainNoService(f *engine.Finding, b backend) {
	var here []string
	for _, s := range x.ServicesIn()[b.namespace] {
		here = append(here, s.Name)
	}
	f.Evidence = append(f.Evidence, fmt.Sprintf("Namespace %s was searched: no service has this name.", engine.QuoteCode(b.namespace)))
	f.Cause = fmt.Sprintf("The service %s that the route leads to does not exist in namespace %s, so its requests are answered with an error (500).", engine.QuoteCode(b.Name), engine.QuoteCode(b.namespace))
	f.Text = "Create the service, or name the right one."
	near, ok := engine.NearestName(b.Name, here)
	if !ok {
		return
	}
	f.Cause += fmt.Sprintf(" The service %s is the nearest.", engine.QuoteCode(near))
	if f.Fix = replaceField(f.Object, b.pointer+"/name", near); f.Fix != nil {
		f.Text = fmt.Sprintf("Lead to the service %s, if it is the one that is meant.", engine.QuoteCode(near))
	}
}

func explainNoPort(f *engine.Finding, b backend, s *corev1.Service) {
	var has []string
	for _, p := range s.Spec.Ports {
		text := strconv.Itoa(int(p.Port))
		if p.Name != "" {
			text += " (" + p.Name + ")"
		}
		has = append(has, text)
	}
	what := "names no port"
	if b.Port != nil {
		what = fmt.Sprintf("leads to port `%d`", *b.Port)
	}
	f.Cause = fmt.Sprintf("The route %s of service %s, and the service has only %s: such a request is answered with an error (500 or 503).", what, engine.QuoteCode(s.Name), engine.QuoteCodes(has))
	f.Text = "Choose one of the service's ports."
	if b.Port == nil || len(s.Spec.Ports) != 1 {
		return
	}
	if f.Fix = replaceField(f.Object, b.pointer+"/port", s.Spec.Ports[0].Port); f.Fix != nil {
		f.Text = fmt.Sprintf("Lead to port %d, the only one of the service.", s.Spec.Ports[0].Port)
	}
}

// replaceField changes one field in a list of a custom resource. A merge patch would have to repeat the whole list,
// including members that are not read here.
func replaceField(r operation.Ref, pointer string, value any) *operation.Operation {
	steps, err := json.Marshal([]engine.Members{{"op": "replace", "path": pointer, "value": value}})
	if err != nil {
		return nil
	}
	o := engine.NewOperation(operation.Patch, r)
	o.PatchType, o.Patch = operation.JSONPatch, string(steps)
	return engine.ValidFix(o)
}
