package inference_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference/internal/app"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

const (
	twoNumbers = `[{"type": "double", "name": "a"}, {"type": "long", "name": "b"}]`
	oneNumber  = `[{"type": "double"}]`
)

// pythonModel is a registry with one Python model as Production, and the server that answers it.
func pythonModel(t *testing.T, opts ...inferencetest.Option) (*instance, *fixturetest.Scoring) {
	t.Helper()
	scoring := fixturetest.NewScoring(t)
	reg := fixturetest.NewRegistry(t)
	reg.Alias("forest", "Production", reg.Register("forest", fixturetest.Python(twoNumbers, oneNumber), nil))
	return start(t, reg, append([]inferencetest.Option{func(c *app.Config) {
		c.PyfuncEndpoints = `{"forest": "` + scoring.URL + `/"}`
		c.RunTimeoutMS = 2000
	}}, opts...)...), scoring
}

func TestPyfuncPredicts(t *testing.T) {
	t.Parallel()
	i, _ := pythonModel(t)
	var got inferencetest.Prediction
	i.OK("/predict/forest", `{"features": {"b": 2, "a": 0.5}}`, &got)
	if got.Prediction != 2.5 || got.ModelVersion != "1" || got.Alias != "Production" {
		t.Errorf("got %+v, want 2.5 of version 1", got)
	}
	// The columns are checked before the server is asked, as those of a graph are.
	s, body := i.Post("/predict/forest", `{"features": {"a": 0.5}}`)
	if d := inferencetest.ProblemOf(t, s, body); d.Code != "feature_shape_mismatch" || d.ErrorList() != "body.features.b: missing" {
		t.Errorf("got %d %s, want feature_shape_mismatch for b", s, body)
	}
	// Tensors, many rows in one request.
	var v2 struct {
		Outputs []struct {
			Name string    `json:"name"`
			Data []float64 `json:"data"`
		} `json:"outputs"`
	}
	i.OK("/v2/models/forest/infer", `{"inputs": [{"name": "a", "datatype": "FP64", "shape": [3], "data": [1, 2, 3]}, {"name": "b", "datatype": "INT64", "shape": [3], "data": [10, 20, 30]}]}`, &v2)
	if len(v2.Outputs) != 1 || fmt.Sprint(v2.Outputs[0].Data) != "[11 22 33]" {
		t.Errorf("got %+v, want the output [11 22 33]", v2)
	}
	s, body = i.Get("/models")
	var listed []struct{ Flavor, Digest string }
	if err := json.Unmarshal([]byte(body), &listed); err != nil || s != http.StatusOK || len(listed) != 1 || listed[0].Flavor != "pyfunc" {
		t.Errorf("got %d %s, want one model of flavor pyfunc (%v)", s, body, err)
	}
}

