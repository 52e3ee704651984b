package playbook

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// container is a container of a pod, its wish beside its state.
type container struct {
	spec   *corev1.Container
	status *corev1.ContainerStatus
	init   bool
}

// listContainers pairs specs with statuses, init containers first. Those without a status,
// because no kubelet has seen the pod, are left out.
func listContainers(pod *corev1.Pod) []container {
	var all []container
	pair := func(specs []corev1.Container, statuses []corev1.ContainerStatus, init bool) {
		for i := range specs {
			at := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == specs[i].Name })
			if at >= 0 {
				all = append(all, container{&specs[i], &statuses[at], init})
			}
		}
	}
	pair(pod.Spec.InitContainers, pod.Status.InitContainerStatuses, true)
	pair(pod.Spec.Containers, pod.Status.ContainerStatuses, false)
	return all
}

// waiting is the reason why a container does not run, or empty.
func (c container) waiting() string {
	if w := c.status.State.Waiting; w != nil {
		return w.Reason
	}
	return ""
}

// lastEnd is how the container ended most recently, or nil.
func (c container) lastEnd() *corev1.ContainerStateTerminated {
	if end := c.status.State.Terminated; end != nil {
		return end
	}
	return c.status.LastTerminationState.Terminated
}

// outOfMemory says whether the kernel's memory limit ended the container.
func (c container) outOfMemory() bool {
	end := c.lastEnd()
	return end != nil && end.Reason == "OOMKilled"
}

// keepsCrashing says whether a container keeps ending. A loop is also seen between two
// crashes, while the container runs and is not ready yet.
func keepsCrashing(pod *corev1.Pod, c container) bool {
	end := c.lastEnd()
	if end == nil {
		return false
	}
	if c.waiting() == "CrashLoopBackOff" {
		return true
	}
	if end.ExitCode == 0 {
		return false
	}
	if c.status.State.Terminated != nil {
		return pod.Spec.RestartPolicy != corev1.RestartPolicyNever
	}
	return c.status.RestartCount >= 2 && !c.status.Ready
}

// recent bounds how long a restart that was overcome is still worth telling.
const recent = 24 * time.Hour

// findContainer returns the container of that name in a template, or nil.
func findContainer(t *corev1.PodTemplateSpec, name string) *corev1.Container {
	if t == nil {
		return nil
	}
	for _, list := range [][]corev1.Container{t.Spec.Containers, t.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// declaredPorts are the ports that a container says it listens on.
func declaredPorts(c *corev1.Container) []int32 {
	var ports []int32
	for _, p := range c.Ports {
		ports = append(ports, p.ContainerPort)
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}
