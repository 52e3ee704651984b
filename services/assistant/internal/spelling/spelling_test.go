package spelling_test

import (
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/spelling"
)

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"api", "api", 0}, {"api", "", 3}, {"", "api", 3}, {"api", "apis", 1}, {"web", "wed", 1}, {"catalog", "catlaog", 1}, {"cart", "catr", 1}, {"ca", "abc", 3}, {"kitten", "sitting", 3},
	} {
		if got := spelling.Distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q is %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
