package investigate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/coverage"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/symptom"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
)

// mostSymptoms limits the symptoms without a cause that one answer lists.
const mostSymptoms = 8

// judged are the kinds that playbooks examine. Objects of other kinds are never called healthy.
var judged = map[string]bool{
	"Deployment": true, "StatefulSet": true, "DaemonSet": true, "ReplicaSet": true, "Pod": true, "Job": true, "CronJob": true, "Service": true, "Ingress": true,
	"HorizontalPodAutoscaler": true, "PodDisruptionBudget": true, "NetworkPolicy": true, "PersistentVolumeClaim": true, "Node": true, "Namespace": true, "ResourceQuota": true,
	"Gateway": true, "GatewayClass": true, "HTTPRoute": true, "GRPCRoute": true, "TLSRoute": true,
	"Certificate": true, "CertificateRequest": true, "Issuer": true, "ClusterIssuer": true, "Order": true, "Challenge": true, "Application": true,
	"ValidatingWebhookConfiguration": true, "MutatingWebhookConfiguration": true,
}

// unexplained returns the symptoms of a topic that none of the findings explains.
func (t *topic) unexplained(found []engine.Finding) []symptom.Symptom {
	where := t.namespace
	if slices.ContainsFunc(t.objects, func(r operation.Ref) bool { return r.Namespace == "" }) {
		where = ""
	}
	left := slices.DeleteFunc(symptom.Unexplained(symptom.List(t.snap, where), found), func(s symptom.Symptom) bool { return t.except.Has(s.Object) || t.except.Has(s.Owner) })
	if len(t.objects) == 0 {
		return slices.DeleteFunc(left, func(s symptom.Symptom) bool { return s.Survived })
	}
	near := relatedObjects(t.snap, t.objects)
	return slices.DeleteFunc(left, func(s symptom.Symptom) bool { return !near[s.Object] && !near[s.Owner] })
}

// sayOfUsers reports, for objects that no playbook judges, whether something is wrong with their users.
func (t *topic) sayOfUsers() string {
	v := t.view()
	users := v.UsersOf()
	if len(users) == 0 {
		return ""
	}
	var wrong []string
	for _, f := range playbook.Findings(t.snap, t.namespace) {
		if slices.Contains(users, f.Object) && !slices.Contains(wrong, refTitle(f.Object)) {
			wrong = append(wrong, refTitle(f.Object))
		}
	}
	if len(wrong) > 0 {
		return " Something is wrong with what uses them: " + strings.Join(wrong, ", ") + "."
	}
	return ""
}

// cover starts the record of an answer: what is known before any log is read. left are the symptoms that nothing
// explains.
func (t *topic) cover(a question.Ask, left []symptom.Symptom) *coverage.Record {
	subject := t.where()
	if len(t.objects) > 0 {
		subject = "with " + refTitles(t.objects)
	}
	r := coverage.New(t.snap, subject, t.namespace, t.objects)
	r.Ask(a.Symptoms, assertsFault(a), a.Words)
	if len(left) > 0 {
		r.SetUnexplained(listSymptoms(t.snap, left))
	}
	if kinds := t.unjudged(); len(kinds) > 0 {
		r.SetUnjudged(fmt.Sprintf("Objects of kind %s are not judged by any playbook, so whether they are right was not judged.%s", strings.Join(kinds, ", "), t.sayOfUsers()))
	}
	if words := t.unread(a.Words); len(words) > 0 && (!assertsFault(a) || len(a.Symptoms) > 0) { // otherwise the record has the whole complaint
		r.AddGap("what the question says with "+joinCodes(words)+", since no rule is about that", "")
	}
	for _, m := range t.absent {
		r.AddGap(report.Code(m.Name)+", since nothing has that name", "kubectl get all -A")
	}
	return r
}

// unread returns the words of a question that its answer ignores, without names that exist and names that the answer
// reported absent.
func (t *topic) unread(words string) []string {
	names := namesOf(t.snap)
	return question.Unread(words, func(word string) bool {
		return names.has(word) || len(hostsNamed(t.snap, word)) > 0 || hasNamespace(t.snap, word) || slices.ContainsFunc(t.absent, func(m question.Mention) bool { return m.Name == word }) ||
			len(word) > 3 && (strings.Contains(t.namespace, word) || slices.ContainsFunc(t.objects, func(r operation.Ref) bool { return strings.Contains(r.Name, word) }))
	})
}

// contentWords are the words of a question that have a meaning of their own and are no names of its subject.
func (t *topic) contentWords(words string) []string {
	return slices.DeleteFunc(contentWords(words), func(word string) bool {
		return question.KindOf(word) != "" || word == t.namespace || slices.ContainsFunc(t.objects, func(r operation.Ref) bool { return r.Name == word })
	})
}

// unjudged returns the kinds of the topic if none of its objects is of a judged kind.
func (t *topic) unjudged() []string {
	kinds := map[string]bool{}
	for _, r := range t.objects {
		if judged[r.Kind] || certificateOf(t.snap, r) != nil || findRelease(t.snap, r) != nil {
			return nil
		}
		kinds[r.Kind] = true
	}
	return slices.Sorted(maps.Keys(kinds))
}

// besides lists the symptoms that the findings above it do not explain.
func (t *topic) besides(left []symptom.Symptom) string {
	if len(left) == 0 {
		return ""
	}
	return "Not explained by this:\n\n" + listSymptoms(t.snap, left)
}

func listSymptoms(snap *engine.Snapshot, left []symptom.Symptom) string {
	var b strings.Builder
	for i, s := range left {
		if i == mostSymptoms {
			fmt.Fprintf(&b, "- And %d more; ask %s.\n", len(left)-mostSymptoms, report.Code("which pods are not ready?"))
			break
		}
		in := ""
		if s.Object.Namespace != "" {
			in = " (namespace " + report.Code(s.Object.Namespace) + ")"
		}
		b.WriteString("- " + strings.TrimSuffix(s.Text, ".") + in + "." + lastWarning(snap, s.Object.Kind, s.Object.Namespace, s.Object.Name) + gates(snap, s.Object) + "\n")
	}
	return b.String()
}

// quoting returns the findings whose text names something that is no object of the cluster: a container, an absent
// storage class, a key.
func (t *topic) quoting(name string) []engine.Finding {
	about, others := t.found(nil)
	code := "`" + name + "`"
	names := func(text string) bool { return strings.Contains(strings.ToLower(text), code) }
	return slices.DeleteFunc(slices.Concat(about, others), func(f engine.Finding) bool {
		return !names(f.Cause) && !slices.ContainsFunc(f.Evidence, names) && !strings.EqualFold(f.Container, name) && !strings.EqualFold(f.Object.Name, name)
	})
}
