package controllers

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

// Compressed times: steps that take seconds in a real cluster and teach
// nothing.
const (
	startDelay = 200 * time.Millisecond
	readyDelay = 300 * time.Millisecond
	stopDelay  = 300 * time.Millisecond
)

// Back-off of restarts and pulls, as the kubelet has it.
const (
	backoffFirst = 10 * time.Second
	backoffMost  = 5 * time.Minute
	retryMount   = 2 * time.Minute
)

func backoffDelay(tries int32) time.Duration {
	return min(backoffFirst<<max(min(tries-1, 10), 0), backoffMost)
}

// podRun is a node's record of a pod it runs.
type podRun struct {
	seen       time.Time // when the node first saw it
	stopping   time.Time
	mounted    time.Time // last FailedMount event
	containers map[string]*container
}

// run is one life of a container.
type run struct {
	started, finished time.Time
	exit              int32
	reason, message   string
	lines             []string
	repeat            string
	every             time.Duration
}

type container struct {
	current, previous *run
	restarts          int32
	retryAt           time.Time
	pulls             int32
	pulled            bool
	waiting           corev1.ContainerStateWaiting
	ready             bool
	failing           time.Time // since when the liveness probe has failed
	lastUnready       time.Time
}

func (r *podRun) of(name string) *container {
	c := r.containers[name]
	if c == nil {
		c = &container{waiting: corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
		r.containers[name] = c
	}
	return c
}

func (p *pass) kubelets() {
	alive := map[types.UID]bool{}
	for _, pod := range store.List[*corev1.Pod](p.Tx, resource.Pods, "") {
		alive[pod.UID] = true
		if pod.Spec.NodeName == "" || isPodFinished(pod) && pod.DeletionTimestamp == nil {
			continue
		}
		node, ok := store.Get[*corev1.Node](p.Tx, resource.Nodes, "", pod.Spec.NodeName)
		if !ok || !nodeReady(node) {
			continue // the node is down; the node controller reports it in the pod's conditions
		}
		r := p.pods[pod.UID]
		if r == nil {
			r = &podRun{seen: p.now, containers: map[string]*container{}}
			p.pods[pod.UID] = r
		}
		if pod.DeletionTimestamp != nil {
			p.terminate(pod, r)
			continue
		}
		p.sync(copyObject(pod), r)
	}
	for uid := range p.pods {
		if !alive[uid] {
			delete(p.pods, uid)
		}
	}
}

func (p *pass) terminate(pod *corev1.Pod, r *podRun) {
	if r.stopping.IsZero() {
		r.stopping = p.now
		for i := range pod.Spec.Containers {
			if c := r.containers[pod.Spec.Containers[i].Name]; c != nil && c.current != nil && c.current.finished.IsZero() {
				p.noteContainer(pod, pod.Spec.Containers[i].Name, corev1.EventTypeNormal, "Killing", "Stopping container "+pod.Spec.Containers[i].Name)
			}
		}
	}
	if at := r.stopping.Add(stopDelay); at.After(p.now) {
		p.again(at)
		return
	}
	if len(pod.Finalizers) == 0 {
		p.Remove(resource.Pods, pod.Namespace, pod.Name)
		return
	}
	ended := copyObject(pod)
	ended.Status.Phase = corev1.PodSucceeded
	p.Put(resource.Pods, ended)
}

func (p *pass) noteContainer(pod *corev1.Pod, name, kind, reason, message string) {
	path := "spec.containers{" + name + "}"
	if slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == name }) {
		path = "spec.initContainers{" + name + "}"
	}
	p.noteField(pod, path, "kubelet", kind, reason, message)
}

func (p *pass) sync(pod *corev1.Pod, r *podRun) {
	if pod.Status.StartTime == nil {
		at := p.stamp()
		pod.Status.StartTime = &at
		if node, ok := store.Get[*corev1.Node](p.Tx, resource.Nodes, "", pod.Spec.NodeName); ok && len(node.Status.Addresses) > 0 {
			pod.Status.HostIP = node.Status.Addresses[0].Address
			pod.Status.HostIPs = []corev1.HostIP{{IP: pod.Status.HostIP}}
		}
	}
	if at := r.seen.Add(startDelay); at.After(p.now) {
		p.again(at)
		p.report(pod, r, false)
		return
	}
	if why, _ := p.source(pod).MountFailure(pod.Spec.Volumes); why != "" {
		if !r.mounted.Add(retryMount).After(p.now) {
			r.mounted = p.now
			p.note(pod, "kubelet", corev1.EventTypeWarning, "FailedMount", why)
		}
		p.again(r.mounted.Add(retryMount))
		p.report(pod, r, false)
		return
	}
	if pod.Status.PodIP == "" {
		pod.Status.PodIP = p.freeIP()
		pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	}
	for i := range pod.Spec.InitContainers {
		c := r.of(pod.Spec.InitContainers[i].Name)
		p.live(pod, &pod.Spec.InitContainers[i], c, true)
		if c.current == nil || c.current.finished.IsZero() || c.current.exit != 0 {
			p.report(pod, r, false)
			return
		}
	}
	for i := range pod.Spec.Containers {
		p.live(pod, &pod.Spec.Containers[i], r.of(pod.Spec.Containers[i].Name), false)
	}
	p.report(pod, r, true)
}

