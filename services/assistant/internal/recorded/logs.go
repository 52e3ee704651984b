package recorded

import (
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// logFile is a file that may be a log.
type logFile struct {
	name, text string
	whole      bool
}

// containerLog is the log of one run of a container.
type containerLog struct{ lines []logLine }

// logLine is a line with the time that the recording gives it; zero where there is none.
type logLine struct {
	at   time.Time
	text string
}

// addLogs assigns each log to the container that its path names.
func (l *loader) addLogs() {
	pods := map[string][]*unstructured.Unstructured{}
	for at, pod := range l.find("", "pods").objects {
		pods[at.name] = append(pods[at.name], pod)
	}
	for _, f := range l.files {
		pod, rest := ownerOfLog(pods, f.name)
		if pod == nil {
			continue
		}
		if sections := splitDump(f.text); len(sections) > 0 {
			for container, text := range sections {
				l.putLog(pod, container, false, text)
			}
			continue
		}
		container, previous := containerOfLog(pod, rest)
		l.putLog(pod, container, previous, f.text)
	}
}

func (l *loader) putLog(pod *unstructured.Unstructured, container string, previous bool, text string) {
	if !slices.Contains(containersOf(pod), container) {
		return
	}
	key := logKey{pod.GetNamespace(), pod.GetName(), container, previous}
	if made := parseLog(text); len(made.lines) >= len(l.logs[key].lines) {
		l.logs[key] = made
	}
}

// ownerOfLog finds the pod that a path names, and the parts after its name. Where pods of several namespaces have that
// name, the path must name the namespace.
func ownerOfLog(pods map[string][]*unstructured.Unstructured, name string) (pod *unstructured.Unstructured, rest []string) {
	parts := strings.Split(name, "/")
	for i := len(parts) - 1; i >= 0; i-- {
		candidates := pods[parts[i]]
		if i == len(parts)-1 && len(candidates) == 0 {
			candidates = pods[strings.TrimSuffix(parts[i], path.Ext(parts[i]))]
		}
		for _, candidate := range candidates {
			if len(candidates) == 1 || slices.Contains(parts[:i], candidate.GetNamespace()) {
				return candidate, parts[i+1:]
			}
		}
	}
	return nil, nil
}

// containerOfLog finds the container from the part of a path after the pod: CONTAINER.log, CONTAINER.previous.log,
// CONTAINER-previous.log, or CONTAINER/…/current.log and previous.log. With nothing after the pod it is the only
// container.
func containerOfLog(pod *unstructured.Unstructured, rest []string) (container string, previous bool) {
	containers := containersOf(pod)
	if len(rest) == 0 {
		if len(containers) == 1 {
			return containers[0], false
		}
		return "", false
	}
	stem := strings.TrimSuffix(rest[len(rest)-1], path.Ext(rest[len(rest)-1]))
	for _, name := range containers {
		switch after, ok := strings.CutPrefix(stem, name); {
		case ok && after == "":
			return name, false
		case ok && (after == ".previous" || after == "-previous" || after == "_previous"):
			return name, true
		}
	}
	for _, part := range rest[:len(rest)-1] {
		if slices.Contains(containers, part) {
			return part, strings.HasPrefix(stem, "previous")
		}
	}
	return "", false
}

// containersOf returns the names of all containers of a pod.
func containersOf(pod *unstructured.Unstructured) (names []string) {
	for _, field := range []string{"initContainers", "containers", "ephemeralContainers"} {
		list, _, _ := unstructured.NestedSlice(pod.Object, "spec", field)
		for _, entry := range list {
			c, _ := entry.(map[string]any)
			if name, _ := c["name"].(string); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// The lines between which kubectl cluster-info dump writes the log of each container into one file.
const (
	dumpStart = "==== START logs for container "
	dumpEnd   = "==== END logs for container "
)

// splitDump splits such a file by container.
func splitDump(text string) map[string]string {
	if !strings.Contains(text, dumpStart) {
		return nil
	}
	sections := map[string]string{}
	for _, section := range strings.Split(text, dumpStart)[1:] {
		head, body, _ := strings.Cut(section, "\n")
		container, _, _ := strings.Cut(head, " ")
		body, _, _ = strings.Cut(body, dumpEnd)
		sections[container] = body
	}
	return sections
}

// parseLog removes the times in front of lines. A line without one has the time of the line before it.
func parseLog(text string) containerLog {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return containerLog{}
	}
	var log containerLog
	var last time.Time
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if front, rest, ok := strings.Cut(line, " "); ok && len(front) >= len("2006-01-02T15:04:05Z") {
			if at, err := time.Parse(time.RFC3339Nano, front); err == nil {
				last, line = at, rest
			}
		}
		log.lines = append(log.lines, logLine{last, line})
	}
	return log
}
