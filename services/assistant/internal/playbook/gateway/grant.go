package gateway

import (
	"fmt"

	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// permits reports whether an object may refer to a Service or Secret of another namespace, which requires a
// ReferenceGrant there.
func (x *Index) permits(from operation.Ref, kind, namespace, name string) bool {
	if namespace == from.Namespace || !x.knows("referencegrants") {
		return true
	}
	for i := range x.ReferenceGrants {
		g := &x.ReferenceGrants[i]
		if g.Namespace != namespace {
			continue
		}
		comes, goes := false, false
		for _, f := range g.Spec.From {
			comes = comes || f.Group == from.Group && f.Kind == from.Kind && f.Namespace == from.Namespace
		}
		for _, t := range g.Spec.To {
			goes = goes || t.Group == "" && t.Kind == kind && (t.Name == nil || *t.Name == "" || *t.Name == name)
		}
		if comes && goes {
			return true
		}
	}
	return false
}

// explainRefusal explains that no ReferenceGrant permits a reference to another namespace, and what such a grant has to
// contain.
func explainRefusal(f *engine.Finding, kind, namespace, name, consequence string) {
	f.Cause = fmt.Sprintf("The %s refers to %s %s in namespace %s, and no ReferenceGrant there allows that: %s.", lowerKind(f.Object.Kind), lowerKind(kind), engine.QuoteCode(name), engine.QuoteCode(namespace), consequence)
	f.Text = fmt.Sprintf("The owner of namespace %s can allow it by a ReferenceGrant in that namespace with %s; or move both into one namespace.", engine.QuoteCode(namespace),
		engine.QuoteCode(fmt.Sprintf("spec: {from: [{group: %s, kind: %s, namespace: %s}], to: [{group: \"\", kind: %s, name: %s}]}", gatewayapi.Group, f.Object.Kind, f.Object.Namespace, kind, name)))
}

// lowerKind returns a kind for use within a sentence.
func lowerKind(kind string) string {
	switch kind {
	case "Secret":
		return kind
	case "Gateway":
		return "gateway"
	case "Service":
		return "service"
	}
	return "route"
}
