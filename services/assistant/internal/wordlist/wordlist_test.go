package wordlist_test

import (
	"regexp"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

func TestAnyOf(t *testing.T) {
	t.Parallel()
	expr := regexp.MustCompile(`^` + wordlist.AnyOf("up", `down\w*`, "left|right") + `$`)
	if n := expr.NumSubexp(); n != 0 {
		t.Errorf("%d groups captured, want 0", n)
	}
	for text, want := range map[string]bool{"up": true, "downward": true, "right": true, "upward": false, "": false, "up|left": false} {
		if got := expr.MatchString(text); got != want {
			t.Errorf("match of %q: got %t, want %t", text, got, want)
		}
	}
}
