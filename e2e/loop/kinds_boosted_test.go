//go:build e2e && full

package loop

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mlp-platform/platform/e2e/harness"
)

// The same with models of XGBoost and LightGBM, with and without a signature, on rows with missing values.
func TestKindsOfBoostedModels(t *testing.T) {
	folder := t.TempDir()
	python := filepath.Join(harness.Root(t), ".cache", "venv-boost", "bin", "python")
	if out, err := exec.Command(python, "boosted_onnx.py", filepath.Join(folder, "boosted")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkKinds(t, folder)
}
