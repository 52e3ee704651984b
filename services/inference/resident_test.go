package inference_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

// residency is the part of /health about resident models.
type residency struct{ Resident, Known, Max int }

func (i *instance) residency() (residency, []string) {
	i.T.Helper()
	_, body := i.Get("/health")
	var h struct {
		Residency residency
		Models    map[string]any
	}
	if err := json.Unmarshal([]byte(body), &h); err != nil {
		i.T.Fatalf("/health: %v: %s", err, body)
	}
	var names []string
	for name := range h.Models {
		names = append(names, name)
	}
	return h.Residency, names
}

// manyModels registers models of which number n answers 1000 n + x.
func manyModels(t testing.TB, count int) *fixturetest.Registry {
	t.Helper()
	reg := fixturetest.NewRegistry(t)
	for n := range count {
		name := fmt.Sprintf("m%03d", n)
		reg.Alias(name, "Production", reg.Register(name, fixturetest.Linear(t, name, float32(1000*n), fixturetest.Column{Name: "x", Kind: "number", Weight: 1}), nil))
	}
	return reg
}

func limited(most int, preload string) inferencetest.Option {
	return func(c *inference.Config) { c.ModelsResidentMax, c.PreloadAliases = most, preload }
}

// All models answer, though only some are loaded at a time; those used least make room.
func TestResidentModelsAreLimited(t *testing.T) {
	t.Parallel()
	const count, most = 10, 3
	reg := manyModels(t, count)
	i := start(t, reg, slow, limited(most, "none"))
	if r, names := i.residency(); r != (residency{0, count, most}) || len(names) != 0 {
		t.Fatalf("at the start %+v %v, want none of %d", r, names, count)
	}
	for n := range count {
		var p inferencetest.Prediction
		i.OK(fmt.Sprintf("/predict/m%03d", n), `{"features": {"x": 1}}`, &p)
		if p.Prediction != float64(1000*n+1) || p.Alias != "Production" {
			t.Errorf("model %d: %+v, want its own answer under Production", n, p)
		}
		if r, _ := i.residency(); r.Resident > most {
			t.Errorf("after model %d: %+v, want at most %d", n, r, most)
		}
	}
	i.OK("/predict/m007", `{"features": {"x": 1}}`, nil) // the oldest of the three: now 8 is
	i.OK("/predict/m000", `{"features": {"x": 1}}`, nil)
	r, _ := i.residency()
	loads := map[string]int{}
	for _, name := range []string{"m000", "m007", "m008", "m009"} {
		if s, body := i.Get("/v2/models/" + name + "/ready"); s == http.StatusOK {
			loads[name]++
		} else if p := inferencetest.ProblemOf(t, s, body); !strings.Contains(p.Detail, "a prediction loads it") {
			t.Errorf("%s: %d %s, want 404 that says how it is loaded", name, s, body)
		}
	}
	if diff := cmp.Diff(map[string]int{"m000": 1, "m007": 1, "m009": 1}, loads); diff != "" || r != (residency{most, count, most}) {
		t.Errorf("%+v; loaded differs from want:\n%s", r, diff)
	}
	_, text := i.Get("/metrics")
	for _, want := range []string{`model_aliases{state="known"} 10`, `model_aliases{state="resident"} 3`, `reload_total{status="unloaded",via="evicted"} 8`} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("metrics do not have %s", want)
		}
	}
}

// Concurrent requests for more models than may be resident: none fails, whichever model is evicted.
func TestEvictionFailsNoRequest(t *testing.T) {
	t.Parallel()
	const count, most, each = 4, 2, 5
	i := start(t, manyModels(t, count), slow, limited(most, "none"))
	var wg sync.WaitGroup
	for n := range count {
		wg.Go(func() {
			for x := range each {
				s, body := i.Post(fmt.Sprintf("/predict/m%03d", n), fmt.Sprintf(`{"features": {"x": %d}}`, x))
				if want := fmt.Sprintf(`"prediction":%d,`, 1000*n+x); s != http.StatusOK || !strings.Contains(body, want) {
					t.Errorf("model %d: %d %s, want 200 with %s", n, s, body, want)
				}
			}
		})
	}
	wg.Wait()
	testenv.Eventually(t, testWait, func() error {
		if r, _ := i.residency(); r.Resident > most {
			return fmt.Errorf("%+v, want at most %d", r, most)
		}
		return nil
	})
}

// Preloaded models fill the available room and stay followed; a corrupt version leaves the resident one in service.
func TestResidentModelsAreFollowed(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	v1, v2, v3 := reg.Register("tagged", tagged(t, 1), nil), reg.Register("tagged", tagged(t, 2), nil), reg.Register("tagged", tagged(t, 3), nil)
	reg.Corrupt("tagged", v3, "model.onnx", []byte("no model"))
	reg.Alias("tagged", "Production", v1)
	reg.Alias("tagged", "Canary", v2)
	i := start(t, reg, slow, limited(1, "production"))
	if r, names := i.residency(); r != (residency{1, 2, 1}) || cmp.Diff([]string{"TAGGED"}, names) != "" {
		t.Fatalf("at the start %+v %v, want Production alone", r, names)
	}
	version := func(body string) string {
		var p inferencetest.Prediction
		i.OK("/predict/tagged", body, &p)
		return p.ModelVersion
	}
	if got := version(`{"features": {"x": 1}, "alias": "canary"}`); got != v2 {
		t.Errorf("Canary: version %s, want %s", got, v2)
	}
	if got := version(`{"features": {"x": 1}}`); got != v1 {
		t.Errorf("Production: version %s, want %s", got, v1)
	}
	reg.Alias("tagged", "Production", v3)
	i.Post("/reload", nil)
	if got := version(`{"features": {"x": 1}}`); got != v1 {
		t.Errorf("a corrupt version: version %s answers, want the last good one, %s", got, v1)
	}
	reg.Alias("tagged", "Production", v2)
	i.OK("/reload", nil, nil)
	if got := version(`{"features": {"x": 1}}`); got != v2 {
		t.Errorf("moved: version %s, want %s", got, v2)
	}
}

