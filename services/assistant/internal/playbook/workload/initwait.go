package workload

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// initTime is how long an init container may run before it counts as waiting, unless its log reports the wait.
const initTime = 2 * time.Minute

var (
	waitsExpr = regexp.MustCompile(`(?i)` + wordlist.AnyOf(
		`\bwait(s|ing)?\b`, `\bretry(ing)?\b`, `\bnot (yet )?(ready|available|reachable)\b`, "unreachable", "bad address",
		"not resolve", dependencyExpr.String(),
	))
	// hostExpr finds the host that a log line waits for.
	hostExpr = regexp.MustCompile(`(?i:` + wordlist.AnyOf(
		"waiting for", "wait for", "waits for", "lookup", "resolve", "resolving", "reach", "connect to", "connecting to",
		"bad address", "host", "server at", "tcp",
	) + `)\s+(?i:host\s+|service\s+)?['"]?([a-z0-9][a-z0-9.-]*)`)
	wordExpr = regexp.MustCompile(`[a-z0-9][a-z0-9.-]*[a-z0-9]`)
)

// checkInitContainers explains the rest of InitContainer: an init container that neither fails nor ends.
func checkInitContainers(x *Index, pod *corev1.Pod, w *engine.Workload) []engine.Finding {
	var found []engine.Finding
	for _, c := range engine.ListContainers(pod) {
		if f, ok := x.waitingSidecar(pod, w, c); ok {
			found = append(found, f)
			continue
		}
		if !engine.IsInitRunning(pod, c) || engine.KeepsCrashing(pod, c) {
			continue
		}
		log := engine.Log{Namespace: pod.Namespace, Pod: pod.Name, Container: c.Spec.Name}
		lines, orders := engine.SplitInstructions(x.Lines(log))
		at := slices.IndexFunc(lines, waitsExpr.MatchString)
		started := c.Status.State.Running.StartedAt
		if at < 0 && x.Taken.Sub(started.Time) < initTime {
			continue
		}
		f := engine.Finding{Class: engine.InitContainer, Object: w.Ref, Container: c.Spec.Name, Because: x.policy.Grounds(pod)}
		_, read := x.Logs[log]
		f.Blind = !read
		f.Evidence = append([]string{engine.InitText(pod, c)}, orders...)
		if since := x.Since(started); since != "" {
			f.Evidence = append(f.Evidence, fmt.Sprintf("It has run for %s and has not ended.", since))
		}
		f.Cause, f.Confidence = fmt.Sprintf("The init container %s does not end.", engine.QuoteCode(c.Spec.Name)), engine.Low
		f.Text = "Read its log, and look at what its command waits for."
		if at >= 0 {
			f.Cause, f.Confidence = fmt.Sprintf("The init container %s waits for something that does not answer.", engine.QuoteCode(c.Spec.Name)), engine.Medium
			f.Text = "Fix what the log line names, or correct the address; the pod then continues automatically."
			explainAwaited(&f, x, pod, c, lines[at])
			// A consequence shows only its cause, so the line is part of that.
			f.Cause += " Its log says " + engine.QuoteCode(lines[at]) + "."
		} else if len(lines) > 0 {
			f.Evidence = append(f.Evidence, "The last line of its log is "+engine.QuoteCode(lines[0])+".")
		}
		found = append(found, f)
	}
	return found
}

// waitingSidecar explains a sidecar (an init container that keeps running) whose startup probe does not pass: until
// then the following containers of the pod do not start.
func (x *Index) waitingSidecar(pod *corev1.Pod, w *engine.Workload, c engine.Container) (engine.Finding, bool) {
	p := probe{c.Spec.StartupProbe, "startup"}
	started := c.Status.Started != nil && *c.Status.Started
	if !c.Init || !engine.RunsBeside(c.Spec) || p.Probe == nil || started || c.Status.State.Running == nil || pod.Status.Phase != corev1.PodPending || engine.KeepsCrashing(pod, c) || x.killedBy(pod, c) != "" {
		return engine.Finding{}, false
	}
	f := engine.Finding{Class: engine.InitContainer, As: engine.LivenessProbe, Object: w.Ref, Container: c.Spec.Name}
	f.Evidence = []string{fmt.Sprintf("Container %s is a sidecar: an init container with restartPolicy Always. It runs and has not started up by its probe.", engine.QuoteCode(c.Spec.Name))}
	explainProbe(&f, x, pod, w, c, p)
	f.Cause += fmt.Sprintf(" The containers after the sidecar %s wait for its startup probe.", engine.QuoteCode(c.Spec.Name))
	return f, true
}

