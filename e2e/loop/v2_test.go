//go:build e2e

package loop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/e2e/harness"
)

// tritonclient, with its defaults, gets a batch of 64 rows answered as /predict answers each row, and clear errors for
// its user's mistakes.
func TestTritonClient(t *testing.T) {
	p := sharedPlatform(t)
	cmd := exec.Command(filepath.Join(harness.Root(t), ".cache", "venv-triton", "bin", "python"), "v2_client.py", "RUNTIMEREGRESSOR")
	cmd.Env = append(os.Environ(), "SERVING_URL="+p.Env["SERVING_URL"], "SERVING_TOKEN="+p.Env["SERVING_TOKEN"])
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errOut.String())
	}
	var got struct {
		Predict, V2 []any
		Refused     []string
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got.Predict) != 10 {
		t.Fatalf("%v\n%s; want ten predictions", err, out.String())
	}
	for i := range got.Predict {
		a, b := fmt.Sprintf("%.5v", got.Predict[i]), fmt.Sprintf("%.5v", got.V2[i])
		if a != b {
			t.Errorf("row %d: /predict answers %s, V2 %s", i, a, b)
		}
	}
	for i, want := range []string{"has the shape [64", "is missing", "10000 rows; a request has at most 1024", "has no rows"} {
		if !strings.HasPrefix(got.Refused[i], "400 ") || !strings.Contains(got.Refused[i], want) {
			t.Errorf("mistake %d: %q, want 400 with %q", i, got.Refused[i], want)
		}
	}
}

// The same over gRPC: a batch is answered like its single rows, over gRPC and over HTTP, and mistakes get clear errors.
func TestTritonClientOverGRPC(t *testing.T) {
	p := sharedPlatform(t)
	columns := columnsOf(t, p, "RUNTIMEREGRESSOR")
	cmd := exec.Command(filepath.Join(harness.Root(t), ".cache", "venv-triton", "bin", "python"), "v2_grpc_client.py", "RUNTIMEREGRESSOR")
	cmd.Env = append(os.Environ(), "SERVING_GRPC_ADDR="+p.Env["SERVING_GRPC_ADDR"], "SERVING_TOKEN="+p.Env["SERVING_TOKEN"], fmt.Sprintf("COLUMNS_OF_MODEL=%d", len(columns)))
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errOut.String())
	}
	var got struct {
		Alone, Batch []float64
		Rows         [][]float64
		Refused      []string
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got.Alone) != 10 {
		t.Fatalf("%v\n%s; want ten predictions", err, out.String())
	}
	for i, row := range got.Rows {
		features := map[string]float64{}
		for c, name := range columns {
			features[name] = row[c]
		}
		body, err := json.Marshal(map[string]any{"features": features})
		if err != nil {
			t.Fatal(err)
		}
		alone := harness.Want(t, http.StatusOK, "POST", p.Env["SERVING_URL"]+"/predict/RUNTIMEREGRESSOR", p.Env["SERVING_TOKEN"], string(body)).JSON(t)["prediction"]
		a, b, c := fmt.Sprintf("%.5v", alone), fmt.Sprintf("%.5v", got.Alone[i]), fmt.Sprintf("%.5v", got.Batch[i])
		if a != b || b != c {
			t.Errorf("row %d: /predict answers %s, gRPC %s alone and %s in a batch", i, a, b, c)
		}
	}
	for i, want := range []string{
		"StatusCode.INVALID_ARGUMENT|has the shape [64", "StatusCode.INVALID_ARGUMENT|is missing", "StatusCode.INVALID_ARGUMENT|10000 rows; a request has at most 1024",
		"StatusCode.INVALID_ARGUMENT|has no rows", "StatusCode.RESOURCE_EXHAUSTED|larger than max", "StatusCode.NOT_FOUND|no version 99999",
		"StatusCode.UNAUTHENTICATED|not known here", "StatusCode.UNAUTHENTICATED|Bearer <secret>", "StatusCode.DEADLINE_EXCEEDED|",
	} {
		code, text, _ := strings.Cut(want, "|")
		if !strings.HasPrefix(got.Refused[i], code) || !strings.Contains(got.Refused[i], text) {
			t.Errorf("mistake %d: %q, want %s with %q", i, got.Refused[i], code, text)
		}
	}
}

// columnsOf returns the model's columns in their trained order.
func columnsOf(t *testing.T, p *harness.Platform, model string) (names []string) {
	t.Helper()
	var models []struct {
		ModelName string `json:"model_name"`
		Inputs    []struct{ Name string }
	}
	answer := harness.Want(t, http.StatusOK, "GET", p.Env["SERVING_URL"]+"/models", p.Env["SERVING_TOKEN"], nil)
	if err := json.Unmarshal(answer.Body, &models); err != nil {
		t.Fatal(err)
	}
	for _, m := range models {
		if m.ModelName == model {
			for _, in := range m.Inputs {
				names = append(names, in.Name)
			}
		}
	}
	return names
}
