package engine_test

import (
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// TestLowerFirst: a sentence goes on behind a colon, and an abbreviation stays one.
func TestLowerFirst(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"": "", "It ends.": "it ends.", "CPU is short.": "CPU is short.", "A": "a", "Über": "über", "`x` is absent.": "`x` is absent."} {
		if got := engine.LowerFirst(given); got != want {
			t.Errorf("LowerFirst(%q) = %q; want %q", given, got, want)
		}
	}
}
