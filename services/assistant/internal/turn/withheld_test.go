package turn_test

import (
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// sayNoDecisions sends a message of a caller that speaks for people.
func (b *bundle) sayNoDecisions(query string) string {
	b.t.Helper()
	q := newRequest(ann, query, "")
	q.Chat.NoDecisions = true
	return frameText(b.rest(b.begin(q)))
}

func (b *bundle) waiting() []action.Action {
	b.t.Helper()
	waiting, err := b.Actions.In(b.t.Context(), "s-1", action.Pending)
	if err != nil {
		b.t.Fatal(err)
	}
	return waiting
}

// With decisions off, every word of the table leaves everything as it was, and the answer names the place to decide.
func TestWordsAreWithheld(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{})
	wantIn(t, b.sayNoDecisions("yes"), "Nothing was decided", "Nothing is waiting for a decision.")
	b.engine.do = proposeReplicas(3)
	wantIn(t, b.sayNoDecisions("scale"), "waits for approval", "buttons of its card", "/v1/sessions/s-1/actions/", `"hitl_required":true`)
	id := b.waiting()[0].ID.String()
	for _, word := range []string{"yes", "approve", "/approve", "proceed", "no", "deny", "/deny", "cancel", "approve all", "auto-approve", "auto-approve off", "approve " + id, "deny " + id + " late", "YES "} {
		said := b.sayNoDecisions(word)
		wantIn(t, said, "Nothing was decided", "POST /v1/sessions/s-1/actions/"+id, `"hitl_required":true`)
		if strings.Contains(said, "Answer `yes`") {
			t.Errorf("%q: the answer asks for a word; want the other ways alone", word)
		}
		if waiting := b.waiting(); len(waiting) != 1 || waiting[0].ID.String() != id {
			t.Fatalf("%q left %d pending actions; want the one", word, len(waiting))
		}
	}
	b.engine.do = nil
	wantIn(t, b.sayNoDecisions("why?"), "You asked: why?", "Still waiting for a decision", "buttons of its card")
	if n, _ := b.cluster.Writes(t, "api"); n != 0 {
		t.Errorf("%d writes; want none", n)
	}
	wantIn(t, b.say(ann, "yes"), "Done", "--replicas=3") // a caller that decides by words still does
}

// Nothing was approved in advance by a withheld word: the next write asks.
func TestWithheldApprovalCoversNoLaterWrite(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{})
	b.sayNoDecisions("approve all")
	b.engine.do = proposeReplicas(3)
	wantIn(t, b.sayNoDecisions("scale"), "waits for approval")
	if n, _ := b.cluster.Writes(t, "api"); n != 0 {
		t.Errorf("%d writes; want none", n)
	}
}

// An approval by the actions route runs in the next turn, whatever that turn says.
func TestApprovedElsewhereRunsAtAWithheldWord(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{})
	b.engine.do = proposeReplicas(3)
	b.sayNoDecisions("scale")
	if _, err := b.Actions.Decide(t.Context(), bob, b.waiting()[0].ID, action.Decision{Approve: true}); err != nil {
		t.Fatal(err)
	}
	b.engine.do = nil
	wantIn(t, b.sayNoDecisions("yes"), "Done", "--replicas=3")
}

func TestWordAboveAPageIsWithheld(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{})
	b.engine.do = proposeReplicas(3)
	b.say(ann, "scale")
	q := newRequest(ann, "yes", "")
	q.Chat = chat.Request{Query: "yes", Page: "{}"}
	wantIn(t, frameText(b.rest(b.begin(q))), "without a page below it", "Still waiting", "Answer `yes` or `no`")
	if len(b.waiting()) != 1 {
		t.Error("yes above a page decided; want the action pending")
	}
}
