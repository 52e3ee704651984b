package model_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/scriptedmodel/scripttest"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/model"
	"github.com/mlp-platform/platform/services/assistant/internal/model/ground"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// answer has a model read a log and then reply with a text, in small pieces.
func answer(t *testing.T, log, text string) string {
	t.Helper()
	say := scripttest.Say("")
	for len(text) > 0 {
		n := min(5, len(text))
		say.Answer = append(say.Answer, text[:n])
		text = text[n:]
	}
	b := setup(t, model.Config{}, scripttest.Always(scripttest.Ask("logs", `{"pod":"api-1","namespace":"shop"}`), say))
	b.cluster.log = log
	_, got := b.ask(newTurn("why does api in shop crash after 90 seconds?"))
	return got
}

func TestWhatIsNotInTheClusterIsMarked(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"The pod `ghost-9x`¤ crashes.", "It runs `ghost:2.1`¤, so delete it: `kubectl delete namespace staging`¤.", "It restarted 99¤ times.",
		"I ran `kubectl exec api-1 -- env`¤ and saw it.", "I have restarted¤ it.",
	} {
		got := answer(t, "fatal: no DB_URL", strings.ReplaceAll(text, "¤", ""))
		if want := strings.ReplaceAll(text, "¤", " "+ground.Mark); !strings.HasPrefix(got, want) {
			t.Errorf("answer %q, want %q", got, want)
		}
		if claims := strings.Contains(text, "I have"); strings.Contains(got, "Nothing was changed") != claims {
			t.Errorf("answer %q; want it to say that nothing was changed: %v", got, claims)
		}
	}
}

// A name in a model's call does not count as seen because an error or an empty result repeats it.
func TestAModelsOwnWordsProveNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, model.Config{}, scripttest.Always(
		scripttest.Ask("logs", `{"pod":"ghost-9x","namespace":"shop"}`), scripttest.Say("There is no pod `ghost-9x`. The pod `ghost-9x` crashes.")))
	b.cluster.gate = func(_ context.Context, op operation.Operation) error {
		return fmt.Errorf("pods %v not found", op.Names)
	}
	if _, got := b.ask(newTurn("why does api crash?")); got != "There is no pod `ghost-9x`. The pod `ghost-9x` "+ground.Mark+" crashes." {
		t.Errorf("answer %q; want the claim marked and the absence not", got)
	}
}

func TestAnHonestAnswerIsNotMarked(t *testing.T) {
	t.Parallel()
	text := "**Cause.** The pod `api-1` in `shop` (image `api:1`) restarted 7 times; its log says:\n\n```\nfatal: pool of 40 is empty\n```\n\n" +
		"| NAME | READY |\n|---|---|\n| api-1 | 0/1 |\n\nYou said 90 seconds. I ran `kubectl logs api-1 -n shop`.\n\n1. Raise the pool to 80:\n   `kubectl set env deployment/api -n shop POOL=80`\n"
	if got := answer(t, "api:1 starts\nfatal: pool of 40 is empty", text); got != text {
		t.Errorf("answer\n%s\nwant\n%s", got, text)
	}
}

func TestAnAllClearAgainstAFindingIsReplaced(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"Everything in shop is healthy.", "All pods are running fine. No problems were found."} {
		got := answer(t, "", text)
		wantIn(t, got, "crash loop", "api-1")
		wantNotIn(t, got, text[:14])
		if n := strings.Count(got, "The playbooks found otherwise."); n != 1 {
			t.Errorf("the findings stand %d times in %q; want once", n, got)
		}
	}
}

// An executed write may be reported, and what was marked in an earlier answer stays unseen.
func TestWhatTheSessionHasSeen(t *testing.T) {
	t.Parallel()
	three := int32(3)
	b := setup(t, model.Config{}, scripttest.Always(scripttest.Say("Done. I have scaled `api` to 3. The pod `ghost-9x` is gone.")))
	q := newTurn("yes")
	q.History = []chat.Message{{Role: chat.RoleUser, Text: "scale api to 3"}, {Role: chat.RoleAssistant, Text: "The pod `ghost-9x` " + ground.Mark + " crashes."}}
	q.Settled = []action.Settled{{Action: action.Action{State: action.Succeeded, Command: "kubectl scale deployment/api --replicas=3", Operations: []operation.Expanded{{
		Operation: operation.Operation{Verb: operation.Scale, Kind: "deployment", Names: []string{"api"}, Namespace: "shop", Replicas: &three},
	}}}}}
	if _, got := b.ask(q); got != "Done. I have scaled `api` to 3. The pod `ghost-9x` "+ground.Mark+" is gone." {
		t.Errorf("answer %q; want only the pod marked", got)
	}
}
