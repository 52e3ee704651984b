//go:build e2e

package stranger

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/e2e/harness"
)

// server is a service with its OpenAPI document.
type server struct {
	name, url string
	document  string      // path of the document
	least     int         // the minimum number of operations
	header    http.Header // headers for reading it
}

func (s server) port() string { return hostOf(s.url) }

func services(p *harness.Platform) []server {
	return []server{
		{name: "control plane", url: p.Env["CONTROL_PLANE_URL"], document: "/openapi.json", least: 10},
		{name: "inference", url: p.Env["SERVING_URL"], document: "/openapi.json", least: 10},
		{name: "bus bridge", url: p.Env["BUS_BRIDGE_URL"], document: "/openapi.json", least: 5},
		{name: "assistant", url: p.Env["ASSISTANT_URL"], document: "/openapi.json", least: 10},
		{name: "dashboard", url: "http://" + p.Setting("DASHBOARD_ADDR"), document: "/openapi.json", least: 10},
		{name: "evidence API", url: p.Env["SVC_CONTROL_TOWER_URL"], document: "/api/v1/openapi.json", least: 10,
			header: http.Header{"X-Svc-Ui-Token": {p.Env["SVC_CONTROL_TOWER_TOKEN"]}}},
	}
}

// operation is one operation of a document.
type operation struct {
	method, template string
	public           bool
	level            string // the scope or role in the summary; empty: any credential
}

func (o operation) writes() bool { return o.method != http.MethodGet && o.method != http.MethodHead }

// path fills the parameters: with the known values, else with ones that name nothing.
func (o operation) path(known map[string]string) string {
	return parameter.ReplaceAllStringFunc(o.template, func(p string) string {
		name := strings.Trim(p, "{}")
		if v := known[name]; v != "" {
			return v
		}
		if v := samples[name]; v != "" {
			return v
		}
		return "01930000-0000-7000-8000-000000000001"
	})
}

var (
	parameter = regexp.MustCompile(`\{[^}]+\}`)
	// level matches the end of a summary: [scope] or (role, further conditions).
	level   = regexp.MustCompile(`(?:\[([a-z ]+)\]|\((public|viewer|admin)(?:, [a-z-]+)?\))$`)
	samples = map[string]string{
		"model": "JPCP", "model_name": "JPCP", "model_id": "JPCP", "name": "JPCP", "alias": "Production", "version": "1", "file": "x.png",
		"project": "samples", "scheduler": "mock", "provider": "x", "service": "tracker", "path": "health", "type": "model", "key": "x",
	}
)

// unnamedLevels are the levels that summaries leave to the manual: according to docs/assistant.md, readonly keys decide
// nothing, and send no alerts.
var unnamedLevels = map[string]string{"POST /v1/sessions/{session_id}/actions/{action_id}": "operator", "POST /v1/alerts": "operator"}

// operations reads the document that a running service publishes.
func operations(t *testing.T, s server) (out []operation) {
	t.Helper()
	type op struct {
		Summary  string            `json:"summary"`
		Security *[]map[string]any `json:"security"`
	}
	var doc struct {
		Security []map[string]any                      `json:"security"`
		Paths    map[string]map[string]json.RawMessage `json:"paths"`
	}
	fetchJSON(t, s.url+s.document, s.header, &doc)
	methods := []string{"get", "head", "post", "put", "patch", "delete"}
	for path, item := range doc.Paths {
		for method, raw := range item {
			if !slices.Contains(methods, method) { // such as the parameters that all share
				continue
			}
			var o op
			if err := json.Unmarshal(raw, &o); err != nil {
				t.Fatalf("%s: %s %s: %v", s.name, method, path, err)
			}
			security := doc.Security
			if o.Security != nil {
				security = *o.Security
			}
			row := operation{method: strings.ToUpper(method), template: path, public: len(security) == 0}
			if m := level.FindStringSubmatch(strings.TrimSpace(o.Summary)); m != nil {
				row.level = m[1] + m[2]
			}
			if l := unnamedLevels[row.method+" "+path]; l != "" {
				row.level = l
			}
			out = append(out, row)
		}
	}
	if len(out) < s.least {
		t.Fatalf("%s: got %d operations, want at least %d", s.name, len(out), s.least)
	}
	slices.SortFunc(out, func(a, b operation) int { return strings.Compare(a.template+" "+a.method, b.template+" "+b.method) })
	return out
}