func (p *pass) freeIP() string {
	taken := map[string]bool{}
	for _, pod := range store.List[*corev1.Pod](p.Tx, resource.Pods, "") {
		taken[pod.Status.PodIP] = true
	}
	for i := 2; ; i++ {
		if ip := fmt.Sprintf("10.244.%d.%d", i/256%256, i%256); !taken[ip] || i > 65535 {
			return ip
		}
	}
}

// report writes the pod's status from the node's record.
func (p *pass) report(pod *corev1.Pod, r *podRun, initialized bool) {
	s := &pod.Status
	s.ObservedGeneration = pod.Generation
	s.InitContainerStatuses, s.ContainerStatuses = nil, nil
	for i := range pod.Spec.InitContainers {
		s.InitContainerStatuses = append(s.InitContainerStatuses, p.statusOf(&pod.Spec.InitContainers[i], r.of(pod.Spec.InitContainers[i].Name), "PodInitializing"))
	}
	running, failed, done, unready := false, false, true, []string{}
	for i := range pod.Spec.Containers {
		c := r.of(pod.Spec.Containers[i].Name)
		idle := "ContainerCreating"
		if len(pod.Spec.InitContainers) > 0 && !initialized {
			idle = "PodInitializing"
		}
		st := p.statusOf(&pod.Spec.Containers[i], c, idle)
		s.ContainerStatuses = append(s.ContainerStatuses, st)
		running = running || c.current != nil || c.restarts > 0
		ended := st.State.Terminated
		done = done && ended != nil
		failed = failed || ended != nil && ended.ExitCode != 0
		if !st.Ready {
			unready = append(unready, st.Name)
		}
	}
	switch {
	case done && pod.Spec.RestartPolicy == corev1.RestartPolicyNever && failed:
		s.Phase = corev1.PodFailed
	case done && !failed && pod.Spec.RestartPolicy != corev1.RestartPolicyAlways:
		s.Phase = corev1.PodSucceeded
	case running:
		s.Phase = corev1.PodRunning
	default:
		s.Phase = corev1.PodPending
	}
	reason, message := "", ""
	isReady := corev1.ConditionTrue
	if len(unready) > 0 {
		isReady, reason, message = corev1.ConditionFalse, "ContainersNotReady", fmt.Sprintf("containers with unready status: %v", unready)
	}
	if s.Phase == corev1.PodSucceeded {
		reason, message = "PodCompleted", ""
	}
	begun := corev1.ConditionTrue
	why, text := "", ""
	if !initialized && len(pod.Spec.InitContainers) > 0 {
		begun, why, text = corev1.ConditionFalse, "ContainersNotInitialized", fmt.Sprintf("containers with incomplete status: %v", incompleteContainers(pod, r))
	}
	p.podCondition(pod, corev1.PodInitialized, begun, why, text)
	p.podCondition(pod, corev1.ContainersReady, isReady, reason, message)
	for _, gate := range pod.Spec.ReadinessGates {
		met := slices.ContainsFunc(s.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		})
		if !met && isReady == corev1.ConditionTrue {
			isReady, reason, message = corev1.ConditionFalse, "ReadinessGatesNotReady", fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but False", gate.ConditionType)
		}
	}
	p.podCondition(pod, corev1.PodReady, isReady, reason, message)
	p.Put(resource.Pods, pod)
}

func incompleteContainers(pod *corev1.Pod, r *podRun) []string {
	var names []string
	for _, spec := range pod.Spec.InitContainers {
		if c := r.containers[spec.Name]; c == nil || c.current == nil || c.current.finished.IsZero() || c.current.exit != 0 {
			names = append(names, spec.Name)
		}
	}
	return names
}

func (p *pass) podCondition(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) {
	c := corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: p.stamp()}
	i := slices.IndexFunc(pod.Status.Conditions, func(old corev1.PodCondition) bool { return old.Type == kind })
	if i < 0 {
		pod.Status.Conditions = append(pod.Status.Conditions, c)
		return
	}
	if old := pod.Status.Conditions[i]; old.Status == status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	pod.Status.Conditions[i] = c
}

func (p *pass) statusOf(spec *corev1.Container, c *container, idle string) corev1.ContainerStatus {
	st := corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, RestartCount: c.restarts, Ready: c.ready}
	started := c.current != nil && c.current.finished.IsZero()
	st.Started = &started
	id := func(x *run) string {
		return fmt.Sprintf("containerd://%s", hashOf([]string{spec.Name, x.started.String()}))
	}
	ended := func(x *run) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{ExitCode: x.exit, Reason: x.reason, Message: x.message, StartedAt: metav1.NewTime(x.started.Truncate(time.Second)), FinishedAt: metav1.NewTime(x.finished.Truncate(time.Second)), ContainerID: id(x)}
	}
	switch {
	case c.current == nil:
		waiting := c.waiting
		if waiting.Reason == "ContainerCreating" {
			waiting.Reason = idle
		}
		st.State.Waiting = &waiting
	case started:
		st.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.current.started.Truncate(time.Second))}
		st.ContainerID = id(c.current)
	default:
		st.State.Terminated = ended(c.current)
		st.ContainerID = id(c.current)
	}
	if c.previous != nil {
		st.LastTerminationState.Terminated = ended(c.previous)
	}
	if c.pulled {
		st.ImageID = spec.Image + "@sha256:" + hashOf(spec.Image)
		resources := spec.Resources.DeepCopy()
		st.Resources = resources
		st.AllocatedResources = spec.Resources.DeepCopy().Requests
	}
	return st
}
