package workload

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// checkMemory explains OutOfMemory. A container that came back and stays is reported for a day.
func checkMemory(x *Index, pod *corev1.Pod, w *engine.Workload) []engine.Finding {
	var found []engine.Finding
	for _, c := range engine.ListContainers(pod) {
		if !c.OutOfMemory() || pod.Status.Phase == corev1.PodFailed && w.Ref.Kind == "Job" {
			continue // a failed job is told of as a whole
		}
		end := c.LastEnd()
		if c.Status.Ready && x.Taken.Sub(end.FinishedAt.Time) > engine.Recent {
			continue
		}
		f := tooMuchMemory(w, c)
		f.Class, f.Object, f.Container = engine.OutOfMemory, w.Ref, c.Spec.Name
		found = append(found, f)
	}
	return found
}

// tooMuchMemory explains why the kernel killed a container.
func tooMuchMemory(w *engine.Workload, c engine.Container) engine.Finding {
	end := c.LastEnd()
	f := engine.Finding{Confidence: engine.High}
	ended := fmt.Sprintf("Container %s was ended by the kernel for its memory (exit code %d)", engine.QuoteCode(c.Spec.Name), end.ExitCode)
	if c.Status.RestartCount > 0 {
		ended += " and was restarted " + engine.CountNoun(int(c.Status.RestartCount), "time", "times")
	}
	f.Evidence = []string{ended + "."}
	if limit, ok := c.Spec.Resources.Limits[corev1.ResourceMemory]; ok {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Its memory limit is %s.", limit.String()))
		f.Cause = fmt.Sprintf("The program wants more memory than the limit of %s: the limit is too low, or the program leaks.", limit.String())
		f.Text = fmt.Sprintf("Say which memory limit %s is to have; if its use grows without end, the program has to be repaired.", engine.RefTitle(w.Ref))
		offerOldLimit(&f, w, c)
	} else {
		f.Evidence = append(f.Evidence, "It has no memory limit of its own.")
		f.Cause, f.Confidence = "The node or the pod as a whole ran out of memory, and this container had no limit of its own.", engine.Medium
		f.Text = fmt.Sprintf("Say which memory request and limit %s is to have.", engine.RefTitle(w.Ref))
	}
	return f
}

// offerOldLimit offers the limit of the newest revision that had a higher one.
func offerOldLimit(f *engine.Finding, w *engine.Workload, c engine.Container) {
	if !w.Patchable() || c.Init {
		return
	}
	now := c.Spec.Resources.Limits[corev1.ResourceMemory]
	for _, r := range w.Older {
		then := engine.FindContainer(r.Template, c.Spec.Name)
		if then == nil {
			continue
		}
		limit, ok := then.Resources.Limits[corev1.ResourceMemory]
		if !ok || limit.Cmp(now) <= 0 {
			continue
		}
		o := engine.NewOperation(operation.SetResources, w.Ref)
		o.Container = c.Spec.Name
		o.Limits = map[string]string{"memory": limit.String()}
		if f.Fix = engine.ValidFix(o); f.Fix != nil {
			f.Text = fmt.Sprintf("Give back the memory limit of revision %d, %s.", r.Number, limit.String())
		}
		return
	}
}
