package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// Overview counts the objects by namespace.
func Overview(v View) Answer {
	type counts struct{ workloads, pods, healthy, services, jobs int }
	by := map[string]*counts{}
	of := func(namespace string) *counts {
		if by[namespace] == nil {
			by[namespace] = &counts{}
		}
		return by[namespace]
	}
	for i := range v.Namespaces {
		if n := v.Namespaces[i].Name; v.has(n) {
			of(n)
		}
	}
	for _, w := range v.Workloads() {
		of(w.Ref.Namespace).workloads++
	}
	for _, pod := range v.pods() {
		c := of(pod.Namespace)
		c.pods++
		if isHealthy(pod) {
			c.healthy++
		}
	}
	for i := range v.Services {
		if v.in(&v.Services[i]) {
			of(v.Services[i].Namespace).services++
		}
	}
	for i := range v.CronJobs {
		if v.in(&v.CronJobs[i]) {
			of(v.CronJobs[i].Namespace).jobs++
		}
	}
	t := newTable("Namespace", "Workloads", "Pods healthy", "Services", "Cron jobs")
	for _, n := range slices.Sorted(maps.Keys(by)) {
		c := by[n]
		t.add(tableCell(n), strconv.Itoa(c.workloads), fmt.Sprintf("%d of %d", c.healthy, c.pods), strconv.Itoa(c.services), strconv.Itoa(c.jobs))
	}
	return t.under(nodesLine(v), "There is nothing "+v.where()+".")
}

func nodesLine(v View) string {
	good := 0
	for i := range v.Nodes {
		if nodeReady(&v.Nodes[i]) {
			good++
		}
	}
	if len(v.Nodes) == 0 {
		return "What there is, by namespace:"
	}
	return fmt.Sprintf("%d of %s ready. What there is, by namespace:", good, countNoun(len(v.Nodes), "node is", "nodes are"))
}

func nodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// Health shows workloads with their ready and wanted pods; incomplete ones first.
func Health(v View) Answer {
	all := v.Workloads()
	short := func(w Workload) int { return w.Wanted - w.Ready }
	slices.SortStableFunc(all, func(a, b Workload) int {
		return cmp.Or(cmp.Compare(short(b), short(a)), cmp.Compare(b.Unwell, a.Unwell))
	})
	lacking := 0
	t := newTable("Namespace", "Workload", "Ready", "State")
	for _, w := range all {
		state := "ready"
		switch {
		case short(w) > 0:
			state = "lacks " + countNoun(short(w), "pod", "pods")
			lacking++
		case w.Unwell > 0:
			state = countNoun(w.Unwell, "further pod is", "further pods are") + " not healthy"
			lacking++
		case w.Wanted == 0:
			state = "scaled to 0"
		}
		t.add(tableCell(w.Ref.Namespace), kindName(w.Ref), fmt.Sprintf("%d of %d", w.Ready, w.Wanted), state)
	}
	head := fmt.Sprintf("%d of %s ready.", len(all)-lacking, countNoun(len(all), "workload is", "workloads are"))
	for i := range v.Nodes {
		if v.Namespace == "" && !nodeReady(&v.Nodes[i]) {
			head += fmt.Sprintf(" Node %s is not ready.", Code(v.Nodes[i].Name))
		}
	}
	return t.under(head, "There are no workloads "+v.where()+".")
}

// UnhealthyPods lists the pods that are not healthy.
func UnhealthyPods(v View) Answer {
	t := newTable("Namespace", "Pod", "Ready", "State", "Restarts", "Age")
	n := 0
	for _, pod := range v.pods() {
		if isHealthy(pod) {
			continue
		}
		n++
		up, of := readyContainers(pod)
		t.add(tableCell(pod.Namespace), tableCell(pod.Name), fmt.Sprintf("%d/%d", up, of), tableCell(State(pod)), strconv.Itoa(countRestarts(pod)), formatAge(v.Taken, pod.CreationTimestamp.Time))
	}
	return t.under(countNoun(n, "pod is", "pods are")+" not healthy "+v.where()+".", "All pods "+v.where()+" are ready or have completed; only their logs show whether their programs work.")
}

