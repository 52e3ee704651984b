package assistant_test

import (
	"io"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/mlp-platform/platform/libs/scriptedmodel"
	"github.com/mlp-platform/platform/libs/scriptedmodel/scripttest"
)

// TestAModelsWriteAfterAQuestionAsks: an approval given in advance, for the request or the session, does not cover a
// write that a model proposes and no person ordered, even where the question names all of it. The same write runs once
// the person orders it.
func TestAModelsWriteAfterAQuestionAsks(t *testing.T) {
	t.Parallel()
	script, err := scriptedmodel.New(scripttest.Always(scripttest.Ask("scale", `{"kind":"deployment","name":"web","namespace":"shop","replicas":4}`)), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	model := httptest.NewServer(script)
	t.Cleanup(model.Close)
	b := startBench(t, "OPENAI_BASE_URL="+model.URL+"/v1", "ASSISTANT_LLM_MODEL=scripted")
	asks := func(session, text string, members ...any) {
		t.Helper()
		p := b.propose(operator, session, text, members...)
		doc := b.action(operator, session, p.ActionID)
		reasons, _ := doc["always_confirm_reasons"].([]any)
		if doc["state"] != "pending" || !slices.Contains(reasons, any("model_choice")) {
			t.Errorf("%q: %v for %v; want it pending for model_choice", text, doc["state"], reasons)
		}
	}
	asks("request", "should I scale web in shop to 4?", "auto_approve", true)
	b.contains(b.say(operator, "session", "approve all"), "approve")
	asks("session", "how do I scale web in shop to 4?")
	if n := b.count("select count(*) from actions where state <> 'pending'"); n != 0 {
		t.Errorf("%d actions left the state pending; want 0", n)
	}
	s := b.say(operator, "order", "scale web in shop to 4", "auto_approve", true)
	if len(s.prompts()) > 0 {
		t.Errorf("an order asked in spite of its approval in advance: %s", s.text)
	}
	b.contains(s, "Done")
}
