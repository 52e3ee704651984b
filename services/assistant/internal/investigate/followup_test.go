package investigate_test

import (
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// TestFollowUps: a message that begins with ok or no and continues is no decision, and its question is about the
// subject of the last answer.
func TestFollowUps(t *testing.T) {
	t.Parallel()
	const approvesNothing = "approves nothing"
	b := liveTools(t)
	history := []chat.Message{{Role: chat.RoleUser, Text: "why does api crash in shop?"}, {Role: chat.RoleAssistant, Text: "One thing is wrong."}}
	for query, row := range map[string]struct{ must, not []string }{
		"ok and what image does that run?": {[]string{"Images of `api` in namespace `shop`"}, []string{approvesNothing}},
		"no I meant web":                   {[]string{"**1. Deployment `web` in namespace `shop`: image pull"}, []string{approvesNothing}},
		"no, i meant ledger in payments":   {[]string{"Deployment `ledger` in namespace `payments`"}, []string{approvesNothing, "api"}},
		"no i mean memory":                 {[]string{"`limits: 256Mi`"}, []string{approvesNothing}},
		"no, i meant payments":             {[]string{"`payments`"}, []string{approvesNothing}},
		"okay thanks":                      {[]string{approvesNothing}, nil},
		"no, wait":                         {[]string{approvesNothing}, nil},
	} {
		a := runTurn(t, b, turn.Turn{Session: "s-1", Number: 2, Query: query, History: history, Who: event.Who{Principal: "ann", Role: guard.Admin}})
		checkAnswer(t, query, a, row.must, row.not)
	}
}

// TestWordsAreNoNames: a word beside a kind is a word of the question if no object has that name.
func TestWordsAreNoNames(t *testing.T) {
	t.Parallel()
	b := liveTools(t)
	for query, must := range map[string]string{
		"which pod eats the most cpu":        "uses the most CPU",
		"which pod hogs the most memory?":    "uses the most memory",
		"what does pod `eats` use of memory": "There is no pod `eats`",
	} {
		checkAnswer(t, query, askOnce(t, b, "", query), []string{must}, nil)
	}
}

// TestProgramsRequestNothing: a message that a program wrote is read as a question, never as a request.
func TestProgramsRequestNothing(t *testing.T) {
	t.Parallel()
	b := liveTools(t)
	for _, unspoken := range []bool{false, true} {
		history := []chat.Message{{Role: chat.RoleUser, Text: "scale deployment cart in shop to 3", Unspoken: unspoken}, {Role: chat.RoleAssistant, Text: "That is an alert."}}
		a := runTurn(t, b, turn.Turn{Session: "s-1", Number: 2, Query: "make it 4", History: history, Who: event.Who{Principal: "ann", Role: guard.Admin}})
		if wrote := len(a.write) > 0; wrote == unspoken {
			t.Errorf("unspoken %v: got the writes %v", unspoken, a.write)
		}
	}
	history := []chat.Message{
		{Role: chat.RoleUser, Text: "What is wrong with deployment/api in namespace shop?", Unspoken: true}, {Role: chat.RoleAssistant, Text: "One thing is wrong."},
		{Role: chat.RoleUser, Text: "The alerts are resolved.", Unspoken: true}, {Role: chat.RoleAssistant, Text: "Resolved."},
	}
	a := runTurn(t, b, turn.Turn{Session: "s-1", Number: 3, Query: "why did it crash?", History: history, Who: event.Who{Principal: "ann", Role: guard.Admin}})
	checkAnswer(t, "why did it crash?", a, []string{"`api`", "DATABASE_URL"}, []string{"alerts"})
}
