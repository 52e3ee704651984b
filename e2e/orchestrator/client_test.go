//go:build e2e

package orchestrator

import (
	"bytes"
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/e2e/harness"
)

// testOfficialClient runs client.py, which uses only the official client, command line and process worker. The same
// must work on the stand-in and on the real server.
func testOfficialClient(t *testing.T, api string) {
	u, err := url.Parse(api)
	if err != nil {
		t.Fatal(err)
	}
	auth := ""
	if key, ok := u.User.Password(); ok {
		auth = "platform:" + key
	}
	u.User = nil
	python := filepath.Join(harness.Root(t), ".cache", "venv-prefect", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		t.Fatalf("%v: run scripts/venv.sh prefect", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "client.py", "pool-"+uuid.NewString()[:8])
	cmd.Env = append(os.Environ(), "PREFECT_API_URL="+u.String(), "PREFECT_API_KEY=", "PREFECT_HOME="+t.TempDir(),
		"PREFECT_CLI_PROMPT=false", "PREFECT_CLI_COLORS=false", "DO_NOT_TRACK=1", "PREFECT_SERVER_ANALYTICS_ENABLED=false")
	if auth != "" { // an empty one would be a credential
		cmd.Env = append(cmd.Env, "PREFECT_API_AUTH_STRING="+auth)
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.HasSuffix(bytes.TrimSpace(out), []byte("ok")) {
		t.Fatalf("client.py: %v; want it to end with ok\n%s", err, out[max(0, len(out)-6000):])
	}
}
