package workload

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// refusal is one error of a database, with the clients that got it.
type refusal struct {
	service *corev1.Service
	cause   *endCause
	clients []*engine.Workload
	lines   []string
}

// checkDatabases explains DatabaseRefuses: a database that is at fault itself, or that refuses several clients in the
// same way. Each client crashes, and none of them is the cause.
func checkDatabases(x *Index) []engine.Finding {
	var all []*refusal
	for _, pod := range x.LivingPods {
		for _, c := range engine.ListContainers(pod) {
			if !engine.KeepsCrashing(pod, c) || c.OutOfMemory() || x.killedBy(pod, c) != "" {
				continue
			}
			lines := x.endLines(pod, c)
			cause, at := findEndCause(lines)
			if cause == nil || !cause.database {
				continue
			}
			s := x.databaseOf(pod, lines)
			if s == nil {
				continue
			}
			all = addRefusal(all, s, cause, pod, x.WorkloadOf(pod), lines[at])
		}
	}
	slices.SortFunc(all, func(a, b *refusal) int {
		return cmp.Or(cmp.Compare(engine.ServiceRef(a.service).String(), engine.ServiceRef(b.service).String()), cmp.Compare(a.cause.cause, b.cause.cause))
	})
	var found []engine.Finding
	for _, r := range all {
		if !r.cause.server && len(r.clients) < 2 {
			continue
		}
		f := x.explainRefusal(r)
		if len(r.clients) > 1 {
			f.Confidence = engine.High
		}
		for _, w := range r.clients { // a cause concluded from the crash itself is no more certain than this
			f.Effects = append(f.Effects, engine.Effect{Of: w.Ref, Classes: []engine.Class{engine.CrashLoop, engine.InitContainer, engine.JobFailed, engine.RolloutStuck}})
		}
		found = append(found, f)
	}
	return found
}

// backendOf returns the only workload behind a service, else the service.
func (x *Index) backendOf(s *corev1.Service) operation.Ref {
	ref := engine.ServiceRef(s)
	for i, pod := range x.Selected(s.Namespace, s.Spec.Selector) {
		w := x.WorkloadOf(pod).Ref
		if i > 0 && w != ref {
			return engine.ServiceRef(s)
		}
		ref = w
	}
	return ref
}
