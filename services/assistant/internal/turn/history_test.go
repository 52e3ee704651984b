package turn_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

func TestHistoryIsCut(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{})
	var last turn.Turn
	b.engine.do = func(_ context.Context, tn turn.Turn, _ turn.Toolbox, sink turn.Sink) (turn.Outcome, error) {
		last = tn
		sink.Token("To: " + tn.Query)
		return turn.Outcome{}, nil
	}
	for i := range 13 {
		b.say(ann, fmt.Sprintf("question %d", i))
	}
	if n := len(last.History); n != 20 || last.History[0].Text != "question 2" {
		t.Errorf(`history of %d, from %+v; want n == 20 && last.History[0].Text == "question 2"`, n, last.History[0])
	}
	want := []chat.Message{
		{Role: chat.RoleUser, Text: "question 0"}, {Role: chat.RoleAssistant, Text: "To: question 0"},
		{Role: chat.RoleUser, Text: "question 1"}, {Role: chat.RoleAssistant, Text: "To: question 1"},
	}
	if got := fmt.Sprint(last.Earlier); got != fmt.Sprint(want) {
		t.Errorf("earlier %s, want %s", got, fmt.Sprint(want))
	}
}
