package playbook

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// newOperation starts an operation on one object.
func newOperation(verb operation.Verb, r operation.Ref) operation.Operation {
	kind := strings.ToLower(r.Kind)
	if r.Group != "" {
		kind += "." + r.Group
	}
	return operation.Operation{Verb: verb, Kind: kind, Names: []string{r.Name}, Namespace: r.Namespace}
}

// newPatch changes one object by a JSON object, strategic.
func newPatch(r operation.Ref, change any) *operation.Operation {
	raw, err := json.Marshal(change)
	if err != nil {
		return nil
	}
	o := newOperation(operation.Patch, r)
	o.Patch = string(raw)
	return validFix(o)
}

// newCreate makes one object.
func newCreate(object members, namespace string) *operation.Operation {
	text, err := yaml.Marshal(object)
	if err != nil {
		return nil
	}
	return validFix(operation.Operation{Verb: operation.Create, Manifest: string(text), Namespace: namespace})
}

type members = map[string]any

// patchPodSpec changes the pods of a workload, whose list members merge by name.
func patchPodSpec(w *workload, change members) *operation.Operation {
	if !w.patchable() {
		return nil
	}
	return newPatch(w.ref, members{"spec": members{"template": members{"spec": change}}})
}

// patchContainer changes one container of a workload.
func patchContainer(w *workload, c container, change members) *operation.Operation {
	change["name"] = c.spec.Name
	list := "containers"
	if c.init {
		list = "initContainers"
	}
	return patchPodSpec(w, members{list: []any{change}})
}

// undoRollout goes back to the newest revision that differs where the fault is. Whether it was
// good is only known while its pods still run, so the text says which of the two it is.
func undoRollout(w *workload, differs func(older *corev1.PodTemplateSpec) bool) (*operation.Operation, string) {
	if w.ref.Kind != "Deployment" {
		return nil, ""
	}
	for _, r := range w.older {
		if !differs(r.template) {
			continue
		}
		o := newOperation(operation.Undo, w.ref)
		o.Revision = r.number
		if r.ready > 0 {
			return validFix(o), fmt.Sprintf("Go back to revision %d, of which %s.", r.number, countNoun(int(r.ready), "pod is", "pods are")+" ready")
		}
		return validFix(o), fmt.Sprintf("Go back to revision %d, the last one that differs here.", r.number)
	}
	return nil, ""
}

// undoContainer goes back to where a container's command, image or environment was another.
func undoContainer(w *workload, c container, same func(then *corev1.Container) bool) (*operation.Operation, string) {
	return undoRollout(w, func(older *corev1.PodTemplateSpec) bool {
		then := findContainer(older, c.spec.Name)
		return then != nil && !same(then)
	})
}

// equalValues compares values of the API: nil and empty are one.
func equalValues(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

// countNoun is a number with its noun.
func countNoun(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
