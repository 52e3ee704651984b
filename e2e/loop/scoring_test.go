//go:build e2e && full

package loop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// A scikit-learn model logged as a pickle by the official client is served by `mlflow models serve`, which the service
// starts from the checked files, with Python's own numbers; the server's death is reported, and it is restarted.
func TestScoringServerOfMLflow(t *testing.T) {
	python := os.Getenv("E2E_PYTHON")
	if python == "" {
		t.Fatal("E2E_PYTHON is not set: run make e2e")
	}
	bin := filepath.Dir(python)
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH")) // mlflow starts uvicorn by its name
	command, err := json.Marshal([]string{filepath.Join(bin, "mlflow"), "models", "serve", "--env-manager", "local", "-h", "127.0.0.1", "-m", "{model}", "-p", "{port}"})
	if err != nil {
		t.Fatal(err)
	}
	p := harness.New(t, "PLATFORM_SEED=false", "PYFUNC_COMMAND="+string(command))
	p.Start(t, 4*time.Minute)
	cmd := exec.Command(python, "sklearn_pickle.py", "pickled-forest")
	cmd.Env = append(os.Environ(), "TRACKING_URI="+p.Env["TRACKING_URI"], "MLFLOW_TRACKING_TOKEN="+p.Env["MLFLOW_TRACKING_TOKEN"], "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR=false", "GIT_PYTHON_REFRESH=quiet")
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errOut.String())
	}
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	var doc struct {
		Version     string
		Rows        []map[string]float64
		Predictions []float64
	}
	if err := json.Unmarshal(lines[len(lines)-1], &doc); err != nil || len(doc.Rows) != 20 {
		t.Fatalf("got %v\n%s, want 20 rows", err, out.String())
	}
	url, token := p.Env["SERVING_URL"]+"/predict/PICKLED-FOREST", p.Env["SERVING_TOKEN"]
	predict := func(row int) error {
		a := harness.Call(t, "POST", url, token, map[string]any{"alias": "Staging", "features": doc.Rows[row]})
		if a.Status != 200 {
			return fmt.Errorf("row %d: %d %s", row, a.Status, a.Body)
		}
		got, _ := a.JSON(t)["prediction"].(float64)
		if math.Abs(got-doc.Predictions[row]) > 1e-9*math.Max(1, math.Abs(doc.Predictions[row])) {
			t.Errorf("row %d: got %v, Python gives %v", row, got, doc.Predictions[row])
		}
		return nil
	}
	harness.Eventually(t, 3*time.Minute, func() error { return predict(0) })
	for row := range doc.Rows {
		if err := predict(row); err != nil {
			t.Error(err)
		}
	}
	// A model that refuses the values is a fault of the row, reported with the server's message.
	if a := harness.Call(t, "POST", url, token, map[string]any{"alias": "Staging", "features": map[string]any{"x0": 1e308, "x1": 1, "x2": 1}}); a.Status != 500 || !bytes.Contains(a.Body, []byte("model_exception")) {
		t.Errorf("an infinite float32: got %d %s, want 500 model_exception", a.Status, a.Body)
	}
	// The server is killed, as by the kernel when memory is short: 503 until it is back.
	killed := killScoringServer(t, p.Dir)
	harness.Eventually(t, 30*time.Second, func() error {
		if a := harness.Call(t, "POST", url, token, map[string]any{"alias": "Staging", "features": doc.Rows[0]}); a.Status != 503 {
			return fmt.Errorf("after the server %d was killed: %d %s, want 503", killed, a.Status, a.Body)
		}
		return nil
	})
	if a := harness.Call(t, "GET", p.Env["SERVING_URL"]+"/health", "", nil); !bytes.Contains(a.Body, []byte("scoring_unavailable")) {
		t.Errorf("got health %s, want scoring_unavailable", a.Body)
	}
	harness.Eventually(t, 3*time.Minute, func() error { return predict(0) })
}

// killScoringServer ends the scoring processes of the platform in dir, and returns one of their ids.
func killScoringServer(t *testing.T, dir string) (killed int) {
	t.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range commands {
		environ, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(environ, []byte("HOME="+dir)) || !bytes.Contains(environ, []byte("/.scoring-")) {
			continue // another's, or already gone
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(id, syscall.SIGKILL); err == nil {
			killed = id
		}
	}
	if killed == 0 {
		t.Fatal("no scoring server runs")
	}
	return killed
}
