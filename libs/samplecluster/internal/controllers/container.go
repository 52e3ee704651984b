package controllers

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/apiserver"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
	"github.com/mlp-platform/platform/libs/samplecluster/program"
)

// live takes one container a step further.
func (p *pass) live(pod *corev1.Pod, spec *corev1.Container, c *container, initial bool) {
	if c.current != nil && !c.current.finished.IsZero() {
		return // ended permanently
	}
	if c.current == nil {
		if !p.start(pod, spec, c) {
			return
		}
	}
	f := p.predict(pod, spec)
	if f.Ends {
		// A wait that is over ends now, not at the time its start would make it.
		at := c.current.started.Add(f.After)
		if at.After(p.now) {
			p.again(at)
			return
		}
		p.exited(pod, spec, c, f, initial)
		return
	}
	if f.Repeat != c.current.repeat {
		c.current.repeat, c.current.every = f.Repeat, f.Every
	}
	if !initial {
		p.probe(pod, spec, c, f)
	}
}

// start brings a waiting container up, if its configuration, its image and its back-off allow.
func (p *pass) start(pod *corev1.Pod, spec *corev1.Container, c *container) bool {
	if _, why := p.environment(pod, spec); why != "" {
		if c.waiting.Reason != "CreateContainerConfigError" || c.waiting.Message != why || !c.retryAt.After(p.now) {
			p.noteContainer(pod, spec.Name, corev1.EventTypeWarning, "Failed", "Error: "+why)
			c.retryAt = p.now.Add(time.Minute)
		}
		c.waiting = corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: why}
		p.again(c.retryAt)
		return false
	}
	if !c.pulled && !p.pull(pod, spec, c) {
		return false
	}
	if c.waiting.Reason == "CrashLoopBackOff" && c.retryAt.After(p.now) && p.doomed(pod, spec) {
		p.again(c.retryAt)
		return false
	}
	f := p.predict(pod, spec)
	p.noteContainer(pod, spec.Name, corev1.EventTypeNormal, "Created", "Container created")
	c.current = &run{started: p.now, lines: f.Lines, repeat: f.Repeat, every: f.Every}
	c.ready, c.failing, c.lastUnready = false, time.Time{}, time.Time{}
	if f.Reason == "StartError" {
		p.noteContainer(pod, spec.Name, corev1.EventTypeWarning, "Failed", "Error: "+f.Message)
	} else {
		p.noteContainer(pod, spec.Name, corev1.EventTypeNormal, "Started", "Container started")
	}
	return true
}

// doomed reports whether a container started now would fail again. A back-off whose cause has gone is cut short.
func (p *pass) doomed(pod *corev1.Pod, spec *corev1.Container) bool {
	f := p.predict(pod, spec)
	if f.Ends {
		return f.ExitCode != 0
	}
	alive := f
	alive.Unhealthy = false // only readiness checks whether the program can serve
	for _, probe := range []*corev1.Probe{spec.StartupProbe, spec.LivenessProbe} {
		if probe != nil && alive.ProbeFailure(probe, spec, pod.Status.PodIP) != "" {
			return true
		}
	}
	return false
}

