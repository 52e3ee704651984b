package playbook

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var (
	refusedExpr = regexp.MustCompile(`(?i)connection refused`)
	absentExpr  = regexp.MustCompile(`(?i)statuscode: (404|405|410)`)
	statusExpr  = regexp.MustCompile(`(?i)statuscode: (\d{3})`)
	timeoutExpr = regexp.MustCompile(`(?i)timeout|deadline exceeded`)
)

// probe is one of a container's probes; its kind is also the start of its member's name.
type probe struct {
	*corev1.Probe
	kind string // liveness, startup or readiness
}

func probesOf(c *corev1.Container) []probe {
	return []probe{{c.LivenessProbe, "liveness"}, {c.StartupProbe, "startup"}, {c.ReadinessProbe, "readiness"}}
}

// checkLiveness explains class 11: containers that ran well until the kubelet ended them. Their
// exit code tells nothing about the program.
func checkLiveness(x *index, pod *corev1.Pod, w *workload) []Finding {
	var found []Finding
	for _, c := range listContainers(pod) {
		kind := x.killedBy(pod, c)
		if kind == "" || c.status.Ready && x.Taken.Sub(c.lastEnd().FinishedAt.Time) > recent {
			continue
		}
		for _, p := range probesOf(c.spec) {
			if p.kind != kind {
				continue
			}
			f := Finding{Class: LivenessProbe, Object: w.ref, container: c.spec.Name}
			f.Evidence = []string{fmt.Sprintf("The kubelet ended container %s because its %s probe failed, %s so far.", quoteCode(c.spec.Name), kind, countNoun(int(c.status.RestartCount), "restart", "restarts"))}
			f.judge(x, pod, w, c, p)
			found = append(found, f)
		}
	}
	return found
}

// killedBy is the kind of the probe for which the kubelet ended a container, or empty.
func (x *index) killedBy(pod *corev1.Pod, c container) string {
	end := c.lastEnd()
	if end == nil || c.outOfMemory() || end.ExitCode != 137 && end.ExitCode != 143 && end.ExitCode != 0 {
		return ""
	}
	for _, p := range probesOf(c.spec) {
		if p.Probe != nil && x.eventOf(pod.UID, func(e *corev1.Event) bool {
			return e.Reason == "Killing" && e.InvolvedObject.FieldPath == fieldPath(c) && strings.Contains(e.Message, "failed "+p.kind+" probe")
		}) != nil {
			return p.kind
		}
	}
	return ""
}

// checkReadiness explains class 12: containers that run and are not ready.
func checkReadiness(x *index, pod *corev1.Pod, w *workload) []Finding {
	var found []Finding
	for _, c := range listContainers(pod) {
		p := probe{c.spec.ReadinessProbe, "readiness"}
		if c.init || p.Probe == nil || c.status.Ready || c.status.State.Running == nil || keepsCrashing(pod, c) || c.outOfMemory() {
			continue
		}
		// Until the startup probe has passed, nobody asks the readiness probe.
		if c.status.Started != nil && !*c.status.Started || x.killedBy(pod, c) != "" {
			continue
		}
		f := Finding{Class: ReadinessProbe, Object: w.ref, container: c.spec.Name, because: x.grounds(pod)}
		f.Evidence = []string{fmt.Sprintf("Container %s runs and is not ready.", quoteCode(c.spec.Name))}
		f.judge(x, pod, w, c, p)
		found = append(found, f)
	}
	return found
}

// judge says why a probe fails.
func (f *Finding) judge(x *index, pod *corev1.Pod, w *workload, c container, p probe) {
	f.Evidence = append(f.Evidence, fmt.Sprintf("The %s probe is %s.", p.kind, probeText(p.Probe)))
	said := ""
	if e := x.eventOf(pod.UID, func(e *corev1.Event) bool {
		return e.Reason == "Unhealthy" && e.InvolvedObject.FieldPath == fieldPath(c) && strings.HasPrefix(e.Message, upperFirst(p.kind)+" probe")
	}); e != nil {
		said = e.Message
		f.Evidence = append(f.Evidence, "The kubelet says "+quoteCode(said)+".")
	}
	f.probe(said, w, c, p)
}

// probePort is the port that a probe asks, and the member of the probe that holds it.
func probePort(p *corev1.Probe) (port intstr.IntOrString, member string) {
	switch {
	case p.HTTPGet != nil:
		return p.HTTPGet.Port, "httpGet"
	case p.TCPSocket != nil:
		return p.TCPSocket.Port, "tcpSocket"
	case p.GRPC != nil:
		return intstr.FromInt32(p.GRPC.Port), "grpc"
	}
	return intstr.IntOrString{}, ""
}

