//go:build e2e

package evidence_test

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// token is the credential of these tests' calls to the towers.
const token = "e2e-0123456789-abcdefghijklmnopqrstuv"

// runCommand runs a command in a folder; it must succeed.
func runCommand(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// startTower starts `svc control-tower` on a store and a free port, and returns its address.
func startTower(t *testing.T, store string) string {
	t.Helper()
	cmd := exec.Command(harness.Bin(t, "svc"), "control-tower", "--no-browser", "--port", "0", "--product-spine-store", store)
	cmd.Env = append(os.Environ(), "SVC_CONTROL_TOWER_TOKEN="+token)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := make(chan string, 1)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if url := regexp.MustCompile(`^control-tower: (http://127\.0\.0\.1:\d+)$`).FindStringSubmatch(lines.Text()); url != nil {
				first <- url[1]
			}
		}
	}()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("stop the tower: %v", err)
		}
		<-drained
		if err := cmd.Wait(); err != nil {
			t.Errorf("the tower ended: %v", err)
		}
	})
	select {
	case url := <-first:
		return url
	case <-time.After(20 * time.Second):
		t.Fatal("the tower did not say where it listens")
		return ""
	}
}
