//go:build e2e

package loop

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// kind is a model that kinds_onnx.py has logged, with Python's answers.
type kind struct {
	Name     string
	Refused  string // a part of the reason; empty: it is served
	Requests []struct {
		Inputs  []map[string]any
		Outputs map[string][]any
	}
	Rows []struct {
		Features      map[string]any
		Prediction    any
		Probabilities map[string]float64
	}
}

// Each kind of model that people bring is logged by the official client, and served with the answers of ONNX Runtime in
// Python on 400 rows: as tensors and, where its files name columns, row by row. Others are refused with the reason.
func TestKindsOfModels(t *testing.T) {
	checkKinds(t, t.TempDir())
}

func checkKinds(t *testing.T, folder string) {
	p := harness.New(t, "PLATFORM_SEED=false")
	p.Start(t, 4*time.Minute)
	cmd := exec.Command(os.Getenv("E2E_PYTHON"), "kinds_onnx.py", folder)
	cmd.Env = append(os.Environ(), "TRACKING_URI="+p.Env["TRACKING_URI"], "MLFLOW_TRACKING_TOKEN="+p.Env["MLFLOW_TRACKING_TOKEN"], "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR=false", "GIT_PYTHON_REFRESH=quiet")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out[max(0, len(out)-4000):])
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d kinds, %v; want some", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var k kind
		if err := json.Unmarshal(raw, &k); err != nil {
			t.Fatal(err)
		}
		t.Run(k.Name, func(t *testing.T) {
			if k.Refused != "" {
				k.checkRefusal(t, p)
				return
			}
			k.checkTensors(t, p)
			k.checkRows(t, p)
		})
	}
}

// checkRefusal wants the reason wherever the version is listed.
func (k *kind) checkRefusal(t *testing.T, p *harness.Platform) {
	harness.Eventually(t, 2*time.Minute, func() error {
		if a := harness.Call(t, "GET", p.Env["SERVING_URL"]+"/health", "", nil); !strings.Contains(string(a.Body), k.Refused) {
			return fmt.Errorf("/health: %s, want %q", a.Body, k.Refused)
		}
		return nil
	})
	out := p.Run(t, "mlp", "--json", "status")
	if !strings.Contains(out, strings.ToUpper(k.Name)) || !strings.Contains(out, k.Refused) {
		t.Errorf("mlp status: %s, want %s with %q", out, k.Name, k.Refused)
	}
}

func (k *kind) checkTensors(t *testing.T, p *harness.Platform) {
	rows := 0
	for _, r := range k.Requests {
		body := map[string]any{"inputs": r.Inputs, "parameters": map[string]any{"alias": "Staging"}}
		var answer harness.Answer
		harness.Eventually(t, 3*time.Minute, func() error {
			if answer = harness.Call(t, "POST", p.Env["SERVING_URL"]+"/v2/models/"+k.Name+"/infer", p.Env["SERVING_TOKEN"], body); answer.Status == 404 || answer.Status == 503 { // not loaded yet
				return fmt.Errorf("%d %s", answer.Status, answer.Body)
			}
			return nil
		})
		if answer.Status != 200 {
			t.Fatalf("%d %.500s, want 200", answer.Status, answer.Body)
		}
		got := map[string][]any{}
		for _, o := range answer.JSON(t)["outputs"].([]any) {
			o := o.(map[string]any)
			got[o["name"].(string)] = o["data"].([]any)
		}
		for name, want := range r.Outputs {
			if len(got[name]) != len(want) || len(want) == 0 {
				t.Fatalf("output %s: %d values, want %d", name, len(got[name]), len(want))
			}
			for i := range want {
				if !sameValue(got[name][i], want[i]) {
					t.Fatalf("output %s, value %d: %v, want %v", name, i, got[name][i], want[i])
				}
			}
		}
		rows += int(r.Inputs[0]["shape"].([]any)[0].(float64))
	}
	if rows != 400 {
		t.Errorf("%d rows, want 400", rows)
	}
}

func (k *kind) checkRows(t *testing.T, p *harness.Platform) {
	for i, row := range k.Rows {
		got := harness.Want(t, 200, "POST", p.Env["SERVING_URL"]+"/predict/"+k.Name, p.Env["SERVING_TOKEN"], map[string]any{"alias": "Staging", "features": row.Features, "probabilities": true}).JSON(t)
		if !sameValue(got["prediction"], row.Prediction) {
			t.Fatalf("row %d: %v, want %v", i, got["prediction"], row.Prediction)
		}
		for class, want := range row.Probabilities {
			if all, _ := got["probabilities"].(map[string]any); all == nil || !sameValue(all[class], want) {
				t.Fatalf("row %d: the probabilities are %v, want %v", i, got["probabilities"], row.Probabilities)
			}
		}
	}
}

// sameValue compares numbers to six digits: another release of the library sums in another order.
func sameValue(got, want any) bool {
	b, number := want.(float64)
	if a, ok := got.(float64); number && ok {
		return math.Abs(a-b) <= 2e-6*math.Max(1, math.Abs(b))
	}
	return got == want
}
