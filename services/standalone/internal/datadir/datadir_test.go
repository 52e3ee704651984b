package datadir

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const childDir = "DATADIR_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		d, err := Open(dir)
		if err == nil {
			err = d.WriteRuntime(Runtime{PID: os.Getpid(), Started: time.Now(), Addresses: map[string]string{"tracker": "http://127.0.0.1:15000"}})
		}
		fmt.Println(err)
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the parent is done with it
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestOpenAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b")
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if d.Path() != path {
		t.Fatalf("path %s; want %v", d.Path(), path)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("%v, %v; want info.Mode().Perm() == 0o700", info.Mode(), err)
	}
	_, err = Open(path)
	if err == nil || !strings.Contains(err.Error(), "another platform") || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())) {
		t.Fatalf(`second: %v; want an error && strings.Contains(err.Error(), "another platform") && strings.Contains(err.Error(), fmt.Sprintf("pid %%d", os.Getpid()))`, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if d, err = Open(path); err != nil {
		t.Fatalf("after close: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLayout(t *testing.T) {
	t.Parallel()
	for content, says := range map[string]string{"2\n": "newer version", "old stuff": "data directory?", "1": ""} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, layoutFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 { // refused, it is let go
			d, err := Open(dir)
			if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), dir)) {
				t.Errorf(`%q: %v; want (says != "" || err == nil) && (says == "" || !err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), dir))`, content, err)
			}
			if err == nil {
				_ = d.Close()
			}
		}
	}
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := openWith(dir, func(string) (uint64, error) { return 199 << 20, nil })
	if err == nil || !strings.Contains(err.Error(), "199 MB free") || !strings.Contains(err.Error(), "PLATFORM_DATA_DIR") {
		t.Fatal(err, `want an error && strings.Contains(err.Error(), "199 MB free") && strings.Contains(err.Error(), "PLATFORM_DATA_DIR")`)
	}
	d, err := openWith(dir, func(string) (uint64, error) { return 200 << 20, nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := freeBytes(dir); err != nil || n == 0 {
		t.Fatalf("%d, %v; want n != 0", n, err)
	}
}

func TestNotADirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file); err == nil || !strings.Contains(err.Error(), "PLATFORM_DATA_DIR") {
		t.Fatal(err, `want an error && strings.Contains(err.Error(), "PLATFORM_DATA_DIR")`)
	}
}

func TestRuntime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := ReadRuntime(dir); !errors.Is(err, ErrNotRunning) {
		t.Fatalf("never started: %v", err)
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRuntime(dir); err == nil || !strings.Contains(err.Error(), "starting") {
		t.Fatalf(`starting: %v; want an error && strings.Contains(err.Error(), "starting")`, err)
	}
	want := Runtime{PID: os.Getpid(), Started: time.Now().UTC().Round(0), Addresses: map[string]string{"tracker": "http://127.0.0.1:15000"}}
	if err := d.WriteRuntime(want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRuntime(dir)
	if err != nil || got.PID != want.PID || !got.Started.Equal(want.Started) || got.Addresses["tracker"] != want.Addresses["tracker"] {
		t.Fatalf(`%+v, %v; want got.PID == want.PID && got.Started.Equal(want.Started) && got.Addresses["tracker"] == want.Addresses["tracker"]`, got, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRuntime(dir); !errors.Is(err, ErrNotRunning) {
		t.Fatalf("stopped: %v; want errors.Is(err, ErrNotRunning)", err)
	}
}

// TestKilled: the files of a killed process neither prevent the next start nor count as a running platform.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(exe)
	child.Env = append(os.Environ(), childDir+"="+dir)
	if _, err := child.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 64)
	if n, err := out.Read(line); err != nil || string(line[:n]) != "<nil>\n" {
		t.Fatalf("child: %q, %v; want string(line[:n]) == \"<nil>\\n\"", line[:n], err)
	}
	if rt, err := ReadRuntime(dir); err != nil || rt.PID != child.Process.Pid {
		t.Fatalf("running: %+v, %v; want rt.PID == child.Process.Pid", rt, err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", child.Process.Pid)) {
		t.Fatalf(`while it runs: %v; want an error && strings.Contains(err.Error(), fmt.Sprintf("pid %%d", child.Process.Pid))`, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	if _, err := ReadRuntime(dir); !errors.Is(err, ErrNotRunning) {
		t.Fatalf("killed: %v; want errors.Is(err, ErrNotRunning)", err)
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, runtimeFile)); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("runtime.json of the killed one is still there: %v; want errors.Is(err, os.ErrNotExist)", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}