// Restarts lists containers by how often they were restarted.
func Restarts(v View) Answer {
	type entry struct {
		pod   *corev1.Pod
		state corev1.ContainerStatus
	}
	var all []entry
	for _, pod := range v.pods() {
		for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for _, st := range list {
				last := st.LastTerminationState.Terminated
				if st.RestartCount > 0 && (v.Within == 0 || last != nil && v.within(last.FinishedAt.Time)) {
					all = append(all, entry{pod, st})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(b.state.RestartCount, a.state.RestartCount) })
	t := newTable("Namespace", "Pod", "Container", "Restarts", "Last end", "When")
	for _, e := range all {
		end, when := "-", "-"
		if last := e.state.LastTerminationState.Terminated; last != nil {
			end = fmt.Sprintf("%s, %s", tableCell(last.Reason), engine.ExitText(last.ExitCode))
			when = formatAge(v.Taken, last.FinishedAt.Time) + " ago"
		}
		t.add(tableCell(e.pod.Namespace), tableCell(e.pod.Name), tableCell(e.state.Name), strconv.Itoa(int(e.state.RestartCount)), end, when)
	}
	return t.under("Restarted containers "+v.where()+v.period()+", the most restarts first:", "No container "+v.where()+" was restarted"+v.period()+".")
}

// Starts lists when the containers of pods last started, the latest first, and which workloads a person restarted when.
func Starts(v View) Answer {
	type entry struct {
		pod   *corev1.Pod
		state corev1.ContainerStatus
		at    time.Time // zero: it is not running
	}
	var all []entry
	for _, pod := range v.pods() {
		if len(pod.Status.ContainerStatuses) == 0 && v.Within == 0 {
			all = append(all, entry{pod: pod, state: corev1.ContainerStatus{Name: "none started"}})
		}
		for _, st := range pod.Status.ContainerStatuses {
			e := entry{pod: pod, state: st}
			if st.State.Running != nil {
				e.at = st.State.Running.StartedAt.Time
			}
			if v.Within == 0 || v.within(e.at) {
				all = append(all, e)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return b.at.Compare(a.at) })
	t := newTable("Namespace", "Pod", "Age", "Container", "Started", "Ago", "Restarts", "Last end")
	for _, e := range all {
		started, ago, end := "does not run", "-", "-"
		if !e.at.IsZero() {
			started, ago = e.at.UTC().Format(time.RFC3339), formatAge(v.Taken, e.at)
		}
		if last := e.state.LastTerminationState.Terminated; last != nil {
			end = fmt.Sprintf("%s, %s", tableCell(last.Reason), engine.ExitText(last.ExitCode))
		}
		t.add(tableCell(e.pod.Namespace), tableCell(e.pod.Name), formatAge(v.Taken, e.pod.CreationTimestamp.Time), tableCell(e.state.Name), started, ago, strconv.Itoa(int(e.state.RestartCount)), end)
	}
	answer := t.under("When the containers "+v.where()+" started last"+v.period()+", the latest first:", "No container "+v.where()+" started"+v.period()+".")
	v.addRestartsByHand(&answer)
	return answer
}

// addRestartsByHand adds the workloads restarted by kubectl rollout restart, or by a tool that marks them in the same
// way.
func (v View) addRestartsByHand(answer *Answer) {
	for _, w := range v.Workloads() {
		if w.Template == nil {
			continue
		}
		at, err := time.Parse(time.RFC3339, w.Template.Annotations["kubectl.kubernetes.io/restartedAt"])
		if err != nil || v.Within > 0 && !v.within(at) {
			continue
		}
		answer.add("%s in namespace %s was restarted by a rollout restart at %s, %s ago.", Code(w.Ref.Kind+"/"+w.Ref.Name), Code(w.Ref.Namespace), at.UTC().Format(time.RFC3339), formatAge(v.Taken, at))
	}
}

// NoLimits lists containers without a memory or CPU limit or request.
func NoLimits(v View) Answer {
	t := newTable("Namespace", "Workload", "Container", "Missing")
	for _, w := range v.Workloads() {
		for i := range w.Template.Spec.Containers {
			c := &w.Template.Spec.Containers[i]
			var missing []string
			for _, m := range []struct {
				what string
				list corev1.ResourceList
				kind corev1.ResourceName
			}{
				{"memory limit", c.Resources.Limits, corev1.ResourceMemory}, {"CPU limit", c.Resources.Limits, corev1.ResourceCPU},
				{"memory request", c.Resources.Requests, corev1.ResourceMemory}, {"CPU request", c.Resources.Requests, corev1.ResourceCPU},
			} {
				if _, ok := m.list[m.kind]; !ok {
					missing = append(missing, m.what)
				}
			}
			if len(missing) > 0 {
				t.add(tableCell(w.Ref.Namespace), kindName(w.Ref), tableCell(c.Name), joinList(missing))
			}
		}
	}
	return t.under("Containers "+v.where()+" that lack limits or requests:", "Every container "+v.where()+" has limits and requests for CPU and memory.")
}

// NoProbes lists the containers without a probe of the kinds that the words name, or without a readiness or liveness
// probe if they name none. Jobs and init containers that end need none.
func NoProbes(v View, words string) string {
	type kind struct {
		name string
		of   func(*corev1.Container) *corev1.Probe
	}
	kinds := []kind{
		{"readiness", func(c *corev1.Container) *corev1.Probe { return c.ReadinessProbe }},
		{"liveness", func(c *corev1.Container) *corev1.Probe { return c.LivenessProbe }},
		{"startup", func(c *corev1.Container) *corev1.Probe { return c.StartupProbe }},
	}
	asked := slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !strings.Contains(words, k.name) })
	if len(asked) == 0 {
		asked = kinds[:2]
	}
	var names []string
	for _, k := range asked {
		names = append(names, k.name)
	}
	t := newTable("Namespace", "Workload", "Container", "Missing")
	for _, w := range v.Workloads() {
		if w.Ref.Kind == "Job" || w.Ref.Kind == "CronJob" {
			continue // what runs to completion needs none
		}
		sidecars := slices.DeleteFunc(slices.Clone(w.Template.Spec.InitContainers), func(c corev1.Container) bool {
			return c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways
		})
		for _, c := range slices.Concat(sidecars, w.Template.Spec.Containers) {
			var missing []string
			for _, k := range asked {
				if k.of(&c) == nil {
					missing = append(missing, k.name+" probe")
				}
			}
			if len(missing) > 0 {
				t.add(tableCell(w.Ref.Namespace), kindName(w.Ref), tableCell(c.Name), joinList(missing))
			}
		}
	}
	return t.under("Containers "+v.where()+" without a "+strings.Join(names, " or ")+" probe:", "Every container "+v.where()+" has a "+strings.Join(names, " and a ")+" probe.").String()
}

