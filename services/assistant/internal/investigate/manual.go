package investigate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
)

// describeManual prints the command for what the assistant does not run: it opens no connection into a cluster and runs
// nothing in a container.
func describeManual(a question.Ask, t *topic) string {
	const why = "I open no connection into the cluster and run nothing in containers. In your own shell, with your own account:\n\n"
	verb := "exec"
	switch {
	case strings.Contains(a.Words, "forward"):
		verb = "port-forward"
	case strings.Contains(a.Words, "file"):
		verb = "cp"
	}
	objects := slices.Clone(t.objects)
	if verb == "port-forward" { // a Service outlives the pods behind it
		slices.SortStableFunc(objects, func(a, b operation.Ref) int { return cmp.Compare(rankService(a), rankService(b)) })
	}
	for _, r := range objects {
		if command := manualCommand(t, verb, r); command != "" {
			return why + indentCode(command)
		}
	}
	example := map[string]string{
		"exec": "kubectl exec -it deployment/NAME -n NAMESPACE -- sh", "port-forward": "kubectl port-forward service/NAME 8080:PORT -n NAMESPACE",
		"cp": "kubectl cp NAMESPACE/POD:/path/of/file ./file",
	}[verb]
	return why + indentCode(example) + "\nName a workload, pod or Service, and I fill in its names and ports."
}

func rankService(r operation.Ref) int {
	if r.Kind == "Service" {
		return 0
	}
	return 1
}

// manualCommand is the command for one object, or empty for a kind that has none.
func manualCommand(t *topic, verb string, r operation.Ref) string {
	target := strings.ToLower(r.Kind) + "/" + r.Name
	switch r.Kind {
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Pod", "Job":
	case "Service":
		if verb != "port-forward" {
			return ""
		}
	default:
		return ""
	}
	view := report.View{Snapshot: t.snap, Namespace: r.Namespace, Objects: []operation.Ref{r}}
	logs := view.LogSources(0)
	switch verb {
	case "port-forward":
		port := cmp.Or(t.portOf(r), view.FirstPort())
		if port == 0 {
			return fmt.Sprintf("kubectl port-forward %s 8080:PORT -n %s", target, r.Namespace)
		}
		return fmt.Sprintf("kubectl port-forward %s %d:%d -n %s", target, localPort(port), port, r.Namespace)
	case "cp":
		pod := "POD"
		if len(logs) > 0 {
			pod = logs[0].Pod
		}
		return fmt.Sprintf("kubectl cp %s/%s:/path/of/file ./file", r.Namespace, pod)
	}
	container := ""
	if len(logs) > 0 {
		container = " -c " + logs[0].Container
	}
	return fmt.Sprintf("kubectl exec -it %s -n %s%s -- sh", target, r.Namespace, container)
}

// portOf returns the first port of a Service, or 0.
func (t *topic) portOf(r operation.Ref) int32 {
	for i := range t.snap.Services {
		if s := &t.snap.Services[i]; r.Kind == "Service" && s.Name == r.Name && s.Namespace == r.Namespace && len(s.Spec.Ports) > 0 {
			return s.Spec.Ports[0].Port
		}
	}
	return 0
}

// localPort returns a local port that needs no root rights.
func localPort(port int32) int32 {
	if port < 1024 {
		return 8000 + port
	}
	return port
}
