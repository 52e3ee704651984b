package engine

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limits on the logs of one snapshot: each costs a call to the cluster.
const (
	mostLogs    = 40
	logsOfOwner = 2 // pods of one revision log the same
)

// Wants lists the logs that would add information, at most 40: of containers that ended with an error, the run that
// did; of init containers that do not end; of failed jobs, the newest pod; and of programs that use the Kubernetes API,
// which may have been refused: those with a dedicated service account, and those with the default one that are not
// ready.
func (s *Snapshot) Wants() []Log {
	var crashes, inits, jobs, callers []owned
	for i := range s.Pods {
		pod := &s.Pods[i]
		if pod.DeletionTimestamp != nil {
			continue
		}
		calls := pod.Status.Phase == corev1.PodRunning && holdsToken(pod) && (AccountOf(pod) != "default" || !PodReady(pod))
		for _, c := range ListContainers(pod) {
			current := Log{Namespace: pod.Namespace, Pod: pod.Name, Container: c.Spec.Name}
			end := c.Status.State.Terminated
			switch {
			case pod.Status.Phase == corev1.PodFailed && end != nil && end.ExitCode != 0 && ownerKind(pod) == "Job":
				jobs = append(jobs, owned{current, pod})
			case KeepsCrashing(pod, c):
				crashes = append(crashes, owned{LogOf(pod, c), pod})
			case IsInitRunning(pod, c):
				inits = append(inits, owned{current, pod})
			case calls && !c.Init && c.Status.State.Running != nil:
				callers = append(callers, owned{current, pod})
			}
		}
	}
	sortByName(crashes)
	sortByName(inits)
	sortByName(callers)
	slices.SortFunc(jobs, func(a, b owned) int {
		return cmp.Or(b.pod.CreationTimestamp.Compare(a.pod.CreationTimestamp.Time), compareLogs(a.log, b.log))
	})
	// Each kind takes half of the remainder, so that a storm of crashes does not displace the others, and they alternate,
	// so that a reader of fewer logs has some of each.
	taken := [][]Log{takeLogs(crashes, logsOfOwner, mostLogs/2)}
	left := mostLogs - len(taken[0])
	for i, list := range [][]owned{inits, jobs, callers} {
		most := left / 2
		if i == 2 {
			most = left
		}
		logs := takeLogs(list, 1, most)
		taken, left = append(taken, logs), left-len(logs)
	}
	var wants []Log
	for i := range mostLogs {
		for _, logs := range taken {
			if i < len(logs) {
				wants = append(wants, logs[i])
			}
		}
	}
	return wants
}

// owned is a log with its pod.
type owned struct {
	log Log
	pod *corev1.Pod
}

func sortByName(list []owned) {
	slices.SortFunc(list, func(a, b owned) int { return compareLogs(a.log, b.log) })
}

func compareLogs(a, b Log) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container))
}

// takeLogs selects logs, some of each container of an owner, up to a number.
func takeLogs(from []owned, each, most int) []Log {
	var logs []Log
	type key struct{ namespace, owner, container string }
	seen := map[key]int{}
	for _, o := range from {
		k := key{o.log.Namespace, o.pod.Name, o.log.Container}
		if owner := metav1.GetControllerOf(o.pod); owner != nil {
			k.owner = owner.Kind + "/" + owner.Name
		}
		if seen[k]++; seen[k] > each {
			continue
		}
		if most--; most < 0 {
			break
		}
		logs = append(logs, o.log)
	}
	return logs
}

func ownerKind(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return owner.Kind
	}
	return ""
}
