package engine_test

import (
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// TestLowerFirst: a sentence after a colon begins in lower case, and an abbreviation keeps its capitals.
func TestLowerFirst(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"": "", "It ends.": "it ends.", "CPU is short.": "CPU is short.", "A": "a", "Über": "über", "`x` is absent.": "`x` is absent."} {
		if got := engine.LowerFirst(given); got != want {
			t.Errorf("LowerFirst(%q) = %q; want %q", given, got, want)
		}
	}
}
