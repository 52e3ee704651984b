package playbook

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// longestLine is how much of one line of a log is looked at.
const longestLine = 4 << 10

// logOf is the log of the run that lastEnd tells of.
func logOf(pod *corev1.Pod, c container) Log {
	return Log{Namespace: pod.Namespace, Pod: pod.Name, Container: c.spec.Name, Previous: c.status.State.Terminated == nil}
}

// lastLines are the last lines that a container wrote before it ended.
func (x *index) lastLines(pod *corev1.Pod, c container) []string { return x.lines(logOf(pod, c)) }

// logsOf are all logs of a pod that were read, in a fixed order.
func (x *index) logsOf(pod *corev1.Pod) []string {
	var all []string
	for _, c := range listContainers(pod) {
		for _, previous := range []bool{false, true} {
			if log := x.Logs[Log{Namespace: pod.Namespace, Pod: pod.Name, Container: c.spec.Name, Previous: previous}]; log != "" {
				all = append(all, log)
			}
		}
	}
	return all
}

// lines are the last lines of a log, the very last first.
func (x *index) lines(log Log) []string {
	const most = 20
	var lines []string
	for line := range strings.Lines(x.Logs[log]) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line[:min(len(line), longestLine)])
		}
	}
	slices.Reverse(lines)
	return lines[:min(len(lines), most)]
}
