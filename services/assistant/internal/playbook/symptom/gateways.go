package symptom

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// gateways lists gateways and routes whose conditions do not report them as served; a condition that is missing is a
// symptom, too.
func (l *lister) gateways() {
	controllers := map[string]string{} // by class
	for i := range l.GatewayClasses {
		controllers[l.GatewayClasses[i].Name] = l.GatewayClasses[i].Spec.ControllerName
	}
	serves := map[engine.Name]string{} // the controller of each gateway
	for i := range l.Gateways {
		g := &l.Gateways[i]
		serves[engine.NameOf(g)] = controllers[g.Spec.GatewayClassName]
		if !l.in(g) {
			continue
		}
		l.conditions(ref("Gateway", g), g.Status.Conditions, "Accepted", "Programmed")
		for _, s := range g.Status.Listeners {
			l.conditions(ref("Gateway", g), s.Conditions, "Accepted", "Programmed", "ResolvedRefs")
		}
	}
	for i := range l.Routes {
		r := &l.Routes[i]
		of := ref(r.Kind, r)
		if !l.in(r) {
			continue
		}
		for _, p := range r.Spec.ParentRefs {
			controller := ""
			if p.IsGateway() {
				controller = serves[engine.Name{Namespace: p.NamespaceFrom(r.Namespace), Name: p.Name}]
			}
			said, _ := r.StatusAt(p, controller)
			l.conditions(of, said.Conditions, "Accepted", "ResolvedRefs")
		}
		if len(r.Status.Parents) == 0 && slices.ContainsFunc(r.Spec.ParentRefs, gatewayapi.ParentRef.IsGateway) {
			l.add(Symptom{Object: of, Text: fmt.Sprintf("%s has no status: no controller has looked at it.", engine.UpperFirst(engine.RefTitle(of)))})
		}
	}
}

// conditions adds the conditions of some types that are not true.
func (l *lister) conditions(of operation.Ref, all []metav1.Condition, types ...string) {
	for i := range all {
		if c := &all[i]; c.Status != metav1.ConditionTrue && slices.Contains(types, c.Type) {
			l.add(Symptom{Object: of, Text: fmt.Sprintf("%s has the condition %s, %s: %s.", engine.UpperFirst(engine.RefTitle(of)), engine.QuoteCode(c.Type+"="+string(c.Status)), engine.QuoteCode(c.Reason), engine.QuoteCode(c.Message))})
		}
	}
}
