package inference_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

// Without the database, predictions continue; the pending writes wait and are made later.
func TestDatabaseOutage(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("tagged", "Production", reg.Register("tagged", tagged(t, 0), nil))
	var proxy *fixturetest.Proxy
	i := start(t, reg, slow, func(c *inference.Config) {
		u, err := url.Parse(c.DatabaseURL.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		proxy = fixturetest.NewProxy(t, u.Host)
		u.Host = proxy.Addr
		c.DatabaseURL = service.Secret(u.String())
	})
	i.predicts(1, 10, 10)
	proxy.Cut(true)
	for x := range 20 {
		i.OK("/predict/tagged", fmt.Sprintf(`{"features": {"x": %d}}`, 11+x), nil)
	}
	if s, body := i.Get("/drift/status"); s != 503 || inferencetest.ProblemOf(t, s, body).Code != "store_unavailable" {
		t.Errorf(`drift without the database: %d %s; want s == 503 && inferencetest.ProblemOf(t, s, body).Code == "store_unavailable"`, s, body)
	}
	if s, body := i.Get("/readyz"); s != 200 {
		t.Errorf("readiness without the database: %d %s; want s == 200", s, body)
	}
	reg.Alias("tagged", "Staging", "1")
	var r reloaded
	i.OK("/reload", nil, &r)
	if r.Count != 1 {
		t.Errorf("reload without the database: %+v; want r.Count == 1", r)
	}
	proxy.Cut(false)
	testenv.Eventually(t, 15*time.Second, func() error {
		if s, body := i.Get("/drift/status?alias=Production"); s != 200 || !strings.Contains(body, `"n_snapshots":30,`) {
			return fmt.Errorf("want the 30 snapshots: %d %s", s, body)
		}
		return nil
	})
	testenv.Eventually(t, 15*time.Second, func() error {
		for _, e := range i.events("deploy", "model_loaded") {
			if e["alias"] == "Staging" {
				return nil
			}
		}
		return fmt.Errorf("the load during the outage was not told")
	})
}

// Until the tracker has been read once, the set of models is unknown: that is no 404.
func TestStartedWithoutTheTracker(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("tagged", "Production", reg.Register("tagged", tagged(t, 1), nil))
	reg.Down(true)
	i := launch(t, reg)
	i.Awaits("/livez", 200)
	for path, body := range map[string]string{
		"/predict/tagged":       `{"features": {"x": 1}}`,
		"/predict/Tagged":       `{"features": {"x": 1}, "alias": "staging"}`,
		"/predict/nosuch":       `{"features": {"x": 1}}`,
		"/infer-pipeline/infer": `{"num_nodes": 1, "embedding": [` + strings.Repeat("0,", 383) + `0]}`,
	} {
		s, header, out := i.Do("POST", path, body)
		if d := inferencetest.ProblemOf(t, s, out); s != 503 || d.Code != "tracker_unavailable" || header.Get("Retry-After") != "1" {
			t.Errorf("%s: got %d %s, Retry-After %q, want 503 tracker_unavailable, 1", path, s, out, header.Get("Retry-After"))
		}
	}
	reg.Down(false)
	i.becomes("tagged", "1")
	if s, body := i.Post("/predict/nosuch", `{"features": {"x": 1}}`); s != 404 {
		t.Errorf("a model that the tracker does not have, once it was read: got %d %s, want 404", s, body)
	}
}

func TestClassifier(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{}
	for _, name := range []string{"MLmodel", "model.onnx"} {
		b, err := os.ReadFile(filepath.Join("internal", "model", "testdata", "zipmap", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = b
	}
	reg := fixturetest.NewRegistry(t)
	reg.Alias("sizes", "Production", reg.Register("sizes", files, nil))
	i := start(t, reg, slow)
	var p inferencetest.Prediction
	i.OK("/predict/sizes", `{"features": {"age": 0, "width": 3, "height": -3}, "probabilities": true}`, &p)
	var sum float64
	for _, v := range p.Probabilities {
		sum += v
	}
	if p.Prediction != "high" || len(p.Probabilities) != 3 || sum < 0.999 || sum > 1.001 {
		t.Errorf(`%+v; want p.Prediction == "high" && len(p.Probabilities) == 3 && sum >= 0.999 && sum <= 1.001`, p)
	}
	send := func(n int, width float64) {
		for range n {
			i.OK("/predict/sizes", fmt.Sprintf(`{"features": {"age": 0, "width": %g, "height": 0}}`, width), nil)
		}
	}
	send(19, 3)
	send(20, -3)
	written := func(n int) {
		testenv.Eventually(t, 10*time.Second, func() error {
			if _, body := i.Get("/drift/status"); !strings.Contains(body, fmt.Sprintf(`"n_snapshots":%d,`, n)) {
				return fmt.Errorf("want %d snapshots: %s", n, body)
			}
			return nil
		})
	}
	written(40)
	i.OK("/drift/sizes/baseline", nil, nil)
	i.OK("/drift/sizes/reset", nil, nil)
	send(12, -3)
	written(12)
	_, body := i.Get("/drift/status")
	for _, want := range []string{`"live_mean":null`, `"n_baseline":40`, `"recent":["low",`, `"z_score":1,`, `"psi":{"status":"CRITICAL"`} {
		if !strings.Contains(body, want) {
			t.Errorf("drift of labels has no %s: %s", want, body)
		}
	}
	if strings.Contains(body, `"ks"`) {
		t.Errorf("labels have no distribution function: %s; want !strings.Contains(body, `\"ks\"`)", body)
	}
}
