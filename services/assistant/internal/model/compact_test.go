package model_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/scriptedmodel"
	"github.com/mlp-platform/platform/libs/scriptedmodel/scripttest"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/model"
)

// readLogs returns steps that each read the log of another pod.
func readLogs(n int) (steps []scriptedmodel.Step) {
	for i := range n {
		steps = append(steps, scripttest.Ask("logs", fmt.Sprintf(`{"pod":"api-%d","namespace":"shop"}`, i)))
	}
	return steps
}

// longLog returns a log of about 2000 tokens.
func longLog() string {
	var b strings.Builder
	b.WriteString("first line of the log\n")
	for i := range 200 {
		fmt.Fprintf(&b, "line %d of a log that says very little\n", i)
	}
	return b.String() + "fatal: the last line"
}

var overflow = scriptedmodel.Fault{Status: 400, Body: `{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`}

// A result of few letters and many bytes is short already.
func TestResultsOfWideLettersAreSummarized(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("🐳", 310), strings.Repeat("🐳", 601), strings.Repeat("🐳\n", 5000)} {
		if got := model.Summarize(text); !strings.HasPrefix(got, "🐳") || len(got) > len(text)+200 {
			t.Errorf("of %d bytes: got %d", len(text), len(got))
		}
	}
}

func TestOldResultsAreSummarizedBeforeTheWindowIsFull(t *testing.T) {
	t.Parallel()
	const window = 24_000
	steps := append(readLogs(12), scripttest.Ask("logs", `{"pod":"api-0","namespace":"shop"}`), scripttest.Say("It is the last line."))
	b := setup(t, model.Config{Window: window, Tokens: 1 << 20}, scripttest.Always(steps...))
	b.cluster.log = longLog()
	if out, text := b.ask(newTurn("why does api crash?")); text != "It is the last line." || out.Partial != "" {
		t.Fatalf("answer %q, partial %q", text, out.Partial)
	}
	for i, body := range b.server.Bodies() {
		if n := len(body) / 4; n > window {
			t.Errorf("request %d has %d tokens, the window %d", i, n, window)
		}
	}
	last := b.last().Text()
	wantIn(t, last, "[shortened: ", "first line of the log", "fatal: the last line", "line 100 of a log") // the newest is complete
	wantNotIn(t, last, "this call was already made")                                                      // what was shortened may be read again
	if n := len(b.cluster.calls); n != 13 {
		t.Errorf("%d calls, want 13", n)
	}
}

func TestAnOverflowIsRetriedOnceAfterCompaction(t *testing.T) {
	t.Parallel()
	end := scripttest.Say("It is the last line.")
	end.Faults = []scriptedmodel.Fault{overflow}
	b := setup(t, model.Config{}, scripttest.Always(append(readLogs(2), end)...))
	b.cluster.log = longLog()
	q := newTurn("why does api crash?")
	q.History = []chat.Message{{Role: chat.RoleUser, Text: strings.Repeat("long ago ", 200)}, {Role: chat.RoleAssistant, Text: "Well."}}
	if _, text := b.ask(q); text != "It is the last line." || len(b.fell) != 0 {
		t.Errorf("answer %q, fell back for %q; want an answer", text, b.fell)
	}
	bodies := b.server.Bodies()
	if n := len(bodies); n != 4 {
		t.Fatalf("%d requests, want 4", n)
	}
	if len(bodies[3]) > len(bodies[2])-10_000 {
		t.Errorf("the retry has %d bytes after %d; want results and history shortened", len(bodies[3]), len(bodies[2]))
	}
}

// A window too small even for the shortest request is reported as that.
func TestAnOverflowThatStays(t *testing.T) {
	t.Parallel()
	end := scripttest.Say("never")
	end.Faults = slices.Repeat([]scriptedmodel.Fault{overflow}, 9)
	b := setup(t, model.Config{}, scripttest.Always(end))
	_, text := b.ask(newTurn("why does api crash?"))
	wantIn(t, text, fault.ContextOverflow.Message, "Playbooks on: why does api crash?")
	if n := len(b.server.Bodies()); n != 2 || !slices.Equal(b.fell, []string{"context_overflow"}) || !slices.Equal(b.sink.warned, []fault.Failure{fault.ContextOverflow}) {
		t.Errorf("%d requests, fell back for %q, warned of %v; want one retry", n, b.fell, b.sink.warned)
	}
}

// If the window has no room for all tools, only the reading ones are offered.
func TestASmallWindow(t *testing.T) {
	t.Parallel()
	end := scripttest.Say("It is the limit.")
	end.Expect.Tools, end.Expect.NoTools = []string{"logs", "diagnose"}, []string{"scale"}
	b := setup(t, model.Config{Window: 8192}, scripttest.Always(end))
	if _, text := b.ask(newTurn("why does api crash?")); text != "It is the limit." {
		t.Errorf("answer %q", text)
	}
}

// A long session has as many rounds of tools as a new one: earlier messages are not counted again in each round.
func TestALongSessionHasAsManyRounds(t *testing.T) {
	t.Parallel()
	rounds := func(turns int) int {
		b := setup(t, model.Config{}, scripttest.Always(readLogs(30)...))
		b.cluster.log = longLog()
		q := newTurn("why does api crash?")
		for range turns {
			q.History = append(q.History, chat.Message{Role: chat.RoleUser, Text: "and then?"}, chat.Message{Role: chat.RoleAssistant, Text: strings.Repeat("It says so. ", 60)})
		}
		b.ask(q)
		return len(b.cluster.calls)
	}
	if fresh, old := rounds(0), rounds(10); fresh < 12 || old < fresh-3 {
		t.Errorf("%d rounds in a new session, %d after ten turns; want at least 12, and nearly as many", fresh, old)
	}
}
