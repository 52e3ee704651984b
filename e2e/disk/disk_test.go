//go:build e2e

// Package disk fills the disk of a platform and frees it again. It mounts a small disk for that, as root.
package disk

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// mountDisk mounts a disk of this size on the directory.
func mountDisk(t *testing.T, dir, size string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(dir, 0o700), syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size="+size)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// fillDisk uses up the space of the disk that holds dir; removing the file frees it.
func fillDisk(t *testing.T, dir string) (file string) {
	t.Helper()
	file = filepath.Join(dir, "filler")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{1 << 20, 4096} {
		for block := bytes.Repeat([]byte{1}, size); err == nil; {
			_, err = f.Write(block)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		err = nil
	}
	return file
}

// While its disk is full a platform reports it, keeps what it acknowledged and writes nothing half; once there is space
// it resumes without a restart.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	p := harness.New(t, "PLATFORM_SEED=false")
	mountDisk(t, p.Dir, "300m")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p.LogTail())
		}
	})
	p.Start(t, 2*time.Minute)
	control, token := p.Env["CONTROL_PLANE_URL"], p.Env["CONTROL_PLANE_TOKEN"]
	artifact := p.Env["TRACKING_URI"] + "/api/2.0/mlflow-artifacts/artifacts/1/run/artifacts/model.bin"
	note := func(i int) harness.Answer {
		return harness.Call(t, "POST", control+"/audit/events", token,
			map[string]any{"source": "cli", "action": "e2e.noted", "target": "model:JPCP", "details": map[string]any{"n": i, "text": strings.Repeat("x", 2000)}})
	}
	accepted := 0
	for range 20 {
		if a := note(accepted); a.Status != http.StatusAccepted {
			t.Fatalf("a note before the disk is full: got %d %s, want 202", a.Status, a.Body)
		}
		accepted++
	}

	filler := fillDisk(t, p.Dir)
	harness.Eventually(t, 30*time.Second, func() error {
		ready := harness.Call(t, "GET", control+"/readyz", "", nil)
		if ready.Status != http.StatusServiceUnavailable || !strings.Contains(string(ready.Body), "the disk that holds "+p.Dir) {
			return fmt.Errorf("got %d %s, want 503 that names the disk", ready.Status, ready.Body)
		}
		return nil
	})
	refused := 0
	for i := 0; refused < 5 && i < 200; i++ {
		switch a := note(accepted); a.Status {
		case http.StatusAccepted: // it fit into existing pages of the database
			accepted++
		case http.StatusServiceUnavailable:
			refused++
		default:
			t.Fatalf("a note on a full disk: got %d %s, want 202 or 503", a.Status, a.Body)
		}
	}
	if refused == 0 {
		t.Error("no note was refused on a full disk")
	}
	upload := harness.Call(t, "PUT", artifact, p.Env["MLFLOW_TRACKING_TOKEN"], map[string]any{"weights": strings.Repeat("x", 1_000_000)})
	if upload.Status != http.StatusServiceUnavailable || !strings.Contains(string(upload.Body), "is full") {
		t.Errorf("an upload to a full disk: got %d %s, want 503 that says so", upload.Status, upload.Body)
	}

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, time.Minute, func() error {
		if a := harness.Call(t, "GET", control+"/readyz", "", nil); a.Status != http.StatusOK {
			return fmt.Errorf("ready: got %d %s, want 200", a.Status, a.Body)
		}
		return nil
	})
	if a := note(accepted); a.Status != http.StatusAccepted {
		t.Fatalf("a note after the disk was freed: got %d %s, want 202", a.Status, a.Body)
	}
	accepted++
	if got := harness.Call(t, "GET", artifact, p.Env["MLFLOW_TRACKING_TOKEN"], nil).Status; got != http.StatusNotFound {
		t.Errorf("the refused upload: got %d, want 404", got)
	}
	harness.Want(t, http.StatusOK, "PUT", artifact, p.Env["MLFLOW_TRACKING_TOKEN"], map[string]any{"weights": "x"})
	// The broker recovers, too: its facts reach the ledger, each once.
	harness.Eventually(t, 2*time.Minute, func() error {
		page := harness.Want(t, http.StatusOK, "GET", control+"/audit/events?action=e2e.noted&limit=500", token, nil).JSON(t)
		if page["count"] != float64(accepted) {
			return fmt.Errorf("%v of %d accepted facts are in the ledger", page["count"], accepted)
		}
		return nil
	})
	if v := harness.Want(t, http.StatusOK, "GET", control+"/audit/verify", token, nil).JSON(t); v["verified"] != true {
		t.Errorf("got %v, want the ledger to verify", v)
	}
}
