package output

import "testing"

func TestWrapBreaksBetweenWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"hint: see what is pending", 15, "hint: see what\nis pending"},
		{"pending: mlp approvals list; and all: mlp approvals list --all", 30, "pending: mlp approvals list;\nand all:\nmlp approvals list --all"},
		{"see: mlp audit, or ask", 16, "see: mlp audit,\nor ask"},
		{"longer: mlp runs show an-id-of-many-letters", 20, "longer:\nmlp runs show an-id-of-many-letters"},
		{"  indented as the first line is", 16, "  indented as\n  the first line\n  is"},
		{"fits\n  and keeps   its spaces", 40, "fits\n  and keeps   its spaces"},
		{"a word-longer-than-the-line stays whole", 12, "a\nword-longer-than-the-line\nstays whole"},
		{"no terminal: one line, however long it may be", 0, "no terminal: one line, however long it may be"},
	} {
		if got := Wrap(c.text, c.width); got != c.want {
			t.Errorf("Wrap(%q, %d): got %q, want %q", c.text, c.width, got, c.want)
		}
	}
}
