package cli

import (
	"os"
	"path/filepath"
	"strings"
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

// When one file cannot be written, none is left, and what was there is as it was.
func TestScaffoldWritesAllOrNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "models", "anomaly_detection"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data"), []byte("not a folder"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := runMLP(t, map[string]string{"HOME": t.TempDir()}, "", "--json", "scaffold", "Odd", "--task", "anomaly_detection", "--repo", dir)
	if r.code != 1 || !strings.Contains(r.out, "nothing was made") {
		t.Errorf("got %+v, want a failure that made nothing", r)
	}
	for _, path := range []string{"models/anomaly_detection/Odd/model.yaml", "models/anomaly_detection/Odd/README.md", "datasets/OddData.yaml"} {
		if _, err := os.Stat(filepath.Join(dir, path)); !os.IsNotExist(err) {
			t.Errorf("%s: got %v, want no file", path, err)
		}
	}
}
