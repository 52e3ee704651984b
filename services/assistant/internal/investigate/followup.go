package investigate

import (
	"context"
	"slices"

	"github.com/mlp-platform/platform/services/assistant/internal/question"
)

// followUp reads a message that follows up on the last answer: it agrees or refuses and then asks ("ok and what image
// does that run?"), or corrects what was asked about ("no, I meant web").
func (w *work) followUp(ctx context.Context, a question.Ask) (question.Ask, error) {
	if meant, ok := question.Correction(w.turn.Query); ok {
		return w.correct(ctx, a, meant)
	}
	if rest, ok := question.FollowUp(w.turn.Query); ok && a.Intent == question.Assent {
		if b := w.parse(ctx, rest); b.Intent == question.Unclear || b.Intent >= question.Diagnosis {
			all, err := w.snapshot(ctx, "")
			if err != nil || all == nil {
				return b, err
			}
			// A possible name that no object has names nothing: the subject is that of the last answer.
			b.Mentions = slices.DeleteFunc(b.Mentions, func(m question.Mention) bool { return !m.Sure && len(objectsNamed(all, "", m)) == 0 })
			b.Leans = b.Leans || len(b.Mentions) == 0 && b.Namespace == "" && b.Perhaps == "" && !b.Everywhere
			return b, nil
		}
	}
	return a, nil
}

// correct repeats the last question about what was meant: an object or a place of the cluster, or another property of
// the same object.
func (w *work) correct(ctx context.Context, a question.Ask, meant string) (question.Ask, error) {
	earlier := w.earlier(ctx)
	if len(earlier) == 0 || earlier[0].Intent < question.Diagnosis {
		return a, nil
	}
	last := earlier[0]
	if last.Leans { // its subject is that of the question before
		before := w.past(ctx, last)
		last.Mentions, last.Namespace, last.Leans = before.Mentions, before.Namespace, false
	}
	all, err := w.snapshot(ctx, "")
	if err != nil || all == nil {
		return a, err
	}
	b := w.parse(ctx, meant)
	for _, m := range append([]question.Mention{{Name: meant}}, b.Mentions...) {
		switch {
		case len(objectsNamed(all, "", m)) > 0 && !hasNamespace(all, m.Name):
			m.Sure = true
			last.Mentions = []question.Mention{m}
			if b.Namespace != "" {
				last.Namespace = b.Namespace
			}
			return last, nil
		case hasNamespace(all, m.Name):
			last.Namespace, last.Everywhere = m.Name, false
			return last, nil
		}
	}
	text := meant
	if len(last.Mentions) > 0 {
		text += " of " + last.Mentions[0].Name
	}
	if last.Namespace != "" {
		text += " in " + last.Namespace
	}
	return w.parse(ctx, text), nil
}
