package investigate

import (
	"context"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/question"
)

// leaveOut makes a question one about all namespaces but those that it leaves out: "pods that are not in shop". Words that are no
// namespaces leave it as it is, since "not in sync" leaves out none.
func (w *work) leaveOut(ctx context.Context, a question.Ask) (question.Ask, error) {
	words, names := question.SplitExclusion(a.Words)
	if len(names) == 0 {
		return a, nil
	}
	s, err := w.snapshot(ctx, "")
	if err != nil || s == nil {
		return a, err
	}
	if !hasNamespace(s, names[0]) {
		return a, nil
	}
	rest := question.Parse(words)
	if slices.ContainsFunc(rest.Mentions, func(m question.Mention) bool { return len(objectsNamed(s, "", m)) > 0 }) || rest.Intent == question.Request {
		return a, nil // "why is web not in shop?" asks for web
	}
	if rest.Intent == question.Unclear || rest.Intent == question.Assent {
		rest.Intent = question.Diagnosis
	}
	rest.Except = slices.DeleteFunc(names, func(word string) bool { return !hasNamespace(s, word) })
	rest.Everywhere, rest.Leans, rest.Namespace = true, false, ""
	return rest, nil
}

// notIn is the field selector of what lies in none of these namespaces.
func notIn(namespaces []string) string {
	terms := make([]string, len(namespaces))
	for i, n := range namespaces {
		terms[i] = "metadata.namespace!=" + n
	}
	return strings.Join(terms, ",")
}