// A version that stays in service because the next one is corrupt makes no room for others: it could not be loaded
// again.
func TestLastGoodVersionIsNotEvicted(t *testing.T) {
	t.Parallel()
	reg := manyModels(t, 3)
	v1, v2 := reg.Register("tagged", tagged(t, 1), nil), reg.Register("tagged", tagged(t, 2), nil)
	reg.Corrupt("tagged", v2, "model.onnx", []byte("no model"))
	reg.Alias("tagged", "Production", v1)
	i := start(t, reg, slow, limited(1, "none"))
	i.OK("/predict/tagged", `{"features": {"x": 1}}`, nil)
	reg.Alias("tagged", "Production", v2)
	i.Post("/reload", nil)
	for n := range 3 {
		i.OK(fmt.Sprintf("/predict/m%03d", n), `{"features": {"x": 1}}`, nil)
	}
	if got := i.version("tagged"); got != v1 {
		t.Errorf("after other models were loaded: got %s, want the last good version %s", got, v1)
	}
}

// A version that was also requested by its number still makes room.
func TestVersionsAskedForMakeRoom(t *testing.T) {
	t.Parallel()
	i := start(t, manyModels(t, 2), slow, limited(1, "none"))
	i.OK("/predict/m000", `{"features": {"x": 1}, "version": "1"}`, nil)
	i.OK("/predict/m000", `{"features": {"x": 1}}`, nil)
	i.OK("/predict/m001", `{"features": {"x": 1}}`, nil)
	testenv.Eventually(t, testWait, func() error {
		r, names := i.residency()
		if r.Resident != 1 || cmp.Diff([]string{"M001"}, names) != "" {
			return fmt.Errorf("%+v %v, want M001 alone", r, names)
		}
		return nil
	})
}

// A first request whose deadline is too short for its model's load ends at its deadline; the load continues. If the
// tracker is the reason that there is no load to wait for, the answer names it.
func TestFirstRequestWaitsOnlyItsTime(t *testing.T) {
	t.Parallel()
	i := start(t, manyModels(t, 1), slow, limited(1, "none"))
	s, h, body := i.Do(http.MethodGet, "/v2/models/m000", nil, "X-Request-Timeout-Ms", "1")
	if p := inferencetest.ProblemOf(t, s, body); s != http.StatusGatewayTimeout || p.Code != "deadline_exceeded" {
		t.Errorf("within 1 ms: %d %v %s, want 504 deadline_exceeded", s, h, body)
	}
	i.OK("/predict/m000", `{"features": {"x": 1}}`, nil)
	if s, body := i.Post("/predict/nosuch", `{"features": {"x": 1}}`); s != http.StatusNotFound {
		t.Errorf("no such model: %d %s, want 404", s, body)
	}
}

// A model that cannot be loaded because the tracker is away is no matter of time.
func TestFirstRequestWithTheTrackerDown(t *testing.T) {
	t.Parallel()
	reg := manyModels(t, 1)
	i := start(t, reg, slow, limited(1, "none"))
	reg.Down(true)
	s, body := i.Post("/predict/m000", `{"features": {"x": 1}}`)
	if p := inferencetest.ProblemOf(t, s, body); s != http.StatusServiceUnavailable || p.Code != "tracker_unavailable" {
		t.Errorf("with the tracker down: %d %s, want 503 tracker_unavailable", s, body)
	}
	reg.Down(false)
	i.OK("/predict/m000", `{"features": {"x": 1}}`, nil)
}

// A traffic rule's share gets Production until the alias that the rule chooses is loaded, which the first request starts.
func TestSplitsLoadWhatTheyChooseWithoutWaiting(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	v1, v2 := reg.Register("tagged", tagged(t, 1), nil), reg.Register("tagged", tagged(t, 2), nil)
	reg.Alias("tagged", "Production", v1)
	reg.Alias("tagged", "Canary", v2)
	i := start(t, reg, slow, limited(2, "none"))
	var set struct{ Warnings []string }
	i.OK("/traffic-rules/tagged", `{"Production": 0, "Canary": 100}`, &set)
	if len(set.Warnings) > 0 {
		t.Errorf("warnings %q, want none for aliases that a request loads", set.Warnings)
	}
	var p inferencetest.Prediction
	i.OK("/predict/tagged", `{"features": {"x": 1}}`, &p)
	if p.Alias != "Production" || p.ModelVersion != v1 {
		t.Errorf("while Canary is not loaded: %+v, want version %s under Production", p, v1)
	}
	if _, text := i.Get("/metrics"); !strings.Contains(text, `traffic_fallback_total{alias="Canary",model="TAGGED"} 1`) {
		t.Error("the answer of Production is not counted in traffic_fallback_total")
	}
	testenv.Eventually(t, testWait, func() error {
		p = inferencetest.Prediction{} // a member that the next answer leaves out stays
		if i.OK("/predict/tagged", `{"features": {"x": 1}}`, &p); p.Alias != "Canary" || p.ModelVersion != v2 {
			return fmt.Errorf("%+v, want version %s under Canary", p, v2)
		}
		return nil
	})
}
