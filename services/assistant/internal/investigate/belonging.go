package investigate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
)

// joinedKinds are the kinds whose objects can be matched to the objects they belong to.
var joinedKinds = map[string]string{
	"pod": "Pod", "node": "Node", "service": "Service", "ingress": "Ingress", "deployment": "Deployment", "statefulset": "StatefulSet", "daemonset": "DaemonSet", "replicaset": "ReplicaSet",
	"job": "Job", "cronjob": "CronJob", "horizontalpodautoscaler": "HorizontalPodAutoscaler", "poddisruptionbudget": "PodDisruptionBudget", "networkpolicy": "NetworkPolicy",
	"persistentvolumeclaim": "PersistentVolumeClaim", "secret": "Secret", "configmap": "ConfigMap", "serviceaccount": "ServiceAccount",
}

// belonging returns the objects of a kind that belong to those that a question names, by place and name: "which node is
// ledger on?" wants nodes, and names a deployment. asked is false if it names none, or objects of that kind themselves.
func (t *topic) belonging(kind string) (found []operation.Ref, asked bool) {
	want, joined := joinedKinds[kind]
	if !joined || !slices.ContainsFunc(t.objects, func(r operation.Ref) bool { return r.Kind != want && r.Kind != "Namespace" }) {
		return nil, false
	}
	near := relatedObjects(t.snap, t.objects)
	for i := range t.snap.Pods {
		pod := &t.snap.Pods[i]
		onNode := slices.ContainsFunc(t.objects, func(r operation.Ref) bool { return r.Kind == "Node" && r.Name == pod.Spec.NodeName })
		if onNode {
			near[operation.Ref{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}] = true
		}
		if !near[operation.Ref{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}] {
			continue
		}
		if pod.Spec.NodeName != "" {
			near[operation.Ref{Kind: "Node", Name: pod.Spec.NodeName}] = true
		}
		for _, o := range quietObjects(t.snap) {
			if r := plainRef(o.ref); r.Kind == want && r.Namespace == pod.Namespace && report.Uses(pod, r) {
				near[r] = true
			}
		}
	}
	for r := range near {
		if r.Kind == want {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b operation.Ref) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return found, true
}

// listBelonging answers a list of the objects that belong to those of a question. done is false for any other list.
func (w *work) listBelonging(ctx context.Context, a question.Ask, t *topic) (done bool) {
	found, asked := t.belonging(a.Kind)
	switch {
	case !asked:
		return false
	case len(found) == 0:
		w.say(fmt.Sprintf("No %s belongs to %s, as far as the cluster's objects show.%s", a.Kind, refTitles(t.objects), listUnread(t.snap)))
		return true
	}
	noun := a.Kind
	if len(found) > 1 {
		noun = report.PluralOf(a.Kind)
	}
	head := fmt.Sprintf("The %s of %s:", noun, refTitles(t.objects))
	if report.IsUsed(a.Kind) || len(found) > operation.MaxNames || slices.ContainsFunc(found, func(r operation.Ref) bool { return r.Namespace != found[0].Namespace }) {
		lines := make([]string, len(found))
		for i, r := range found {
			lines[i] = report.Code(r.Namespace + "/" + r.Name)
		}
		w.say(head + " " + strings.Join(lines, ", ") + ".")
		return true
	}
	op := operation.Operation{Verb: operation.Get, Kind: a.Kind, Namespace: found[0].Namespace}
	for _, r := range found {
		op.Names = append(op.Names, r.Name)
	}
	w.call(ctx, op, head)
	return true
}

// readVerb treats a word after a kind as a verb if no object has that name and the question names an existing object:
// "which service fronts web?" wants the services of web.
func (w *work) readVerb(ctx context.Context, a *question.Ask) error {
	words := strings.Fields(a.Words)
	if len(words) < 4 || words[0] != "which" && words[0] != "what" || question.KindOf(words[1]) == "" || !isPlainWord(words[2]) {
		return nil
	}
	at := slices.IndexFunc(a.Mentions, func(m question.Mention) bool { return m.Name == words[2] && m.Kind == question.KindOf(words[1]) })
	all, err := w.snapshot(ctx, "")
	if err != nil || at < 0 || all == nil || len(objectsNamed(all, "", question.Mention{Name: words[2]})) > 0 {
		return err
	}
	rest := slices.Delete(slices.Clone(a.Mentions), at, at+1)
	if slices.ContainsFunc(rest, func(m question.Mention) bool { return len(objectsNamed(all, "", m)) > 0 }) {
		a.Intent, a.Kind, a.Mentions = question.List, question.KindOf(words[1]), rest
	}
	return nil
}
