package svccli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestMain runs svc if the test binary is called by that name, so that terminals, signals and working folders can be
// tested on a process.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "svc" {
		os.Exit(Main())
	}
	os.Exit(m.Run())
}

// result holds the output and exit code of one run of svc.
type result struct {
	out, err string
	code     int
}

// svcProcess prepares svc as a process in a folder, with nothing of the caller's environment.
func svcProcess(t testing.TB, dir string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a program that hangs fails its own test
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, self, args...)
	c.Args[0] = "svc"
	c.Dir = dir
	c.Env = []string{"HOME=" + dir, "TERM=xterm", "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
	return c
}

// runSVC runs svc to its end.
func runSVC(t testing.TB, dir string, args ...string) result {
	t.Helper()
	c := svcProcess(t, dir, args...)
	var out, errOut bytes.Buffer
	c.Stdout, c.Stderr = &out, &errOut
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err, "want (err == nil || errors.As(err, &exit))")
	}
	return result{out.String(), errOut.String(), c.ProcessState.ExitCode()}
}