// explainAwaited finds the service that a line of the log names.
func explainAwaited(f *engine.Finding, x *Index, pod *corev1.Pod, c engine.Container, line string) {
	if x.Unread["services"] || x.Unread["pods"] {
		return
	}
	for _, word := range wordExpr.FindAllString(line, engine.MostDenials) {
		if s := x.ServiceNamed(word, pod.Namespace); s != nil {
			explainAwaitedService(f, x, s, c)
			return
		}
	}
	m := hostExpr.FindStringSubmatch(line)
	if m == nil {
		return
	}
	host := strings.TrimRight(m[1], ".-")
	if strings.Contains(host, ".") && !strings.Contains(host, ".svc") || !operation.ValidName(host) {
		return // outside of the cluster
	}
	service, namespace := splitServiceHost(host, pod.Namespace)
	if namespace != pod.Namespace {
		return // the services of another namespace may not have been read
	}
	f.Evidence = append(f.Evidence, fmt.Sprintf("Namespace %s was searched: no service has the name %s.", engine.QuoteCode(namespace), engine.QuoteCode(service)))
	f.Cause = fmt.Sprintf("The init container %s waits for %s, and no service of this name exists.", engine.QuoteCode(c.Spec.Name), engine.QuoteCode(service))
	f.Text = fmt.Sprintf("Create the service %s, or correct the name that the init container is given; the pod then continues automatically.", engine.QuoteCode(service))
}

// splitServiceHost returns service and namespace of a cluster-internal host name.
func splitServiceHost(host, namespace string) (string, string) {
	labels := strings.SplitN(host, ".", 3)
	if len(labels) > 1 {
		namespace = labels[1]
	}
	return labels[0], namespace
}

func explainAwaitedService(f *engine.Finding, x *Index, s *corev1.Service, c engine.Container) {
	f.Cause = fmt.Sprintf("The init container %s waits for the service %s.", engine.QuoteCode(c.Spec.Name), engine.QuoteCode(s.Name))
	pods := x.Selected(s.Namespace, s.Spec.Selector)
	f.Because = append(f.Because, engine.ServiceRef(s))
	for _, pod := range pods {
		f.Because = append(f.Because, x.WorkloadOf(pod).Ref)
	}
	ready := 0
	for _, pod := range pods {
		if engine.PodReady(pod) {
			ready++
		}
	}
	switch {
	case len(s.Spec.Selector) == 0:
		f.Evidence = append(f.Evidence, fmt.Sprintf("The service %s exists and has no selector: its endpoints are managed elsewhere.", engine.QuoteCode(s.Name)))
	case ready == 0:
		f.Confidence = engine.High
		f.Evidence = append(f.Evidence, fmt.Sprintf("The service %s chooses %s, none of them ready.", engine.QuoteCode(s.Name), engine.CountNoun(len(pods), "pod", "pods")))
		f.Cause = fmt.Sprintf("The init container %s waits for the service %s, which has no ready pod.", engine.QuoteCode(c.Spec.Name), engine.QuoteCode(s.Name))
		f.Text = fmt.Sprintf("Bring up the pods behind %s; this pod then continues automatically.", engine.QuoteCode(s.Name))
	default:
		f.Evidence = append(f.Evidence, fmt.Sprintf("The service %s has %s: look at the port, at network policies, and at what the program answers.", engine.QuoteCode(s.Name), engine.CountNoun(ready, "ready pod", "ready pods")))
	}
}
