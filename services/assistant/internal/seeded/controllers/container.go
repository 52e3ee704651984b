package controllers

import (
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mlp-platform/platform/services/assistant/internal/seeded/apiserver"
	"github.com/mlp-platform/platform/services/assistant/internal/seeded/program"
	"github.com/mlp-platform/platform/services/assistant/internal/seeded/resource"
	"github.com/mlp-platform/platform/services/assistant/internal/seeded/store"
)

// fate is what will become of a container started now.
type fate struct {
	ends    bool
	after   time.Duration
	exit    int32
	reason  string
	message string
	lines   []string
	repeat  string
	every   time.Duration
	healthy bool // the program is able to serve
	program *program.Program
}

// live takes one container a step further.
func (p *pass) live(pod *corev1.Pod, spec *corev1.Container, c *container, initial bool) {
	if c.current != nil && !c.current.finished.IsZero() {
		return // ended for good
	}
	if c.current == nil {
		if !p.start(pod, spec, c) {
			return
		}
	}
	f := p.fate(pod, spec)
	if f.ends {
		// A wait that is over ends now, not at the time its start would make it.
		at := c.current.started.Add(f.after)
		if at.After(p.now) {
			p.again(at)
			return
		}
		p.exited(pod, spec, c, f, initial)
		return
	}
	if f.repeat != c.current.repeat {
		c.current.repeat, c.current.every = f.repeat, f.every
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
	f := p.fate(pod, spec)
	p.noteContainer(pod, spec.Name, corev1.EventTypeNormal, "Created", "Container created")
	c.current = &run{started: p.now, lines: f.lines, repeat: f.repeat, every: f.every}
	c.ready, c.failing, c.lastUnready = false, time.Time{}, time.Time{}
	if f.reason == "StartError" {
		p.noteContainer(pod, spec.Name, corev1.EventTypeWarning, "Failed", "Error: "+f.message)
	} else {
		p.noteContainer(pod, spec.Name, corev1.EventTypeNormal, "Started", "Container started")
	}
	return true
}

// doomed says that a container started now would end badly again. A back-off whose cause has gone is cut short.
func (p *pass) doomed(pod *corev1.Pod, spec *corev1.Container) bool {
	f := p.fate(pod, spec)
	if f.ends {
		return f.exit != 0
	}
	for _, probe := range []*corev1.Probe{spec.StartupProbe, spec.LivenessProbe} {
		if probe != nil && answerTo(probe, spec, pod, f, true) != "" {
			return true
		}
	}
	return false
}

// pull fetches the image or says as the container runtime does why it cannot.
func (p *pass) pull(pod *corev1.Pod, spec *corev1.Container, c *container) bool {
	repository, tag := program.Split(spec.Image)
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
	c.retryAt = p.now.Add(backoff(c.pulls))
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
func (p *pass) exited(pod *corev1.Pod, spec *corev1.Container, c *container, f fate, initial bool) {
	c.current.finished, c.current.exit, c.current.reason, c.current.message = p.now, f.exit, f.reason, f.message
	if c.current.reason == "" {
		c.current.reason = "Completed"
		if f.exit != 0 {
			c.current.reason = "Error"
		}
	}
	c.ready = initial && f.exit == 0
	again := pod.Spec.RestartPolicy == corev1.RestartPolicyAlways && !initial || pod.Spec.RestartPolicy != corev1.RestartPolicyNever && f.exit != 0
	if !again {
		return
	}
	c.previous, c.current = c.current, nil
	c.restarts++
	wait := backoff(c.restarts)
	c.retryAt = p.now.Add(wait)
	full := fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID)
	c.waiting = corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", wait, spec.Name, full)}
	p.noteContainer(pod, spec.Name, corev1.EventTypeWarning, "BackOff", fmt.Sprintf("Back-off restarting failed container %s in pod %s", spec.Name, full))
	p.again(c.retryAt)
}

// environment resolves a container's variables, or says what is missing in the kubelet's words.
func (p *pass) environment(pod *corev1.Pod, spec *corev1.Container) (map[string]string, string) {
	env := map[string]string{}
	configMap := func(name string) (*corev1.ConfigMap, bool) {
		return store.Get[*corev1.ConfigMap](p.Tx, resource.ConfigMaps, pod.Namespace, name)
	}
	secret := func(name string) (*corev1.Secret, bool) {
		return store.Get[*corev1.Secret](p.Tx, resource.Secrets, pod.Namespace, name)
	}
	optional := func(o *bool) bool { return o != nil && *o }
	for _, from := range spec.EnvFrom {
		if r := from.ConfigMapRef; r != nil {
			cm, ok := configMap(r.Name)
			if !ok && !optional(r.Optional) {
				return nil, fmt.Sprintf("configmap %q not found", r.Name)
			} else if ok {
				for k, v := range cm.Data {
					env[from.Prefix+k] = v
				}
			}
		}
		if r := from.SecretRef; r != nil {
			s, ok := secret(r.Name)
			if !ok && !optional(r.Optional) {
				return nil, fmt.Sprintf("secret %q not found", r.Name)
			} else if ok {
				for k, v := range s.Data {
					env[from.Prefix+k] = string(v)
				}
			}
		}
	}
	for _, e := range spec.Env {
		env[e.Name] = e.Value
		if e.ValueFrom == nil {
			continue
		}
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
			cm, ok := configMap(r.Name)
			if !ok {
				if optional(r.Optional) {
					continue
				}
				return nil, fmt.Sprintf("configmap %q not found", r.Name)
			}
			v, ok := cm.Data[r.Key]
			if !ok && !optional(r.Optional) {
				return nil, fmt.Sprintf("couldn't find key %s in ConfigMap %s/%s", r.Key, pod.Namespace, r.Name)
			}
			env[e.Name] = v
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil {
			s, ok := secret(r.Name)
			if !ok {
				if optional(r.Optional) {
					continue
				}
				return nil, fmt.Sprintf("secret %q not found", r.Name)
			}
			v, ok := s.Data[r.Key]
			if !ok && !optional(r.Optional) {
				return nil, fmt.Sprintf("couldn't find key %s in Secret %s/%s", r.Key, pod.Namespace, r.Name)
			}
			env[e.Name] = string(v)
		}
	}
	return env, ""
}

// fate works out what the container's program does in the cluster as it is now.
func (p *pass) fate(pod *corev1.Pod, spec *corev1.Container) fate {
	repository, _ := program.Split(spec.Image)
	prog, ok := p.registry.Find(repository)
	if !ok { // the image ran once and its name changed since: it goes on
		return fate{healthy: true}
	}
	f := fate{program: prog, healthy: true, lines: prog.Start, repeat: prog.Repeat, every: prog.Every}
	if len(spec.Command) > 0 && !shell(spec.Command[0]) && !slices.Contains(prog.Commands, path.Base(spec.Command[0])) {
		f.ends, f.exit, f.reason, f.lines = true, 128, "StartError", nil
		f.message = fmt.Sprintf("failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: %q: executable file not found in $PATH", spec.Command[0])
		return f
	}
	env, _ := p.environment(pod, spec) // what is missing has stopped the container before this
	for _, need := range prog.Needs {
		if env[need] == "" {
			f.ends, f.after, f.exit = true, time.Second, 1
			f.lines = append(slices.Clone(prog.Start), fmt.Sprintf("FATAL configuration: required environment variable %s is empty", need))
			return f
		}
	}
	if exceeds(prog.Memory, spec.Resources.Limits) {
		f.ends, f.after, f.exit, f.reason = true, 4*time.Second, 137, "OOMKilled"
		f.lines = append(slices.Clone(prog.Start), "INFO loading working set into memory")
		return f
	}
	if prog.Peer != "" {
		if why := p.reach(pod, env[prog.Peer]); why != "" {
			f.healthy, f.repeat, f.every = false, "ERROR "+why, 5*time.Second
			if prog.WaitsForPeer {
				f.repeat = "waiting for " + env[prog.Peer] + ": " + why
			}
			return f
		}
		if prog.WaitsForPeer {
			f.ends, f.after = true, 0
			return f
		}
	}
	if prog.Runs > 0 {
		f.ends, f.after, f.exit = true, prog.Runs, prog.Exit
	}
	return f
}

func shell(command string) bool {
	return slices.Contains([]string{"sh", "bash", "sleep", "env"}, path.Base(command))
}

// probe runs the container's probes against its program.
func (p *pass) probe(pod *corev1.Pod, spec *corev1.Container, c *container, f fate) {
	up := c.current.started.Add(readyDelay)
	if up.After(p.now) {
		p.again(up)
		return
	}
	for _, probe := range []*corev1.Probe{spec.StartupProbe, spec.LivenessProbe} {
		if probe == nil {
			continue
		}
		why := answerTo(probe, spec, pod, f, true)
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
		p.exited(pod, spec, c, fate{exit: 137, reason: "Error"}, false)
		return
	}
	why := ""
	if spec.ReadinessProbe != nil {
		why = answerTo(spec.ReadinessProbe, spec, pod, f, f.healthy)
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

// answerTo says how a probe fails, or nothing if it passes.
func answerTo(probe *corev1.Probe, spec *corev1.Container, pod *corev1.Pod, f fate, healthy bool) string {
	var want intstr.IntOrString
	switch {
	case probe.HTTPGet != nil:
		want = probe.HTTPGet.Port
	case probe.TCPSocket != nil:
		want = probe.TCPSocket.Port
	default:
		return "" // commands and gRPC are not acted out
	}
	if f.program == nil {
		return ""
	}
	port := portNumber(want, spec)
	address := net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port)))
	if port != f.program.Port {
		if probe.HTTPGet != nil {
			return fmt.Sprintf("Get \"http://%s%s\": dial tcp %s: connect: connection refused", address, probe.HTTPGet.Path, address)
		}
		return fmt.Sprintf("dial tcp %s: connect: connection refused", address)
	}
	if probe.HTTPGet == nil {
		return ""
	}
	if !slices.Contains(f.program.Paths, probe.HTTPGet.Path) {
		return "HTTP probe failed with statuscode: 404"
	}
	if !healthy {
		return "HTTP probe failed with statuscode: 503"
	}
	return ""
}

func portNumber(want intstr.IntOrString, spec *corev1.Container) int32 {
	if want.Type == intstr.Int {
		return want.IntVal
	}
	for _, port := range spec.Ports {
		if port.Name == want.StrVal {
			return port.ContainerPort
		}
	}
	return 0
}

// maxLines bounds what is made up of a log at one reading.
const maxLines = 1000

// Logs returns what a container has written; the lines are made when they are read.
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

// Usage is what a running container's program uses: never more than its limits allow.
func (m *Manager) Usage(_ store.Tx, pod *corev1.Pod, spec *corev1.Container) (corev1.ResourceList, bool) {
	r := m.pods[pod.UID]
	if r == nil || r.containers[spec.Name] == nil {
		return nil, false
	}
	life := r.containers[spec.Name].current
	if life == nil || !life.finished.IsZero() {
		return nil, false
	}
	repository, _ := program.Split(spec.Image)
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
