package kubelet

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Annotation of a pod holds what its containers would do: a JSON object of container
// name → Program. Its pods are run here; a container that it does not name just runs.
const Annotation = "e2e/program"

// Program is what a container would do.
type Program struct {
	Log      string   `json:"log,omitempty"`      // printed at the start
	Env      []string `json:"env,omitempty"`      // must not be empty, else it says so and exits with 1
	Binaries []string `json:"binaries,omitempty"` // the commands of its image; empty: any
	Memory   string   `json:"memory,omitempty"`   // what it takes; a lower limit kills it
	CPU      string   `json:"cpu,omitempty"`
	Listens  int32    `json:"listens,omitempty"` // port; 0: whichever is probed
	Paths    []string `json:"paths,omitempty"`   // answered with 200, others with 404; empty: any
	Exit     *int32   `json:"exit,omitempty"`    // ends with this code after its log
	Forever  bool     `json:"forever,omitempty"` // an init container that does not end
}

// Annotate puts programs into the form of the annotation.
func Annotate(programs map[string]Program) map[string]string {
	text, err := json.Marshal(programs)
	if err != nil {
		panic(err) // strings and numbers
	}
	return map[string]string{Annotation: string(text)}
}

func programs(pod *corev1.Pod) (map[string]Program, error) {
	var p map[string]Program
	err := json.Unmarshal([]byte(pod.Annotations[Annotation]), &p)
	return p, err
}

// run is how a container fares.
type run struct {
	waiting string // reason; empty: it has started
	message string
	// ended is how its last run ended; with a waiting reason it will be started again.
	ended   *corev1.ContainerStateTerminated
	restart int32 // how often it was
	ready   bool
	log     string // of the run that goes on or, when none does, ended
	events  []event
}

// event is what the kubelet tells of a pod, or of the container that field names.
type event struct{ reason, message, field string }

// pull says what keeps an image from being there. Tags and hosts tell what a registry
// would answer.
func pull(image string) (message string) {
	full := image
	if first, _, ok := strings.Cut(image, "/"); !ok || !strings.ContainsAny(first, ".:") {
		full = "registry.test/library/" + image
	}
	switch {
	case strings.HasPrefix(full, "private."):
		return fmt.Sprintf("failed to pull and unpack image %q: failed to resolve reference %q: failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized", full, full)
	case strings.Contains(full, "absent"):
		return fmt.Sprintf("rpc error: code = NotFound desc = failed to pull and unpack image %q: failed to resolve reference %q: %s: not found", full, full, full)
	}
	return ""
}

// fare is what becomes of a container whose configuration is there.
func fare(pod *corev1.Pod, c *corev1.Container, p Program, env map[string]string) run {
	if m := pull(c.Image); m != "" {
		return run{waiting: "ImagePullBackOff", message: fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", c.Image, m), events: []event{
			{reason: "Failed", message: fmt.Sprintf("Failed to pull image %q: %s", c.Image, m)}, {reason: "Failed", message: "Error: ErrImagePull"},
			{reason: "BackOff", message: fmt.Sprintf("Back-off pulling image %q", c.Image)},
		}}
	}
	if command := program(c); len(p.Binaries) > 0 && command != "" && !slices.Contains(p.Binaries, command) {
		return crash(pod, c, 127, "Error", fmt.Sprintf("/bin/sh: 1: %s: not found\n", command))
	}
	for _, name := range p.Env {
		if env[name] == "" {
			return crash(pod, c, 1, "Error", p.Log+fmt.Sprintf("FATAL: required environment variable %s is empty\n", name))
		}
	}
	if limit, ok := c.Resources.Limits[corev1.ResourceMemory]; ok && p.Memory != "" && limit.Cmp(resource.MustParse(p.Memory)) < 0 {
		return crash(pod, c, 137, "OOMKilled", p.Log)
	}
	if p.Exit != nil {
		reason := "Error"
		if *p.Exit == 0 {
			reason = "Completed"
		}
		return crash(pod, c, *p.Exit, reason, p.Log)
	}
	if m := p.probe(c.LivenessProbe); m != "" {
		return run{restart: restarts, log: p.Log, ready: p.probe(c.ReadinessProbe) == "", ended: terminated(137, "Error"), events: []event{
			{reason: "Unhealthy", message: "Liveness probe failed: " + m}, {reason: "Killing", message: fmt.Sprintf("Container %s failed liveness probe, will be restarted", c.Name)},
		}}
	}
	if m := p.probe(c.ReadinessProbe); m != "" {
		return run{log: p.Log, events: []event{{reason: "Unhealthy", message: "Readiness probe failed: " + m}}}
	}
	return run{log: p.Log, ready: true}
}

// program is the command that a container starts, also through a shell.
func program(c *corev1.Container) string {
	words := slices.Concat(c.Command, c.Args)
	if len(words) == 0 {
		return ""
	}
	if len(words) > 2 && strings.HasSuffix(words[0], "sh") && words[1] == "-c" {
		words = strings.Fields(words[2])
	}
	return words[0]
}

// probe is what a failed probe says; empty: it succeeds.
func (p Program) probe(probe *corev1.Probe) string {
	if probe == nil {
		return ""
	}
	var port int32
	switch {
	case probe.HTTPGet != nil:
		port = int32(probe.HTTPGet.Port.IntValue())
	case probe.TCPSocket != nil:
		port = int32(probe.TCPSocket.Port.IntValue())
	}
	if p.Listens != 0 && port != 0 && port != p.Listens {
		if probe.HTTPGet != nil {
			return fmt.Sprintf(`Get "http://10.244.0.9:%d%s": dial tcp 10.244.0.9:%d: connect: connection refused`, port, probe.HTTPGet.Path, port)
		}
		return fmt.Sprintf("dial tcp 10.244.0.9:%d: connect: connection refused", port)
	}
	if probe.HTTPGet != nil && len(p.Paths) > 0 && !slices.Contains(p.Paths, probe.HTTPGet.Path) {
		return "HTTP probe failed with statuscode: 404"
	}
	return ""
}

// restarts is how often everything that fails was started again.
const restarts = 5

func crash(pod *corev1.Pod, c *corev1.Container, code int32, reason, log string) run {
	r := run{ended: terminated(code, reason), log: log}
	if pod.Spec.RestartPolicy == corev1.RestartPolicyNever || code == 0 && pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure {
		return r
	}
	r.restart, r.waiting = restarts, "CrashLoopBackOff"
	r.message = fmt.Sprintf("back-off 2m40s restarting failed container=%s pod=%s_%s(%s)", c.Name, pod.Name, pod.Namespace, pod.UID)
	r.events = []event{{reason: "BackOff", message: "Back-off restarting failed container " + c.Name + " in pod " + pod.Name}}
	return r
}

func terminated(code int32, reason string) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}
}