func requestedTable(v View) string {
	t := newTable("Namespace", "Workload", "Container", "CPU request", "Memory request", "Memory limit")
	amount := func(list corev1.ResourceList, kind corev1.ResourceName) string {
		if q, ok := list[kind]; ok {
			return q.String()
		}
		return "none"
	}
	for _, w := range v.Workloads() {
		for i := range w.Template.Spec.Containers {
			c := &w.Template.Spec.Containers[i]
			t.add(tableCell(w.Ref.Namespace), kindName(w.Ref), tableCell(c.Name), amount(c.Resources.Requests, corev1.ResourceCPU),
				amount(c.Resources.Requests, corev1.ResourceMemory), amount(c.Resources.Limits, corev1.ResourceMemory))
		}
	}
	return t.String()
}

// LogPods returns at most so many logs for the objects of a view, pods in trouble first. For a container that ended, it
// is the previous run.
func (v View) LogPods(most int) []engine.Log {
	var bad, good []engine.Log
	for _, pod := range v.pods() {
		for i := range pod.Spec.Containers {
			log := engine.Log{Namespace: pod.Namespace, Pod: pod.Name, Container: pod.Spec.Containers[i].Name}
			at := slices.IndexFunc(pod.Status.ContainerStatuses, func(st corev1.ContainerStatus) bool { return st.Name == log.Container })
			if at < 0 || pod.Status.ContainerStatuses[at].ContainerID == "" && pod.Status.ContainerStatuses[at].LastTerminationState.Terminated == nil && pod.Status.ContainerStatuses[at].State.Running == nil {
				continue // it never ran
			}
			st := pod.Status.ContainerStatuses[at]
			if st.State.Waiting != nil && st.LastTerminationState.Terminated != nil {
				log.Previous = true
			}
			if isHealthy(pod) {
				good = append(good, log)
			} else {
				bad = append(bad, log)
			}
		}
	}
	all := slices.Concat(bad, good)
	return all[:min(len(all), most)]
}

// LogSources returns all logs of the pods of a view: of each container that ran, and of the run before its last restart
// if that was within a period. Pods in trouble come first.
func (v View) LogSources(recent time.Duration) []engine.Log {
	var bad, good []engine.Log
	for _, pod := range v.pods() {
		var logs []engine.Log
		for _, c := range engine.ListContainers(pod) {
			log := engine.Log{Namespace: pod.Namespace, Pod: pod.Name, Container: c.Spec.Name}
			last := c.Status.LastTerminationState.Terminated
			if c.Status.State.Running != nil || c.Status.State.Terminated != nil {
				logs = append(logs, log)
			}
			if last != nil && v.Taken.Sub(last.FinishedAt.Time) < recent {
				log.Previous = true
				logs = append(logs, log)
			}
		}
		if isHealthy(pod) {
			good = append(good, logs...)
		} else {
			bad = append(bad, logs...)
		}
	}
	return slices.Concat(bad, good)
}

// ContainerOf returns the container of a log, or nil.
func (v View) ContainerOf(log engine.Log) *corev1.Container {
	for i := range v.Pods {
		if pod := &v.Pods[i]; pod.Name == log.Pod && pod.Namespace == log.Namespace {
			return engine.FindContainer(&corev1.PodTemplateSpec{Spec: pod.Spec}, log.Container)
		}
	}
	return nil
}
