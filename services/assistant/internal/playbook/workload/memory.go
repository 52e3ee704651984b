package workload

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// checkMemory explains OutOfMemory. A container that has recovered is reported for a day.
func checkMemory(x *Index, pod *corev1.Pod, w *engine.Workload) []engine.Finding {
	var found []engine.Finding
	for _, c := range engine.ListContainers(pod) {
		if !c.OutOfMemory() || pod.Status.Phase == corev1.PodFailed && w.Ref.Kind == "Job" {
			continue // a failed job is reported as a whole
		}
		if c.TooSmallToStart() && !c.Status.Ready {
			f := x.tooSmall(pod, w, c)
			f.Container = c.Spec.Name
			found = append(found, f)
			continue
		}
		end := c.LastEnd()
		if end == nil || c.Status.Ready && x.Taken.Sub(end.FinishedAt.Time) > engine.Recent {
			continue
		}
		f := tooMuchMemory(w, c)
		explainHeap(&f, c.Spec)
		explainMemoryVolumes(&f, &pod.Spec, c.Spec)
		f.Class, f.Object, f.Container = engine.OutOfMemory, w.Ref, c.Spec.Name
		found = append(found, f)
	}
	if len(found) > 0 || pod.Status.Phase != corev1.PodPending {
		return found
	}
	// The sandbox is created before any container, so the event is on the pod as a whole.
	if e := x.EventOf(pod.UID, func(e *corev1.Event) bool { return e.Reason == "FailedCreatePodSandBox" }); e != nil && engine.SaysTooSmall(e.Message) {
		for i := range pod.Spec.Containers {
			if _, limited := pod.Spec.Containers[i].Resources.Limits[corev1.ResourceMemory]; limited {
				return []engine.Finding{x.tooSmall(pod, w, engine.Container{Spec: smallest(pod.Spec.Containers)})}
			}
		}
	}
	return found
}

// smallest returns the container with the lowest memory limit.
func smallest(containers []corev1.Container) *corev1.Container {
	var least *corev1.Container
	for i := range containers {
		c := &containers[i]
		if limit, ok := c.Resources.Limits[corev1.ResourceMemory]; ok && (least == nil || limit.Cmp(least.Resources.Limits[corev1.ResourceMemory]) < 0) {
			least = c
		}
	}
	return least
}

// tooSmall explains a memory limit that is too low even to start the container's program.
func (x *Index) tooSmall(pod *corev1.Pod, w *engine.Workload, c engine.Container) engine.Finding {
	limit := c.Spec.Resources.Limits[corev1.ResourceMemory]
	f := engine.Finding{Class: engine.OutOfMemory, Object: w.Ref, Confidence: engine.High}
	if e := x.EventOf(pod.UID, func(e *corev1.Event) bool { return engine.SaysTooSmall(e.Message) }); e != nil {
		f.Evidence = append(f.Evidence, "The kubelet says "+engine.QuoteLine(e.Message)+".")
	}
	f.Evidence = append(f.Evidence, fmt.Sprintf("The memory limit of container %s is %s.", engine.QuoteCode(c.Spec.Name), limit.String()))
	f.Cause = fmt.Sprintf("The memory limit of %s is too low to start the container: it is killed for its memory (OOM) before its program starts.", limit.String())
	f.Text = fmt.Sprintf("Choose a higher memory limit for %s.", engine.RefTitle(w.Ref))
	offerOldLimit(&f, w, c)
	return f
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
		f.Text = fmt.Sprintf("Choose a higher memory limit for %s; if its usage grows without end, fix the program.", engine.RefTitle(w.Ref))
		offerOldLimit(&f, w, c)
	} else {
		f.Evidence = append(f.Evidence, "It has no memory limit.")
		f.Cause, f.Confidence = "The node or the pod as a whole ran out of memory, and this container had no memory limit.", engine.Medium
		f.Text = fmt.Sprintf("Choose a memory request and limit for %s.", engine.RefTitle(w.Ref))
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
