package inference_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

// The requests of docs/inference.md fit the sample model that they name: they run word for word against a model of its
// columns.
func TestManualExamples(t *testing.T) {
	t.Parallel()
	models, err := filepath.Glob("../../deploy/modelrepo/models/*/RuntimeClass/model.yaml")
	if err != nil || len(models) != 1 {
		t.Fatalf("got %v, %v, want the file of RuntimeClass", models, err)
	}
	definition, err := os.ReadFile(models[0])
	if err != nil {
		t.Fatal(err)
	}
	var columns []fixturetest.Column
	for _, m := range regexp.MustCompile(`- \{column: (\w+), kind: number\}`).FindAllStringSubmatch(string(definition), -1) {
		columns = append(columns, fixturetest.Column{Name: m[1], Kind: "number", Weight: 1})
	}
	reg := fixturetest.NewRegistry(t)
	reg.Alias("runtimeclass", "Production", reg.Register("runtimeclass", fixturetest.Linear(t, "runtimeclass", 0, columns...), nil))
	i := start(t, reg)

	page, err := os.ReadFile("../../docs/inference.md")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(curl .*?)```").FindAllStringSubmatch(string(page), -1) {
		cmd := exec.CommandContext(t.Context(), "bash", "-euc", block[1])
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "SERVING_URL=" + i.URL, "SERVING_TOKEN=t"}
		out, err := cmd.Output()
		if err != nil || !json.Valid(out) || !strings.Contains(string(out), "runtimeclass") && !strings.Contains(string(out), "RUNTIMECLASS") {
			t.Errorf("%s: %v, %s", block[1], err, out)
		}
		ran++
	}
	if ran != 2 {
		t.Errorf("ran %d requests, want 2", ran)
	}
	// The Python examples send as many columns.
	shapes := regexp.MustCompile(`InferInput\("input", \[\d+, (\d+)\]`).FindAllStringSubmatch(string(page), -1)
	if len(shapes) != 1 || shapes[0][1] != strconv.Itoa(len(columns)) {
		t.Errorf("the Python client sends %v, want rows of %d columns", shapes, len(columns))
	}
}
