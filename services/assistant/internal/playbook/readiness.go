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

// readiness explains class 12: containers that run and are not ready.
func readiness(x *index, pod *corev1.Pod, w *workload) []Finding {
	var found []Finding
	for _, c := range containers(pod) {
		p := c.spec.ReadinessProbe
		if c.init || p == nil || c.status.Ready || c.status.State.Running == nil || crashed(pod, c) || c.outOfMemory() {
			continue
		}
		// Until the startup probe has passed, nobody asks the readiness probe.
		if c.status.Started != nil && !*c.status.Started {
			continue
		}
		f := Finding{Class: ReadinessProbe, Object: w.ref}
		f.Evidence = []string{fmt.Sprintf("Container %s runs and is not ready; its readiness probe is %s.", code(c.spec.Name), probeText(p))}
		said := ""
		if e := x.eventOf(pod.UID, func(e *corev1.Event) bool {
			return e.Reason == "Unhealthy" && e.InvolvedObject.FieldPath == fieldPath(c) && strings.HasPrefix(e.Message, "Readiness probe")
		}); e != nil {
			said = e.Message
			f.Evidence = append(f.Evidence, "The kubelet says "+code(said)+".")
		}
		f.probe(said, w, c)
		found = append(found, f)
	}
	return found
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
		return fmt.Sprintf("GET %s on port %s", code(p.HTTPGet.Path), code(port.String()))
	case p.TCPSocket != nil:
		return "a connection to port " + code(port.String())
	case p.GRPC != nil:
		return "a gRPC health check on port " + code(port.String())
	case p.Exec != nil && len(p.Exec.Command) > 0:
		return "the command " + code(p.Exec.Command[0]) // its arguments may hold what is secret
	}
	return "empty"
}

func (f *Finding) probe(said string, w *workload, c container) {
	p := c.spec.ReadinessProbe
	port, member := probePort(p)
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
		f.wrongPort(port.String(), member, declared, w, c)
	case member != "" && unknown && said == "":
		f.Confidence = Medium
		f.wrongPort(port.String(), member, declared, w, c)
	case refusedExpr.MatchString(said) && port.IntVal != 0:
		f.Cause, f.Confidence = fmt.Sprintf("Nothing listens on port %d of the pod, which the readiness probe asks.", port.IntVal), Medium
		f.Text = "Look in the program's log whether it is still starting, and which port and address it listens on."
	case p.HTTPGet != nil && absentExpr.MatchString(said):
		f.Cause, f.Confidence = fmt.Sprintf("The program answers, but has nothing under the probe's path %s (status %s).", code(p.HTTPGet.Path), absentExpr.FindStringSubmatch(said)[1]), High
		f.Text = "Say which path the program answers when it is ready."
		f.oldProbe(w, c)
	case statusExpr.MatchString(said):
		f.Cause, f.Confidence = fmt.Sprintf("The program answers the readiness probe with status %s: it says itself that it is not ready.", statusExpr.FindStringSubmatch(said)[1]), Medium
		f.Text = "Read the program's log; often something that it depends on is not there."
	case timeoutExpr.MatchString(said):
		f.Cause, f.Confidence = fmt.Sprintf("The program does not answer the readiness probe within %s.", count(int(max(p.TimeoutSeconds, 1)), "second", "seconds")), Medium
		f.Text = "Read the program's log and its CPU use; if the program is only slow, say which timeout the probe is to have."
	default:
		f.Cause, f.Confidence = "The readiness probe does not pass.", Low
		f.Text = "Read the program's log."
	}
}

func (f *Finding) wrongPort(port, member string, declared []int32, w *workload, c container) {
	if len(declared) == 0 {
		f.Cause = fmt.Sprintf("The readiness probe asks port %s, and the container has no port of this name.", code(port))
		f.Text = "Say which port the program listens on."
		return
	}
	var has []string
	for _, d := range declared {
		has = append(has, strconv.Itoa(int(d)))
	}
	f.Cause = fmt.Sprintf("The readiness probe asks port %s, and the container listens on %s.", code(port), codes(has))
	f.Text = "Say which of the container's ports the probe is to ask."
	if len(declared) != 1 {
		return
	}
	if f.Fix = patchContainer(w, c, members{"readinessProbe": members{member: members{"port": declared[0]}}}); f.Fix != nil {
		f.Text = fmt.Sprintf("Let the readiness probe ask port %d.", declared[0])
	}
}

// oldProbe offers the last revision with another probe.
func (f *Finding) oldProbe(w *workload, c container) {
	fix, text := undoContainer(w, c, func(then *corev1.Container) bool {
		return equal(then.ReadinessProbe, c.spec.ReadinessProbe)
	})
	if fix != nil {
		f.Fix, f.Text = fix, text
	}
}
