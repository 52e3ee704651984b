package investigate

import (
	"context"
	"fmt"
	"slices"

	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// moreExpr matches a request for what the last answer left out.
var moreExpr = question.Pattern(`^((and|ok|please|now) )*` + wordlist.AnyOf(
	"more", "tell me more", "(show|give|list) (me )?more", "(show|give|list|tell) (me )?(the |all )?(rest|others|remaining)", "the (rest|others)",
	"(where|what) (is|are|about) the (rest|others)", "what else", "next( page)?", "go on", "continue",
) + `( please)?$`)

// diagnoses are the intents whose answers are findings.
var diagnoses = map[question.Intent]bool{question.Diagnosis: true, question.Health: true}

// more shows what the previous answer left out. ok is false if that was no list of findings.
func (w *work) more(ctx context.Context) (ok bool, err error) {
	page := 1
	for _, m := range slices.Backward(w.turn.History) {
		if m.Role != chat.RoleUser || chat.ParseWord(m.Text).Verdict != chat.NoVerdict {
			continue
		}
		a := w.parse(ctx, m.Text)
		if moreExpr.MatchString(a.Words) {
			page++
			continue
		}
		if !diagnoses[a.Intent] {
			return false, nil
		}
		return true, w.rest(ctx, a, page)
	}
	return false, nil
}

// rest shows a page of the findings of a question after its first answer: those about its subject, then those it only
// named.
func (w *work) rest(ctx context.Context, a question.Ask, page int) error {
	w.plan("Read the objects in question", "Show the rest")
	defer w.skip()
	t, err := w.look(ctx, a)
	if err != nil {
		return err
	}
	if t.snap == nil || t.noNamespace != "" {
		w.say(describeAbsent(t))
		return nil
	}
	w.synthesize()
	about, others := t.found(a.Symptoms)
	all := slices.Concat(about, others)
	from := min(engine.MostFindings, len(about)) + (page-1)*engine.MostFindings
	if from >= len(all) {
		w.say(fmt.Sprintf("That was all: %d findings %s, and every one was shown.", len(all), t.where()))
		return nil
	}
	w.say(engine.AnswerFrom(t.snap, all, from))
	return nil
}
