package boundaries

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/mlp-platform/platform/e2e/harness"
)

// TestDefaultPortsAreNotHandedOut: tests that choose a port of their own leave those of a platform that nobody configured.
func TestDefaultPortsAreNotHandedOut(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/standalone.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\|[^|]+\\| `127\\.0\\.0\\.1:(\\d+)` \\(").FindAllSubmatch(page, -1)
	if len(rows) < 11 {
		t.Fatalf("the manual names %d addresses; want len(rows) >= 11", len(rows))
	}
	for _, row := range rows {
		port, err := strconv.Atoi(string(row[1]))
		if err != nil {
			t.Fatal(err)
		}
		if port > 10_000 && !slices.Contains(harness.DefaultPorts, port) {
			t.Errorf("port %d is a default and may be handed out; want it in harness.DefaultPorts", port)
		}
	}
}
