package playbook

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// outOfMemory explains class 2. A container that came back and stays is told of for a day.
func outOfMemory(x *index, pod *corev1.Pod, w *workload) []Finding {
	var found []Finding
	for _, c := range listContainers(pod) {
		if !c.outOfMemory() || pod.Status.Phase == corev1.PodFailed && w.ref.Kind == "Job" {
			continue // a failed job is told of as a whole
		}
		end := c.lastEnd()
		if c.status.Ready && x.Taken.Sub(end.FinishedAt.Time) > recent {
			continue
		}
		f := tooMuchMemory(w, c)
		f.Class, f.Object, f.container = OutOfMemory, w.ref, c.spec.Name
		found = append(found, f)
	}
	return found
}

// tooMuchMemory says what the kernel ended a container for.
func tooMuchMemory(w *workload, c container) Finding {
	end := c.lastEnd()
	f := Finding{Confidence: High}
	ended := fmt.Sprintf("Container %s was ended by the kernel for its memory (exit code %d)", quoteCode(c.spec.Name), end.ExitCode)
	if c.status.RestartCount > 0 {
		ended += " and was restarted " + countNoun(int(c.status.RestartCount), "time", "times")
	}
	f.Evidence = []string{ended + "."}
	if limit, ok := c.spec.Resources.Limits[corev1.ResourceMemory]; ok {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Its memory limit is %s.", limit.String()))
		f.Cause = fmt.Sprintf("The program wants more memory than the limit of %s: the limit is too low, or the program leaks.", limit.String())
		f.Text = fmt.Sprintf("Say which memory limit %s is to have; if its use grows without end, the program has to be repaired.", refTitle(w.ref))
		f.oldLimit(w, c)
	} else {
		f.Evidence = append(f.Evidence, "It has no memory limit of its own.")
		f.Cause, f.Confidence = "The node or the pod as a whole ran out of memory, and this container had no limit of its own.", Medium
		f.Text = fmt.Sprintf("Say which memory request and limit %s is to have.", refTitle(w.ref))
	}
	return f
}

// oldLimit offers the limit of the newest revision that had a higher one.
func (f *Finding) oldLimit(w *workload, c container) {
	if !w.patchable() || c.init {
		return
	}
	now := c.spec.Resources.Limits[corev1.ResourceMemory]
	for _, r := range w.older {
		then := findContainer(r.template, c.spec.Name)
		if then == nil {
			continue
		}
		limit, ok := then.Resources.Limits[corev1.ResourceMemory]
		if !ok || limit.Cmp(now) <= 0 {
			continue
		}
		o := newOperation(operation.SetResources, w.ref)
		o.Container = c.spec.Name
		o.Limits = map[string]string{"memory": limit.String()}
		if f.Fix = validFix(o); f.Fix != nil {
			f.Text = fmt.Sprintf("Give back the memory limit of revision %d, %s.", r.number, limit.String())
		}
		return
	}
}
