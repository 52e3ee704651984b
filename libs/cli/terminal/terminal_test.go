package terminal_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mlp-platform/platform/libs/cli/terminal"
)

var (
	columns = []terminal.Column{{Title: "run"}, {Title: "n", Right: true}, {Title: "digest"}}
	cells   = [][]string{{"run/demo:0001", "7", strings.Repeat("a", 64)}, {"r", "12", ""}}
)

func TestTable(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		width int
		faint bool
		want  string
	}{
		{0, false, "RUN             N  DIGEST\nrun/demo:0001   7  " + strings.Repeat("a", 64) + "\nr              12\n"},
		{60, false, "RUN             N  DIGEST\nrun/demo:0001   7  " + strings.Repeat("a", 40) + "…\nr              12\n"},
		{0, true, "\x1b[2mRUN\x1b[0m             \x1b[2mN\x1b[0m  \x1b[2mDIGEST\x1b[0m\nrun/demo:0001   7  " + strings.Repeat("a", 64) + "\nr              12\n"},
		{30, false, "run     run/demo:0001\nn       7\ndigest  aaaaaaaaaaaaaaaaaaaaaa\n        aaaaaaaaaaaaaaaaaaaaaa\n        aaaaaaaaaaaaaaaaaaaa\n\nrun     r\nn       12\ndigest  \n"},
	} {
		var b strings.Builder
		if err := terminal.Table(&b, tc.width, tc.faint, columns, cells); err != nil || b.String() != tc.want {
			t.Errorf("width %d: %v\n%s\nwant:\n%s\n%q", tc.width, err, b.String(), tc.want, b.String())
		}
	}
}

// The first column identifies the row, so the others are truncated before it, however narrow they
// are.
func TestFirstColumnIsCutLast(t *testing.T) {
	t.Parallel()
	id := "run/" + strings.Repeat("n", 26)
	var b strings.Builder
	wide := []terminal.Column{{Title: "run"}, {Title: "state"}, {Title: "project"}, {Title: "unit"}}
	if err := terminal.Table(&b, 60, false, wide, [][]string{{id, "awaiting_human_decision", "project/demonstration", "work/demo-0001"}}); err != nil {
		t.Fatal(err)
	}
	if want := "\n" + id + "  awaitin…  project…  work/de…\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("got\n%swant it to end in%s", b.String(), want)
	}
}

// Property: no line of a table is wider than the terminal, unless its columns are at their least.
func TestTableFits(t *testing.T) {
	t.Parallel()
	for width := 24; width < 120; width++ {
		var b strings.Builder
		if err := terminal.Table(&b, width, false, columns, cells); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(b.String(), "\n") {
			if utf8.RuneCountInString(line) > width {
				t.Errorf("width %d: %q; want utf8.RuneCountInString(line) <= width", width, line)
			}
		}
	}
}

func TestTabs(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := terminal.Tabs(&b, [][]string{{"a", "b"}, {"c", ""}, {}}); err != nil || b.String() != "a\tb\nc\t\n\n" {
		t.Errorf("%v %q; want b.String() == \"a\\tb\\nc\\t\\n\\n\"", err, b.String())
	}
}
