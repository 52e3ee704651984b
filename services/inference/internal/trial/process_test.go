package trial_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
	"github.com/mlp-platform/platform/services/inference/internal/model"
)

// trialIn finds the process whose working folder is below dir.
func trialIn(dir string) (proc string, err error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return "", err
	}
	for _, p := range all {
		if cwd, err := os.Readlink(p + "/cwd"); err == nil && strings.HasPrefix(cwd, dir+"/") {
			return p, nil
		}
	}
	return "", fmt.Errorf("no process works below %s", dir)
}

// The process has three pipes, an empty folder, an environment without information, and limits.
func TestProcessHasNothingOfTheService(t *testing.T) {
	t.Setenv("PLATFORM_DATABASE_URL", "postgres://secret") // not parallel: this is the process's own
	r, dir := newRunner(t, time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := r.Try(ctx, folder(fixturetest.SlowFor(t, "m", 20_000)), model.Options{Threads: 1, Rows: 1}, false)
		done <- err
	}()
	var proc string
	testenv.Eventually(t, 20*time.Second, func() (err error) {
		if proc, err = trialIn(dir); err != nil {
			return err
		}
		limits, err := os.ReadFile(proc + "/limits")
		if err != nil {
			return err
		}
		if !strings.Contains(string(limits), "Max core file size        0                    0") {
			return fmt.Errorf("no limits yet:\n%s", limits)
		}
		return nil
	})
	limits := map[string]string{}
	raw, err := os.ReadFile(proc + "/limits")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if len(line) > 47 {
			limits[strings.TrimSpace(line[:26])] = strings.TrimSpace(line[26:47])
		}
	}
	data, err := strconv.ParseInt(limits["Max data size"], 10, 64)
	if err != nil || data > 4<<30 {
		t.Errorf("the process may have %s of memory; want less than 4 GiB", limits["Max data size"])
	}
	for name, want := range map[string]string{"Max cpu time": "60", "Max file size": "0", "Max open files": "64"} {
		if limits[name] != want {
			t.Errorf("%s: got %q, want %q", name, limits[name], want)
		}
	}
	env, err := os.ReadFile(proc + "/environ")
	if err != nil {
		t.Fatal(err)
	}
	for entry := range strings.SplitSeq(strings.TrimRight(string(env), "\x00"), "\x00") {
		if name, _, _ := strings.Cut(entry, "="); name != "PLATFORM_MODEL_TRIAL" && name != "GOTRACEBACK" && name != "HOME" && name != "TMPDIR" {
			t.Errorf("the process has %s in its environment", entry)
		}
	}
	fds, err := os.ReadDir(proc + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		to, err := os.Readlink(proc + "/fd/" + fd.Name())
		if err != nil { // it was closed since
			continue
		}
		kind, _, _ := strings.Cut(to, ":")
		// Go's runtime watches the processor limits of its group.
		own := kind == "pipe" || kind == "anon_inode" || to == "/dev/null" || strings.HasPrefix(to, "/sys/fs/cgroup/")
		if !own {
			t.Errorf("the process has %s open", to)
		}
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("the trial passed; want it ended with its caller")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the trial left %v, %v; want an empty folder", left, err)
	}
}
