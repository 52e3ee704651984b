package snapshot

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// shownRows limits the rows of one kind in a shown result. A frame holds 500 characters, which fits the first objects
// of every kind of a group.
const shownRows = 25

// rowsOf returns the first objects of a list, as namespace/name.
func rowsOf[T any, P interface {
	*T
	metav1.Object
}](list []T) []string {
	rows := make([]string, 0, min(len(list), shownRows))
	for i := range list[:min(len(list), shownRows)] {
		rows = append(rows, nameRow(P(&list[i]).GetNamespace(), P(&list[i]).GetName()))
	}
	return rows
}

func nameRow(namespace, name string) string { return strings.TrimPrefix(namespace+"/"+name, "/") }

// podRows returns the pods with their state, unhealthy ones first.
func (r *reading) podRows() []string {
	var unhealthy, healthy []string
	for i := range r.into.Pods {
		pod := &r.into.Pods[i]
		if pod.Name == "" {
			continue // load of a hidden namespace
		}
		state := report.State(pod)
		row := nameRow(pod.Namespace, pod.Name) + " " + state
		if state == "Running" || state == "Succeeded" {
			healthy = append(healthy, row)
		} else {
			unhealthy = append(unhealthy, row)
		}
	}
	rows := slices.Concat(unhealthy, healthy)
	return rows[:min(len(rows), shownRows)]
}

func (r *reading) secretRows() []string {
	var rows []string
	for _, s := range r.into.Secrets {
		rows = append(rows, nameRow(s.Namespace, s.Name))
	}
	slices.Sort(rows)
	return rows[:min(len(rows), shownRows)]
}

func (r *reading) usageRows() []string {
	var rows []string
	for log, used := range r.into.Usage {
		rows = append(rows, fmt.Sprintf("%s %s cpu=%s memory=%s", nameRow(log.Namespace, log.Pod), log.Container, used.Cpu(), used.Memory()))
	}
	slices.Sort(rows)
	return rows[:min(len(rows), shownRows)]
}

// outcome is the result of reading one kind.
type outcome struct {
	name  string
	n     int
	whole bool
	rows  []string
	err   error
}

// text shows the result for a kind: its objects, as many as fit, or why there are none.
func (o outcome) text() string {
	switch {
	case o.err != nil:
		return o.name + ": " + cluster.Fail(o.err).Error()
	case o.n == 0:
		return "No " + o.name + " found."
	}
	more := ""
	if o.n > len(o.rows) && len(o.rows) > 0 {
		more = fmt.Sprintf("\n  and %d more", o.n-len(o.rows))
	}
	if !o.whole {
		more += "\n  and more that were not read"
	}
	if len(o.rows) == 0 {
		return fmt.Sprintf("%d %s%s", o.n, o.name, more)
	}
	return o.name + ":\n  " + strings.Join(o.rows, "\n  ") + more
}

// result returns the shown result of a group's call.
func (g *group) result() (turn.Output, error) {
	refused := 0
	texts := make([]string, 0, len(g.outcomes))
	for _, o := range g.outcomes {
		if o.err != nil {
			refused++
		}
		texts = append(texts, o.text())
	}
	if refused == len(g.outcomes) && g.err != nil {
		return turn.Output{}, cluster.Fail(g.err)
	}
	return turn.Output{Text: redact.Text(strings.Join(texts, "\n") + "\n"), Truncated: refused > 0}, nil
}
