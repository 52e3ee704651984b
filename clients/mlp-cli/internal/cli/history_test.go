package cli

import (
	"strings"
	"testing"
)

func TestHistoryKnowsNoFuture(t *testing.T) {
	t.Parallel()
	r := runMLP(t, map[string]string{"HOME": t.TempDir()}, "", "models", "at", "JPCP", "2999-01-01")
	if r.code != 2 || !strings.Contains(r.err, "in the future") {
		t.Errorf("got %+v, want exit 2 that names the future", r)
	}
}
