package inference_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	api "github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
	"github.com/mlp-platform/platform/services/inference/internal/openinference/oippb"
)

// inputs are the statuses of inputs.
func (i *instance) inputs(query string) []api.DriftStatus {
	i.T.Helper()
	s, body := i.Get("/drift/input/status" + query)
	if s != http.StatusOK {
		i.T.Fatalf("input drift status: %d %s; want 200", s, body)
	}
	var out []api.DriftStatus
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		i.T.Fatalf("%s: %v", body, err)
	}
	return out
}

// sends sends n vectors of four values around centre, and waits until want snapshots count.
func (i *instance) sends(n, want int, centre float64) {
	i.T.Helper()
	for k := range n {
		at := func(j int) float64 { return centre + 0.1*float64((k*7+j*13)%20) }
		i.OK("/predict/embedded", map[string]any{"features": map[string]any{"embedding": []float64{at(0), at(1), at(2), at(3)}, "nodes": k%4 + 1}}, nil)
	}
	i.awaitInputs(want)
}

func (i *instance) awaitInputs(want int) {
	i.T.Helper()
	testenv.Eventually(i.T, 20*time.Second, func() error {
		if got := i.inputs("?model=embedded&window=5000")[0].NSnapshots; got != want {
			return fmt.Errorf("%d inputs written, want %d", got, want)
		}
		return nil
	})
}

func startEmbedded(t *testing.T) *instance {
	reg := fixturetest.NewRegistry(t)
	reg.Alias("embedded", "Production", reg.Register("embedded", fixturetest.Linear(t, "embedded", 0,
		fixturetest.Column{Name: "embedding", Kind: "vector", Length: 4, Weight: 1}, fixturetest.Column{Name: "nodes", Kind: "number", Weight: 1}), nil))
	return start(t, reg, slow)
}

// awaitInputEvent waits until the level of inputs was announced.
func (i *instance) awaitInputEvent(overall string) {
	i.T.Helper()
	testenv.Eventually(i.T, 20*time.Second, func() error {
		for _, e := range i.events("drift", "status_changed") {
			if e["model"] == "EMBEDDED" && e["alias"] == "Production" && e["kind"] == "input" && e["overall"] == overall {
				return nil
			}
		}
		return fmt.Errorf("no drift.status_changed of inputs to %s: %v", overall, i.events("drift", "status_changed"))
	})
}

func TestDriftOfInputs(t *testing.T) {
	t.Parallel()
	i := startEmbedded(t)
	if d := i.inputs("")[0]; d.Status != "NO_BASELINE" || d.NSnapshots != 0 || d.Model != "EMBEDDED" || d.Version != "1" {
		t.Errorf("at first: %+v; want NO_BASELINE of EMBEDDED version 1 without snapshots", d)
	}
	i.sends(5, 5, 0)
	if s, body := i.Post("/drift/input/embedded/baseline", nil); s != 409 || inferencetest.ProblemOf(t, s, body).Code != "not_enough_snapshots" {
		t.Errorf("a baseline of five: %d %s; want 409 not_enough_snapshots", s, body)
	}
	i.sends(115, 120, 0)
	var set api.DriftBaseline
	i.OK("/drift/input/Embedded/baseline", `{"alias": "production"}`, &set)
	if set.N != 120 || set.Model != "EMBEDDED" || set.Alias != "Production" || set.Mean == nil || *set.Mean < 1.5 || *set.Mean > 2.5 {
		t.Errorf("baseline %+v; want 120 of EMBEDDED under Production, norms around 2", set)
	}
	if d := i.inputs("?alias=Production")[0]; d.Overall != "OK" || d.NBaseline != 120 || len(d.Recent) != 24 || len(*d.Statistics) != 3 || d.BaselineSetAt == nil || len(d.Measures) != 4 {
		t.Errorf("against itself: %+v; want OK against 120, 24 recent norms, norm, mean and std, four measures", d)
	}

	i.sends(100, 220, 30)
	d := i.inputs("")[0]
	if d.Status != "CRITICAL" || d.Overall != "CRITICAL" || d.DecidedBy == nil || *d.DecidedBy != "z_score" || d.Statistic == nil || *d.Statistic != "norm" || (*d.Statistics)["mean"].Status != "CRITICAL" {
		t.Errorf("moved: %+v; want CRITICAL by z_score of the norm, the mean too", d)
	}
	i.awaitInputEvent("CRITICAL")
	if p := i.drift("")[0]; p.Status != "NO_BASELINE" {
		t.Errorf("predictions: %s; want NO_BASELINE, as the baseline is of inputs alone", p.Status)
	}

	var reset api.DriftReset
	i.OK("/drift/input/embedded/reset", nil, &reset)
	if d := i.inputs("")[0]; reset.Deleted != 220 || d.NSnapshots != 0 || d.Overall != "INSUFFICIENT" || d.NBaseline != 120 {
		t.Errorf("reset of %d, then %+v; want 220, INSUFFICIENT without snapshots, the baseline kept", reset.Deleted, d)
	}
	if p := i.drift("?window=5000")[0]; p.Snapshots != 220 {
		t.Errorf("%d predictions after the reset of inputs; want 220", p.Snapshots)
	}
	i.OK("/drift/input/embedded/reset", nil, &reset)
	if reset.Deleted != 0 {
		t.Errorf("the second reset of %d; want 0", reset.Deleted)
	}
	i.sends(20, 20, 0)
	i.awaitInputEvent("OK")

	var actions []string
	for _, f := range i.events("audit", "recorded") {
		actions = append(actions, fmt.Sprint(f["action"], " ", f["target"], " ", f["details"].(map[string]any)["kind"]))
	}
	want := []string{"drift.baseline_set model:EMBEDDED@Production input", "drift.reset model:EMBEDDED@Production input", "drift.reset model:EMBEDDED@Production input"}
	if diff := cmp.Diff(want, actions); diff != "" {
		t.Errorf("audit facts (-want +got):\n%s", diff)
	}
}

