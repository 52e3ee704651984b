package cli

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
)

// However an answer is cut into parts, its lines end between words, and tables and commands stay whole.
func TestAnswersWrapBetweenWords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testAnswersWrapBetweenWords) // no held word is flushed early: the clock is fake
}

func testAnswersWrapBetweenWords(t *testing.T) {
	const text = "The variable `DATABASE_URL` is set to nothing.\n\n- Container `api` ended with exit code 1 and was restarted.\n" +
		"- É é.\n    kubectl rollout undo deployment.apps/api -n shop\n| Namespace | Pod | State | Restarts |\naverylongwordthatfitsnowhereatall end"
	const want = "The variable\n`DATABASE_URL` is set\nto nothing.\n\n- Container `api`\n  ended with exit code\n  1 and was restarted.\n" +
		"- É é.\n    kubectl rollout undo deployment.apps/api -n shop\n| Namespace | Pod | State | Restarts |\naverylongwordthatfitsnowhereatall\nend"
	var long strings.Builder
	w := &wordWrapper{out: &long, width: 22}
	if _, err := w.Write([]byte(strings.Repeat("x", 2*mostHeld))); err != nil || long.Len() < mostHeld {
		t.Errorf("%d bytes of a word without an end are shown, %v; want them as they come", long.Len(), err)
	}
	long.Reset()
	w = &wordWrapper{out: &long, width: 8}
	if _, err := w.Write([]byte("日本 語だ 文\n")); err != nil || long.String() != "日本\n語だ 文\n" {
		t.Errorf("%q, %v; want at most 8 columns, of which these letters take two each", long.String(), err)
	}
	for _, size := range []int{1, 2, 7, len(text)} {
		var b strings.Builder
		w := &wordWrapper{out: &b, width: 22}
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		w.flush()
		if got := b.String(); got != want {
			t.Errorf("in parts of %d bytes got\n%s\nwant\n%s", size, got, want)
		}
	}
}

// An answer that pauses within a word is shown so far, and continues there.
func TestAnswersThatHaltAreShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		w := &wordWrapper{out: &b, width: 22}
		for _, c := range []struct{ part, want string }{{"first wor", "first wor"}, {"ds", "first words"}, {" and more of them\n", "first words and more\nof them\n"}} {
			if _, err := w.Write([]byte(c.part)); err != nil {
				t.Fatal(err)
			}
			<-time.After(2 * longestHeld)
			synctest.Wait()
			if got := b.String(); got != c.want {
				t.Errorf("after %q got %q, want %q", c.part, got, c.want)
			}
		}
	})
}

// The assistant's activity during an answer is shown on separate lines, and breaks the answer's line at most once.
func TestWhatIsDoneStandsBelowTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // no held word is flushed early: the clock is fake
		var screen strings.Builder
		view := newChatView(&Env{Out: &screen, Err: &screen, Format: output.Table, OutTTY: true, OutWidth: 40, Getenv: func(string) string { return "1" }})
		frame := func(data string) {
			var f chatFrame
			if err := json.Unmarshal([]byte(data), &f); err != nil {
				t.Fatal(err)
			}
			if err := view.add(f); err != nil {
				t.Fatal(err)
			}
		}
		text := func(s string) { frame(`{"choices":[{"delta":{"content":"` + s + `"}}]}`) }
		tool := func(name string) {
			frame(`{"ki_event":{"type":"tool_call","message":"Running: ` + name + `","call_id":"` + name + `"}}`)
		}
		tool("first")
		text(`It has 2 pods.`)
		tool("second")
		frame(`{"ki_event":{"type":"tool_result","call_id":"second","ok":true,"output":"quiet"}}`)
		tool("third")
		text(`\n\nIts log`)
		tool("fourth")
		text(` is empty.\n| a | b`)
		tool("fifth")
		tool("sixth")
		text(` | c |\nend`)
		view.end()
		const want = "· first\nIt has 2 pods.\n· second\n· third\n\nIts log\n· fourth\nis empty.\n| a | b\n· fifth\n· sixth\n | c |\nend\n"
		if got := screen.String(); got != want {
			t.Errorf("got\n%q\nwant\n%q", got, want)
		}
	})
}

// Where the answer goes into a pipe, the assistant's activity is on separate lines as well, and the answer is
// complete.
func TestWhatIsDoneStandsBelowAPipedAnswer(t *testing.T) {
	t.Parallel()
	var both, answer strings.Builder
	view := newChatView(&Env{Out: io.MultiWriter(&both, &answer), Err: &both, Joined: true, Format: output.Table, Getenv: func(string) string { return "" }})
	for _, data := range []string{
		`{"ki_event":{"type":"tool_call","message":"Running: first","call_id":"1"}}`,
		`{"choices":[{"delta":{"content":"It has 2 pods."}}]}`,
		`{"ki_event":{"type":"tool_call","message":"Running: second","call_id":"2"}}`,
		`{"ki_event":{"type":"tool_call","message":"Running: third","call_id":"3"}}`,
		`{"choices":[{"delta":{"content":"\n\nIts log is empty.\n"}}]}`,
		`{"ki_event":{"type":"tool_call","message":"Running: fourth","call_id":"4"}}`,
		`{"choices":[{"delta":{"content":"End"}}]}`,
	} {
		var f chatFrame
		if err := json.Unmarshal([]byte(data), &f); err != nil {
			t.Fatal(err)
		}
		if err := view.add(f); err != nil {
			t.Fatal(err)
		}
	}
	view.end()
	if got, want := both.String(), "· first\nIt has 2 pods.\n· second\n· third\n\nIts log is empty.\n· fourth\nEnd\n"; got != want {
		t.Errorf("both streams: got\n%q\nwant\n%q", got, want)
	}
	if got, want := answer.String(), "It has 2 pods.\n\nIts log is empty.\nEnd\n"; got != want {
		t.Errorf("the answer alone: got\n%q\nwant\n%q", got, want)
	}
}
