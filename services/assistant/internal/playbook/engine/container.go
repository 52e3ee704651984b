package engine

import (
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Container is a container of a pod, with its spec and its state.
type Container struct {
	Spec   *corev1.Container
	Status *corev1.ContainerStatus
	Init   bool
}

// ListContainers pairs specs with statuses, init containers first. It skips containers without a status, whose pod no
// kubelet has seen.
func ListContainers(pod *corev1.Pod) []Container {
	var all []Container
	pair := func(specs []corev1.Container, statuses []corev1.ContainerStatus, init bool) {
		for i := range specs {
			at := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == specs[i].Name })
			if at >= 0 {
				all = append(all, Container{&specs[i], &statuses[at], init})
			}
		}
	}
	pair(pod.Spec.InitContainers, pod.Status.InitContainerStatuses, true)
	pair(pod.Spec.Containers, pod.Status.ContainerStatuses, false)
	return all
}

// Waiting returns the reason why a container does not run, or empty.
func (c Container) Waiting() string {
	if w := c.Status.State.Waiting; w != nil {
		return w.Reason
	}
	return ""
}

// LastEnd returns the most recent termination of the container, or nil.
func (c Container) LastEnd() *corev1.ContainerStateTerminated {
	if end := c.Status.State.Terminated; end != nil {
		return end
	}
	return c.Status.LastTerminationState.Terminated
}

// OutOfMemory reports whether the kernel's memory limit ended the container, or kept it from starting.
func (c Container) OutOfMemory() bool {
	end := c.LastEnd()
	return end != nil && end.Reason == "OOMKilled" || c.TooSmallToStart()
}

// TooSmallToStart reports whether the memory limit was too low even to start the container's program.
func (c Container) TooSmallToStart() bool {
	if end := c.LastEnd(); end != nil && end.Reason != "OOMKilled" && SaysTooSmall(end.Message) {
		return true
	}
	w := c.Status.State.Waiting
	return w != nil && SaysTooSmall(w.Message)
}

// tooSmallExpr matches the messages of container runtimes about a memory limit too low to start a program.
var tooSmallExpr = regexp.MustCompile(`(?i)\binit was OOM-killed|memory limit too low|memory limit \S+ too low|minimum memory limit allowed`)

// SaysTooSmall reports whether a message of a container runtime means that the memory limit is too low to start a
// program.
func SaysTooSmall(message string) bool { return tooSmallExpr.MatchString(message) }

// KeepsCrashing reports whether a container keeps ending. A loop is also seen between two
// crashes, while the container runs and is not ready yet.
func KeepsCrashing(pod *corev1.Pod, c Container) bool {
	end := c.LastEnd()
	if end == nil {
		return false
	}
	if c.Waiting() == "CrashLoopBackOff" {
		return true
	}
	if end.ExitCode == 0 {
		return false
	}
	if c.Status.State.Terminated != nil {
		return pod.Spec.RestartPolicy != corev1.RestartPolicyNever
	}
	return c.Status.RestartCount >= 2 && !c.Status.Ready
}

// Recent is how long a restart is worth mentioning after the container has recovered.
const Recent = 24 * time.Hour

// FindContainer returns the container of that name in a template, or nil.
func FindContainer(t *corev1.PodTemplateSpec, name string) *corev1.Container {
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

// DeclaredPorts returns the ports that a container declares.
func DeclaredPorts(c *corev1.Container) []int32 {
	var ports []int32
	for _, p := range c.Ports {
		ports = append(ports, p.ContainerPort)
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// NearCPULimit is the share of its CPU limit, in percent, from which a container is probably throttled: the samples of the
// metrics API are averages, and a busy loop on a real kernel was measured at 82 to 100.
const NearCPULimit = 80
