package kubelet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/libs/samplecluster/program"
)

// outcome is the simulated state of a pod: its status, events and logs.
type outcome struct {
	status corev1.PodStatus
	events []event
	logs   map[string]string // container → log
	told   string            // equal for equal outcomes
}

// judge returns a pod's current outcome.
func (k *Kubelet) judge(ctx context.Context, pod *corev1.Pod) (outcome, error) {
	progs, err := readPrograms(pod)
	if err != nil {
		return outcome{}, fmt.Errorf("%s of pod %s/%s: %w", Annotation, pod.Namespace, pod.Name, err)
	}
	b := builder{pod: pod, now: metav1.Now(), outcome: outcome{logs: map[string]string{}}}
	b.status = corev1.PodStatus{Phase: corev1.PodPending, HostIP: "127.0.0.1", StartTime: &b.now, Conditions: foreignConditions(pod)}
	blocked := ""
	if m, err := k.source(ctx, pod.Namespace).MountFailure(pod.Spec.Volumes); err != nil {
		return outcome{}, err
	} else if m != "" {
		b.events, blocked = append(b.events, event{reason: "FailedMount", message: m}), "ContainerCreating"
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if blocked != "" {
			b.waits(&b.status.InitContainerStatuses, c, cmpOr(blocked, "PodInitializing"))
			continue
		}
		r, err := k.startContainer(ctx, pod, c, progs[c.Name])
		if err != nil {
			return outcome{}, err
		}
		if p := progs[c.Name]; r.waiting == "" && r.ended == nil && !p.WaitsForPeer {
			r.ended, r.ready = terminatedState(0, "Completed"), true
		}
		b.add(&b.status.InitContainerStatuses, c, r)
		if !r.ready || r.ended == nil {
			blocked = "PodInitializing"
		}
	}
	b.condition(corev1.PodInitialized, blocked == "")
	ready, done, failed := blocked == "", true, false
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if blocked != "" {
			b.waits(&b.status.ContainerStatuses, c, blocked)
			ready, done = false, false
			continue
		}
		r, err := k.startContainer(ctx, pod, c, progs[c.Name])
		if err != nil {
			return outcome{}, err
		}
		b.add(&b.status.ContainerStatuses, c, r)
		ready = ready && r.ready
		ended := r.ended != nil && r.waiting == "" && r.restart == 0
		done = done && ended
		failed = failed || ended && r.ended.ExitCode != 0
		if r.waiting == "" || r.restart > 0 {
			b.status.Phase = corev1.PodRunning
		}
	}
	switch {
	case done && failed:
		b.status.Phase = corev1.PodFailed
	case done:
		b.status.Phase = corev1.PodSucceeded
	}
	if b.status.Phase == corev1.PodRunning {
		b.status.PodIP = podAddress(pod)
		b.status.PodIPs = []corev1.PodIP{{IP: b.status.PodIP}}
	}
	b.condition(corev1.ContainersReady, ready)
	b.condition(corev1.PodReady, ready && k.gates(pod))
	return b.outcome, nil
}

func cmpOr(a, b string) string {
	if a == "ContainerCreating" {
		return a
	}
	return b
}

// foreignConditions returns the conditions that are not the kubelet's.
func foreignConditions(pod *corev1.Pod) []corev1.PodCondition {
	return slices.DeleteFunc(slices.Clone(pod.Status.Conditions), func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodInitialized || c.Type == corev1.ContainersReady || c.Type == corev1.PodReady
	})
}

// gates reports whether every readiness gate is open; other components open them.
func (k *Kubelet) gates(pod *corev1.Pod) bool {
	for _, g := range pod.Spec.ReadinessGates {
		if !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == g.ConditionType && c.Status == corev1.ConditionTrue
		}) {
			return false
		}
	}
	return true
}

// podAddress derives a pod's address from its uid.
func podAddress(pod *corev1.Pod) string {
	var sum uint16
	for _, r := range string(pod.UID) {
		sum = sum*31 + uint16(r)
	}
	return fmt.Sprintf("10.245.%d.%d", sum>>8, sum&0xff|1)
}

// startContainer returns the state of a container, which waits while any part of its configuration is missing.
func (k *Kubelet) startContainer(ctx context.Context, pod *corev1.Pod, c *corev1.Container, p program.Program) (run, error) {
	env, missing, err := k.source(ctx, pod.Namespace).ResolveEnvironment(pod.Namespace, c)
	if err != nil {
		return run{}, err
	}
	if missing != "" && pullFailure(c.Image) == "" {
		return run{waiting: "CreateContainerConfigError", message: missing, events: []event{{reason: "Failed", message: "Error: " + missing}}}, nil
	}
	return runContainer(pod, c, p, env), nil
}

// source reads the configuration of a namespace from the API server.
func (k *Kubelet) source(ctx context.Context, namespace string) program.Source {
	return program.Source{
		ConfigMap: func(name string) (*corev1.ConfigMap, error) {
			m, err := k.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
			return nilIfAbsent(m, err)
		},
		Secret: func(name string) (*corev1.Secret, error) {
			m, err := k.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
			return nilIfAbsent(m, err)
		},
	}
}

func nilIfAbsent[T any](object *T, err error) (*T, error) {
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}

// builder assembles an outcome.
type builder struct {
	outcome
	pod *corev1.Pod
	now metav1.Time
}

func (b *builder) add(list *[]corev1.ContainerStatus, c *corev1.Container, r run) {
	s := corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: r.ready, RestartCount: r.restart}
	started := r.waiting == "" && (r.ended == nil || r.restart > 0)
	s.Started = &started
	earlier := metav1.NewTime(b.now.Add(-30e9))
	if r.ended != nil {
		r.ended.StartedAt, r.ended.FinishedAt = earlier, b.now
	}
	switch {
	case r.waiting != "":
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: r.waiting, Message: r.message}
		s.LastTerminationState.Terminated = r.ended
	case r.ended != nil && r.restart == 0:
		s.State.Terminated = r.ended
	default:
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: b.now}
		s.LastTerminationState.Terminated = r.ended
	}
	*list = append(*list, s)
	b.logs[c.Name] = r.log
	field := "spec.containers{" + c.Name + "}"
	if list == &b.status.InitContainerStatuses {
		field = "spec.initContainers{" + c.Name + "}"
	}
	for _, e := range r.events {
		e.field = field
		b.events = append(b.events, e)
	}
	b.told += fmt.Sprintf("%s %s %s %d %v %v\n", c.Name, r.waiting, r.message, r.restart, r.ready, strings.Join([]string{r.log}, ""))
}

func (b *builder) waits(list *[]corev1.ContainerStatus, c *corev1.Container, reason string) {
	*list = append(*list, corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}})
	b.told += c.Name + " " + reason + "\n"
}

func (b *builder) condition(kind corev1.PodConditionType, holds bool) {
	c := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: b.now}
	if !holds {
		c.Status, c.Reason = corev1.ConditionFalse, "ContainersNotReady"
		if kind == corev1.PodInitialized {
			c.Reason = "ContainersNotInitialized"
		}
	}
	b.status.Conditions = append(b.status.Conditions, c)
	b.told += fmt.Sprintf("%s %v\n", kind, holds)
}
