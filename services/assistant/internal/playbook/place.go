package playbook

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// mainContainer is the container that a pod is there for: the one that the annotation of
// kubectl names, the one with the workload's name, or the first.
func mainContainer(pod *corev1.Pod, w *workload) string {
	for _, name := range []string{pod.Annotations["kubectl.kubernetes.io/default-container"], w.ref.Name} {
		if slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name }) {
			return name
		}
	}
	if len(pod.Spec.Containers) == 0 {
		return ""
	}
	return pod.Spec.Containers[0].Name
}

// runsBeside says whether an init container stays while the others run: a sidecar.
func runsBeside(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// placeFinding explains classes 26 and 27: a container that is not the main one keeps its cause,
// and the finding says that the main one is not to blame.
func placeFinding(f Finding, pod *corev1.Pod, w *workload) Finding {
	all := listContainers(pod)
	at := slices.IndexFunc(all, func(c container) bool { return c.spec.Name == f.container })
	main := slices.IndexFunc(all, func(c container) bool { return c.spec.Name == mainContainer(pod, w) })
	if at < 0 || at == main || f.Class == InitContainer || f.Class == Sidecar {
		return f
	}
	c := all[at]
	if c.init && !runsBeside(c.spec) {
		f.As, f.Class = f.Class, InitContainer
		f.Evidence = append([]string{initText(pod, c)}, f.Evidence...)
		return f
	}
	if main < 0 {
		return f
	}
	where := ""
	switch m := all[main]; {
	case m.status.State.Running != nil && m.status.Ready:
		where = fmt.Sprintf("Container %s is a sidecar; the main container %s runs and is ready.", quoteCode(c.spec.Name), quoteCode(m.spec.Name))
	case c.init && m.lastEnd() == nil && m.status.State.Running == nil:
		where = fmt.Sprintf("Container %s is a sidecar; the main container %s only starts after it.", quoteCode(c.spec.Name), quoteCode(m.spec.Name))
	default:
		return f // the main container has troubles of its own
	}
	f.As, f.Class = f.Class, Sidecar
	f.Evidence = append([]string{where}, f.Evidence...)
	return f
}

// initText says which of the init containers is meant, and what waits for it.
func initText(pod *corev1.Pod, c container) string {
	ended, all := 0, 0
	for _, other := range listContainers(pod) {
		if !other.init || runsBeside(other.spec) {
			continue
		}
		all++
		if end := other.status.State.Terminated; end != nil && end.ExitCode == 0 {
			ended++
		}
	}
	return fmt.Sprintf("Init container %s has to end well before the pod's containers start (Init:%d/%d); these have not run yet.", quoteCode(c.spec.Name), ended, all)
}
