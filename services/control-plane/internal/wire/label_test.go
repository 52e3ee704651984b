package wire

import (
	"strings"
	"testing"
)

func TestLabel(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"a": true, "HPC project 7": true, "1234_5": true, "ƒ2oLkTLb": true, strings.Repeat("x", MaxLabel): true,
		"": false, " a": false, "a\n": false, "a\tb": false, "a\u202eb": false, "a\uFFFD": false, "\xff": false, strings.Repeat("x", MaxLabel+1): false,
	} {
		if Label(s) != want {
			t.Errorf("%q: want %v", s, want)
		}
	}
}
