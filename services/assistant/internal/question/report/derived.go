package report

import (
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Derived returns the values of a fact that no field of an object holds: {pods}, the pods that belong to it, {nodes},
// those that they are on, and {state}. known is false if what it derives from could not be read.
func (v View) Derived(r operation.Ref, of string) (values []string, known bool) {
	v.Objects, v.Namespace = []operation.Ref{r}, ""
	if of == "{state}" {
		all, known := v.countable(strings.ToLower(r.Kind))
		for _, o := range all {
			if o.meta.GetName() == r.Name && o.meta.GetNamespace() == r.Namespace && o.state != "" {
				values = append(values, o.state)
			}
		}
		return values, known && len(values) > 0
	}
	if r.Kind == "Namespace" {
		v.Objects, v.Namespace = nil, r.Name
	}
	for _, pod := range v.pods() {
		value := pod.Name
		if of == "{nodes}" {
			value = pod.Spec.NodeName
		}
		if value != "" && !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	return values, !v.Unread["pods"]
}
