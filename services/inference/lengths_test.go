package inference_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

// A request chooses the sizes of a row that the graph leaves open, up to the largest that the trial ran; also after a
// restart, which tries none. Where the graph computes with sizes, only equal ones were tried.
func TestOpenSizes(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	for name, files := range map[string]map[string][]byte{"open": fixturetest.OpenWidth(t, "open"), "sequence": fixturetest.Sequence(t, "sequence")} {
		reg.Alias(name, "Production", reg.Register(name, files, nil))
	}
	first := start(t, reg)
	for _, i := range []*instance{first, start(t, reg, func(c *inference.Config) { c.DatabaseURL = service.Secret(first.Database) })} {
		if _, text := i.Get("/metrics"); i != first && !strings.Contains(text, `model_trials_total{status="known"} 2`) {
			t.Error("the restart tried the models again")
		}
		if s, out := i.Get("/v2/models/sequence"); s != http.StatusOK || strings.Count(out, `"shape":[-1,-1]`) != 3 {
			t.Errorf("metadata: %d %s, want open sizes", s, out)
		}
		zeros := func(rows, width int) string {
			return fmt.Sprintf(`"datatype": "FP32", "shape": [%d, %d], "data": [%s]`, rows, width, strings.TrimSuffix(strings.Repeat("0,", rows*width), ","))
		}
		got := i.infer("/v2/models/open/infer", `{"inputs": [{"name": "values", "datatype": "FP32", "shape": [2, 3], "data": [1, 2, 3, 4, 5, 6]}]}`)
		if diff := cmp.Diff([]tensor{{Name: "flipped", Datatype: "FP32", Shape: []int64{2, 3}, Data: []any{-1.0, -2.0, -3.0, -4.0, -5.0, -6.0}}}, got.Outputs); diff != "" {
			t.Errorf("three values a row: the answer differs:\n%s", diff)
		}
		got = i.infer("/v2/models/sequence/infer", `{"inputs": [{"name": "first", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}, {"name": "second", "datatype": "FP32", "shape": [1, 2], "data": [3, 4]}]}`)
		if diff := cmp.Diff([]tensor{{Name: "sums", Datatype: "FP32", Shape: []int64{1, 2}, Data: []any{4.0, 6.0}}}, got.Outputs); diff != "" {
			t.Errorf("two values a row: the answer differs:\n%s", diff)
		}
		i.infer("/v2/models/open/infer", `{"inputs": [{"name": "values", `+zeros(1, 4096)+`}]}`)
		i.infer("/v2/models/sequence/infer", `{"inputs": [{"name": "first", `+zeros(1, 700)+`}, {"name": "second", `+zeros(1, 700)+`}]}`)
		for says, body := range map[string]string{
			"from 1 to 4096 are served": `{"inputs": [{"name": "values", ` + zeros(1, 4097) + `}]}`,
			"the shape":                 `{"inputs": [{"name": "values", "datatype": "FP32", "shape": [1, 0], "data": []}]}`,
			"more values than":          `{"inputs": [{"name": "values", "datatype": "FP32", "shape": [1, 4503599627370496], "data": [1]}]}`,
		} {
			if s, out := i.Post("/v2/models/open/infer", body); s != http.StatusBadRequest || !strings.Contains(out, says) {
				t.Errorf("%d %.300s, want 400 with %q", s, out, says)
			}
		}
		body := `{"inputs": [{"name": "first", ` + zeros(1, 2) + `}, {"name": "second", ` + zeros(1, 1) + `}]}`
		if s, out := i.Post("/v2/models/sequence/infer", body); s != http.StatusBadRequest || !strings.Contains(out, "must be equal") {
			t.Errorf("two sizes: %d %s, want 400", s, out)
		}
	}
}
