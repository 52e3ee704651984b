package engine

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// mainContainer returns the name of a pod's main container: the one in kubectl's annotation, the one with the
// workload's name, or the first.
func mainContainer(pod *corev1.Pod, w *Workload) string {
	for _, name := range []string{pod.Annotations["kubectl.kubernetes.io/default-container"], w.Ref.Name} {
		if slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name }) {
			return name
		}
	}
	if len(pod.Spec.Containers) == 0 {
		return ""
	}
	return pod.Spec.Containers[0].Name
}

// RunsBeside reports whether an init container keeps running with the others: a native sidecar.
func RunsBeside(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// placeFinding classifies findings as InitContainer or Sidecar: a container other than the main one keeps its cause,
// and the finding clears the main container.
func placeFinding(f Finding, pod *corev1.Pod, w *Workload) Finding {
	all := ListContainers(pod)
	at := slices.IndexFunc(all, func(c Container) bool { return c.Spec.Name == f.Container })
	main := slices.IndexFunc(all, func(c Container) bool { return c.Spec.Name == mainContainer(pod, w) })
	if at < 0 || at == main || f.Class == InitContainer || f.Class == Sidecar {
		return f
	}
	c := all[at]
	if c.Init && !RunsBeside(c.Spec) {
		f.As, f.Class = f.Class, InitContainer
		f.Evidence = append([]string{InitText(pod, c)}, f.Evidence...)
		return f
	}
	if main < 0 {
		return f
	}
	where := ""
	switch m := all[main]; {
	case m.Status.State.Running != nil && m.Status.Ready:
		where = fmt.Sprintf("Container %s is a sidecar; the main container %s runs and is ready.", QuoteCode(c.Spec.Name), QuoteCode(m.Spec.Name))
	case c.Init && m.LastEnd() == nil && m.Status.State.Running == nil:
		where = fmt.Sprintf("Container %s is a sidecar; the main container %s only starts after it.", QuoteCode(c.Spec.Name), QuoteCode(m.Spec.Name))
	default:
		return f // the main container has its own problems
	}
	f.As, f.Class = f.Class, Sidecar
	f.Evidence = append([]string{where}, f.Evidence...)
	return f
}

// InitText names an init container, and the containers that wait for it.
func InitText(pod *corev1.Pod, c Container) string {
	ended, all := 0, 0
	for _, other := range ListContainers(pod) {
		if !other.Init || RunsBeside(other.Spec) {
			continue
		}
		all++
		if end := other.Status.State.Terminated; end != nil && end.ExitCode == 0 {
			ended++
		}
	}
	return fmt.Sprintf("Init container %s has to end well before the pod's containers start (Init:%d/%d); these have not run yet.", QuoteCode(c.Spec.Name), ended, all)
}
