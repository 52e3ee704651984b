package inference_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

type health struct {
	Models map[string]struct {
		Version string
		Aliases map[string]string
	}
	Failed    []struct{ Model, Alias, Version, Reason string }
	Followers []struct {
		Model          string
		Compared       *float64 `json:"compared_seconds_ago"`
		LoadingVersion string   `json:"loading_version"`
		Loading        *float64 `json:"loading_seconds"`
	}
	Tracker struct {
		OK  bool
		Age *float64 `json:"last_scan_seconds_ago"`
	}
}

func (i *instance) health() (h health) {
	i.T.Helper()
	if s, body := i.Get("/health"); s != 200 || json.Unmarshal([]byte(body), &h) != nil {
		i.T.Fatalf("health: %d %s", s, body)
	}
	return h
}

func (h health) reason(model string) string {
	for _, f := range h.Failed {
		if f.Model == model {
			return f.Reason
		}
	}
	return ""
}

// An endless Loop of 300 bytes and a graph of 200 that allocates gigabytes are refused by name; every other model
// loads, answers and is followed as before.
func TestHostileModelsAreRefused(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	hostile := map[string]string{}
	add := func(name string, files map[string][]byte, reason string) {
		reg.Alias(name, "Production", reg.Register(name, files, nil))
		hostile[strings.ToUpper(name)] = reason
	}
	add("loop", fixturetest.EndlessLoop(t, "loop"), "the operator Loop is not served")
	add("bomb", fixturetest.MemoryBomb(t, "bomb", "Expand", 1<<32), "MiB of memory")
	v1, v2 := reg.Register("tagged", tagged(t, 1), nil), reg.Register("tagged", tagged(t, 2), nil)
	reg.Alias("tagged", "Production", v1)
	i := start(t, reg)
	i.becomes("tagged", v1)
	for name, reason := range hostile {
		if got := i.health().reason(name); !strings.Contains(got, reason) {
			t.Errorf("%s failed with %q, want %q in it", name, got, reason)
		}
		if s, body := i.Post("/predict/"+name, `{"features": {"x": 1}}`); s != 404 || inferencetest.ProblemOf(t, s, body).Code != "model_not_loaded" {
			t.Errorf("%s: got %d %s, want 404 model_not_loaded", name, s, body)
		}
	}
	reg.Alias("tagged", "Production", v2)
	i.becomes("tagged", v2)
	h := i.health()
	if len(h.Followers) != 3 || h.Followers[2].Model != "TAGGED" || h.Followers[2].Compared == nil || *h.Followers[2].Compared > 20 || h.Tracker.Age == nil || *h.Tracker.Age > 20 {
		t.Errorf("health: got %+v, want three followers and the scan with ages of a few seconds", h)
	}
}

// The files of a Python model are read in the service itself. Excessive sizes in them are refused by name before any
// allocation, and another model answers as before.
func TestHostileSchemasAreRefused(t *testing.T) {
	t.Parallel()
	platform := func(inputs string) map[string][]byte {
		files := fixturetest.Python(twoNumbers, oneNumber)
		files["platform.json"] = []byte(`{"format":1,"output":{"kind":"number"},"inputs":[` + inputs + `]}`)
		return files
	}
	var columns []string
	for n := range 1<<16 + 1 {
		columns = append(columns, fmt.Sprintf(`{"name":"%s","kind":"number"}`, strconv.FormatInt(int64(n), 36)))
	}
	hostile := map[string]struct {
		files  map[string][]byte
		reason string
	}{
		"TENSOR":   {fixturetest.Python(`[{"type": "tensor", "tensor-spec": {"dtype": "float64", "shape": [-1, 4000000000]}}]`, oneNumber), "more than 65536 values"},
		"VECTOR":   {platform(`{"name":"v","kind":"vector","length":9000000000000000000}`), "more than 65536 values"},
		"SUM":      {platform(`{"name":"v","kind":"vector","length":9000000000000000000},{"name":"w","kind":"vector","length":9000000000000000000}`), "more than 65536 values"},
		"NEGATIVE": {platform(`{"name":"v","kind":"vector","length":-9000000000000000000}`), "has length -9000000000000000000"},
		"NUMBER":   {platform(`{"name":"n","kind":"number","length":9000000000000000000}`), "only vectors have one"},
		"COLUMNS":  {platform(strings.Join(columns, ",")), "more than 65536 values"},
	}
	reg, endpoints := fixturetest.NewRegistry(t), map[string]string{}
	for name, h := range hostile {
		endpoints[name] = fixturetest.NewScoring(t).URL
		reg.Alias(strings.ToLower(name), "Production", reg.Register(strings.ToLower(name), h.files, nil))
	}
	v := reg.Register("tagged", tagged(t, 1), nil)
	reg.Alias("tagged", "Production", v)
	named, err := json.Marshal(endpoints)
	if err != nil {
		t.Fatal(err)
	}
	i := start(t, reg, slow, func(c *inference.Config) { c.PyfuncEndpoints = string(named) })
	i.becomes("tagged", v)
	for name, h := range hostile {
		if got := i.health().reason(name); !strings.Contains(got, h.reason) {
			t.Errorf("%s failed with %q, want %q in it", name, got, h.reason)
		}
	}
}

