package engine

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// NewOperation starts an operation on one object.
func NewOperation(verb operation.Verb, r operation.Ref) operation.Operation {
	kind := strings.ToLower(r.Kind)
	if r.Group != "" {
		kind += "." + r.Group
	}
	return operation.Operation{Verb: verb, Kind: kind, Names: []string{r.Name}, Namespace: r.Namespace}
}

// NewPatch patches one object with a JSON object, as a strategic merge.
func NewPatch(r operation.Ref, change any) *operation.Operation {
	raw, err := json.Marshal(change)
	if err != nil {
		return nil
	}
	o := NewOperation(operation.Patch, r)
	o.Patch = string(raw)
	return ValidFix(o)
}

// NewCreate creates one object.
func NewCreate(object Members, namespace string) *operation.Operation {
	text, err := yaml.Marshal(object)
	if err != nil {
		return nil
	}
	return ValidFix(operation.Operation{Verb: operation.Create, Manifest: string(text), Namespace: namespace})
}

type Members = map[string]any

// PatchPodSpec patches the pod template of a workload, whose list members merge by name.
func PatchPodSpec(w *Workload, change Members) *operation.Operation {
	if !w.Patchable() {
		return nil
	}
	return NewPatch(w.Ref, Members{"spec": Members{"template": Members{"spec": change}}})
}

// PatchContainer patches one container of a workload.
func PatchContainer(w *Workload, c Container, change Members) *operation.Operation {
	change["name"] = c.Spec.Name
	list := "containers"
	if c.Init {
		list = "initContainers"
	}
	return PatchPodSpec(w, Members{list: []any{change}})
}

// UndoRollout rolls back to the newest revision that differs where the fault is. Whether that revision was good is
// known only while its pods still run, so the text states which case applies.
func UndoRollout(w *Workload, differs func(older *corev1.PodTemplateSpec) bool) (*operation.Operation, string) {
	if w.Ref.Kind != "Deployment" {
		return nil, ""
	}
	for _, r := range w.Older {
		if !differs(r.Template) {
			continue
		}
		o := NewOperation(operation.Undo, w.Ref)
		o.Revision = r.Number
		if r.Ready > 0 {
			return ValidFix(o), fmt.Sprintf("Go back to revision %d, of which %s.", r.Number, CountNoun(int(r.Ready), "pod is", "pods are")+" ready")
		}
		return ValidFix(o), fmt.Sprintf("Go back to revision %d, the last one that differs here.", r.Number)
	}
	return nil, ""
}

// UndoContainer rolls back to a revision in which a container's command, image or environment differed.
func UndoContainer(w *Workload, c Container, same func(then *corev1.Container) bool) (*operation.Operation, string) {
	return UndoRollout(w, func(older *corev1.PodTemplateSpec) bool {
		then := FindContainer(older, c.Spec.Name)
		return then != nil && !same(then)
	})
}

// EqualValues compares API values: nil and empty are equal.
func EqualValues(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

// CountNoun formats a number with its noun.
func CountNoun(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
