//go:build e2e

package tours

import "testing"

func TestMatchOutput(t *testing.T) {
	for name, tc := range map[string]struct {
		out, want string
		line      int
		ok        bool
	}{
		"equal":                     {"a\nb\n", "a\nb", 1, true},
		"widths of columns":         {"A   B\n1   2  \n", "A B\n1 2", 1, true},
		"text of a line":            {"run 4711 done\n", "run … done", 0, true},
		"any lines":                 {"a\nb\nc\nd\n", "a\n…\nd", 2, true},
		"no lines":                  {"a\nd\n", "a\n…\nd", 2, true},
		"another line":              {"a\nx\n", "a\nb", 1, false},
		"a line more than shown":    {"a\nb\n", "a", 0, false},
		"a line fewer than shown":   {"a\n", "a\nb", 1, false},
		"text is no pattern":        {"abc\n", "a.c", 0, false},
		"any lines, then a missing": {"a\nb\n", "…\nc", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			if line, ok := matchOutput(tc.out, tc.want); line != tc.line || ok != tc.ok {
				t.Errorf("got line %d, %t; want %d, %t", line, ok, tc.line, tc.ok)
			}
		})
	}
}
