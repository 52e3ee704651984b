package tool

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

func (c *call) hidden(namespace string) bool { return !c.Policy.Visible(namespace) }

// scope is the namespace that the operation means for a kind; empty is all of them.
func (c *call) scope(r cluster.Resource) string {
	switch {
	case !r.Namespaced || c.op.AllNamespaces:
		return ""
	case c.op.Namespace != "":
		return c.op.Namespace
	case c.by.Scope != "":
		return c.by.Scope
	}
	return metav1.NamespaceDefault // as the kubectl line that is shown would
}

// scopePhrase names a scope in a sentence.
func scopePhrase(r cluster.Resource, namespace string) string {
	switch {
	case !r.Namespaced:
		return "the cluster"
	case namespace == "":
		return "any namespace"
	}
	return "namespace " + namespace
}

// exists reports whether an object is there for callers.
func (c *call) exists(r cluster.Resource, namespace, name string) bool {
	if r.Group == "" && r.Kind == "Namespace" {
		return !c.hidden(name)
	}
	return !c.hidden(namespace)
}

// notFoundError is the answer to a request for a hidden object by name: that of a server that does not have it.
func notFoundError(r cluster.Resource, name string) error {
	return operation.Refuse(operation.NotFound, "", "The cluster has no such object: %s %q not found.", r.GVR().GroupResource(), name)
}

// prune takes out of an object what names a hidden namespace: subjects of a binding, the
// service of a webhook, the claim of a volume.
func (c *call) prune(value any) any {
	switch v := value.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, member any) bool { return c.within(member) })
		for key, member := range v {
			v[key] = c.prune(member)
		}
	case []any:
		v = slices.DeleteFunc(v, c.within)
		for i, member := range v {
			v[i] = c.prune(member)
		}
		return v
	}
	return value
}

// within reports whether a value is a reference into a hidden namespace.
func (c *call) within(value any) bool {
	m, ok := value.(map[string]any)
	if !ok {
		return false
	}
	namespace, ok := m["namespace"].(string)
	return ok && c.hidden(namespace)
}
