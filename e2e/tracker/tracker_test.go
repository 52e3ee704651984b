//go:build e2e

// Package tracker checks the stand-in of the tracker and the Go client against the real product: the official client
// must work against the stand-in, the Go client against a real server.
package tracker

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/libs/tracker/trackertest"
)

// TestOfficialClientOnStandIn is row 25 of the acceptance table.
func TestOfficialClientOnStandIn(t *testing.T) {
	t.Parallel()
	p := harness.New(t, "PLATFORM_SEED=false")
	p.Start(t, time.Minute)
	runOfficialClient(t, p.Env["TRACKING_URI"], "MLFLOW_TRACKING_TOKEN="+p.Env["MLFLOW_TRACKING_TOKEN"])
}

func TestRealServer(t *testing.T) {
	t.Parallel()
	// make e2e starts a server here; TRACKER_E2E_URL names another one to use.
	url := os.Getenv("TRACKER_E2E_URL")
	if url == "" {
		url = realServer(t)
	}
	t.Run("GoClient", func(t *testing.T) { trackertest.Run(t, url) })
	t.Run("OfficialClient", func(t *testing.T) { runOfficialClient(t, url) })
}

// venvPython is the interpreter of the environment that scripts/venv.sh makes.
func venvPython(t *testing.T) string {
	t.Helper()
	p := os.Getenv("E2E_PYTHON")
	if p == "" {
		p = filepath.Join(harness.Root(t), ".cache", "venv", "bin", "python")
	}
	if _, err := os.Stat(p); err != nil {
		t.Fatalf("%v: run scripts/venv.sh", err)
	}
	return p
}

// runOfficialClient runs client.py against the server at url; env holds its credential.
func runOfficialClient(t *testing.T, url string, env ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, venvPython(t), "client.py", url)
	cmd.Env = append(os.Environ(), "MLFLOW_TRACKING_URI=", "TMPDIR="+t.TempDir())
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.HasSuffix(bytes.TrimSpace(out), []byte("ok")) {
		t.Fatalf("client.py: %v\n%s; want bytes.HasSuffix(bytes.TrimSpace(out), []byte(\"ok\"))", err, lastBytes(out))
	}
}

func lastBytes(b []byte) []byte { return b[max(0, len(b)-6000):] }

// realServer starts the real product on SQLite and returns its address.
func realServer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	addr := harness.FreePorts(t, 1)[0]
	host, port := addr[:len("127.0.0.1")], addr[len("127.0.0.1:"):]
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(venvPython(t), "-m", "mlflow", "server", "--host", host, "--port", port, "--workers", "1",
		"--backend-store-uri", "sqlite:///"+filepath.Join(dir, "db.sqlite"), "--artifacts-destination", filepath.Join(dir, "artifacts"))
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = append(os.Environ(), "MLFLOW_DISABLE_TELEMETRY=true")
	// A new process group: the server starts workers, and all of them must end.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // gone if it has ended already
		_ = cmd.Wait()
		_ = log.Close()
		if t.Failed() {
			if b, err := os.ReadFile(log.Name()); err == nil {
				t.Logf("--- server.log\n%s", lastBytes(b))
			}
		}
	})
	url := "http://" + addr
	hc := &http.Client{Timeout: 2 * time.Second}
	harness.Eventually(t, 2*time.Minute, func() error {
		resp, err := hc.Get(url + "/health")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s/health answers %s", url, resp.Status)
		}
		return nil
	})
	return url
}
