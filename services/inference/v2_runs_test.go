package inference_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/services/inference/internal/inferencetest"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

// A row's outputs do not depend on the runs that a request is divided into: those that do are refused, and outputs
// without values are joined as all others.
func TestV2JoinsTheRunsOfARequest(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("empty", "Production", reg.Register("empty", fixturetest.Empty(t, "empty"), nil))
	reg.Alias("each", "Production", reg.Register("each", fixturetest.EachToEach(t, "each"), nil))
	i := start(t, reg)
	body := func(rows int) string {
		return fmt.Sprintf(`{"inputs": [{"name": "x", "datatype": "FP32", "shape": [%d, 1], "data": [%s1]}]}`, rows, strings.Repeat("1,", rows-1))
	}
	for _, rows := range []int{1, 33} {
		got := i.infer("/v2/models/empty/infer", body(rows))
		if diff := cmp.Diff([]tensor{{Name: "out", Datatype: "FP32", Shape: []int64{int64(rows), 0}, Data: []any{}}}, got.Outputs); diff != "" {
			t.Errorf("%d rows without values: outputs differ from want:\n%s", rows, diff)
		}
	}
	s, out := i.Post("/v2/models/each/infer", body(33))
	if p := inferencetest.ProblemOf(t, s, out); s != http.StatusInternalServerError || p.Code != "model_exception" || !strings.Contains(p.Detail, "shape [32 32] in one run of the rows and [1 1] in another") {
		t.Errorf("each row to each: %d %s, want 500 model_exception with both shapes", s, out)
	}
}

// A graph that makes 512 KiB of each row answers 128 rows; a request of more is refused before its other rows run,
// whether or not the graph declares the size of its output.
func TestV2RefusesAnswersThatAreTooLarge(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	for name, declared := range map[string]bool{"open": false, "declared": true} {
		reg.Alias(name, "Production", reg.Register(name, fixturetest.Wide(t, name, 1<<17, declared), nil))
	}
	i := start(t, reg)
	body := func(rows int) string {
		return fmt.Sprintf(`{"parameters": {"binary_data_output": true}, "inputs": [{"name": "x", "datatype": "FP32", "shape": [%d, 1], "data": [%s1]}]}`, rows, strings.Repeat("1,", rows-1))
	}
	for _, name := range []string{"open", "declared"} {
		path := "/v2/models/" + name + "/infer"
		s, _, out := i.Do(http.MethodPost, path, body(129))
		if p := inferencetest.ProblemOf(t, s, out); s != http.StatusBadRequest || p.Code != "invalid_tensors" || !strings.Contains(p.Detail, "at 524288 bytes a row, a request may have 128 rows") {
			t.Errorf("%s: %d %.300s, want 400 invalid_tensors with the most rows", name, s, out)
		}
		if s, _, out := i.Do(http.MethodPost, path, body(2)); s != http.StatusOK || len(out) < 1<<20 {
			t.Errorf("%s, two rows: %d and %d bytes, want 200 and 1 MiB", name, s, len(out))
		}
	}
	_, text := i.Get("/metrics")
	if want := `predict_requests_total{alias="Production",model="OPEN",status="mismatch"} 1`; !strings.Contains(text, want+"\n") {
		t.Errorf("metrics do not have %s", want)
	}
}

// The matrix is converted as well where the graph's own input, or the only column, has its name.
func TestV2ConvertsAnInputNamedAsTheMatrix(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("own", "Production", reg.Register("own", fixturetest.Linear(t, "own", 1, fixturetest.Column{Name: "input", Kind: "vector", Length: 2, Weight: 10}), nil))
	i := start(t, reg)
	got := i.infer("/v2/models/own/infer", `{"inputs": [{"name": "input", "datatype": "FP64", "shape": [1, 2], "data": [1, 2]}]}`)
	if diff := cmp.Diff([]tensor{{Name: "prediction", Datatype: "FP32", Shape: []int64{1, 1}, Data: []any{31.0}}}, got.Outputs); diff != "" {
		t.Errorf("outputs differ from want:\n%s", diff)
	}
}
