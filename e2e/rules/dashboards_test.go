//go:build e2e

package rules

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

var update = flag.Bool("update", false, "write deploy/grafana/dashboards")

const grafana = "../../deploy/grafana"

// dashboard is one of panels.yaml.
type dashboard struct {
	File, Title string
	Rows        []struct {
		Title  string
		Panels []panel
	}
}

type panel struct {
	Title, Type, Expr, Legend, Unit string
	Threshold                       *float64
}

func readDashboards(t *testing.T) (all []dashboard) {
	t.Helper()
	readYAML(t, filepath.Join(grafana, "panels.yaml"), &all)
	if len(all) == 0 {
		t.Fatal("panels.yaml describes no dashboard")
	}
	return all
}

// The dashboards in JSON match panels.yaml.
func TestDashboardsAreUpToDate(t *testing.T) {
	for _, d := range readDashboards(t) {
		path := filepath.Join(grafana, "dashboards", d.File+".json")
		want, err := json.MarshalIndent(d.json(), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, '\n')
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != string(want) {
			t.Errorf("%s is not what panels.yaml says (%v): make dashboards", path, err)
		}
	}
}

// Prometheus accepts every expression. A panel states its subject and its unit.
func TestPanelsParse(t *testing.T) {
	var rules []map[string]string
	for _, d := range readDashboards(t) {
		for _, r := range d.Rows {
			for _, p := range r.Panels {
				if p.Title == "" || p.Expr == "" || p.Legend == "" || p.Unit == "" {
					t.Errorf("%s: the panel %+v lacks a title, an expression, a legend or a unit", d.File, p)
				}
				rules = append(rules, map[string]string{"record": fmt.Sprintf("panel:%d", len(rules)), "expr": p.Expr})
			}
		}
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "panels.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	runPromtool(t, "check", "rules", path)
}

// json is the dashboard as Grafana 10 and newer import it.
func (d dashboard) json() map[string]any {
	const width, height, perLine = 8, 8, 3
	source := map[string]string{"type": "prometheus", "uid": "${datasource}"}
	var panels []map[string]any
	y := 0
	for _, r := range d.Rows {
		panels = append(panels, map[string]any{
			"id": len(panels) + 1, "type": "row", "title": r.Title, "collapsed": false, "panels": []any{},
			"gridPos": map[string]int{"x": 0, "y": y, "w": width * perLine, "h": 1},
		})
		y++
		for i, p := range r.Panels {
			panels = append(panels, map[string]any{
				"id": len(panels) + 1, "type": p.kind(), "title": p.Title, "datasource": source,
				"gridPos":     map[string]int{"x": i % perLine * width, "y": y + i/perLine*height, "w": width, "h": height},
				"targets":     []any{map[string]any{"refId": "A", "datasource": source, "expr": p.Expr, "legendFormat": p.Legend}},
				"fieldConfig": map[string]any{"defaults": p.defaults(), "overrides": []any{}},
				"options":     p.options(),
			})
		}
		y += (len(r.Panels) + perLine - 1) / perLine * height
	}
	return map[string]any{
		"uid": "mlp-" + d.File, "title": d.Title, "tags": []string{"mlp-platform"}, "timezone": "utc", "schemaVersion": 39,
		"refresh": "30s", "time": map[string]string{"from": "now-6h", "to": "now"}, "editable": true, "panels": panels,
		"templating": map[string]any{"list": []any{map[string]any{
			"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": map[string]any{},
		}}},
		"links": []any{map[string]any{"title": "Platform", "type": "dashboards", "tags": []string{"mlp-platform"}, "asDropdown": true}},
	}
}

func (p panel) kind() string {
	if p.Type == "" {
		return "timeseries"
	}
	return p.Type
}

func (p panel) defaults() map[string]any {
	steps := []any{map[string]any{"color": "green", "value": nil}}
	custom := map[string]any{}
	if p.Threshold != nil {
		steps = append(steps, map[string]any{"color": "red", "value": *p.Threshold})
		custom["thresholdsStyle"] = map[string]string{"mode": "line"}
	}
	if p.Unit == "bool" { // 0 is wrong
		steps = []any{map[string]any{"color": "red", "value": nil}, map[string]any{"color": "green", "value": 1}}
	}
	unit := strings.Replace(p.Unit, "bool", "bool_yes_no", 1)
	return map[string]any{"unit": unit, "min": 0, "custom": custom, "thresholds": map[string]any{"mode": "absolute", "steps": steps}}
}

func (p panel) options() map[string]any {
	if p.kind() == "stat" {
		return map[string]any{"colorMode": "background", "textMode": "value_and_name", "reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}}}
	}
	return map[string]any{"legend": map[string]any{"displayMode": "table", "placement": "bottom", "calcs": []string{"lastNotNull", "max"}}, "tooltip": map[string]string{"mode": "multi"}}
}
