package clip_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mlp-platform/platform/services/assistant/internal/tool/clip"
)

func TestClip(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("äöü 1\n", 20) // 120 characters
	for _, c := range []struct {
		name, want string
		cut        bool
		by         func(string, int, string) (string, bool)
		most       int
	}{
		{"head fits", text, false, clip.Head, 120},
		{"tail fits", text, false, clip.Tail, 120},
		{"head", "äöü 1\näöü 1\n[the first 2 of 20 lines; ask for less]\n", true, clip.Head, 55},
		{"tail", "[the last 2 of 20 lines; ask for less]\näöü 1\näöü 1\n", true, clip.Tail, 54},
	} {
		if got, cut := c.by(text, c.most, "ask for less"); got != c.want || cut != c.cut {
			t.Errorf("%s: cut %v\n%s; want got == c.want && cut == c.cut", c.name, cut, got)
		}
	}
}

func FuzzClip(f *testing.F) {
	f.Add("a\nb\nc\n", 90)
	f.Add(strings.Repeat("x", 5000), 100)
	f.Fuzz(func(t *testing.T, text string, most int) {
		most = 100 + min(max(most, 0), 10_000)
		for _, by := range []func(string, int, string) (string, bool){clip.Head, clip.Tail} {
			got, cut := by(text, most, "hint")
			if n := utf8.RuneCountInString(got); n > most {
				t.Fatalf("%d of %d characters; want n <= most", n, most)
			}
			if cut == (got == text) {
				t.Fatalf("cut %v, but %q; want cut != (got == text)", cut, got)
			}
		}
	})
}
