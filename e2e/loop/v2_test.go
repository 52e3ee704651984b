//go:build e2e

package loop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/e2e/harness"
)

// tritonclient, with its defaults, gets a batch of 64 rows answered as /predict answers each, and its user's
// mistakes explained.
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
