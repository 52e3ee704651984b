package cli

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mlp-platform/platform/libs/cli/printable"
)

// writeInParts writes a text in parts of some bytes.
func writeInParts(t *testing.T, w interface{ Write([]byte) (int, error) }, text string, size int) {
	t.Helper()
	for rest := text; rest != ""; {
		n := min(size, len(rest))
		if _, err := w.Write([]byte(rest[:n])); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
}

// However an answer is cut into parts, its bold text, code and code blocks are shown as such, and what only looks like
// Markdown keeps its characters.
func TestAnswersShowTheirMarkdown(t *testing.T) {
	t.Parallel()
	const bold, code, reset = "\x1b[0m\x1b[1m", "\x1b[0m\x1b[36m", "\x1b[0m"
	for _, c := range []struct{ text, colored, plain string }{
		{"a **b c** d\n", "a " + bold + "b c" + reset + " d\n", "a b c d\n"},
		{"**1. Title**\n", bold + "1. Title" + reset + "\n", "1. Title\n"},
		{"- **Risk:** `low`\n* item\n", "- " + bold + "Risk:" + reset + " " + code + "low" + reset + "\n* item\n", "- Risk: `low`\n* item\n"},
		{"**`api`** and ***both***.\n", bold + bold + "\x1b[36mapi" + bold + reset + " and " + bold + "both" + reset + ".\n", "`api` and both.\n"},
		{"日本**語**\n", "日本" + bold + "語" + reset + "\n", "日本語\n"},
		{"`a**b**` ``c`d`` e\n", code + "a**b**" + reset + " " + code + "c`d" + reset + " e\n", "`a**b**` ``c`d`` e\n"},
		{"2**10, 2 ** 3, a/**/b, **/*.yaml, * and ****\n", "2**10, 2 ** 3, a/**/b, **/*.yaml, * and ****\n", "2**10, 2 ** 3, a/**/b, **/*.yaml, * and ****\n"},
		{"**not closed\nnext `nor this\nend\n", bold + "not closed" + reset + "\nnext " + code + "nor this" + reset + "\nend\n", "not closed\nnext `nor this\nend\n"},
		{"see:\n```sh\nkubectl get **pods**\n\n  -n `shop`\n```\nend\n", "see:\n    kubectl get **pods**\n\n      -n `shop`\nend\n", "see:\n    kubectl get **pods**\n\n      -n `shop`\nend\n"},
		{"  ````\r\n```\n  ````\r\n```inline``` x\n", "    ```\n" + code + "inline" + reset + " x\n", "    ```\n```inline``` x\n"},
		{"```diff\n--- live\n same\n ```\n+new\n@@ 1\n```\nend\n",
			"    \x1b[31m--- live" + reset + "\n     same\n     ```\n    \x1b[32m+new" + reset + "\n    \x1b[2m@@ 1" + reset + "\nend\n",
			"    --- live\n     same\n     ```\n    +new\n    @@ 1\nend\n"},
		{"```\ncut off", "    cut off", "    cut off"},
		{"``` " + strings.Repeat("x", 200) + "\n", code + " " + strings.Repeat("x", 200) + reset + "\n", "``` " + strings.Repeat("x", 200) + "\n"},
	} {
		for _, color := range []bool{true, false} {
			want := map[bool]string{true: c.colored, false: c.plain}[color]
			for _, size := range []int{1, 2, 3, len(c.text)} {
				var b strings.Builder
				writeInParts(t, newMarkdownWriter(&b, color), c.text, size)
				if got := b.String(); got != want {
					t.Errorf("%q, colour %v, in parts of %d bytes:\ngot  %q\nwant %q", c.text, color, size, got, want)
				}
			}
		}
	}
}

// A pipe gets an answer as the assistant wrote it.
func TestAnswersKeepTheirMarkdownInAPipe(t *testing.T) {
	t.Parallel()
	const text = "**bold** and `code`\n```\nblock\n```\n"
	var b strings.Builder
	view := newChatView(&Env{Out: &b, Getenv: func(string) string { return "" }})
	writeInParts(t, view.out, text, 5)
	view.end()
	if got := b.String(); got != text {
		t.Errorf("got %q, want %q", got, text)
	}
}

// A terminal's lines are measured without their styles, code blocks stay whole, and a style of the assistant's own is shown
// and not obeyed.
func TestAnswersWrapWithTheirMarkdown(t *testing.T) {
	t.Parallel()
	const text = "The **variable** `DATABASE_URL` is set\x1b[31m to **nothing at all**.\n```\nkubectl rollout undo deployment.apps/api -n shop\n```\n"
	for _, c := range []struct{ noColor, want string }{
		{"", "The \x1b[0m\x1b[1mvariable\x1b[0m\n\x1b[0m\x1b[36mDATABASE_URL\x1b[0m is\nset\\x1b[31m to\n\x1b[0m\x1b[1mnothing at all\x1b[0m.\n    kubectl rollout undo deployment.apps/api -n shop\n"},
		{"1", "The variable\n`DATABASE_URL` is\nset\\x1b[31m to\nnothing at all.\n    kubectl rollout undo deployment.apps/api -n shop\n"},
	} {
		synctest.Test(t, func(t *testing.T) { // no held word is flushed early: the clock is fake
			var b strings.Builder
			env := &Env{Out: printable.NewColorWriter(&b), OutTTY: true, OutWidth: 21, Getenv: func(name string) string {
				return map[string]string{"NO_COLOR": c.noColor}[name]
			}}
			view := newChatView(env)
			writeInParts(t, view.out, text, 3)
			view.end()
			if got := b.String(); got != c.want {
				t.Errorf("NO_COLOR=%q: got\n%q\nwant\n%q", c.noColor, got, c.want)
			}
		})
	}
}

// Text that is not a marker is shown while the answer pauses.
func TestMarkdownHoldsNoTextBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		view := newChatView(&Env{Out: &b, OutTTY: true, OutWidth: 40, Getenv: func(string) string { return "1" }})
		for _, c := range []struct{ part, want string }{{"a **bold", "a bold"}, {" wor", "a bold wor"}, {"d*", "a bold word"}, {"*, `co", "a bold word, `co"}} {
			writeInParts(t, view.out, c.part, 1)
			<-time.After(2 * longestHeld)
			synctest.Wait()
			if got := b.String(); got != c.want {
				t.Errorf("after %q got %q, want %q", c.part, got, c.want)
			}
		}
	})
}
