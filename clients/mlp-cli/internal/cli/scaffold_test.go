package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

// Each task and type gives a repository without faults.
func TestScaffoldedModelsValidate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, folder := range []string{"models", "registries"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "registries", "dev.yaml"), []byte("version: 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"HOME": t.TempDir(), "PLATFORM_MODELREPO": dir}
	for i, task := range modelrepo.TaskTypes {
		for j, kind := range []string{"regression", "classification"} {
			name := "Model" + string(rune('A'+2*i+j))
			if r := runMLP(t, vars, "", "scaffold", name, "--task", task, "--type", kind); r.code != 0 {
				t.Errorf("%s %s: got %+v, want exit 0", task, kind, r)
			}
		}
	}
	if r := runMLP(t, vars, "", "pipeline", "validate"); r.code != 0 || !strings.Contains(r.out, "6 models, 6 datasets") {
		t.Errorf("got %+v, want 6 models without a fault", r)
	}
}

// When one file cannot be written, none is left, and the previous files are unchanged.
func TestScaffoldWritesAllOrNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "models", "anomaly_detection")
	if err := os.MkdirAll(filepath.Join(folder, "Odd"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{filepath.Join(dir, "data"): "not a folder", filepath.Join(folder, "Odd", "README.md"): "mine"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"Odd", "Even"} {
		r := runMLP(t, map[string]string{"HOME": t.TempDir()}, "", "--json", "scaffold", name, "--task", "anomaly_detection", "--repo", dir, "--force")
		if r.code != 1 || !strings.Contains(r.out, "nothing was made") {
			t.Errorf("%s: got %+v, want a failure that made nothing", name, r)
		}
	}
	if mine, err := os.ReadFile(filepath.Join(folder, "Odd", "README.md")); err != nil || string(mine) != "mine" {
		t.Errorf("the file that was there has %q, %v; want it as it was", mine, err)
	}
	for _, path := range []string{"models/anomaly_detection/Odd/model.yaml", "models/anomaly_detection/Even", "datasets"} {
		if _, err := os.Stat(filepath.Join(dir, path)); !os.IsNotExist(err) {
			t.Errorf("%s: got %v, want nothing there", path, err)
		}
	}
}

// A repository that others wrote may hold links and pipes where files of a new model belong.
func TestScaffoldStaysInTheRepository(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(repo, outside string) error{
		"a linked model folder": func(repo, outside string) error {
			return errors.Join(os.MkdirAll(filepath.Join(repo, "models", "anomaly_detection"), 0o755), os.Symlink(outside, filepath.Join(repo, "models", "anomaly_detection", "Odd")))
		},
		"a linked task folder": func(repo, outside string) error {
			return errors.Join(os.Mkdir(filepath.Join(repo, "models"), 0o755), os.Symlink(outside, filepath.Join(repo, "models", "anomaly_detection")))
		},
		"a linked file": func(repo, outside string) error {
			return errors.Join(os.MkdirAll(filepath.Join(repo, "models"), 0o755), os.Mkdir(filepath.Join(repo, "datasets"), 0o755), os.Symlink(filepath.Join(outside, "keep"), filepath.Join(repo, "datasets", "OddData.yaml")))
		},
		"a pipe": func(repo, _ string) error {
			return errors.Join(os.MkdirAll(filepath.Join(repo, "models"), 0o755), os.Mkdir(filepath.Join(repo, "datasets"), 0o755), syscall.Mkfifo(filepath.Join(repo, "datasets", "OddData.yaml"), 0o644))
		},
	} {
		repo, outside := t.TempDir(), t.TempDir()
		keep := filepath.Join(outside, "keep")
		if err := errors.Join(prepare(repo, outside), os.WriteFile(keep, []byte("precious"), 0o644)); err != nil {
			t.Fatal(err)
		}
		r := runMLP(t, map[string]string{"HOME": t.TempDir()}, "", "scaffold", "Odd", "--task", "anomaly_detection", "--repo", repo, "--force")
		if r.code != 1 {
			t.Errorf("%s: got %+v, want exit 1", name, r)
		}
		left, err := os.ReadDir(outside)
		if text, readErr := os.ReadFile(keep); err != nil || readErr != nil || len(left) != 1 || string(text) != "precious" {
			t.Errorf("%s: outside are %v with %q, %v, %v; want the one file as it was", name, left, text, err, readErr)
		}
	}
}
