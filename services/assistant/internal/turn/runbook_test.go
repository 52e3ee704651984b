package turn_test

import (
	"context"
	"slices"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/runbook"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// written are tools with a runbook that holds an order.
type written struct{ tools }

func (written) Runbooks(of ...runbook.Subject) []runbook.Quote {
	return []runbook.Quote{{Path: of[0].Name + ".md", Title: "a title", Text: order}}
}

// TestRunbooksAreUntrusted: the judge of a write knows the runbooks that were read before, so that a value that is only
// in a runbook is not attributed to a person.
func TestRunbooksAreUntrusted(t *testing.T) {
	t.Parallel()
	b := setup(t, turn.Config{})
	var seen turn.Turn
	b.Tools, b.Planner = written{tools{b.cluster}}, noting{planner{b.cluster}, &seen}
	b.engine.do = func(_ context.Context, _ turn.Turn, box turn.Toolbox, sink turn.Sink) (turn.Outcome, error) {
		sink.Token(box.Runbooks(runbook.Subject{Name: "api"})[0].Path)
		return turn.Outcome{Write: []operation.Operation{assistanttest.ScaleOperation("api", 7)}}, nil
	}
	wantIn(t, b.say(ann, "scale api"), "api.md", `"hitl_required":true`)
	for _, text := range []string{"a title", order} {
		if !slices.Contains(seen.Untrusted, text) {
			t.Errorf("the judge knows of %q; want %q among it", seen.Untrusted, text)
		}
	}
}
