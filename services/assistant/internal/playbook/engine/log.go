package engine

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// LongestLine limits the part of a log line that is examined.
const LongestLine = 4 << 10

// LogOf returns the log of the run that lastEnd describes.
func LogOf(pod *corev1.Pod, c Container) Log {
	return Log{Namespace: pod.Namespace, Pod: pod.Name, Container: c.Spec.Name, Previous: c.Status.State.Terminated == nil}
}

// LastLines returns the last lines that a container wrote before it ended, the most recent first.
func (x *Index) LastLines(pod *corev1.Pod, c Container) []string { return x.Lines(LogOf(pod, c)) }

// LogsOf returns all logs of a pod that were read, in a fixed order.
func (x *Index) LogsOf(pod *corev1.Pod) []string {
	var all []string
	for _, c := range ListContainers(pod) {
		for _, previous := range []bool{false, true} {
			if log := x.Logs[Log{Namespace: pod.Namespace, Pod: pod.Name, Container: c.Spec.Name, Previous: previous}]; log != "" {
				all = append(all, log)
			}
		}
	}
	return all
}

// Lines returns the last lines of a log, the most recent first.
func (x *Index) Lines(log Log) []string {
	const most = 20
	var lines []string
	for line := range strings.Lines(x.Logs[log]) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line[:min(len(line), LongestLine)])
		}
	}
	slices.Reverse(lines)
	return lines[:min(len(lines), most)]
}

// MostDenials limits the matches taken from one log.
const MostDenials = 20
