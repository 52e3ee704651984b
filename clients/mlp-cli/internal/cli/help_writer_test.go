package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// The same words in the same order, none of them cut, at every width; on a narrow terminal an option is on the line
// above its description.
func TestHelpWrapsBetweenWords(t *testing.T) {
	t.Parallel()
	for _, line := range helpLines() {
		want := strings.Fields(runMLP(t, nil, "", strings.Fields(line)...).out)
		for _, width := range []int{40, 80, 120} {
			got := runOnTerminal(t, width, nil, strings.Fields(line)...)
			if words := strings.Join(strings.Fields(got.out), " "); words != strings.Join(want, " ") {
				t.Errorf("mlp %s at %d columns: got the words\n%s\nwant\n%s", line, width, words, strings.Join(want, " "))
			}
			for row := range strings.Lines(got.out) {
				row = strings.TrimRight(row, "\n")
				if n := utf8.RuneCountInString(row); n > width && strings.Contains(strings.TrimSpace(row), " ") {
					t.Errorf("mlp %s: got %d columns, want at most %d: %q", line, n, width, row)
				}
			}
		}
	}
}

func TestWrapHelpLine(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line  string
		width int
		want  string
	}{
		"fits":                 {"   --all  every row", 40, "   --all  every row"},
		"beside the option":    {"   --all  every row, whatever the limit says", 34, "   --all  every row, whatever the\n          limit says"},
		"below a long option":  {"   --limit value, -n value  show at most this many rows", 40, "   --limit value, -n value\n       show at most this many rows"},
		"a sentence":           {"   one two three four", 12, "   one two\n     three\n     four"},
		"a word over the line": {"   see https://example.org/a/b now", 12, "   see\n     https://example.org/a/b\n     now"},
	} {
		if got := wrapHelpLine(tc.line, tc.width); got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tc.want)
		}
	}
}

// helpLines returns the command lines that show every help text.
func helpLines() []string {
	lines := []string{"help"}
	var walk func(commands []*cli.Command, path string)
	walk = func(commands []*cli.Command, path string) {
		for _, c := range commands {
			if c.Hidden {
				continue
			}
			lines = append(lines, path+" "+c.Name)
			walk(c.Subcommands, path+" "+c.Name)
		}
	}
	walk(newApp(&Env{Getenv: func(string) string { return "" }}).Commands, "help")
	return lines
}
