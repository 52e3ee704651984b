package inference_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

// Damaged and inflated requests are answered with a prediction or with a problem that names the fault, and the model
// answers a sound one afterwards.
func TestHostileRequests(t *testing.T) {
	reg := fixturetest.NewRegistry(t)
	version := reg.Register("tagged", tagged(t, 1), nil)
	reg.Alias("tagged", "Production", version)
	i := start(t, reg)
	i.becomes("tagged", version)
	one := []byte(`{"features": {"x": 1.5}}`)
	pipeline := []byte(`{"model_name": "jpcp", "embedding": [` + strings.Repeat("0.25,", 383) + `1], "num_nodes": 2, "user_id": "17", "job_id": 9}`)
	files := append(hostiletest.Mutate("predict", 150, 1, one), hostiletest.Mutate("pipeline", 100, 2, pipeline)...)
	for name, data := range map[string]string{
		"brackets":     strings.Repeat("[", 1<<20),
		"objects":      strings.Repeat(`{"features":`, 1<<16),
		"keys":         `{"features": {` + strings.Repeat(`"x": 1,`, 1<<16) + `"x": 1}}`,
		"digits":       `{"features": {"x": ` + strings.Repeat("9", 1<<20) + `}}`,
		"escapes":      `{"features": {"` + strings.Repeat(`\ud800`, 1<<16) + `": 1}}`,
		"space":        strings.Repeat(" ", 1<<20) + string(one),
		"more follows": string(one) + string(one),
	} {
		files = append(files, hostiletest.File{Kind: "predict", Name: name, Data: []byte(data)})
	}
	hostiletest.Feed(t, files, 10*time.Second, func(f hostiletest.File) error {
		path := "/predict/tagged"
		if f.Kind == "pipeline" {
			path = "/infer-pipeline/infer"
		}
		status, body := i.Post(path, string(f.Data))
		if status == http.StatusOK {
			return nil
		}
		// Other columns than the model's are a 500 by contract.
		if code := inferencetest.ProblemOf(t, status, body).Code; status < 400 || status > 499 && code != "feature_shape_mismatch" {
			t.Errorf("%s %s: got %d %.300s; want 200, 4xx or feature_shape_mismatch", f.Kind, f.Name, status, body)
		}
		return errors.New(body)
	})
	if s, body := i.Post("/predict/tagged", string(one)); s != http.StatusOK {
		t.Errorf("a sound request afterwards: %d %s; want 200", s, body)
	}
}
