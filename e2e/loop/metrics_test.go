//go:build e2e

package loop

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/mlp-platform/platform/e2e/harness"
)

// Every metric in a Grafana panel is exported by a service of the platform, most of them before anything happens.
func TestPanelsNameRealMetrics(t *testing.T) {
	p := sharedPlatform(t)
	exported := ""
	for _, name := range []string{"CONTROL_PLANE_ADDR", "INFERENCE_ADDR", "DASHBOARD_ADDR", "ASSISTANT_ADDR", "BUS_ADDR"} {
		exported += string(harness.Want(t, 200, "GET", "http://"+p.Setting(name)+"/metrics", "", nil).Body)
	}
	raw, err := os.ReadFile(filepath.Join(harness.Root(t), "deploy", "grafana", "panels.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboards []struct {
		Rows []struct {
			Panels []struct{ Title, Expr string }
		}
	}
	if err := yaml.Unmarshal(raw, &dashboards); err != nil {
		t.Fatal(err)
	}
	// Functions are followed by a parenthesis, and recorded series contain colons; both are excluded.
	metric := regexp.MustCompile(`(?:^|[^a-z_:])((?:http|platform|predict|models|batch|reload|snapshot|bus|dashboard|assistant|process|go)_[a-z0-9_]+)(?:[^a-z0-9_(:]|$)`)
	named := 0
	for _, d := range dashboards {
		for _, r := range d.Rows {
			for _, panel := range r.Panels {
				for _, m := range metric.FindAllStringSubmatch(panel.Expr, -1) {
					named++
					if !strings.Contains(exported, "\n"+m[1]+"{") && !strings.Contains(exported, "\n"+m[1]+" ") {
						t.Errorf("panel %q: no service exports %s", panel.Title, m[1])
					}
				}
			}
		}
	}
	if named < 30 {
		t.Errorf("got %d metrics in the panels, want more than 30: the expression that finds them is wrong", named)
	}
}
