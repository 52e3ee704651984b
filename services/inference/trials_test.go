package inference_test

import (
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

// An artifact that has passed its trial is not tried again after a restart, nor by another replica, unless the inputs
// of the verdict have changed: the files, or how they are run.
func TestPassedTrialsAreKept(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	column := fixturetest.Column{Name: "x", Kind: "number", Weight: 1}
	reg.Alias("m", "Production", reg.Register("m", fixturetest.Linear(t, "m", 1, column), nil))
	first := start(t, reg)
	trials := func(i *instance) (out []string) {
		_, text := i.Get("/metrics")
		for line := range strings.Lines(text) {
			if status, ok := strings.CutPrefix(line, "model_trials_total"); ok {
				out = append(out, strings.TrimSpace(status))
			}
		}
		return out
	}
	want := func(i *instance, what, counted string) {
		t.Helper()
		if got := strings.Join(trials(i), " "); got != counted {
			t.Errorf("%s: the trials are %s, want %s", what, got, counted)
		}
		if s, out := i.Post("/predict/m", `{"features": {"x": 2}}`); s != 200 || !strings.Contains(out, `"prediction":3`) {
			t.Errorf("%s: %d %s, want 3", what, s, out)
		}
	}
	want(first, "the first start", `{status="passed"} 1`)
	again := func(c *inference.Config) { c.DatabaseURL = service.Secret(first.Database) }
	want(start(t, reg, again), "a restart with an empty cache", `{status="known"} 1`)
	want(start(t, reg, again, func(c *inference.Config) { c.BatchMax = 7 }), "other runs", `{status="passed"} 1`)
	others := fixturetest.NewRegistry(t) // which no other instance follows
	others.Alias("m", "Production", others.Register("m", fixturetest.Linear(t, "m", 1, column, fixturetest.Column{Name: "y", Kind: "number"}), nil))
	if got := strings.Join(trials(start(t, others, again)), " "); got != `{status="passed"} 1` {
		t.Errorf("other files: the trials are %s, want one", got)
	}
}
