package guard_test

import (
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

var policy = guard.Policy{Protected: []string{"kube-system", "monitoring"}, Hidden: []string{"vault"}}

var deployment = deploymentIn("shop")

func deploymentIn(namespace string) operation.Ref {
	return newRef("apps", "Deployment", namespace, "api")
}

func newRef(group, kind, namespace, name string) operation.Ref {
	return operation.Ref{Group: group, Version: "v1", Kind: kind, Resource: "x", Namespace: namespace, Name: name}
}

// singleCase is a case of one operation on one object.
func singleCase(role guard.Role, o operation.Operation, ref operation.Ref, before, after map[string]any) guard.Case {
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