// A server that hangs, lies, or dies fails its own requests and no others.
func TestPyfuncServerFailures(t *testing.T) {
	t.Parallel()
	i, scoring := pythonModel(t, func(c *app.Config) {
		c.PyfuncEndpoints = strings.TrimSuffix(c.PyfuncEndpoints, "}") + `, "slow": "` + fixturetest.NewScoring(t).URL + `"}`
	})
	i.Registry.Alias("runtime", "Production", i.Registry.Register("runtime", runtimeModel(t, 0), nil))
	i.OK("/reload", nil, nil)
	text := func(status int, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
			return true
		}
	}
	for _, c := range []struct {
		name         string
		behave       func(http.ResponseWriter, *http.Request) bool
		status       int
		code, detail string
	}{
		{"an error of the model", text(400, `{"message": "cannot convert"}`), 500, "model_exception", "cannot convert"},
		{"a traceback", text(500, strings.Repeat("Traceback\n", 5000)), 500, "model_exception", "answers 500"},
		{"no JSON", text(200, `<html>`), 500, "model_exception", "no JSON object"},
		{"not finite", text(200, `{"predictions": [NaN]}`), 500, "model_exception", "not finite"},
		{"null", text(200, `{"predictions": [null]}`), 500, "model_exception", "no finite number"},
		{"too few", text(200, `{"predictions": []}`), 500, "model_exception", "0 predictions for 1 rows"},
		{"too many", text(200, `{"predictions": [1, 2]}`), 500, "model_exception", "2 predictions for 1 rows"},
		{"text for a number", text(200, `{"predictions": ["high"]}`), 500, "model_exception", "no finite number"},
		{"several values", text(200, `{"predictions": [[1, 2]]}`), 500, "model_exception", "no single value"},
		{"endless", func(w http.ResponseWriter, _ *http.Request) bool {
			for chunk := []byte(strings.Repeat(" ", 64<<10)); ; {
				if _, err := w.Write(chunk); err != nil {
					return true
				}
			}
		}, 500, "model_exception", "more than"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, i.URL+"/reload", http.StatusTemporaryRedirect)
			return true
		}, 500, "model_exception", "answers 307"},
		{"busy", text(503, `later`), 503, "scoring_unavailable", "answers 503"},
		{"cut off", func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, 503, "scoring_unavailable", "cannot be reached"},
		{"hanging", func(_ http.ResponseWriter, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the caller has left
			<-r.Context().Done()
			return true
		}, 504, "deadline_exceeded", "did not answer within 2s"},
	} {
		scoring.Behave(c.behave)
		s, header, body := i.Do(http.MethodPost, "/predict/forest", `{"features": {"a": 1, "b": 2}}`)
		d := inferencetest.ProblemOf(t, s, body)
		if s != c.status || d.Code != c.code || !strings.Contains(d.Detail, c.detail) || len(body) > 2<<10 || strings.Contains(body, scoring.URL[len("http://"):]) {
			t.Errorf("%s: got %d %.600s, want %d %s with %q and no address", c.name, s, body, c.status, c.code, c.detail)
		}
		if retry := header.Get("Retry-After"); (retry != "") != (c.status == 503) {
			t.Errorf("%s: got Retry-After %q", c.name, retry)
		}
		_, health := i.Get("/health")
		if told := strings.Contains(health, "scoring_unavailable"); told != (c.status >= 503) {
			t.Errorf("%s: got health %s, want the fault told: %v", c.name, health, c.status >= 503)
		}
		i.OK("/predict/runtime", `{"features": `+runtimeRow+`}`, nil)
	}
	scoring.Behave(nil)
	i.OK("/predict/forest", `{"features": {"a": 1, "b": 2}}`, nil)
	if _, health := i.Get("/health"); strings.Contains(health, "scoring_unavailable") {
		t.Errorf("got health %s after the server had recovered, want no fault", health)
	}
}

// Rows that wait together are one request to the server; a row that it refuses fails alone.
func TestPyfuncBatchIsolatesRows(t *testing.T) {
	t.Parallel()
	i, scoring := pythonModel(t)
	s, body := i.Post("/v2/models/forest/infer", `{"inputs": [{"name": "a", "datatype": "FP64", "shape": [4], "data": [1, 13, 3, 13]}, {"name": "b", "datatype": "INT64", "shape": [4], "data": [0, 0, 0, 0]}]}`)
	d := inferencetest.ProblemOf(t, s, body)
	if s != 500 || d.Code != "model_exception" || len(d.Errors) != 2 || strings.Join(d.Errors[0].Loc, ".") != "body.row.1" || strings.Join(d.Errors[1].Loc, ".") != "body.row.3" ||
		!strings.Contains(body, "thirteen is unlucky") {
		t.Errorf("got %d %s, want model_exception for rows 1 and 3", s, body)
	}
	before, rowsBefore := scoring.Requests()
	var wg sync.WaitGroup
	for n := range 200 {
		wg.Go(func() {
			a := n
			if n%10 == 3 {
				a = 13
			}
			s, body := i.Post("/predict/forest", fmt.Sprintf(`{"features": {"a": %d, "b": 1}}`, a))
			var got inferencetest.Prediction
			if a == 13 {
				if s != 500 || !strings.Contains(body, "unlucky") {
					t.Errorf("row %d: got %d %s, want 500", n, s, body)
				}
			} else if err := json.Unmarshal([]byte(body), &got); err != nil || s != 200 || got.Prediction != float64(a+1) {
				t.Errorf("row %d: got %d %s, want %d", n, s, body, a+1)
			}
		})
	}
	wg.Wait()
	if requests, rows := scoring.Requests(); rows-rowsBefore < 180 {
		t.Errorf("got %d rows in %d requests, want at least 180 rows", rows-rowsBefore, requests-before)
	}
}