func TestBadRequestsOfInputDrift(t *testing.T) {
	t.Parallel()
	i := startEmbedded(t)
	for _, bad := range []string{"?window=5", "?window=5001", "?window=x", "?z_mode=huh", "?alias=Champion", "?limit=0", "?limit=501", "?cursor=x"} {
		if s, body := i.Get("/drift/input/status" + bad); s != 422 || inferencetest.ProblemOf(t, s, body).Code != "validation_error" {
			t.Errorf("%s: %d %s; want 422 validation_error", bad, s, body)
		}
	}
	for _, path := range []string{"/drift/input/embedded/baseline", "/drift/input/embedded/reset"} {
		for body, want := range map[string]int{`{"aliass": "Production"}`: 422, `{"alias": "Champion"}`: 422, `{"alias": 1}`: 422, `{`: 422, `{"alias": "Canary"}`: 404} {
			if s, got := i.Post(path, body); s != want {
				t.Errorf("%s with %s: %d %s; want %d", path, body, s, got, want)
			}
		}
	}
	for _, path := range []string{"/drift/input/nosuch/baseline", "/drift/input/nosuch/reset"} {
		if s, body := i.Post(path, nil); s != 404 || inferencetest.ProblemOf(t, s, body).Code != "model_not_loaded" {
			t.Errorf("%s: %d %s; want 404 model_not_loaded", path, s, body)
		}
	}
}

