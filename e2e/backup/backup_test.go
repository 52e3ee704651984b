//go:build e2e

// Package backup moves a platform to another directory by `platform backup` and `platform restore`.
package backup

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

const artifact = "/api/2.0/mlflow-artifacts/artifacts/1/run/artifacts/model.bin"

// state returns the content of a platform, as far as a caller can see it.
func state(t *testing.T, p *harness.Platform) map[string]string {
	t.Helper()
	control, token := p.Env["CONTROL_PLANE_URL"], p.Env["CONTROL_PLANE_TOKEN"]
	all := map[string]string{}
	for name, url := range map[string]string{
		"approvals": control + "/approvals", "keys": control + "/audit/keys",
		"facts": control + "/audit/events?action=e2e.noted",
	} {
		all[name] = string(harness.Want(t, http.StatusOK, "GET", url, token, nil).Body)
	}
	all["artifact"] = string(harness.Want(t, http.StatusOK, "GET", p.Env["TRACKING_URI"]+artifact, p.Env["MLFLOW_TRACKING_TOKEN"], nil).Body)
	return all
}

func digest(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(raw))
}

// A platform restored from a backup holds everything that the first one held: records, ledger with its key, artifacts,
// evidence. It continues from there.
func TestRestoredPlatformGoesOn(t *testing.T) {
	t.Parallel()
	p := harness.New(t, "PLATFORM_SEED=false")
	p.Start(t, 2*time.Minute)
	control, token := p.Env["CONTROL_PLANE_URL"], p.Env["CONTROL_PLANE_TOKEN"]
	const facts = 10
	for i := range facts {
		harness.Want(t, http.StatusAccepted, "POST", control+"/audit/events", token,
			map[string]any{"source": "cli", "action": "e2e.noted", "target": "model:JPCP", "details": map[string]any{"n": i}})
	}
	harness.Want(t, http.StatusOK, "PUT", p.Env["TRACKING_URI"]+artifact, p.Env["MLFLOW_TRACKING_TOKEN"], map[string]any{"weights": strings.Repeat("x", 100_000)})
	harness.Eventually(t, time.Minute, func() error {
		if n := harness.Want(t, http.StatusOK, "GET", control+"/audit/events?action=e2e.noted", token, nil).JSON(t)["count"]; n != float64(facts) {
			return fmt.Errorf("%v of %d facts are in the ledger", n, facts)
		}
		return nil
	})
	harness.Want(t, http.StatusCreated, "POST", control+"/audit/checkpoints", token, nil) // from here on its key is listed
	want := state(t, p)
	file := filepath.Join(t.TempDir(), "platform.tar.zst")
	if _, stderr, code := p.Exec(t, "platform", "backup", file); code != 1 || !strings.Contains(stderr, "another platform") {
		t.Errorf("backup while it runs: got exit %d and %q, want 1 and that a platform uses the directory", code, stderr)
	}
	p.Stop(t)
	store := filepath.Join("evidence", "store.sqlite")
	evidence := digest(t, filepath.Join(p.Dir, store))
	p.Run(t, "platform", "backup", file)
	if again := p.Run(t, "platform", "backup", file); !strings.Contains(again, "holds every secret") {
		t.Errorf("got %q, want the warning about secrets", again)
	}

	q := harness.New(t, "PLATFORM_SEED=false")
	q.Run(t, "platform", "restore", file)
	if got := digest(t, filepath.Join(q.Dir, store)); got != evidence {
		t.Errorf("evidence: got digest %s, want %s", got, evidence)
	}
	q.Start(t, 2*time.Minute)
	for name, got := range state(t, q) {
		if !bytes.Equal([]byte(got), []byte(want[name])) {
			t.Errorf("%s: got %.300s\nwant %.300s", name, got, want[name])
		}
	}
	control = q.Env["CONTROL_PLANE_URL"]
	harness.Want(t, http.StatusAccepted, "POST", control+"/audit/events", token, map[string]any{"source": "cli", "action": "e2e.noted", "target": "model:JPCP"})
	harness.Eventually(t, time.Minute, func() error {
		if n := harness.Want(t, http.StatusOK, "GET", control+"/audit/events?action=e2e.noted", token, nil).JSON(t)["count"]; n != float64(facts+1) {
			return fmt.Errorf("%v of %d facts are in the ledger", n, facts+1)
		}
		return nil
	})
	if v := harness.Want(t, http.StatusOK, "GET", control+"/audit/verify", token, nil).JSON(t); v["verified"] != true {
		t.Errorf("got %v, want the ledger to verify", v)
	}
	if _, stderr, code := q.Exec(t, "platform", "restore", file); code != 1 || !strings.Contains(stderr, "is not empty") {
		t.Errorf("restore over a platform: got exit %d and %q, want 1 and that the directory is not empty", code, stderr)
	}
}
