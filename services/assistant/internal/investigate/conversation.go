package investigate

import (
	"context"
	"slices"

	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
)

// earlier returns the questions of the session before this turn, newest first, without decision words and without
// messages of programs, unless those ask what is wrong.
func (w *work) earlier(ctx context.Context) []question.Ask {
	var all []question.Ask
	for _, m := range slices.Backward(w.turn.History) {
		if m.Role != chat.RoleUser || chat.ParseWord(m.Text).Verdict != chat.NoVerdict {
			continue
		}
		if a := w.parse(ctx, m.Text); !m.Unspoken || a.Intent == question.Diagnosis {
			all = append(all, a)
		}
	}
	return all
}

// past returns the subject of the conversation, for a sentence that names no namespace. It takes over names only if the
// sentence leans on them; the scope takes precedence over the namespace of an earlier question, but not over that of
// the subject that the sentence leans on.
func (w *work) past(ctx context.Context, a question.Ask) question.Ask {
	found := question.Ask{Namespace: w.turn.Scope}
	for _, e := range w.earlier(ctx) {
		if e.Intent == question.Line {
			continue
		}
		mentions, namespace := e.Mentions, e.Namespace
		for _, c := range e.Changes {
			mentions, namespace = append(slices.Clone(mentions), c.Mentions...), c.Namespace
		}
		if len(found.Mentions) == 0 {
			found.Mentions = mentions
		}
		if namespace != "" && (a.Leans || w.turn.Scope == "") {
			found.Namespace = namespace
			break
		}
		if len(found.Mentions) > 0 && w.turn.Scope != "" {
			break
		}
	}
	return found
}

// lastRequest returns the newest change request that only decisions and questions followed; at is its place in the
// history. Programs request nothing.
func (w *work) lastRequest(ctx context.Context) (a question.Ask, at int, ok bool) {
	for i, m := range slices.Backward(w.turn.History) {
		if m.Role != chat.RoleUser || m.Unspoken || chat.ParseWord(m.Text).Verdict != chat.NoVerdict {
			continue
		}
		switch a := w.parse(ctx, m.Text); a.Intent {
		case question.Request:
			return a, i, true
		case question.Line:
			return question.Ask{}, 0, false
		}
	}
	return question.Ask{}, 0, false
}