// A version whose load does not end holds up neither the start, nor the other models, nor a reload.
func TestHangingLoadHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	v1, v2 := reg.Register("tagged", tagged(t, 1), nil), reg.Register("tagged", tagged(t, 2), nil)
	reg.Alias("tagged", "Production", v1)
	i := start(t, reg, slow, func(c *inference.Config) {
		c.TimeoutMS, c.RunTimeoutMS, c.ModelTrialSeconds = 8000, 600_000, 600
	})
	i.becomes("tagged", v1)
	reg.Alias("hangs", "Production", reg.Register("hangs", fixturetest.SlowFor(t, "hangs", 50_000), nil))
	reg.Alias("tagged", "Production", v2)
	began := time.Now()
	var r reloaded
	i.OK("/reload", nil, &r)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the reload took %v, want about 8 s", took)
	}
	if len(r.Failed) != 1 || r.Failed[0].Model != "HANGS" || !strings.Contains(r.Failed[0].Reason, "still loading after 8s") {
		t.Errorf("the reload says %+v, want HANGS as still loading", r)
	}
	i.becomes("tagged", v2)
	h := i.health()
	if len(h.Followers) != 2 || h.Followers[0].Model != "HANGS" || h.Followers[0].LoadingVersion != "1" || h.Followers[0].Loading == nil {
		t.Errorf("health: got followers %+v, want HANGS loading version 1", h.Followers)
	}
	if s, body := i.Post("/predict/hangs", `{"features": {"x": 1}}`); s != 503 || inferencetest.ProblemOf(t, s, body).Code != "tracker_unavailable" {
		t.Errorf("a model that is on its way: got %d %s, want 503", s, body)
	}
	reg.Alias("tagged", "Production", v1)
	i.OK("/reload/tagged", nil, &r)
	i.becomes("tagged", v1)
}

// A run that takes too long is ended, and its model taken out with the reason, while another answers. Polls leave it
// out until an explicit reload.
func TestSlowModelIsTakenOut(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("tagged", "Production", reg.Register("tagged", tagged(t, 1), nil))
	bad := reg.Register("slow", fixturetest.SlowOnLarge(t, "slow"), nil)
	reg.Alias("slow", "Production", bad)
	reg.Alias("slow", "Staging", bad)
	i := start(t, reg, func(c *inference.Config) { c.RunTimeoutMS, c.BatchMax = 2000, 1 })
	if s, body := i.Post("/predict/slow", `{"features": {"x": 0}}`); s != 200 {
		t.Fatalf("the fast row: got %d %s, want 200", s, body)
	}
	stop, others := make(chan struct{}), make(chan error, 1)
	var answered atomic.Int64
	go func() {
		for {
			select {
			case <-stop:
				others <- nil
				return
			default:
			}
			if s, body := i.Post("/predict/tagged", `{"features": {"x": 1}}`); s != 200 {
				others <- fmt.Errorf("the other model: %d %s", s, body)
				return
			}
			answered.Add(1)
		}
	}()
	began := time.Now()
	s, body := i.Post("/predict/slow", `{"features": {"x": 1e300}}`)
	took := time.Since(began)
	if d := inferencetest.ProblemOf(t, s, body); d.Status != 504 || !strings.Contains(d.Detail, "taken out of service") || took > 15*time.Second {
		t.Errorf("the slow row: got %d %s after %v, want 504 after some 2 s", s, body, took)
	}
	close(stop)
	if err := <-others; err != nil || answered.Load() < 10 {
		t.Errorf("the other model answered %d times beside it, %v; want at least 10", answered.Load(), err)
	}
	testenv.Eventually(t, 10*time.Second, func() error {
		if got := i.health().reason("SLOW"); !strings.HasPrefix(got, "taken_out: a run took longer than 2s") {
			return fmt.Errorf("health says %q", got)
		}
		return nil
	})
	if s, body := i.Get("/models?alias=*"); s != 200 || strings.Count(body, `"status":"taken_out"`) != 2 || !strings.Contains(body, `"last_error":"taken_out: `) {
		t.Errorf("models: %d %s; want both aliases of SLOW taken out, with the reason", s, body)
	}
	if s, body := i.Get("/models"); s != 200 || strings.Contains(body, "SLOW") {
		t.Errorf("models: %d %s; want what is loaded alone", s, body)
	}
	for _, body := range []string{`{"features": {"x": 0}}`, `{"features": {"x": 0}, "version": "` + bad + `"}`} {
		if s, out := i.Post("/predict/slow", body); s != 404 || !strings.Contains(out, "taken_out") {
			t.Errorf("after that: got %d %s, want 404 with the reason", s, out)
		}
	}
	scanned := i.health().Tracker.Age
	testenv.Eventually(t, 15*time.Second, func() error { // a poll later it is still out
		if age := i.health().Tracker.Age; scanned == nil || age == nil || *age >= *scanned {
			scanned = age
			return fmt.Errorf("no scan yet")
		}
		return nil
	})
	if h := i.health(); h.reason("SLOW") == "" {
		t.Error("a poll loaded the model again; want it to stay out")
	}
	var r reloaded
	i.OK("/reload/slow", nil, &r)
	if s, body := i.Post("/predict/slow", `{"features": {"x": 0}}`); s != 200 || len(r.Failed) != 0 {
		t.Errorf("after a reload: got %d %s, %+v; want 200", s, body, r)
	}
}

