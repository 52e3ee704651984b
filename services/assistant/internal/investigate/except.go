package investigate

import (
	"context"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
)

// leaveOut limits a question to all namespaces except some, "pods that are not in shop", or to all but some objects,
// "is payments fine except for ledger?" Words that are neither leave it unchanged, since "not in sync" excludes
// nothing.
func (w *work) leaveOut(ctx context.Context, a question.Ask) (question.Ask, error) {
	something, place := question.LeavesOut(a.Words)
	if !something {
		return a, nil
	}
	s, err := w.snapshot(ctx, "")
	if err != nil || s == nil {
		return a, err
	}
	if words, spaces := question.SplitExclusion(a.Words, func(word string) bool { return hasNamespace(s, word) }); len(spaces) > 0 {
		return leaveOutSpaces(s, a, w.parse(ctx, words), spaces), nil
	}
	of := question.Mention{}
	if place {
		of.Kind = "node" // of the objects, only a node is a place
	}
	words, names := question.SplitExclusion(a.Words, func(word string) bool {
		of.Name = word
		return len(objectsNamed(s, "", of)) > 0
	})
	if a.Intent == question.Request {
		return a, nil
	}
	if len(names) == 0 {
		if what := question.UnreadExclusion(a.Words); what != "" {
			w.say("Nothing is excluded: I found no namespace, node or other object for " + report.Code(what) + ".")
		}
		return a, nil
	}
	rest := w.parse(ctx, words)
	switch rest.Intent {
	case question.Request:
		return a, nil
	case question.Unclear, question.Assent:
		rest.Intent = question.Diagnosis
	}
	rest.Without = names
	return rest, nil
}

func leaveOutSpaces(s *engine.Snapshot, a, rest question.Ask, spaces []string) question.Ask {
	if slices.ContainsFunc(rest.Mentions, func(m question.Mention) bool { return len(objectsNamed(s, "", m)) > 0 }) || rest.Intent == question.Request {
		return a // "why is web not in shop?" is about web
	}
	if rest.Intent == question.Unclear || rest.Intent == question.Assent {
		rest.Intent = question.Diagnosis
	}
	rest.Except = spaces
	rest.Everywhere, rest.Leans, rest.Namespace = true, false, ""
	return rest
}

// leaveOut excludes objects, by name, and what belongs to them.
func (t *topic) leaveOut(names []string) {
	if t.snap == nil || len(names) == 0 {
		return
	}
	var objects []operation.Ref
	for _, name := range names {
		objects = append(objects, objectsNamed(t.snap, t.namespace, question.Mention{Name: name})...)
	}
	near := relatedObjects(t.snap, objects)
	for i := range t.snap.Pods {
		pod := &t.snap.Pods[i]
		if slices.ContainsFunc(objects, func(r operation.Ref) bool { return r.Kind == "Node" && r.Name == pod.Spec.NodeName }) {
			near[operation.Ref{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}] = true
		}
	}
	for r := range near {
		if sharedKinds[r.Kind] && !slices.Contains(names, r.Name) {
			delete(near, r)
		}
	}
	t.except.Names, t.except.Objects = names, near
}

// sharedKinds serve several workloads: an object that belongs to an excluded workload still counts for the others.
var sharedKinds = map[string]bool{"NetworkPolicy": true, "Ingress": true, "Gateway": true, "HTTPRoute": true, "GRPCRoute": true, "TLSRoute": true, "Secret": true, "ConfigMap": true, "PersistentVolumeClaim": true, "Node": true}

// fieldSelector returns the field selector for objects of a kind, in lower case, that a question does not exclude.
func fieldSelector(kind string, except report.Exclusion) string {
	var terms []string
	for _, n := range except.Namespaces {
		terms = append(terms, "metadata.namespace!="+n)
	}
	for r := range except.Objects {
		if strings.EqualFold(r.Kind, kind) {
			terms = append(terms, "metadata.name!="+r.Name)
		}
	}
	slices.Sort(terms)
	return strings.Join(slices.Compact(terms), ",")
}
