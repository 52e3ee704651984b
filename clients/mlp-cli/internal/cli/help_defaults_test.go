package cli

import (
	"strings"
	"testing"
)

// A default is shown once, in readable form.
func TestHelpShowsEachDefaultOnce(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"help models list":               "show at most this many rows (default: all)\n",
		"help runs logs":                 "only the last lines (default: all)\n",
		"help drift auto-retrain enable": "lowest z-score that counts as drift (default: the stored one, else 3)\n",
	} {
		if got := runMLP(t, nil, "", strings.Fields(line)...).out; !strings.Contains(got, want) {
			t.Errorf("mlp %s: got\n%s\nwant %q in it", line, got, want)
		}
	}
	for _, line := range helpLines() {
		for row := range strings.Lines(runMLP(t, nil, "", strings.Fields(line)...).out) {
			if strings.Count(row, "(default: ") > 1 {
				t.Errorf("mlp %s: got two defaults, want one: %q", line, row)
			}
		}
	}
}