// A hundred files that must not be served, five of each kind that the generator has, are refused, each with a reason,
// while a model answers throughout. internal/trial refuses a thousand and measures their memory.
func TestOthersAreServedBesideHostileFiles(t *testing.T) {
	t.Parallel()
	const files = 100
	reg := fixturetest.NewRegistry(t)
	reg.Alias("tagged", "Production", reg.Register("tagged", tagged(t, 1), nil))
	i := start(t, reg, slow, func(c *inference.Config) { c.ModelTrialSeconds = 120 })
	kinds := map[string]string{}
	for n, h := range fixturetest.Hostiles(t, files, 20260102) {
		name := fmt.Sprintf("hostile%04d", n)
		kinds[strings.ToUpper(name)] = h.Kind
		reg.Alias(name, "Production", reg.Register(name, h.Files, nil))
	}
	if s, _, body := i.Do(http.MethodPost, "/reload", nil); s != 200 {
		t.Fatalf("reload: %d %.300s", s, body)
	}
	testenv.Eventually(t, 5*time.Minute, func() error {
		if s, body := i.Post("/predict/tagged", `{"features": {"x": 1}}`); s != 200 {
			t.Fatalf("the good model: %d %s", s, body)
		}
		h := i.health()
		for name := range h.Models {
			if kind, hostile := kinds[name]; hostile {
				t.Fatalf("%s (%s) is served; want it refused", name, kind)
			}
		}
		if n := len(h.Failed); n < files {
			return fmt.Errorf("%d of %d were refused", n, files)
		}
		return nil
	})
	for _, f := range i.health().Failed {
		if f.Reason == "" || len(f.Reason) > 1000 || strings.Contains(f.Reason, "taken_out") {
			t.Errorf("%s (%s): the reason is %q", f.Model, kinds[f.Model], f.Reason)
		}
	}
}

// Twenty new models whose versions hang hold neither a place nor memory that one which has served before needs for its
// next version: it is loaded while all of them are still on their way.
func TestHangingModelsLeaveRoomForKnownOnes(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	v1, v2 := reg.Register("tagged", tagged(t, 1), nil), reg.Register("tagged", tagged(t, 2), nil)
	reg.Alias("tagged", "Production", v1)
	i := start(t, reg, slow, func(c *inference.Config) {
		c.TimeoutMS, c.RunTimeoutMS, c.ModelTrialSeconds = 8000, 600_000, 600
	})
	i.becomes("tagged", v1)
	const hanging = 20
	files := fixturetest.SlowFor(t, "hangs", 50_000)
	for n := range hanging {
		name := fmt.Sprintf("hangs%02d", n)
		reg.Alias(name, "Production", reg.Register(name, files, nil))
	}
	var r reloaded
	i.OK("/reload", nil, &r)
	if len(r.Failed) != hanging {
		t.Fatalf("the reload says that %d failed, want %d that are still loading", len(r.Failed), hanging)
	}
	reg.Alias("tagged", "Production", v2)
	i.OK("/reload/tagged", nil, &r)
	i.becomes("tagged", v2)
	var loading int
	for _, f := range i.health().Followers {
		if f.LoadingVersion != "" {
			loading++
		}
	}
	if loading != hanging {
		t.Errorf("%d models are loading after that, want all %d that hang", loading, hanging)
	}
}
