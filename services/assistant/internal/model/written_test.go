package model_test

import (
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/scriptedmodel"
	"github.com/mlp-platform/platform/libs/scriptedmodel/scripttest"
	"github.com/mlp-platform/platform/services/assistant/internal/model"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Models of a few billion parameters write calls like this, whatever tools a request offers.
func TestACallWrittenAsTextIsRun(t *testing.T) {
	t.Parallel()
	for name, written := range map[string]string{
		"fenced":              "```json\n{\n  \"name\": \"list\",\n  \"arguments\": {\"kind\": \"pods\", \"namespace\": \"shop\"}\n}\n```",
		"bare":                `{"name": "list", "arguments": {"kind": "pods", "namespace": "shop"}}`,
		"element":             "<tool_call>\n{\"name\": \"list\", \"arguments\": {\"kind\": \"pods\", \"namespace\": \"shop\"}}\n</tool_call>",
		"parameters":          `{"tool": "list", "parameters": {"kind": "pods", "namespace": "shop"}}`,
		"quoted":              `{"name": "list", "arguments": "{\"kind\": \"pods\", \"namespace\": \"shop\"}"}`,
		"longer than is held": `{"name": "list", "arguments": {"kind": "pods", "namespace": "shop"` + strings.Repeat(" ", 400) + `}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end := scripttest.Say("It crashes.")
			end.Expect.Has = []string{"CrashLoopBackOff"}
			b := setup(t, model.Config{}, scripttest.Always(scriptedmodel.Step{Answer: strings.SplitAfter(written, " ")}, end))
			if _, text := b.ask(newTurn("why does api crash?")); text != "It crashes." {
				t.Errorf(`answer %q; want "It crashes."`, text)
			}
			if len(b.cluster.calls) != 1 || b.cluster.calls[0].Verb != operation.List || b.cluster.calls[0].Namespace != "shop" {
				t.Errorf("ran %v; want one list in shop", b.cluster.calls)
			}
		})
	}
}

// Text that only resembles a call is an answer, and a change that was not requested is a proposal in either form.
func TestWhatIsNoWrittenCall(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"name": "api", "kind": "Pod", "arguments": {}}`,
		`{"name": "api"}`,
		`{"name": "list", "arguments": {}} is what I would call.`,
		`It says {"name": "list", "arguments": {"kind": "pods"}}`,
	} {
		b := setup(t, model.Config{}, scripttest.Always(scripttest.Say(text)))
		if _, got := b.ask(newTurn("why does api crash?")); got != text || len(b.cluster.calls) != 0 {
			t.Errorf("answer %q, ran %v; want %q and nothing run", got, b.cluster.calls, text)
		}
	}
	b := setup(t, model.Config{}, scripttest.Always(scripttest.Say(`{"name": "delete", "arguments": {"kind": "pod", "namespace": "shop", "name": "api-1"}}`)))
	out, text := b.ask(newTurn("why does api crash?"))
	if text != "" || len(out.Write) != 1 || out.Choice == nil || out.Choice.Requested || len(b.cluster.calls) != 0 {
		t.Errorf("answer %q, change %v as %+v, ran %v; want a proposal that nobody requested", text, out.Write, out.Choice, b.cluster.calls)
	}
}

// When no more tools are offered, a call is no answer: the findings so far are shown.
func TestACallInsteadOfTheLastAnswer(t *testing.T) {
	t.Parallel()
	written := scriptedmodel.Step{Answer: []string{"```json\n{\n  ", "\"name\": \"list\", ", "\"arguments\": {\"kind\": \"pods\"}}", "\n```"}}
	b := setup(t, model.Config{ToolCalls: 1}, scripttest.Always(scripttest.Ask("list", `{"kind":"pods","namespace":"shop"}`), written))
	out, text := b.ask(newTurn("why does api crash?"))
	if out.Partial == "" || strings.Contains(text, "arguments") || !strings.Contains(text, "crash loop") {
		t.Errorf("partial %q, answer %q; want what the playbooks found and no call", out.Partial, text)
	}
}

// A problem that objects do not show may be in a log that was not read: that is no all-clear.
func TestNoFindingIsNoAllClear(t *testing.T) {
	t.Parallel()
	b := setup(t, model.Config{}, scripttest.Always(scripttest.Ask("list", `{"kind":"pods","namespace":"calm"}`)))
	q := newTurn("is something wrong in calm?")
	q.Scope = "calm"
	_, text := b.ask(q)
	if strings.Contains(text, "Nothing was found wrong") || !strings.Contains(text, "Not looked at:") {
		t.Errorf("answer %q; want no all-clear", text)
	}
}
