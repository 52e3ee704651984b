package console

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/cli/printable"
)

// Names and errors that the console shows are of models and repositories that others wrote.
func TestHostileTextsAreShownAndNotObeyed(t *testing.T) {
	t.Parallel()
	const hostile = "m\x1b[2J\u009b1m\nx"
	var b bytes.Buffer
	c := &Console{out: &b, lines: printable.NewColorWriter(&b), color: true, live: map[string]*bar{}}
	c.Step("step", hostile, time.Second)
	c.Begin(hostile)
	c.Progress(hostile, hostile, 0.5)
	c.End(hostile, hostile, false)
	c.Say("%s: %v", c.Bold("bold"), hostile)
	got := b.String()
	if rest := strings.NewReplacer("\x1b[32m", "", "\x1b[0m", "", "\x1b[1m", "").Replace(got); strings.ContainsAny(rest, "\x1b\u009b") || strings.Count(got, "\n") != 5 {
		t.Errorf("got %q, want three texts of one line and one of two, nothing but our colors active", got)
	}
	if !strings.Contains(got, "\x1b[1mbold\x1b[0m: ") {
		t.Errorf("got %q, want our own color in it", got)
	}
}
