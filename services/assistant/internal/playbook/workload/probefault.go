package workload

import (
	"fmt"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// The kubelet's messages about a port that answers, but not in the protocol of the probe.
var (
	notHTTPExpr  = regexp.MustCompile(`malformed HTTP (response|status code|version)`)
	noTLSExpr    = regexp.MustCompile(`server gave HTTP response to HTTPS client|first record does not look like a TLS handshake`)
	notGRPCExpr  = regexp.MustCompile(`(?i)server preface|http2: (frame|failed)|unexpected HTTP status code received from server|malformed header: missing HTTP content-type`)
	noHealthExpr = regexp.MustCompile(`(?i)does not implement the grpc health protocol|unknown service grpc\.health`)
	http2Expr    = regexp.MustCompile(`"\\x00\\x00\S{1,4}\\x04`) // the frame with which a server of HTTP/2 begins, as Go quotes it
)

// explainProtocol explains a probe whose protocol the port does not speak.
func explainProtocol(f *engine.Finding, said string, w *engine.Workload, c engine.Container, p probe) bool {
	port, member := probePort(p.Probe)
	switch {
	case p.HTTPGet != nil && notHTTPExpr.MatchString(said):
		f.Cause = fmt.Sprintf("Port %s speaks another protocol than the %s probe: the probe asks by HTTP, and what answers is not HTTP.", engine.QuoteCode(port.String()), p.kind)
		f.Text = fmt.Sprintf("Let the %s probe ask in the protocol of that port, or ask a port that speaks HTTP.", p.kind)
		if http2Expr.MatchString(said) {
			f.Evidence = append(f.Evidence, "What it answered is the first frame of HTTP/2, which gRPC speaks.")
			f.Text = fmt.Sprintf("Let the %s probe be a gRPC one, or ask a port that speaks HTTP.", p.kind)
		}
	case p.HTTPGet != nil && noTLSExpr.MatchString(said):
		f.Cause = fmt.Sprintf("Port %s speaks another protocol than the %s probe: the probe asks by HTTPS, and the port answers without TLS.", engine.QuoteCode(port.String()), p.kind)
		f.Text = "Let the scheme of the probe be HTTP, or let it ask the port that has TLS."
	case p.GRPC != nil && noHealthExpr.MatchString(said):
		f.Cause = fmt.Sprintf("Port %s speaks gRPC and does not have the health service that the %s probe asks (protocol `grpc.health.v1`).", engine.QuoteCode(port.String()), p.kind)
		f.Text = "Let the program serve `grpc.health.v1.Health`, or let the probe ask in another way."
	case p.GRPC != nil && notGRPCExpr.MatchString(said):
		f.Cause = fmt.Sprintf("Port %s speaks another protocol than the %s probe: the probe asks by gRPC, and what answers is not gRPC.", engine.QuoteCode(port.String()), p.kind)
		f.Text = fmt.Sprintf("Let the %s probe ask by HTTP, or ask the port that speaks gRPC.", p.kind)
	default:
		return false
	}
	f.Confidence = engine.High
	offerLikeProbe(f, port, member, w, c, p)
	if f.Fix == nil {
		offerOldProbe(f, w, c, p)
	}
	return true
}

// offerLikeProbe offers the handler of another probe of the container that uses the same port with another protocol.
func offerLikeProbe(f *engine.Finding, port intstr.IntOrString, member string, w *engine.Workload, c engine.Container, p probe) {
	for _, other := range probesOf(c.Spec) {
		if other.Probe == nil || other.kind == p.kind {
			continue
		}
		at, its := probePort(other.Probe)
		if at != port || its == member || its == "tcpSocket" || its == "" {
			continue
		}
		handler := engine.Members{"port": at}
		if other.GRPC != nil {
			handler = engine.Members{"port": other.GRPC.Port}
			if other.GRPC.Service != nil {
				handler["service"] = *other.GRPC.Service
			}
		} else {
			handler["path"] = other.HTTPGet.Path
		}
		f.Evidence = append(f.Evidence, fmt.Sprintf("Its %s probe asks the same port otherwise: %s.", other.kind, probeText(other.Probe)))
		if f.Fix = engine.PatchContainer(w, c, engine.Members{p.kind + "Probe": engine.Members{member: nil, its: handler}}); f.Fix != nil {
			f.Text = fmt.Sprintf("Let the %s probe ask as the %s probe does.", p.kind, other.kind)
		}
		return
	}
}

const (
	// shortStart is the time that even a small program may take to start.
	shortStart = 15 * time.Second
	// shortPause is how long any program may occasionally be busy.
	shortPause = 3 * time.Second
)

// patience returns how long a container may stay silent before a probe ends it: from its start, and later on.
func patience(p *corev1.Probe) (start, later time.Duration) {
	period, failures := max(p.PeriodSeconds, 1), max(p.FailureThreshold, 1)
	later = time.Duration(period*failures) * time.Second
	return time.Duration(p.InitialDelaySeconds)*time.Second + later, later
}

// explainTiming explains a probe that ends its container before the program can have started, or at its first pause.
func explainTiming(f *engine.Finding, w *engine.Workload, c engine.Container, p probe) bool {
	end := c.LastEnd()
	if p.kind == "readiness" || end == nil {
		return false
	}
	start, later := patience(p.Probe)
	lived := time.Duration(0)
	if !end.StartedAt.IsZero() && end.FinishedAt.After(end.StartedAt.Time) {
		lived = end.FinishedAt.Sub(end.StartedAt.Time)
	}
	delayed := p.kind == "liveness" && c.Spec.StartupProbe != nil // it begins when the program has started
	sum := fmt.Sprintf("initialDelaySeconds %d + periodSeconds %d × failureThreshold %d", p.InitialDelaySeconds, max(p.PeriodSeconds, 1), max(p.FailureThreshold, 1))
	f.Evidence = append(f.Evidence, fmt.Sprintf("It gives up %s after the start at the earliest (%s).", engine.CountNoun(int(start.Seconds()), "second", "seconds"), sum))
	if lived > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("The run before the restart lived %s.", engine.CountNoun(int(lived.Seconds()), "second", "seconds")))
	}
	switch {
	case !delayed && start < shortStart:
		f.Cause = fmt.Sprintf("The %s probe is too early: it ends the program after %s, which is too short for a program that is still starting.", p.kind, engine.CountNoun(int(start.Seconds()), "second", "seconds"))
	case later <= shortPause:
		f.Cause = fmt.Sprintf("The %s probe is too strict: it ends the program as soon as it is silent for %s.", p.kind, engine.CountNoun(int(later.Seconds()), "second", "seconds"))
	default:
		return false
	}
	f.Confidence = engine.Medium
	f.Text = fmt.Sprintf("Choose how long the program may take to start: add a startup probe, or give the %s probe a longer delay and more failures (failureThreshold).", p.kind)
	offerOldProbe(f, w, c, p)
	return true
}