// A model is not loaded while its server does not answer, and is once it does.
func TestPyfuncServerAbsentAtLoad(t *testing.T) {
	t.Parallel()
	i, scoring := pythonModel(t, func(c *app.Config) { c.ReloadPollSeconds = 1 })
	scoring.Behave(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(503); return true })
	i.Registry.Alias("forest", "Production", i.Registry.Register("forest", fixturetest.Python(twoNumbers, oneNumber), nil))
	testenv.Eventually(t, 20*time.Second, func() error {
		if _, health := i.Get("/health"); !strings.Contains(health, "scoring_unavailable: the scoring server answers 503") {
			return fmt.Errorf("health: %s", health)
		}
		return nil
	})
	var got inferencetest.Prediction
	scoring.Behave(nil)
	testenv.Eventually(t, 20*time.Second, func() error {
		i.OK("/predict/forest", `{"features": {"a": 1, "b": 2}}`, &got)
		if got.ModelVersion != "2" {
			return fmt.Errorf("got version %s, want 2", got.ModelVersion)
		}
		return nil
	})
}

// PYFUNC_COMMAND starts a server for each version without a graph, starts it again when it dies, and ends it.
func TestPyfuncCommand(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	reg := fixturetest.NewRegistry(t)
	reg.Alias("forest", "Production", reg.Register("forest", fixturetest.Python(twoNumbers, oneNumber), nil))
	reg.Alias("runtime", "Production", reg.Register("runtime", runtimeModel(t, 0), nil)) // has a graph, and needs no server
	command, err := json.Marshal([]string{self, fixturetest.ScoringVerb, "{port}", "{model}"})
	if err != nil {
		t.Fatal(err)
	}
	var cache string
	i := start(t, reg, func(c *app.Config) { c.PyfuncCommand, cache = string(command), c.ModelCacheDir })
	var got inferencetest.Prediction
	i.OK("/predict/forest", `{"features": {"a": 1, "b": 2}}`, &got)
	if got.Prediction != 3.0 {
		t.Errorf("got %+v, want 3", got)
	}
	trimmed, err := filepath.Glob(filepath.Join(cache, "[0-9a-f]*")) // as happens when many newer versions were loaded
	if err != nil || len(trimmed) == 0 {
		t.Fatalf("got %v, %v in the model cache %q, want the artifacts", trimmed, err, cache)
	}
	for _, dir := range trimmed {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	s, body := i.Post("/predict/forest", `{"features": {"a": 1, "b": 666}}`)
	if d := inferencetest.ProblemOf(t, s, body); s != 503 || d.Code != "scoring_unavailable" {
		t.Errorf("got %d %s, want scoring_unavailable", s, body)
	}
	testenv.Eventually(t, 20*time.Second, func() error {
		if s, body := i.Post("/predict/forest", `{"features": {"a": 1, "b": 3}}`); s != 200 {
			return fmt.Errorf("after its death: %d %s", s, body)
		}
		return nil
	})
	i.OK("/predict/runtime", `{"features": `+runtimeRow+`}`, nil)
}

func TestPyfuncWithoutServer(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("forest", "Production", reg.Register("forest", fixturetest.Python(twoNumbers, oneNumber), nil))
	i := start(t, reg)
	s, body := i.Post("/predict/forest", `{"features": {"a": 1, "b": 2}}`)
	if d := inferencetest.ProblemOf(t, s, body); s != 404 || d.Code != "model_not_loaded" || !strings.Contains(d.Detail, "flavor not served") {
		t.Errorf("got %d %s, want model_not_loaded, flavor not served", s, body)
	}
}
