package workload

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

var (
	refusedExpr = regexp.MustCompile(`(?i)connection refused`)
	absentExpr  = regexp.MustCompile(`(?i)statuscode: (404|405|410)`)
	statusExpr  = regexp.MustCompile(`(?i)statuscode: (\d{3})`)
	// unconnectedExpr matches the kubelet's message about a gRPC probe that got no connection, refused or not.
	unconnectedExpr = regexp.MustCompile(`failed to connect service`)
	timeoutExpr     = regexp.MustCompile(`(?i)timeout|deadline exceeded`)
)

// probe is one of a container's probes; its kind is also the start of its member's name.
type probe struct {
	*corev1.Probe
	kind string // liveness, startup or readiness
}

func probesOf(c *corev1.Container) []probe {
	return []probe{{c.LivenessProbe, "liveness"}, {c.StartupProbe, "startup"}, {c.ReadinessProbe, "readiness"}}
}

// checkLiveness explains LivenessProbe: containers that ran well until the kubelet ended them. Their exit code carries
// no information about the program.
func checkLiveness(x *Index, pod *corev1.Pod, w *engine.Workload) []engine.Finding {
	var found []engine.Finding
	for _, c := range engine.ListContainers(pod) {
		kind := x.killedBy(pod, c)
		if kind == "" || c.Status.Ready && x.Taken.Sub(c.LastEnd().FinishedAt.Time) > engine.Recent {
			continue
		}
		for _, p := range probesOf(c.Spec) {
			if p.kind != kind {
				continue
			}
			f := engine.Finding{Class: engine.LivenessProbe, Object: w.Ref, Container: c.Spec.Name}
			f.Evidence = []string{fmt.Sprintf("The kubelet ended container %s because its %s probe failed, %s so far.", engine.QuoteCode(c.Spec.Name), kind, engine.CountNoun(int(c.Status.RestartCount), "restart", "restarts"))}
			explainProbe(&f, x, pod, w, c, p)
			found = append(found, f)
		}
	}
	return found
}

// killedBy returns the kind of the probe for which the kubelet ended a container, or empty.
func (x *Index) killedBy(pod *corev1.Pod, c engine.Container) string {
	end := c.LastEnd()
	if end == nil || c.OutOfMemory() {
		return ""
	}
	bySignal := end.ExitCode == 137 || end.ExitCode == 143 || end.ExitCode == 0
	for _, p := range probesOf(c.Spec) {
		if p.Probe != nil && x.EventOf(pod.UID, func(e *corev1.Event) bool {
			return e.Reason == "Killing" && e.InvolvedObject.FieldPath == fieldPath(c) && strings.Contains(e.Message, "failed "+p.kind+" probe") && (bySignal || during(end, e))
		}) != nil {
			return p.kind
		}
	}
	return ""
}

// during reports whether an event belongs to a run that ended. A program chooses its exit code when it is asked to
// stop, so the code alone does not show who ended it. Event times are in whole seconds.
func during(end *corev1.ContainerStateTerminated, e *corev1.Event) bool {
	at := engine.LastSeen(e).Time
	return !end.FinishedAt.IsZero() && !at.IsZero() && !at.After(end.FinishedAt.Add(time.Second)) && !at.Before(end.StartedAt.Add(-time.Second))
}

// checkReadiness explains ReadinessProbe: containers that run and are not ready.
func checkReadiness(x *Index, pod *corev1.Pod, w *engine.Workload) []engine.Finding {
	var found []engine.Finding
	for _, c := range engine.ListContainers(pod) {
		p := probe{c.Spec.ReadinessProbe, "readiness"}
		if c.Init || p.Probe == nil || c.Status.Ready || c.Status.State.Running == nil || engine.KeepsCrashing(pod, c) || c.OutOfMemory() {
			continue
		}
		// The readiness probe does not run before the startup probe has passed.
		if c.Status.Started != nil && !*c.Status.Started || x.killedBy(pod, c) != "" {
			continue
		}
		f := engine.Finding{Class: engine.ReadinessProbe, Object: w.Ref, Container: c.Spec.Name, Because: x.policy.Grounds(pod)}
		f.Evidence = []string{fmt.Sprintf("Container %s runs and is not ready.", engine.QuoteCode(c.Spec.Name))}
		explainProbe(&f, x, pod, w, c, p)
		found = append(found, f)
	}
	return found
}

// explainProbe explains why a probe fails.
func explainProbe(f *engine.Finding, x *Index, pod *corev1.Pod, w *engine.Workload, c engine.Container, p probe) {
	f.Evidence = append(f.Evidence, fmt.Sprintf("The %s probe is %s.", p.kind, probeText(p.Probe)))
	said := ""
	if e := x.EventOf(pod.UID, func(e *corev1.Event) bool {
		return e.Reason == "Unhealthy" && e.InvolvedObject.FieldPath == fieldPath(c) && strings.HasPrefix(e.Message, engine.UpperFirst(p.kind)+" probe")
	}); e != nil {
		said = e.Message
		f.Evidence = append(f.Evidence, "The kubelet says "+engine.QuoteCode(said)+".")
	}
	explainProbeFailure(f, said, w, c, p)
	if f.Confidence < engine.High {
		x.explainProbeByLog(f, pod, c, p)
	}
}

