//go:build e2e

package eval

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// play writes the status of a pod, and its events.
func (x *actor) play(ctx context.Context, client kubernetes.Interface, p *corev1.Pod) error {
	pod := p.DeepCopy()
	now := metav1.Now()
	pod.Status.StartTime, pod.Status.HostIP = &now, "127.0.0.1"
	var sum uint16
	for _, r := range string(p.UID) {
		sum = sum*31 + uint16(r)
	}
	pod.Status.PodIP = fmt.Sprintf("10.244.%d.%d", sum>>8, sum&0xff|1)
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	main := x.part[:1+len(x.workload.Sidecars)]
	blocked := false
	pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = nil, nil
	for _, c := range x.part[len(main):] {
		if blocked {
			c = part{Container: &Container{Name: c.Name, Image: c.Image, State: "waiting", Why: "PodInitializing"}}
		}
		s := c.status(p)
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, s)
		sidecar := s.State.Running != nil && s.Ready // one of the native kind restarts always
		blocked = blocked || !sidecar && (s.State.Terminated == nil || s.State.Terminated.ExitCode != 0)
	}
	ready, phase := !blocked, corev1.PodRunning
	waiting, ended, failed := blocked, 0, false
	for _, c := range main {
		if blocked {
			c = part{Container: &Container{Name: c.Name, Image: c.Image, State: "waiting", Why: "PodInitializing"}}
		}
		s := c.status(p)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, s)
		ready = ready && s.Ready
		waiting = waiting || s.State.Waiting != nil && s.LastTerminationState.Terminated == nil
		if t := s.State.Terminated; t != nil {
			ended++
			failed = failed || t.ExitCode != 0
		}
	}
	switch {
	case waiting:
		phase = corev1.PodPending
	case ended == len(main) && failed:
		phase = corev1.PodFailed
	case ended == len(main):
		phase = corev1.PodSucceeded
	}
	pod.Status.Phase = corev1.PodPhase(cmp.Or(x.workload.Phase, string(phase)))
	pod.Status.Reason, pod.Status.Message = x.workload.Reason, x.workload.Text
	if pod.Status.Reason == "Evicted" {
		pod.Status.ContainerStatuses, pod.Status.PodIP, pod.Status.PodIPs, ready = nil, "", nil, false
	}
	for _, c := range []struct {
		kind  corev1.PodConditionType
		holds bool
	}{{corev1.PodInitialized, !blocked}, {corev1.ContainersReady, ready}, {corev1.PodReady, ready && len(pod.Spec.ReadinessGates) == 0}} {
		cond := corev1.PodCondition{Type: c.kind, Status: corev1.ConditionTrue, LastTransitionTime: now}
		if !c.holds {
			cond.Status, cond.Reason = corev1.ConditionFalse, "ContainersNotReady"
		}
		pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(k corev1.PodCondition) bool { return k.Type == c.kind })
		pod.Status.Conditions = append(pod.Status.Conditions, cond)
	}
	if _, err := client.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		return err
	}
	n := 0
	for i, c := range x.part {
		if i >= 1 && i < len(main) && blocked {
			continue
		}
		field := "spec.containers{" + c.Name + "}"
		if i >= len(main) {
			field = "spec.initContainers{" + c.Name + "}"
		}
		for _, e := range append(c.usualEvents(p), c.Events...) {
			n++
			if err := tell(ctx, client, p, e, field, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// tell creates an event as a kubelet does.
func tell(ctx context.Context, client kubernetes.Interface, p *corev1.Pod, e Event, field string, n int) error {
	now := time.Now()
	switch e.Reason { // these are about the pod
	case "FailedMount", "FailedAttachVolume", "Evicted", "FailedCreatePodSandBox", "NetworkNotReady", "NodeNotReady", "TaintManagerEviction", "Preempted":
		field = ""
	}
	_, err := client.CoreV1().Events(p.Namespace).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x%02x", p.Name, now.UnixNano(), n), Namespace: p.Namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: p.Namespace, Name: p.Name, UID: p.UID, FieldPath: field},
		Reason:         e.Reason, Message: e.Message, Type: cmp.Or(e.Type, corev1.EventTypeWarning), Count: cmp.Or(e.Count, 4),
		FirstTimestamp: metav1.NewTime(now.Add(-7 * time.Minute)), LastTimestamp: metav1.NewTime(now.Add(-20 * time.Second)),
		Source: corev1.EventSource{Component: "kubelet", Host: p.Spec.NodeName},
	}, metav1.CreateOptions{})
	return err
}

// usualEvents returns the events that a kubelet records for a state.
func (c part) usualEvents(p *corev1.Pod) []Event {
	switch {
	case c.State == "crash":
		return []Event{{Reason: "BackOff", Message: fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)", c.Name, p.Name, p.Namespace, p.UID), Count: 31}}
	case c.State == "unready" && c.Message != "":
		return []Event{{Reason: "Unhealthy", Message: "Readiness probe failed: " + c.Message, Count: 57}}
	case c.State == "waiting" && c.Why == "ImagePullBackOff":
		return []Event{
			{Reason: "Failed", Message: fmt.Sprintf("Failed to pull image %q: %s", c.Image, c.Message)},
			{Reason: "Failed", Message: "Error: ErrImagePull"},
			{Reason: "BackOff", Message: fmt.Sprintf("Back-off pulling image %q", c.Image), Count: 15},
		}
	case c.State == "waiting" && c.Why == "CreateContainerConfigError":
		return []Event{{Reason: "Failed", Message: "Error: " + c.Message, Count: 12}}
	}
	return nil
}

// status returns the kubelet's status of a container.
func (c part) status(p *corev1.Pod) corev1.ContainerStatus {
	now := time.Now()
	started := true
	s := corev1.ContainerStatus{Name: c.Name, RestartCount: c.Restarts, Started: &started, ImageID: "sha256:" + fmt.Sprintf("%x", c.Image)}
	for _, spec := range append(slices.Clone(p.Spec.InitContainers), p.Spec.Containers...) {
		if spec.Name == c.Name {
			s.Image = spec.Image
		}
	}
	end := func(ago time.Duration) *corev1.ContainerStateTerminated {
		reason := "Error"
		if c.Exit == 0 {
			reason = "Completed"
		}
		return &corev1.ContainerStateTerminated{
			ExitCode: c.Exit, Reason: cmp.Or(c.Why, reason), Message: c.Message,
			StartedAt: metav1.NewTime(now.Add(-ago - 4*time.Second)), FinishedAt: metav1.NewTime(now.Add(-ago)),
		}
	}
	switch cmp.Or(c.State, "ready") {
	case "ready", "unready":
		s.Ready = c.State != "unready"
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}
		if c.Restarts > 0 {
			s.LastTerminationState.Terminated = end(30 * time.Second)
			s.LastTerminationState.Terminated.Message = ""
		}
	case "crash":
		started = false
		s.RestartCount = cmp.Or(c.Restarts, 7)
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: fmt.Sprintf("back-off 5m0s restarting failed container=%s pod=%s_%s(%s)", c.Name, p.Name, p.Namespace, p.UID)}
		s.LastTerminationState.Terminated = end(20 * time.Second)
	case "failed", "completed":
		started = false
		s.Ready = c.State == "completed" && c.Exit == 0
		s.State.Terminated = end(15 * time.Second)
	case "waiting":
		started = false
		if c.Restarts == 0 {
			s.ImageID = "" // the kubelet reports it once the container was created
		}
		message := c.Message
		if c.Why == "ImagePullBackOff" {
			message = fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", s.Image, c.Message)
		}
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: cmp.Or(c.Why, "ContainerCreating"), Message: message}
	}
	return s
}
