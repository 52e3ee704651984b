package playbook

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// initTime is what an init container may work before it counts as waiting, if its log does
// not say so itself.
const initTime = 2 * time.Minute

var (
	waitsExpr = regexp.MustCompile(`(?i)\bwait(s|ing)?\b|\bretry(ing)?\b|\bnot (yet )?(ready|available|reachable)\b|unreachable|bad address|not resolve|` + dependencyExpr.String())
	// hostExpr finds what a line says is looked for.
	hostExpr = regexp.MustCompile(`(?i:waiting for|wait for|waits for|lookup|resolve|resolving|reach|connect to|connecting to|bad address|host|server at|tcp)\s+(?i:host\s+|service\s+)?['"]?([a-z0-9][a-z0-9.-]*)`)
	wordExpr = regexp.MustCompile(`[a-z0-9][a-z0-9.-]*[a-z0-9]`)
)

// isInitRunning says whether an init container runs that the others wait for.
func isInitRunning(pod *corev1.Pod, c container) bool {
	return c.init && !runsBeside(c.spec) && c.status.State.Running != nil && pod.Status.Phase == corev1.PodPending
}

// initWaits explains the rest of class 26: an init container that neither fails nor ends.
func initWaits(x *index, pod *corev1.Pod, w *workload) []Finding {
	var found []Finding
	for _, c := range listContainers(pod) {
		if !isInitRunning(pod, c) || keepsCrashing(pod, c) {
			continue
		}
		log := Log{Namespace: pod.Namespace, Pod: pod.Name, Container: c.spec.Name}
		lines, orders := splitInstructions(x.lines(log))
		at := slices.IndexFunc(lines, waitsExpr.MatchString)
		started := c.status.State.Running.StartedAt
		if at < 0 && x.Taken.Sub(started.Time) < initTime {
			continue
		}
		f := Finding{Class: InitContainer, Object: w.ref, container: c.spec.Name, because: x.grounds(pod)}
		_, read := x.Logs[log]
		f.blind = !read
		f.Evidence = append([]string{initText(pod, c)}, orders...)
		if since := x.since(started); since != "" {
			f.Evidence = append(f.Evidence, fmt.Sprintf("It has run for %s and has not ended.", since))
		}
		f.Cause, f.Confidence = fmt.Sprintf("The init container %s does not end.", quoteCode(c.spec.Name)), Low
		f.Text = "Read its log, and look at what its command waits for."
		if at >= 0 {
			f.Cause, f.Confidence = fmt.Sprintf("The init container %s waits for something that does not answer.", quoteCode(c.spec.Name)), Medium
			f.Text = "Repair what the log line names, or correct the address; the pod then goes on by itself."
			f.awaited(x, pod, c, lines[at])
			// The cause is all that is shown of a consequence, so the line goes with it.
			f.Cause += " Its log says " + quoteCode(lines[at]) + "."
		} else if len(lines) > 0 {
			f.Evidence = append(f.Evidence, "The last line of its log is "+quoteCode(lines[0])+".")
		}
		found = append(found, f)
	}
	return found
}

// awaited looks for the service that a line of the log names.
func (f *Finding) awaited(x *index, pod *corev1.Pod, c container, line string) {
	if x.Unread["services"] || x.Unread["pods"] {
		return
	}
	for _, word := range wordExpr.FindAllString(line, mostDenials) {
		if s := x.serviceNamed(word, pod.Namespace); s != nil {
			f.awaitedService(x, s, c)
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
	f.Evidence = append(f.Evidence, fmt.Sprintf("Namespace %s was searched: no service has the name %s.", quoteCode(namespace), quoteCode(service)))
	f.Cause = fmt.Sprintf("The init container %s waits for %s, and no service of this name exists.", quoteCode(c.spec.Name), quoteCode(service))
	f.Text = fmt.Sprintf("Create what is to answer as %s, or correct the name that the init container is given; the pod then goes on by itself.", quoteCode(service))
}

// splitServiceHost are service and namespace of a host name within the cluster.
func splitServiceHost(host, namespace string) (string, string) {
	labels := strings.SplitN(host, ".", 3)
	if len(labels) > 1 {
		namespace = labels[1]
	}
	return labels[0], namespace
}

func (f *Finding) awaitedService(x *index, s *corev1.Service, c container) {
	f.Cause = fmt.Sprintf("The init container %s waits for the service %s.", quoteCode(c.spec.Name), quoteCode(s.Name))
	pods := x.selected(s.Namespace, s.Spec.Selector)
	f.because = append(f.because, serviceRef(s))
	for _, pod := range pods {
		f.because = append(f.because, x.workloadOf(pod).ref)
	}
	ready := 0
	for _, pod := range pods {
		if podReady(pod) {
			ready++
		}
	}
	switch {
	case len(s.Spec.Selector) == 0:
		f.Evidence = append(f.Evidence, fmt.Sprintf("The service %s exists and has no selector: somebody else writes its endpoints.", quoteCode(s.Name)))
	case ready == 0:
		f.Confidence = High
		f.Evidence = append(f.Evidence, fmt.Sprintf("The service %s chooses %s, none of them ready.", quoteCode(s.Name), countNoun(len(pods), "pod", "pods")))
		f.Cause = fmt.Sprintf("The init container %s waits for the service %s, which has no ready pod.", quoteCode(c.spec.Name), quoteCode(s.Name))
		f.Text = fmt.Sprintf("Bring the pods behind %s up; this pod then goes on by itself.", quoteCode(s.Name))
	default:
		f.Evidence = append(f.Evidence, fmt.Sprintf("The service %s has %s: look at the port, at network policies, and at what the program answers.", quoteCode(s.Name), countNoun(ready, "ready pod", "ready pods")))
	}
}
