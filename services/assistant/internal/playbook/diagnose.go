package playbook

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// podChecks look at one pod each, objectChecks at all of the cluster.
var (
	podChecks = []func(*index, *corev1.Pod, *workload) []Finding{
		crashLoops, outOfMemory, imagePulls, checkReferences, checkPending, checkLiveness, checkReadiness, multiAttach, wrongNames, overStorage,
		initWaits, readinessGates,
	}
	objectChecks = []func(*index) []Finding{
		checkServices, checkClaims, checkQuotas, limitRanges, checkIngresses, checkPolicies, checkNameServer, checkTerminating, checkNodes, checkAutoscalers, checkBudgets,
		failedJobs, idleCronJobs, checkDenials, missingAccounts, checkRollouts, goneAPIs, statefulSets, checkAdmission,
	}
)

// Diagnose finds what is wrong in a namespace, or with an empty one everywhere. Causes
// come first and hold what follows from them; pods of one workload with one trouble are
// one finding.
func Diagnose(s *Snapshot, namespace string) []Finding {
	x := newIndex(s)
	m := newMerger()
	for _, pod := range x.byName {
		if namespace != "" && pod.Namespace != namespace {
			continue
		}
		w := x.workloadOf(pod)
		for _, check := range podChecks {
			for _, f := range check(x, pod, w) {
				m.add(placeFinding(f, pod, w), pod.Name)
			}
		}
	}
	found := m.found
	for _, check := range objectChecks {
		for _, f := range check(x) {
			if namespace == "" || f.Object.Namespace == namespace || f.touches(namespace) {
				found = append(found, f)
			}
		}
	}
	sortByRank(found)
	return foldFindings(found)
}

// merger makes one finding of those that pods of one workload share.
type merger struct {
	found []Finding
	same  map[likeness]int // place in found
	named map[seen]bool
}

// likeness is what findings of several pods have in common. Without a cause it stands
// for the first of any: that is for findings that could not see theirs.
type likeness struct {
	class     Class
	object    operation.Ref
	container string
	cause     string
	any       bool
}

// seen is a pod that a finding names already.
type seen struct {
	finding int
	pod     string
}

func newMerger() *merger { return &merger{same: map[likeness]int{}, named: map[seen]bool{}} }

// add adds a pod to the finding that its workload has already, or the finding.
func (m *merger) add(f Finding, pod string) {
	whole := likeness{class: f.Class, object: f.Object, container: f.container, cause: f.Cause}
	any := likeness{class: f.Class, object: f.Object, container: f.container, any: true}
	at, known := m.same[whole]
	if f.blind {
		at, known = m.same[any]
	}
	if !known {
		at = len(m.found)
		f.Pods = nil
		m.found = append(m.found, f)
		m.same[whole] = at
		if _, first := m.same[any]; !first {
			m.same[any] = at
		}
	}
	if s := (seen{at, pod}); !m.named[s] {
		m.named[s] = true
		m.found[at].Pods = append(m.found[at].Pods, pod)
	}
}

// touches says whether a finding about an object elsewhere concerns a namespace.
func (f Finding) touches(namespace string) bool { return slices.Contains(f.namespaces, namespace) }

// rank is the class that decides the order: an init container that crashes is a crash.
func (f Finding) rank() Class { return cmp.Or(f.As, f.Class) }

func sortByRank(found []Finding) {
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.rank(), b.rank()),
			cmp.Compare(a.Class, b.Class),
			cmp.Compare(a.Object.Namespace, b.Object.Namespace),
			cmp.Compare(a.Object.String(), b.Object.String()),
			cmp.Compare(a.Cause, b.Cause),
		)
	})
}
