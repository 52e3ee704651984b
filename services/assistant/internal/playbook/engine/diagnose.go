package engine

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// PodCheck checks one pod and its workload, ObjectCheck the whole cluster.
type (
	PodCheck    func(*corev1.Pod, *Workload) []Finding
	ObjectCheck func() []Finding
)

// Checks are the checks of one package.
type Checks struct {
	Pods    []PodCheck
	Objects []ObjectCheck
}

// BindPodChecks returns the checks with their index.
func BindPodChecks[I any](x I, checks ...func(I, *corev1.Pod, *Workload) []Finding) []PodCheck {
	bound := make([]PodCheck, len(checks))
	for i, check := range checks {
		bound[i] = func(pod *corev1.Pod, w *Workload) []Finding { return check(x, pod, w) }
	}
	return bound
}

// BindObjectChecks returns the checks with their index.
func BindObjectChecks[I any](x I, checks ...func(I) []Finding) []ObjectCheck {
	bound := make([]ObjectCheck, len(checks))
	for i, check := range checks {
		bound[i] = func() []Finding { return check(x) }
	}
	return bound
}

// Diagnose runs the checks for a namespace, or with an empty one for all. Causes come first and contain their
// consequences; pods of one workload with one problem are one finding.
func Diagnose(x *Index, namespace string, all ...Checks) []Finding {
	m := NewMerger()
	for _, pod := range x.LivingPods {
		if namespace != "" && pod.Namespace != namespace {
			continue
		}
		w := x.WorkloadOf(pod)
		for _, checks := range all {
			for _, check := range checks.Pods {
				for _, f := range check(pod, w) {
					m.Add(placeFinding(f, pod, w), pod.Name)
				}
			}
		}
	}
	found := m.Found
	for _, checks := range all {
		for _, check := range checks.Objects {
			for _, f := range check() {
				if namespace == "" || f.Object.Namespace == namespace || f.touches(namespace) {
					found = append(found, f)
				}
			}
		}
	}
	sortByRank(found)
	return foldFindings(found)
}

// merger merges the findings that pods of one workload share.
type merger struct {
	Found []Finding
	same  map[likeness]int // index in Found
	named map[seen]bool
}

// likeness is the key under which findings of several pods are merged. Its cause is empty, and any set, for the first
// finding of a kind whatever its cause: Blind findings, which could not see theirs, merge into that.
type likeness struct {
	class     Class
	object    operation.Ref
	container string
	cause     string
	any       bool
}

// seen is a pod that a finding already names.
type seen struct {
	finding int
	pod     string
}

func NewMerger() *merger { return &merger{same: map[likeness]int{}, named: map[seen]bool{}} }

// Add adds a pod to the existing finding of its workload, or else the finding.
func (m *merger) Add(f Finding, pod string) {
	whole := likeness{class: f.Class, object: f.Object, container: f.Container, cause: f.Cause}
	any := likeness{class: f.Class, object: f.Object, container: f.Container, any: true}
	at, known := m.same[whole]
	if f.Blind {
		at, known = m.same[any]
	}
	if !known {
		at = len(m.Found)
		f.Pods = nil
		m.Found = append(m.Found, f)
		m.same[whole] = at
		if _, first := m.same[any]; !first {
			m.same[any] = at
		}
	}
	if s := (seen{at, pod}); !m.named[s] {
		m.named[s] = true
		m.Found[at].Pods = append(m.Found[at].Pods, pod)
	}
}

// touches reports whether a finding about an object elsewhere concerns a namespace.
func (f Finding) touches(namespace string) bool { return slices.Contains(f.Namespaces, namespace) }

// rank returns the class that decides the order: an init container that crashes is a crash.
func (f Finding) rank() Class { return cmp.Or(f.As, f.Class) }

func sortByRank(found []Finding) {
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.Order, b.Order),
			cmp.Compare(a.rank(), b.rank()),
			cmp.Compare(a.Class, b.Class),
			cmp.Compare(a.Object.Namespace, b.Object.Namespace),
			cmp.Compare(a.Object.String(), b.Object.String()),
			cmp.Compare(a.Cause, b.Cause),
		)
	})
}
