package inference_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/inference/internal/inferencetest"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

func runtimeModel(t testing.TB, bias float32) map[string][]byte {
	return fixturetest.Linear(t, "runtime", bias,
		fixturetest.Column{Name: "procs", Kind: "number", Weight: 2}, fixturetest.Column{Name: "hour", Kind: "number", Weight: 0.5},
		fixturetest.Column{Name: "shape", Kind: "vector", Length: 3, Weight: 1})
}

const runtimeRow = `{"procs": 4, "hour": 1, "shape": [1, 2, 3]}`

func TestPredicts(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	v1 := reg.Register("runtime", runtimeModel(t, 0), nil)
	v2 := reg.Register("runtime", runtimeModel(t, 1000), nil)
	v3 := reg.Register("runtime", runtimeModel(t, 3000), nil)
	reg.Alias("runtime", "Production", v1)
	reg.Alias("runtime", "staging", v2)
	i := start(t, reg)

	for _, c := range []struct {
		name, path, body string
		want             inferencetest.Prediction
	}{
		{"Production by default", "/predict/runtime", `{"features": ` + runtimeRow + `}`, inferencetest.Prediction{Prediction: 14.5, ModelVersion: v1, Alias: "Production"}},
		{"any case, any order", "/predict/RunTime", `{"features": {"shape": [1,2,3], "hour": 1.0, "procs": 4e0}}`, inferencetest.Prediction{Prediction: 14.5, ModelVersion: v1, Alias: "Production"}},
		{"by alias", "/predict/RUNTIME", `{"alias": "STAGING", "features": ` + runtimeRow + `}`, inferencetest.Prediction{Prediction: 1014.5, ModelVersion: v2, Alias: "Staging"}},
		{"version over alias", "/predict/runtime", `{"alias": "Staging", "version": "3", "features": ` + runtimeRow + `}`, inferencetest.Prediction{Prediction: 3014.5, ModelVersion: v3}},
		{"version of an alias", "/predict/runtime", `{"version": "1", "features": ` + runtimeRow + `, "probabilities": true}`, inferencetest.Prediction{Prediction: 14.5, ModelVersion: v1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got inferencetest.Prediction
			i.OK(c.path, c.body, &got)
			c.want.ModelName, c.want.RunID, c.want.Unit = "RUNTIME", "run-runtime-"+c.want.ModelVersion, "s"
			if got.Prediction != c.want.Prediction || got.ModelVersion != c.want.ModelVersion || got.Alias != c.want.Alias ||
				got.ModelName != c.want.ModelName || got.RunID != c.want.RunID || got.Unit != c.want.Unit || got.Probabilities != nil {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("runtime", "Production", reg.Register("runtime", runtimeModel(t, 0), nil))
	i := start(t, reg)

	for _, c := range []struct {
		name, path, body string
		status           int
		code, detail     string // detail: a part of it
		errors           string
	}{
		{"unknown model", "/predict/nosuch", `{"features": {}}`, 404, "model_not_loaded", "Loaded are RUNTIME@Production", ""},
		{"alias not loaded", "/predict/runtime", `{"features": {}, "alias": "Canary"}`, 404, "model_not_loaded", "it has no version with the alias Canary", ""},
		{"no such alias", "/predict/runtime", `{"features": {}, "alias": "Champion"}`, 404, "model_not_loaded", `no alias \"Champion\"`, ""},
		{"no such version", "/predict/runtime", `{"features": {}, "version": "9"}`, 404, "model_not_loaded", "no version 9", ""},
		{"no version number", "/predict/runtime", `{"features": {}, "version": "../../x"}`, 404, "model_not_loaded", "no version number", ""},
		{"broken JSON", "/predict/runtime", `{"features": {`, 422, "validation_error", "ends too early", "body: the JSON ends too early"},
		{"NaN", "/predict/runtime", `{"features": {"procs": NaN}}`, 422, "validation_error", "not JSON", "body.features.procs: not JSON at byte 23: invalid character 'N' at start of value"},
		{"text for a number", "/predict/runtime", strings.Replace(`{"features": `+runtimeRow+`}`, "4", `"4"`, 1), 422, "validation_error", "procs",
			"body.features.procs: expected a number, got a string"},
		{"null", "/predict/runtime", strings.Replace(`{"features": `+runtimeRow+`}`, "4", `null`, 1), 422, "validation_error", "procs",
			"body.features.procs: expected a number, got null"},
		{"wrong type and missing key", "/predict/runtime", `{"features": {"procs": []}}`, 422, "validation_error", "procs",
			"body.features.procs: expected a number, got a list"},
		{"duplicate key", "/predict/runtime", `{"features": {"procs": 1, "procs": 1}}`, 422, "validation_error", "twice", "body.features.procs: this name is there twice"},
		{"missing and unexpected", "/predict/runtime", `{"features": {"procs": 1, "Hour": 2, "shape": [1,2]}}`, 500, "feature_shape_mismatch", "Its columns are procs, hour, shape",
			"body.features.Hour: unexpected; body.features.shape: length 2, want 3; body.features.hour: missing"},
		{"too large", "/predict/runtime", `{"features": {"procs": ` + strings.Repeat(" ", 10<<20) + `1}}`, 413, "body_too_large", "1048576", ""},
		{"pipeline, nothing", "/infer-pipeline/infer", `{}`, 422, "validation_error", "", "body.embedding: this member is missing; body.num_nodes: this member is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, body := i.Post(c.path, c.body)
			if s != c.status {
				t.Fatalf("%d %.300s, want %d", s, body, c.status)
			}
			d := inferencetest.ProblemOf(t, s, body)
			if d.Code != c.code || !strings.Contains(body, c.detail) || d.ErrorList() != c.errors || d.RequestID == "" {
				t.Errorf("got %s\nwant code %s, detail with %q, errors %q; want d.Code == c.code && strings.Contains(body, c.detail) && d.ErrorList() == c.errors && d.RequestID != \"\"", body, c.code, c.detail, c.errors)
			}
		})
	}
	// However long a request's parts are, its refusal is short.
	long := strings.Repeat("x", 60<<10)
	for name, r := range map[string][2]string{
		"model":           {"/predict/" + long[:50<<10], `{"features": ` + runtimeRow + `}`},
		"unknown member":  {"/predict/runtime", `{"` + long + `": 1}`},
		"repeated member": {"/predict/runtime", `{"` + long + `": 1, "` + long + `": 1}`},
		"unknown column":  {"/predict/runtime", `{"features": {"procs": 4, "hour": 1, "shape": [1, 2, 3], "` + long + `": 1}}`},
		"alias":           {"/predict/runtime", `{"alias": "` + long + `", "features": ` + runtimeRow + `}`},
		"version":         {"/predict/runtime", `{"version": "` + long + `", "features": ` + runtimeRow + `}`},
		"pipeline member": {"/infer-pipeline/infer", `{"` + long + `": 1}`},
		"pipeline model":  {"/infer-pipeline/infer", `{"model_name": "` + long + `", "num_nodes": 1, "embedding": [` + strings.Repeat("0,", 383) + `0]}`},
		"reload":          {"/reload/" + long[:50<<10], ``},
		"drift":           {"/drift/" + long[:50<<10] + "/reset", ``},
		"drift alias":     {"/drift/runtime/reset", `{"alias": "` + long + `"}`},
		"drift member":    {"/drift/runtime/reset", `{"` + long + `": 1}`},
		"no route":        {"/" + long[:50<<10], ``},
	} {
		t.Run("long "+name, func(t *testing.T) {
			s, body := i.Post(r[0], r[1])
			if s < 400 || len(body) > 4<<10 {
				t.Errorf("got %d with %d bytes, %.300s…, want a refusal of at most 4 KiB", s, len(body), body)
			}
			inferencetest.ProblemOf(t, s, body)
		})
	}
	t.Run("bad deadline", func(t *testing.T) {
		s, _, body := i.Do(http.MethodPost, "/predict/runtime", `{"features": `+runtimeRow+`}`, "X-Request-Timeout-Ms", "soon")
		if d := inferencetest.ProblemOf(t, s, body); s != 422 || d.ErrorList() != "header.X-Request-Timeout-Ms: expected a whole number of milliseconds, at least 1" {
			t.Errorf(`%d %s; want s == 422 && d.ErrorList() == "header.X-Request-Timeout-Ms: expected a whole number of milliseconds, at least 1"`, s, body)
		}
	})
	t.Run("form", func(t *testing.T) {
		s, _, body := i.Do(http.MethodPost, "/predict/runtime", `{"features": `+runtimeRow+`}`, "Content-Type", "application/x-www-form-urlencoded")
		if s != 415 {
			t.Errorf("%d %s; want s == 415", s, body)
		}
	})
}
