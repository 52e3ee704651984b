package playbook

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// podChecks look at one pod each, objectChecks at all of the cluster.
var (
	podChecks = []func(*index, *corev1.Pod, *workload) []Finding{
		crashLoops, outOfMemory, imagePulls, references, pending, liveness, readiness, multiAttach, wrongNames, overStorage,
		initWaits, readinessGates,
	}
	objectChecks = []func(*index) []Finding{
		services, claims, quotas, limitRanges, ingresses, policies, names, terminating, nodes, autoscalers, budgets,
		failedJobs, idleCronJobs, denied, missingAccounts, rollouts, goneAPIs, statefulSets, admission,
	}
)

// Diagnose finds what is wrong in a namespace, or with an empty one everywhere. Causes
// come first and hold what follows from them; pods of one workload with one trouble are
// one finding.
func Diagnose(s *Snapshot, namespace string) []Finding {
	x := newIndex(s)
	var found []Finding
	for _, pod := range x.byName {
		if namespace != "" && pod.Namespace != namespace {
			continue
		}
		w := x.workloadOf(pod)
		for _, check := range podChecks {
			for _, f := range check(x, pod, w) {
				found = merge(found, place(f, pod, w), pod.Name)
			}
		}
	}
	for _, check := range objectChecks {
		for _, f := range check(x) {
			if namespace == "" || f.Object.Namespace == namespace || f.touches(namespace) {
				found = append(found, f)
			}
		}
	}
	rank(found)
	return fold(found)
}

// merge adds a pod to the finding that its workload has already, or the finding.
func merge(found []Finding, f Finding, pod string) []Finding {
	for i := range found {
		if found[i].Class == f.Class && found[i].Object == f.Object && found[i].container == f.container && (found[i].Cause == f.Cause || f.blind) {
			if !slices.Contains(found[i].Pods, pod) {
				found[i].Pods = append(found[i].Pods, pod)
			}
			return found
		}
	}
	f.Pods = []string{pod}
	return append(found, f)
}

// touches says whether a finding about an object elsewhere concerns a namespace.
func (f Finding) touches(namespace string) bool { return slices.Contains(f.namespaces, namespace) }

// rank is the class that decides the order: an init container that crashes is a crash.
func (f Finding) rank() Class { return cmp.Or(f.As, f.Class) }

func rank(found []Finding) {
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
