//go:build e2e

package evidence_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// fuzzSeconds is the length of schemathesis's run; EVIDENCE_FUZZ_SECONDS sets another.
const fuzzSeconds = 45

// TestNothingOutsideTheDocument lets schemathesis make requests, good and bad, from the served OpenAPI document: every
// answer must have a status, media type, headers and body that the document allows, and none may be a fault. The stream
// is left out: it does not end within a run, and its own tests check its bytes.
func TestNothingOutsideTheDocument(t *testing.T) {
	seconds := fuzzSeconds
	if s := os.Getenv("EVIDENCE_FUZZ_SECONDS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			t.Fatalf("EVIDENCE_FUZZ_SECONDS must be a number of seconds, not %q", s)
		}
		seconds = n
	}
	dir := t.TempDir()
	store := filepath.Join(dir, "store.sqlite")
	runCommand(t, dir, harness.Bin(t, "svc"), "fixtures", filepath.Join(dir, "samples"), "--store", store)
	url := startTower(t, store)
	st := filepath.Join(harness.Root(t), ".cache", "venv-schemathesis", "bin", "st")
	ids, err := filepath.Abs("schemathesis.toml")
	if err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(dir, "none.toml")
	if err := os.WriteFile(none, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]string{"ids of the store": ids, "any ids": none} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(seconds)*time.Second+2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, st, "--config-file", config, "run", url+"/api/v1/openapi.json", "--url", url, "--no-color",
				"--header", "X-SVC-UI-Token: "+token, "--exclude-path", "/api/v1/events/stream",
				"--max-time", strconv.Itoa((seconds+1)/2), "--phases", "examples,coverage,fuzzing", "--request-timeout", "15",
				// A cursor that was never issued, a tree size beyond the log and a report that contradicts itself have
				// the form that the document gives and are refused all the same, with a code that it names.
				"--exclude-checks", "positive_data_acceptance",
				"--generation-database", "none", "--seed", "1")
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			t.Logf("%s", lastBytes(string(out), 4000))
			if err != nil {
				t.Fatalf("schemathesis: %v", err)
			}
		})
	}
}

func lastBytes(s string, n int) string {
	if len(s) > n {
		s = "…" + s[len(s)-n:]
	}
	return strings.TrimSpace(s)
}
