package inference_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

// Every metric of this service that an alert rule names is there once a model is loaded.
func TestAlertRulesNameRealMetrics(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../deploy/prometheus/rules/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v; want len(files) != 0", files, err)
	}
	names := map[string]bool{}
	// Not the recorded ones, which have colons, and not the control plane's.
	name := regexp.MustCompile(`(^|[^a-z:_])((predict|models|reload|snapshot|batch|drift)_[a-z_]+|platform_outbox_[a-z_]+)`)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Groups []struct{ Rules []struct{ Expr string } }
		}
		if err := yaml.Unmarshal(text, &doc); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		for _, g := range doc.Groups {
			for _, r := range g.Rules {
				for _, m := range name.FindAllStringSubmatch(r.Expr, -1) {
					names[m[2]] = true
				}
			}
		}
	}
	if len(names) != 6 {
		t.Fatalf("the rules name %v; want six metrics", names)
	}
	reg := fixturetest.NewRegistry(t)
	reg.Alias("tagged", "Production", reg.Register("tagged", tagged(t, 0), nil))
	i := start(t, reg, func(c *inference.Config) { c.EventRelayEnabled = false }) // each replica has the metrics, even if another one relays
	i.OK("/predict/tagged", `{"features": {"x": 1}}`, nil)
	s, text := i.Get("/metrics")
	for name := range names {
		if s != 200 || !strings.Contains(text, "\n"+name+"{") && !strings.Contains(text, "\n"+name+" ") {
			t.Errorf("no metric %s; want s == 200 && (strings.Contains(text, \"\\n\"+name+\"{\") || strings.Contains(text, \"\\n\"+name+\" \"))", name)
		}
	}
	for _, status := range []string{"success", "error", "timeout", "shed", "mismatch", "invalid", "not_found"} {
		if !strings.Contains(text, `status="`+status+`"`) {
			t.Errorf("no predictions counted as %s; want strings.Contains(text, `status=\"`+status+`\"`)", status)
		}
	}
}
