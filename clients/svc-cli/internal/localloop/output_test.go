package localloop_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/looptest"
)

func tryRun(t testing.TB, config string) (*localloop.Outcome, error) {
	t.Helper()
	s, err := localloop.Open(config)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	return s.Run(t.Context(), localloop.Options{Now: tickingClock()})
}

func makePipe(t testing.TB, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

func fileNames(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestWriteMakesTheWholeFolder(t *testing.T) {
	t.Parallel()
	out := runLoop(t, looptest.JSON())
	parent := t.TempDir()
	empty := filepath.Join(parent, "empty")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(parent, "a", "b", "run"), empty} {
		if err := out.Write(dir); err != nil {
			t.Fatal(err)
		}
		if got := fileNames(t, dir); !slices.Equal(got, out.FileNames()) {
			t.Error(got, "want slices.Equal(got, out.FileNames())")
		}
		for _, name := range out.FileNames() {
			if string(mustRead(t, filepath.Join(dir, name))) != string(out.Files[name]) {
				t.Error(name, "want string(mustRead(t, filepath.Join(dir, name))) == string(out.Files[name])")
			}
		}
		if left := fileNames(t, filepath.Dir(dir)); slices.ContainsFunc(left, func(n string) bool { return strings.HasPrefix(n, ".") }) {
			t.Errorf(`left behind: %v; want !slices.ContainsFunc(left, func(n string) bool { return strings.HasPrefix(n, ".") })`, left)
		}
	}
}

// A folder that was filled while the run went on is left as it is.
func TestWriteDoesNotTouchAFullFolder(t *testing.T) {
	t.Parallel()
	out := runLoop(t, looptest.JSON())
	parent := t.TempDir()
	dir := filepath.Join(parent, "run")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mine"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	var f *localloop.Fault
	if err := out.Write(dir); !errors.As(err, &f) || f.Code != localloop.WriteError {
		t.Error(err, "want errors.As(err, &f) && f.Code == localloop.WriteError")
	}
	if got := append(fileNames(t, dir), fileNames(t, parent)...); !slices.Equal(got, []string{"mine", "run"}) {
		t.Error(got, `want slices.Equal(got, []string{"mine", "run"})`)
	}
}

func TestCheckOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSource(t, looptest.JSON().Write(t, filepath.Join(dir, "loop")))
	for _, name := range []string{"empty", "full/below"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(name)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"link": "empty", "dangling": "none", "candidate": "loop/attempt-1/candidate"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, code := range map[string]string{
		"empty": "", "absent": "", "absent/far/below": "", "loop/out": "",
		"full": "output_not_empty", "file": "output_not_empty", "link": "output_not_empty", "dangling": "output_not_empty",
		"file/below":                        "output_write_error",
		"loop/attempt-1/candidate/out":      "output_inside_candidate",
		"loop/attempt-2/candidate/logs/a/b": "output_inside_candidate",
		"candidate/out":                     "output_inside_candidate", // by way of a link
	} {
		err := s.CheckOutput(filepath.Join(dir, filepath.FromSlash(name)))
		var f *localloop.Fault
		if errors.As(err, &f); code == "" && err != nil || code != "" && (f == nil || f.Code != code) {
			t.Errorf(`%s: %v; want (code != "" || err == nil) && (code == "" || !f == nil || f.Code != code)`, name, err)
		}
	}
}

func TestDefaultOutput(t *testing.T) {
	t.Parallel()
	if got := localloop.DefaultOutput("run/demo:0001"); got != filepath.Join("svc-local-loop", "run_demo_0001") {
		t.Error(got, `want got == filepath.Join("svc-local-loop", "run_demo_0001")`)
	}
}
