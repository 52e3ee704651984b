package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
)

// used is the usage in one row of a table.
type used struct {
	namespace, name string
	containers      int
	cpu, memory     resource.Quantity
	limit           string // of memory; of one container only
}

// Usage ranks the current usage of pods, with the first of the order in a sentence above the table.
func Usage(v View, r question.Ranking) string {
	if v.Snapshot.Usage == nil && r.By == "node" {
		return "The cluster has no metrics API, or it cannot be read, so current usage is unknown.\n\n" + Capacity(v).String()
	}
	if v.Snapshot.Usage == nil {
		return "The cluster has no metrics API, or it cannot be read, so current usage is unknown. Pod requests:\n\n" + requestedTable(v)
	}
	rows := v.sumUsage(r.By)
	order, column := func(a, b used) int { return b.memory.Cmp(a.memory) }, "memory"
	if r.CPU {
		order, column = func(a, b used) int { return b.cpu.Cmp(a.cpu) }, "CPU"
	}
	slices.SortFunc(rows, func(a, b used) int {
		first := order(a, b)
		if r.Least {
			first = -first
		}
		return cmp.Or(first, cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	superlative := "most"
	if r.Least {
		superlative = "least"
	}
	head := fmt.Sprintf("What %s %s use now, the %s %s first:", PluralOf(r.By), v.where(), superlative, column)
	if len(rows) > 0 {
		first := rows[0]
		amount := first.memory.String()
		if r.CPU {
			amount = first.cpu.String()
		}
		in := ""
		if first.namespace != "" {
			in = " in namespace " + Code(first.namespace)
		}
		head = fmt.Sprintf("%s %s%s uses the %s %s: %s of the %s measured.\n\n%s", strings.ToUpper(r.By[:1])+r.By[1:], Code(first.name), in, superlative, column,
			amount, countNoun(len(rows), r.By, PluralOf(r.By)), head)
	}
	t := newTable("Namespace", strings.ToUpper(r.By[:1])+r.By[1:], "CPU", "Memory", "Containers", "Memory limit")
	for _, u := range rows {
		t.add(tableCell(u.namespace), tableCell(u.name), u.cpu.String(), u.memory.String(), fmt.Sprint(u.containers), cmp.Or(u.limit, "none"))
	}
	missing := ""
	if n := v.unmeasured(); n > 0 {
		missing = fmt.Sprintf("\nOf %s that run, the metrics API has no sample, so they are not ranked.\n", countNoun(n, "pod", "pods"))
	}
	return t.under(head, "The metrics API has no samples "+v.where()+" yet.").String() + missing
}

// sumUsage adds up the samples of the containers of a view.
func (v View) sumUsage(by string) []used {
	owner, sums := v.Owners(), map[[2]string]*used{}
	for _, pod := range v.pods() {
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			sample, ok := v.Snapshot.Usage[engine.Log{Namespace: pod.Namespace, Pod: pod.Name, Container: c.Name}]
			if !ok {
				continue
			}
			key := usageKey(by, pod, c.Name, owner)
			u := sums[key]
			if u == nil {
				u = &used{namespace: key[0], name: key[1]}
				sums[key] = u
			}
			u.containers++
			u.cpu.Add(*sample.Cpu())
			u.memory.Add(*sample.Memory())
			u.limit = ""
			if l, limited := c.Resources.Limits[corev1.ResourceMemory]; limited && u.containers == 1 {
				u.limit = l.String()
			} else if u.containers > 1 {
				u.limit = "-"
			}
		}
	}
	rows := make([]used, 0, len(sums))
	for _, key := range slices.SortedFunc(maps.Keys(sums), func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }) {
		rows = append(rows, *sums[key])
	}
	return rows
}

// usageKey is the namespace and name of the row that a container belongs to.
func usageKey(by string, pod *corev1.Pod, container string, owner func(*corev1.Pod) operation.Ref) [2]string {
	switch by {
	case "node":
		return [2]string{"", cmp.Or(pod.Spec.NodeName, "no node")}
	case "namespace":
		return [2]string{"", pod.Namespace}
	case "container":
		return [2]string{pod.Namespace, pod.Name + "/" + container}
	case "workload":
		o := owner(pod)
		return [2]string{pod.Namespace, strings.ToLower(o.Kind) + "/" + o.Name}
	}
	return [2]string{pod.Namespace, pod.Name}
}

// unmeasured counts the running pods without any sample.
func (v View) unmeasured() int {
	n := 0
	for _, pod := range v.pods() {
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		sampled := slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
			_, ok := v.Snapshot.Usage[engine.Log{Namespace: pod.Namespace, Pod: pod.Name, Container: c.Name}]
			return ok
		})
		if !sampled {
			n++
		}
	}
	return n
}