// Python's NaN and Infinity are not JSON and are refused. The refusals show that the producer is broken.
func TestInputsThatAreNotFiniteAreCorrupt(t *testing.T) {
	t.Parallel()
	i := startEmbedded(t)
	i.sends(30, 30, 0)
	i.OK("/drift/input/embedded/baseline", nil, nil)
	for _, refused := range []struct {
		name, path, body string
		kept             bool
	}{
		{"NaN in a vector", "/predict/embedded", `{"features": {"embedding": [1, NaN, 2, 3], "nodes": 1}}`, true},
		{"infinite number", "/predict/embedded", `{"features": {"embedding": [1, 2, 2, 3], "nodes": -Infinity}, "alias": "production"}`, true},
		{"too large a number", "/predict/embedded", `{"features": {"embedding": [1, 2, 2, 3], "nodes": 1e999}}`, true},
		{"NaN in a text", "/predict/embedded", `{"features": {"embedding": [1, 2, 2, 3], "nodes": "NaN"}}`, false},
		{"broken JSON with a NaN", "/predict/embedded", `{"features": {"embedding": [NaN, 2, 2, 3], "nodes": }`, false},
		{"unknown alias", "/predict/embedded", `{"features": {"embedding": [NaN, 2, 2, 3], "nodes": 1}, "alias": "Champion"}`, false},
		{"unknown model", "/predict/nosuch", `{"features": {"embedding": [NaN, 2, 2, 3], "nodes": 1}}`, false},
		{"version", "/predict/embedded", `{"features": {"embedding": [NaN, 2, 2, 3], "nodes": 1}, "version": "1"}`, false},
	} {
		before := i.inputs("?model=embedded&window=5000")[0].NSnapshots
		if s, body := i.Post(refused.path, refused.body); s != 422 {
			t.Errorf("%s: %d %s; want 422", refused.name, s, body)
		}
		if refused.kept {
			i.awaitInputs(before + 1)
		}
	}
	if s, _, body := i.Do("POST", "/predict/embedded", `{"features": {"embedding": [NaN, 1, 2, 3], "nodes": 1}}`, "X-Platform-Probe", "1"); s != 422 {
		t.Errorf("a probe: %d %s; want 422", s, body)
	}
	i.sends(1, 34, 0) // rows are written in order, so any others kept would be there already
	d := i.inputs("")[0]
	if d.Overall != "CORRUPT" || d.Reason == nil || *d.Reason != "non_finite_input" {
		t.Errorf("got %+v; want CORRUPT, non_finite_input", d)
	}
	i.awaitInputEvent("CORRUPT")
	if s, body := i.Post("/drift/input/embedded/baseline", nil); s != 409 {
		t.Errorf("a baseline of corrupt inputs: %d %s; want 409", s, body)
	}
	if p := i.drift("?window=5000")[0]; p.Snapshots != 31 {
		t.Errorf("%d predictions; want the 31 that were answered", p.Snapshots)
	}
}

// A broken producer is detected over either protocol.
func TestV2InputsThatAreNotFiniteAreCorrupt(t *testing.T) {
	t.Parallel()
	i, c := startGRPC(t, v2Registry(t))
	await := func(want int) {
		t.Helper()
		testenv.Eventually(t, 20*time.Second, func() error {
			if d := i.inputs("?model=rows")[0]; d.NSnapshots != want || want > 0 && d.Overall != "CORRUPT" {
				return fmt.Errorf("%d inputs, %s; want %d, CORRUPT", d.NSnapshots, d.Overall, want)
			}
			return nil
		})
	}
	tensor := func(data string) string {
		return `{"inputs": [{"name": "input", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, ` + data + `]}]}`
	}
	kept := 0
	for _, refused := range []struct {
		name, path, body string
		kept             int
	}{
		{"NaN", "/v2/models/rows/infer", tensor("NaN"), 1},
		{"too large a number", "/v2/models/rows/infer", tensor("1e39"), 1},
		{"NaN for a version", "/v2/models/rows/versions/1/infer", tensor("NaN"), 0},
		{"too large a number for a version", "/v2/models/rows/versions/1/infer", tensor("1e39"), 0},
		{"NaN beside another fault", "/v2/models/rows/infer", tensor("NaN, 5"), 1},
		{"a text", "/v2/models/rows/infer", tensor(`"NaN"`), 0},
		{"broken JSON", "/v2/models/rows/infer", tensor("NaN,"), 0},
	} {
		if s, body := i.Post(refused.path, refused.body); s < 400 || s > 499 {
			t.Errorf("%s: %d %s; want a refusal", refused.name, s, body)
		}
		kept += refused.kept
		await(kept)
	}
	nan := float32(math.NaN())
	if _, err := c.ModelInfer(t.Context(), infer("rows", floats("input", []int64{1, 4}, 1, 2, 3, nan))); err == nil {
		t.Error("a NaN in a message was answered; want a refusal")
	}
	await(kept + 1)
	raw := infer("rows", &oippb.ModelInferRequest_InferInputTensor{Name: "input", Datatype: "FP32", Shape: []int64{1, 4}})
	raw.RawInputContents = [][]byte{floatBytes(1, 2, 3, nan)}
	if _, err := c.ModelInfer(t.Context(), raw); err == nil {
		t.Error("a NaN in raw contents was answered; want a refusal")
	}
	await(kept + 2)
}