func probeText(p *corev1.Probe) string {
	port, _ := probePort(p)
	switch {
	case p.HTTPGet != nil:
		return fmt.Sprintf("GET %s on port %s", quoteCode(p.HTTPGet.Path), quoteCode(port.String()))
	case p.TCPSocket != nil:
		return "a connection to port " + quoteCode(port.String())
	case p.GRPC != nil:
		return "a gRPC health check on port " + quoteCode(port.String())
	case p.Exec != nil && len(p.Exec.Command) > 0:
		return "the command " + quoteCode(p.Exec.Command[0]) // its arguments may hold what is secret
	}
	return "empty"
}

func (f *Finding) probe(said string, w *workload, c container, p probe) {
	port, member := probePort(p.Probe)
	declared := declaredPorts(c.spec)
	named := port.Type == intstr.String
	unknown := false // the probe's port is none of the container's
	if named {
		unknown = !slices.ContainsFunc(c.spec.Ports, func(d corev1.ContainerPort) bool { return d.Name == port.StrVal })
	} else if member != "" {
		unknown = len(declared) > 0 && !slices.Contains(declared, port.IntVal)
	}
	// Declared ports are what the spec says, not what the program does: only a probe that
	// was refused, or a name that nothing has, proves the port wrong.
	switch {
	case member != "" && unknown && (named || refusedExpr.MatchString(said)):
		f.Confidence = High
		f.wrongPort(port.String(), member, declared, w, c, p)
	case member != "" && unknown && said == "":
		f.Confidence = Medium
		f.wrongPort(port.String(), member, declared, w, c, p)
	case refusedExpr.MatchString(said) && port.IntVal != 0:
		f.Cause, f.Confidence = fmt.Sprintf("Nothing listens on port %d of the pod, which the %s probe asks.", port.IntVal, p.kind), Medium
		f.Text = "Look in the program's log whether it is still starting, and which port and address it listens on."
	case p.HTTPGet != nil && absentExpr.MatchString(said):
		f.Cause, f.Confidence = fmt.Sprintf("The program answers, but has nothing under the probe's path %s (status %s).", quoteCode(p.HTTPGet.Path), absentExpr.FindStringSubmatch(said)[1]), High
		f.Text = fmt.Sprintf("Say which path of the program the %s probe is to ask.", p.kind)
		f.oldProbe(w, c, p)
	case statusExpr.MatchString(said):
		f.Cause, f.Confidence = fmt.Sprintf("The program answers the %s probe with status %s: it says itself that something is not in order.", p.kind, statusExpr.FindStringSubmatch(said)[1]), Medium
		f.Text = "Read the program's log; often something that it depends on is not there."
	case timeoutExpr.MatchString(said):
		f.Cause, f.Confidence = fmt.Sprintf("The program does not answer the %s probe within %s.", p.kind, countNoun(int(max(p.TimeoutSeconds, 1)), "second", "seconds")), Medium
		f.Text = "Read the program's log and its CPU use; if the program is only slow, say which timeout the probe is to have."
	default:
		f.Cause, f.Confidence = fmt.Sprintf("The %s probe does not pass.", p.kind), Low
		f.Text = "Read the program's log."
	}
}

func (f *Finding) wrongPort(port, member string, declared []int32, w *workload, c container, p probe) {
	if len(declared) == 0 {
		f.Cause = fmt.Sprintf("The %s probe asks port %s, and the container has no port of this name.", p.kind, quoteCode(port))
		f.Text = "Say which port the program listens on."
		return
	}
	var has []string
	for _, d := range declared {
		has = append(has, strconv.Itoa(int(d)))
	}
	f.Cause = fmt.Sprintf("The %s probe asks port %s, and the container declares %s.", p.kind, quoteCode(port), quoteCodes(has))
	f.Text = "Say which of the container's ports the probe is to ask."
	if len(declared) != 1 {
		return
	}
	if f.Fix = patchContainer(w, c, members{p.kind + "Probe": members{member: members{"port": declared[0]}}}); f.Fix != nil {
		f.Text = fmt.Sprintf("Let the %s probe ask port %d.", p.kind, declared[0])
	}
}

// oldProbe offers the last revision where this probe was another one.
func (f *Finding) oldProbe(w *workload, c container, p probe) {
	fix, text := undoContainer(w, c, func(then *corev1.Container) bool {
		return slices.ContainsFunc(probesOf(then), func(old probe) bool { return old.kind == p.kind && equalValues(old.Probe, p.Probe) })
	})
	if fix != nil {
		f.Fix, f.Text = fix, text
	}
}
