package symptom

import (
	"slices"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// aboutReadiness lists the classes that explain why a container is not ready, but not why one ended.
var aboutReadiness = []engine.Class{engine.ReadinessProbe, engine.ReadinessGate, engine.AccessForbidden, engine.RolloutStuck}

// aboutProgress lists the classes of what a workload as a whole waits for. A symptom that tells its own cause needs
// another explanation.
var aboutProgress = []engine.Class{engine.RolloutStuck, engine.StatefulSetStuck}

// Unexplained returns the symptoms that no finding, nor a consequence of one, covers.
func Unexplained(all []Symptom, found []engine.Finding) []Symptom {
	x := explained{objects: map[operation.Ref][]engine.Finding{}, pods: map[operation.Ref][]engine.Finding{}}
	for _, f := range found {
		x.put(f)
	}
	var left []Symptom
	for _, s := range all {
		if !x.explains(s) {
			left = append(left, s)
		}
	}
	return left
}

// explained indexes findings by object.
type explained struct {
	objects, pods map[operation.Ref][]engine.Finding
}

func (x explained) put(f engine.Finding) {
	at := plain(f.Object)
	x.objects[at] = append(x.objects[at], f)
	for _, e := range f.Effects {
		of := plain(e.Of)
		x.objects[of] = append(x.objects[of], f)
	}
	for _, pod := range f.Pods {
		for _, namespace := range append([]string{f.Object.Namespace}, f.Namespaces...) {
			r := operation.Ref{Kind: "Pod", Namespace: namespace, Name: pod}
			x.pods[r] = append(x.pods[r], f)
		}
	}
	for _, c := range f.Consequences {
		x.put(c)
	}
}

func plain(r operation.Ref) operation.Ref {
	return operation.Ref{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

func (x explained) explains(s Symptom) bool {
	fits := func(f engine.Finding) bool {
		if s.telling && slices.Contains(aboutProgress, f.Class) {
			return false
		}
		return (s.Container == "" || f.Container == "" || f.Container == s.Container) && !(s.ended && slices.Contains(aboutReadiness, f.Class))
	}
	if slices.ContainsFunc(x.pods[s.Object], fits) {
		return true
	}
	if s.Object.Kind != "Pod" {
		return slices.ContainsFunc(slices.Concat(x.objects[s.Object], x.objects[s.Owner]), func(f engine.Finding) bool {
			return !s.telling || !slices.Contains(aboutProgress, f.Class)
		})
	}
	// A finding about the workload that names pods covers only those.
	return slices.ContainsFunc(slices.Concat(x.objects[s.Object], x.objects[s.Owner]), func(f engine.Finding) bool { return len(f.Pods) == 0 && fits(f) })
}