// pull fetches the image or records, as the container runtime does, why it cannot.
func (p *pass) pull(pod *corev1.Pod, spec *corev1.Container, c *container) bool {
	repository, tag := program.SplitImage(spec.Image)
	found, ok := p.registry.Find(repository)
	why := ""
	switch {
	case !ok:
		why = fmt.Sprintf("failed to pull and unpack image %q: failed to resolve reference %q: pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed", spec.Image, spec.Image)
	case found.Private && len(pod.Spec.ImagePullSecrets) == 0:
		why = fmt.Sprintf("failed to pull and unpack image %q: failed to resolve reference %q: unexpected status from HEAD request: 401 Unauthorized", spec.Image, spec.Image)
	case !slices.Contains(found.Tags, tag):
		why = fmt.Sprintf("failed to pull and unpack image %q: failed to resolve reference %q: %s: not found", spec.Image, spec.Image, spec.Image)
	}
	if why == "" {
		c.pulled = true
		p.noteContainer(pod, spec.Name, corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Successfully pulled image %q", spec.Image))
		return true
	}
	if c.retryAt.After(p.now) {
		p.again(c.retryAt)
		return false
	}
	c.pulls++
	c.retryAt = p.now.Add(backoffDelay(c.pulls))
	p.noteContainer(pod, spec.Name, corev1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", spec.Image))
	p.noteContainer(pod, spec.Name, corev1.EventTypeWarning, "Failed", fmt.Sprintf("Failed to pull image %q: %s", spec.Image, why))
	if c.pulls == 1 {
		p.noteContainer(pod, spec.Name, corev1.EventTypeWarning, "Failed", "Error: ErrImagePull")
		c.waiting = corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: why}
	} else {
		p.noteContainer(pod, spec.Name, corev1.EventTypeNormal, "BackOff", fmt.Sprintf("Back-off pulling image %q", spec.Image))
		p.noteContainer(pod, spec.Name, corev1.EventTypeWarning, "Failed", "Error: ImagePullBackOff")
		c.waiting = corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", spec.Image, why)}
	}
	p.again(c.retryAt)
	return false
}

// exited settles a container whose program ended.
func (p *pass) exited(pod *corev1.Pod, spec *corev1.Container, c *container, f program.Outcome, initial bool) {
	c.current.finished, c.current.exit, c.current.reason, c.current.message = p.now, f.ExitCode, f.Reason, f.Message
	if c.current.reason == "" {
		c.current.reason = "Completed"
		if f.ExitCode != 0 {
			c.current.reason = "Error"
		}
	}
	c.ready = initial && f.ExitCode == 0
	again := pod.Spec.RestartPolicy == corev1.RestartPolicyAlways && !initial || pod.Spec.RestartPolicy != corev1.RestartPolicyNever && f.ExitCode != 0
	if !again {
		return
	}
	c.previous, c.current = c.current, nil
	c.restarts++
	wait := backoffDelay(c.restarts)
	c.retryAt = p.now.Add(wait)
	full := fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID)
	c.waiting = corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", wait, spec.Name, full)}
	p.noteContainer(pod, spec.Name, corev1.EventTypeWarning, "BackOff", fmt.Sprintf("Back-off restarting failed container %s in pod %s", spec.Name, full))
	p.again(c.retryAt)
}

// source reads configuration from the pod's namespace.
func (p *pass) source(pod *corev1.Pod) program.Source {
	return program.Source{
		ConfigMap: func(name string) (*corev1.ConfigMap, error) {
			m, _ := store.Get[*corev1.ConfigMap](p.Tx, resource.ConfigMaps, pod.Namespace, name)
			return m, nil
		},
		Secret: func(name string) (*corev1.Secret, error) {
			m, _ := store.Get[*corev1.Secret](p.Tx, resource.Secrets, pod.Namespace, name)
			return m, nil
		},
	}
}

// environment resolves a container's variables, or returns what is missing, as the kubelet words it.
func (p *pass) environment(pod *corev1.Pod, spec *corev1.Container) (map[string]string, string) {
	env, missing, _ := p.source(pod).ResolveEnvironment(pod.Namespace, spec) // this source has no errors
	return env, missing
}

// predict returns the behaviour of the container's program in the current state of the cluster.
func (p *pass) predict(pod *corev1.Pod, spec *corev1.Container) program.Outcome {
	repository, _ := program.SplitImage(spec.Image)
	prog, ok := p.registry.Find(repository)
	if !ok { // the image ran once and its name changed since: it keeps running
		return program.Outcome{}
	}
	env, _ := p.environment(pod, spec) // a missing value has stopped the container before this
	return prog.Run(program.Container{Spec: spec, Env: env, Reach: func(address string) string { return p.reach(pod, address) }})
}

