package cli

import (
	"strings"
	"testing"
)

// An empty list of guarded changes names the requested state.
func TestEmptyListOfGuardedChangesNamesItsState(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": serveAnswer(t, 200, "application/json", `{"items":[],"next_cursor":null}`)}
	for options, want := range map[string]string{
		"": "No change waits for a second person.\n", "--state rejected": "No change is rejected.\n", "--all": "No change has needed a second person.\n",
	} {
		if r := runMLP(t, vars, "", append([]string{"guarded-changes", "list"}, strings.Fields(options)...)...); r.code != 0 || r.out != want {
			t.Errorf("%s: exit %d, got %q, want %q", options, r.code, r.out, want)
		}
	}
}
