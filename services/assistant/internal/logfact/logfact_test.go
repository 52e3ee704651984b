package logfact_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/logfact"
	"github.com/mlp-platform/platform/services/assistant/internal/logtext"
)

// write makes a log of lines, one a minute.
func write(n int, line func(i int) string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "2026-01-02T10:%02d:00Z INFO %s\n", i, line(i))
	}
	return b.String()
}

// TestClimbs: a number that rises towards one next to it is reported, and a mere counter is not.
func TestClimbs(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		text string
		want string // first, last, limit, count; empty: none
	}{
		"a pool that fills":                {write(9, func(i int) string { return fmt.Sprintf("pool in use %d of 10 from 10.0.0.7", i+2) }), "2 10 10 9"},
		"a pair with a slash":              {write(9, func(i int) string { return fmt.Sprintf("heap=%dMiB/512MiB gc=%dms", 100+50*i, 7+i%2) }), "100 500 512 9"},
		"a limit that is far":              {write(9, func(i int) string { return fmt.Sprintf("pool in use %d of 100", i+2) }), ""},
		"memory without a limit":           {write(12, func(i int) string { return fmt.Sprintf("rss %d MB", 100+40*i) }), "100 540 0 12"},
		"a counter":                        {write(12, func(i int) string { return fmt.Sprintf("frame %d done", 10*i+1) }), ""},
		"a number that goes up and down":   {write(12, func(i int) string { return fmt.Sprintf("queue %d of 12", i%5) }), ""},
		"too few lines":                    {write(4, func(i int) string { return fmt.Sprintf("pool in use %d of 4", i+1) }), ""},
		"a jump, with other lines between": {write(20, func(i int) string { return fmt.Sprintf("connections: %d max: 20\nother line", max(1, i+1-i%19)) }), ""},
		"numbers that are parts of a name": {write(9, func(i int) string { return fmt.Sprintf("worker-%d of p99", i) }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			for _, c := range logfact.Climbs([]logtext.Source{{Pod: "web-1", Container: "web", Text: row.text}}) {
				got += fmt.Sprint(c.First, c.Last, c.Limit, c.Count)
				if c.From.IsZero() || !c.To.After(c.From) {
					t.Errorf("from %s to %s; want the times of the lines", c.From, c.To)
				}
			}
			if got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// FuzzClimbs: for any log, the analysis ends in time and does not panic.
func FuzzClimbs(f *testing.F) {
	f.Add("a 1 of 2\na 2 of 2\n")
	f.Add("1.2.3-4:5T6+7\n\n9e99999 0x1\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range logfact.Climbs([]logtext.Source{{Text: text}}) {
			if c.Count < 5 || c.Last <= c.First {
				t.Errorf("%q climbs as %+v; want 5 lines and a rise", text, c)
			}
		}
	})
}
