package guard_test

import (
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

var policy = guard.Policy{Protected: []string{"kube-system", "monitoring"}, Hidden: []string{"vault"}}

var deployment = in("shop")

func in(namespace string) operation.Ref { return object("apps", "Deployment", namespace, "api") }

func object(group, kind, namespace, name string) operation.Ref {
	return operation.Ref{Group: group, Version: "v1", Kind: kind, Resource: "x", Namespace: namespace, Name: name}
}

// single is a case of one operation on one object.
func single(role guard.Role, o operation.Operation, ref operation.Ref, before, after map[string]any) guard.Case {
	c := guard.Case{
		Role:       role,
		Operations: []operation.Expanded{{Operation: o, Targets: []operation.Target{{Ref: ref, UID: "u"}}}},
		Words:      []string{"use image a:2"},
	}
	if before != nil || after != nil {
		c.Changes = []guard.Change{{Ref: ref, Before: before, After: after}}
	}
	return c
}