// probePort returns the port that a probe uses, and the member of the probe that contains it.
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
		return fmt.Sprintf("GET %s on port %s", engine.QuoteCode(p.HTTPGet.Path), engine.QuoteCode(port.String()))
	case p.TCPSocket != nil:
		return "a connection to port " + engine.QuoteCode(port.String())
	case p.GRPC != nil:
		return "a gRPC health check on port " + engine.QuoteCode(port.String())
	case p.Exec != nil && len(p.Exec.Command) > 0:
		return "the command " + engine.QuoteCode(p.Exec.Command[0]) // its arguments may be secret
	}
	return "empty"
}

func explainProbeFailure(f *engine.Finding, said string, w *engine.Workload, c engine.Container, p probe) {
	port, member := probePort(p.Probe)
	declared := engine.DeclaredPorts(c.Spec)
	named := port.Type == intstr.String
	unknown := false // the probe's port is none of the container's
	if named {
		unknown = !slices.ContainsFunc(c.Spec.Ports, func(d corev1.ContainerPort) bool { return d.Name == port.StrVal })
	} else if member != "" {
		unknown = len(declared) > 0 && !slices.Contains(declared, port.IntVal)
	}
	// Declared ports come from the spec, not from the program: only a refused probe, or a name that does not exist, proves
	// the port wrong.
	unanswered := refusedExpr.MatchString(said) || unconnectedExpr.MatchString(said)
	switch {
	case member != "" && unknown && (named || unanswered):
		f.Confidence = engine.High
		offerPort(f, port.String(), member, declared, w, c, p)
	case explainProtocol(f, said, w, c, p):
	case (unanswered || timeoutExpr.MatchString(said)) && explainTiming(f, w, c, p):
	case member != "" && unknown && said == "":
		f.Confidence = engine.Medium
		offerPort(f, port.String(), member, declared, w, c, p)
	case refusedExpr.MatchString(said) && port.IntVal != 0:
		f.Cause, f.Confidence = fmt.Sprintf("Nothing listens on port %d of the pod, which the %s probe asks.", port.IntVal, p.kind), engine.Medium
		f.Text = "Look in the program's log whether it is still starting, and which port and address it listens on."
	case p.HTTPGet != nil && absentExpr.MatchString(said):
		f.Cause, f.Confidence = fmt.Sprintf("The program answers, but has nothing under the probe's path %s (status %s).", engine.QuoteCode(p.HTTPGet.Path), absentExpr.FindStringSubmatch(said)[1]), engine.High
		f.Text = fmt.Sprintf("Choose the path that the %s probe should request.", p.kind)
		offerOldProbe(f, w, c, p)
	case statusExpr.MatchString(said):
		f.Cause, f.Confidence = fmt.Sprintf("The program answers the %s probe with status %s: it says itself that something is not in order.", p.kind, statusExpr.FindStringSubmatch(said)[1]), engine.Medium
		f.Text = "Read the program's log; often something that it depends on is not there."
	case unconnectedExpr.MatchString(said) && port.IntVal != 0:
		f.Cause, f.Confidence = fmt.Sprintf("Nothing answers on port %d of the pod, which the %s probe asks, within %s.", port.IntVal, p.kind, engine.CountNoun(int(max(p.TimeoutSeconds, 1)), "second", "seconds")), engine.Medium
		f.Text = "Look in the program's log whether it is still starting, and which port and address it listens on."
	case timeoutExpr.MatchString(said):
		f.Cause, f.Confidence = fmt.Sprintf("The program does not answer the %s probe within %s.", p.kind, engine.CountNoun(int(max(p.TimeoutSeconds, 1)), "second", "seconds")), engine.Medium
		f.Text = "Check the program's log and CPU usage; if the program is only slow, choose a longer timeout for the probe."
	default:
		f.Cause, f.Confidence = fmt.Sprintf("The %s probe does not pass.", p.kind), engine.Low
		f.Text = "Read the program's log."
	}
}

func offerPort(f *engine.Finding, port, member string, declared []int32, w *engine.Workload, c engine.Container, p probe) {
	if len(declared) == 0 {
		f.Cause = fmt.Sprintf("The %s probe asks port %s, and the container has no port of this name.", p.kind, engine.QuoteCode(port))
		f.Text = "Name the port that the program listens on."
		return
	}
	var has []string
	for _, d := range declared {
		has = append(has, strconv.Itoa(int(d)))
	}
	f.Cause = fmt.Sprintf("The %s probe asks port %s, and the container declares %s.", p.kind, engine.QuoteCode(port), engine.QuoteCodes(has))
	f.Text = "Choose the container port that the probe should use."
	if len(declared) != 1 {
		return
	}
	if f.Fix = engine.PatchContainer(w, c, engine.Members{p.kind + "Probe": engine.Members{member: engine.Members{"port": declared[0]}}}); f.Fix != nil {
		f.Text = fmt.Sprintf("Let the %s probe ask port %d.", p.kind, declared[0])
	}
}

// offerOldProbe offers the last revision in which this probe differed.
func offerOldProbe(f *engine.Finding, w *engine.Workload, c engine.Container, p probe) {
	fix, text := engine.UndoContainer(w, c, func(then *corev1.Container) bool {
		return slices.ContainsFunc(probesOf(then), func(old probe) bool { return old.kind == p.kind && engine.EqualValues(old.Probe, p.Probe) })
	})
	if fix != nil {
		f.Fix, f.Text = fix, text
	}
}