func TestInputsOfZerosAreCorrupt(t *testing.T) {
	t.Parallel()
	i := startEmbedded(t)
	i.sends(30, 30, 1)
	i.OK("/drift/input/embedded/baseline", nil, nil)
	i.OK("/drift/input/embedded/reset", nil, nil)
	for range 20 {
		i.OK("/predict/embedded", `{"features": {"embedding": [0, 0, 0, 0], "nodes": 0}}`, nil)
	}
	i.awaitInputs(20)
	if d := i.inputs("")[0]; d.Overall != "CORRUPT" || d.Reason == nil || *d.Reason != "zeros" {
		t.Errorf("got %+v; want CORRUPT, zeros", d)
	}
}

// The report names the columns that moved, even if the statistics of the vector stay the same.
func TestReportNamesTheFeaturesThatMoved(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("jobs", "Production", reg.Register("jobs", fixturetest.Linear(t, "jobs", 0,
		fixturetest.Column{Name: "procs", Kind: "number", Weight: 1, Stats: map[string]any{"mean": 10, "std": 5}},
		fixturetest.Column{Name: "hour", Kind: "number", Weight: 1, Stats: map[string]any{"mean": 12, "std": 7}}), nil))
	i := start(t, reg, slow)
	ask := func(n, from int, procs func(k int) int) {
		t.Helper()
		for k := range n {
			i.OK("/predict/jobs", map[string]any{"features": map[string]any{"procs": procs(k), "hour": k % 24}}, nil)
		}
		testenv.Eventually(t, 20*time.Second, func() error {
			if got := i.inputs("?model=jobs&window=5000")[0].NSnapshots; got != from+n {
				return fmt.Errorf("%d inputs written, want %d", got, from+n)
			}
			return nil
		})
	}
	report := func() (out api.DriftReport) {
		t.Helper()
		s, body := i.Get("/drift/input/jobs/report")
		if err := json.Unmarshal([]byte(body), &out); err != nil || s != 200 {
			t.Fatalf("%d %s: %v; want 200", s, body, err)
		}
		return out
	}
	ask(120, 0, func(k int) int { return 5 + k%11 })
	if r := report(); r.Overall != "NO_BASELINE" || len(r.Features) != 2 || r.Features[0].Overall != "NO_BASELINE" || r.NSnapshots != 100 || len(r.Features[0].Histogram.Live) != 20 {
		t.Errorf("without a baseline: %+v; want NO_BASELINE, two columns with histograms of 100 requests", r)
	}
	i.OK("/drift/input/jobs/baseline", nil, nil)
	ask(100, 120, func(k int) int { return 40 + k%11 })
	r := report()
	if len(r.Features) != 2 || len(r.Statistics) != 3 || r.NBaseline != 120 || r.BaselineSetAt == nil || r.Overall != "CRITICAL" {
		t.Fatalf("report %+v; want CRITICAL, two columns and three statistics against 120", r)
	}
	procs, hour := r.Features[0], r.Features[1]
	if procs.Name != "procs" || procs.Overall != "CRITICAL" || *procs.LiveMean < 44 || *procs.BaselineMean > 11 || *procs.ZScore < 9 || procs.Kind != "number" {
		t.Errorf("first %+v; want procs, CRITICAL, from 10 to 45", procs)
	}
	if hour.Name != "hour" || hour.Overall != "OK" {
		t.Errorf("second %+v; want hour, OK", hour)
	}
	if h := procs.Histogram; len(*h.Edges) != 21 || h.Live[0] != 0 || h.Baseline[19] != 0 || h.Live[19] == 0 {
		t.Errorf("histogram %+v; want 20 bins, the window at the upper end and the baseline at the lower", h)
	}
	for path, want := range map[string]int{"/drift/input/nosuch/report": 404, "/drift/input/jobs/report?alias=Canary": 404, "/drift/input/jobs/report?alias=huh": 422, "/drift/input/jobs/report?window=1": 422} {
		if s, body := i.Get(path); s != want {
			t.Errorf("%s: %d %s; want %d", path, s, body, want)
		}
	}
}
