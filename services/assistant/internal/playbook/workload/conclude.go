package workload

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// Message holds the lines in which a running pod reports a problem, the deepest cause first.
type Message struct {
	Namespace, Pod string
	Lines          []string
}

var (
	// serverContextExpr matches lines about a database, as opposed to lines with the same words in which a program reports
	// on its own users.
	serverContextExpr = regexp.MustCompile(`(?i)sql|jdbc|hikari|mongo|redis|\bORA-|postgres|maria|database|\bdb\b|'@'|\bpq:|amqp|READONLY|connection slots|clients already`)
	// clientExpr matches the address of a client in a line of the database itself.
	clientExpr = regexp.MustCompile(`'[^']*'@'(\d{1,3}(?:\.\d{1,3}){3})'`)
)

// Conclude finds causes in the logs of running pods, which fail at their work without any object showing it.
func (x *Index) Conclude(messages []Message) []engine.Finding {
	m := engine.NewMerger()
	var refusals []*refusal
	for _, message := range messages {
		pod := x.podNamed(message.Namespace, message.Pod)
		if pod == nil {
			continue
		}
		w := x.WorkloadOf(pod)
		for _, line := range message.Lines {
			if f, ok := x.network.WrongAddress(pod, line); ok {
				f.Object = w.Ref
				m.Add(f, pod.Name)
				break
			}
			cause, at := findEndCause([]string{line})
			if at < 0 || !cause.database || !serverContextExpr.MatchString(line) {
				continue
			}
			s := x.servedBy(pod)
			if s == nil {
				s = x.databaseOf(pod, []string{line})
			} else if c := clientExpr.FindStringSubmatch(line); c != nil {
				if client := x.podAt(c[1]); client != nil { // the database reports on one of its clients
					pod, w = client, x.WorkloadOf(client)
				}
			}
			refusals = addRefusal(refusals, s, cause, pod, w, line)
			break
		}
	}
	found := m.Found
	for _, r := range refusals {
		found = append(found, x.explainRefusal(r))
	}
	return found
}

func addRefusal(all []*refusal, s *corev1.Service, cause *endCause, pod *corev1.Pod, w *engine.Workload, line string) []*refusal {
	i := slices.IndexFunc(all, func(r *refusal) bool {
		return r.cause == cause && r.service == s && (s != nil || r.clients[0].Ref == w.Ref)
	})
	if i < 0 {
		i = len(all)
		all = append(all, &refusal{service: s, cause: cause})
	}
	r := all[i]
	if !slices.ContainsFunc(r.clients, func(other *engine.Workload) bool { return other.Ref == w.Ref }) {
		r.clients = append(r.clients, w)
		r.lines = append(r.lines, fmt.Sprintf("The log of pod %s says %s.", engine.QuoteCode(pod.Name), engine.QuoteLine(line)))
	}
	return all
}

// explainRefusal explains how a database fails its clients. The finding is on the database if that is at fault itself
// or refuses several clients, and otherwise on the one client.
func (x *Index) explainRefusal(r *refusal) engine.Finding {
	f := engine.Finding{Class: engine.DatabaseRefuses, Object: r.clients[0].Ref, Confidence: engine.Medium}
	slices.Sort(r.lines)
	f.Evidence = r.lines
	f.Cause, f.Text = r.cause.cause+".", r.cause.advice
	if r.service != nil {
		f.Cause = fmt.Sprintf("%s. The database is the service %s.", r.cause.cause, engine.QuoteCode(r.service.Name))
		f.Touches = []operation.Ref{engine.ServiceRef(r.service)}
		if r.cause.server || len(r.clients) > 1 {
			f.Object = x.backendOf(r.service)
		}
	}
	slices.SortFunc(r.clients, func(a, b *engine.Workload) int { return cmp.Compare(a.Ref.String(), b.Ref.String()) })
	for _, w := range r.clients {
		if w.Ref != f.Object {
			f.Evidence = append(f.Evidence, fmt.Sprintf("It hits %s.", engine.RefTitle(w.Ref)))
		}
		f.Effects = append(f.Effects, engine.Effect{Of: w.Ref, Classes: []engine.Class{engine.CrashLoop, engine.LivenessProbe, engine.ReadinessProbe, engine.InitContainer, engine.JobFailed, engine.RolloutStuck}, Unproved: true})
	}
	return f
}

func (x *Index) podNamed(namespace, name string) *corev1.Pod {
	for _, pod := range x.LivingPods {
		if pod.Name == name && (namespace == "" || pod.Namespace == namespace) {
			return pod
		}
	}
	return nil
}

// podAt returns the pod with an address, other than pods on the host network.
func (x *Index) podAt(ip string) *corev1.Pod {
	for _, pod := range x.LivingPods {
		if pod.Status.PodIP == ip && !pod.Spec.HostNetwork {
			return pod
		}
	}
	return nil
}

// servedBy returns the database service that selects a pod, or nil.
func (x *Index) servedBy(pod *corev1.Pod) *corev1.Service {
	for _, s := range x.ServicesIn()[pod.Namespace] {
		if isDatabase(s) && len(s.Spec.Selector) > 0 && selects(s, pod.Labels) {
			return s
		}
	}
	return nil
}