// probe runs the container's probes against its program.
func (p *pass) probe(pod *corev1.Pod, spec *corev1.Container, c *container, f program.Outcome) {
	up := c.current.started.Add(readyDelay)
	if up.After(p.now) {
		p.again(up)
		return
	}
	alive := f
	alive.Unhealthy = false // only readiness checks whether the program can serve
	for _, probe := range []*corev1.Probe{spec.StartupProbe, spec.LivenessProbe} {
		if probe == nil {
			continue
		}
		why := alive.ProbeFailure(probe, spec, pod.Status.PodIP)
		if why == "" {
			continue
		}
		name := "Liveness"
		if probe == spec.StartupProbe {
			name = "Startup"
		}
		period := time.Duration(probe.PeriodSeconds) * time.Second
		kill := c.current.started.Add(time.Duration(probe.InitialDelaySeconds)*time.Second + period*time.Duration(probe.FailureThreshold))
		if c.failing.IsZero() {
			c.failing = p.now
			p.noteContainer(pod, spec.Name, corev1.EventTypeWarning, "Unhealthy", name+" probe failed: "+why)
		}
		if kill.After(p.now) {
			p.again(kill)
			break
		}
		p.noteContainer(pod, spec.Name, corev1.EventTypeWarning, "Unhealthy", name+" probe failed: "+why)
		p.noteContainer(pod, spec.Name, corev1.EventTypeNormal, "Killing", fmt.Sprintf("Container %s failed %s probe, will be restarted", spec.Name, map[string]string{"Liveness": "liveness", "Startup": "startup"}[name]))
		p.exited(pod, spec, c, program.Outcome{ExitCode: 137, Reason: "Error"}, false)
		return
	}
	why := ""
	if spec.ReadinessProbe != nil {
		why = f.ProbeFailure(spec.ReadinessProbe, spec, pod.Status.PodIP)
	}
	c.ready = why == ""
	if why != "" {
		// The events of a probe that fails every few seconds are gathered: once a minute is enough to count.
		if !c.lastUnready.Add(time.Minute).After(p.now) {
			c.lastUnready = p.now
			p.noteContainer(pod, spec.Name, corev1.EventTypeWarning, "Unhealthy", "Readiness probe failed: "+why)
		}
		p.again(c.lastUnready.Add(time.Minute))
	}
}

// maxLines limits the lines made up for one reading of a log.
const maxLines = 1000

// Logs returns the log of a container; the lines are made when they are read.
func (m *Manager) Logs(_ store.Tx, pod *corev1.Pod, name string, previous bool, now time.Time) ([]apiserver.LogLine, bool) {
	r := m.pods[pod.UID]
	if r == nil || r.containers[name] == nil {
		return nil, false
	}
	c := r.containers[name]
	life := c.current
	if life == nil {
		life = c.previous // a container that waits to be restarted shows its last life
	}
	if previous {
		life = c.previous
	}
	if life == nil {
		return nil, false
	}
	var lines []apiserver.LogLine
	at := life.started
	for _, text := range life.lines {
		at = at.Add(40 * time.Millisecond)
		lines = append(lines, apiserver.LogLine{Time: at, Text: text})
	}
	end := life.finished
	if end.IsZero() {
		end = now
	}
	if life.repeat != "" && life.every > 0 {
		count := int64(end.Sub(at) / life.every)
		for i := max(1, count-maxLines+1); i <= count; i++ {
			lines = append(lines, apiserver.LogLine{Time: at.Add(time.Duration(i) * life.every), Text: life.repeat})
		}
	}
	return lines, true
}

// Usage returns the resources that a running container's program uses: never more than its limits allow.
func (m *Manager) Usage(_ store.Tx, pod *corev1.Pod, spec *corev1.Container) (corev1.ResourceList, bool) {
	r := m.pods[pod.UID]
	if r == nil || r.containers[spec.Name] == nil {
		return nil, false
	}
	life := r.containers[spec.Name].current
	if life == nil || !life.finished.IsZero() {
		return nil, false
	}
	repository, _ := program.SplitImage(spec.Image)
	found, ok := m.registry.Find(repository)
	if !ok {
		return nil, false
	}
	usage := corev1.ResourceList{corev1.ResourceCPU: found.CPU.DeepCopy(), corev1.ResourceMemory: found.Memory.DeepCopy()}
	for name, limit := range spec.Resources.Limits {
		if used, counted := usage[name]; counted && used.Cmp(limit) > 0 {
			usage[name] = limit.DeepCopy()
		}
	}
	return usage, true
}
