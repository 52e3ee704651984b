package kubelet

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/libs/samplecluster/program"
)

// Annotation of a pod holds the programs of its containers: a JSON object of container name → program.Program. This
// package runs its pods; a container without a program just runs.
const Annotation = "e2e/program"

// Annotate encodes programs in the form of the annotation.
func Annotate(programs map[string]program.Program) map[string]string {
	text, err := json.Marshal(programs)
	if err != nil {
		panic(err) // strings, numbers and quantities
	}
	return map[string]string{Annotation: string(text)}
}

// readPrograms returns the programs of a pod. Whatever a test leaves out counts as right: every command, port and path.
func readPrograms(pod *corev1.Pod) (map[string]program.Program, error) {
	var all map[string]program.Program
	if err := json.Unmarshal([]byte(pod.Annotations[Annotation]), &all); err != nil {
		return nil, err
	}
	for name, p := range all {
		all[name] = acceptUnsaid(p)
	}
	return all, nil
}

func acceptUnsaid(p program.Program) program.Program {
	if len(p.Commands) == 0 {
		p.Commands = []string{program.Any}
	}
	if p.Port == 0 {
		p.Port = program.AnyPort
	}
	if len(p.Paths) == 0 {
		p.Paths = []string{program.Any}
	}
	p.ChecksScripts = true
	return p
}

// run is the state of a container.
type run struct {
	waiting string // reason; empty: it has started
	message string
	// ended is how its last run ended; with a waiting reason it will be started again.
	ended   *corev1.ContainerStateTerminated
	restart int32 // the number of restarts
	ready   bool
	log     string // of the current run or, when there is none, of the ended one
	events  []event
}

// event is the kubelet's event about a pod, or about the container that field names.
type event struct{ reason, message, field string }

// pullFailure returns the reason why an image cannot be pulled. Tags and hosts determine the registry's answer.
func pullFailure(image string) (message string) {
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

// runContainer returns the state of a container whose configuration is there.
func runContainer(pod *corev1.Pod, c *corev1.Container, p program.Program, env map[string]string) run {
	if m := pullFailure(c.Image); m != "" {
		return run{waiting: "ImagePullBackOff", message: fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", c.Image, m), events: []event{
			{reason: "Failed", message: fmt.Sprintf("Failed to pull image %q: %s", c.Image, m)}, {reason: "Failed", message: "Error: ErrImagePull"},
			{reason: "BackOff", message: fmt.Sprintf("Back-off pulling image %q", c.Image)},
		}}
	}
	out := p.Run(program.Container{Spec: c, Env: env, Reach: func(string) string { return "" }})
	log := ""
	if len(out.Lines) > 0 {
		log = strings.Join(out.Lines, "\n") + "\n"
	}
	if out.Ends {
		reason := out.Reason
		switch {
		case reason == "" && out.ExitCode == 0:
			reason = "Completed"
		case reason == "":
			reason = "Error"
		}
		return crashedRun(pod, c, out.ExitCode, reason, log)
	}
	ready := out.ProbeFailure(c.ReadinessProbe, c, podAddress(pod))
	if m := out.ProbeFailure(c.LivenessProbe, c, podAddress(pod)); m != "" {
		return run{restart: restarts, log: log, ready: ready == "", ended: terminatedState(137, "Error"), events: []event{
			{reason: "Unhealthy", message: "Liveness probe failed: " + m}, {reason: "Killing", message: fmt.Sprintf("Container %s failed liveness probe, will be restarted", c.Name)},
		}}
	}
	if ready != "" {
		return run{log: log, events: []event{{reason: "Unhealthy", message: "Readiness probe failed: " + ready}}}
	}
	return run{log: log, ready: true}
}

// restarts is how often every failing container was restarted.
const restarts = 5

func crashedRun(pod *corev1.Pod, c *corev1.Container, code int32, reason, log string) run {
	r := run{ended: terminatedState(code, reason), log: log}
	if pod.Spec.RestartPolicy == corev1.RestartPolicyNever || code == 0 && pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure {
		return r
	}
	r.restart, r.waiting = restarts, "CrashLoopBackOff"
	r.message = fmt.Sprintf("back-off 2m40s restarting failed container=%s pod=%s_%s(%s)", c.Name, pod.Name, pod.Namespace, pod.UID)
	r.events = []event{{reason: "BackOff", message: "Back-off restarting failed container " + c.Name + " in pod " + pod.Name}}
	return r
}

func terminatedState(code int32, reason string) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}
}
