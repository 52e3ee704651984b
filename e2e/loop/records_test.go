//go:build e2e

package loop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/e2e/harness"
)

// The first start leaves records, so that no screen of the dashboard is empty: for each sample its job, its synthetic
// cost, its passed evaluation and its compliance record; and their project's budget.
func TestTheFirstStartIsOnRecord(t *testing.T) {
	p := sharedPlatform(t)
	list := func(path string) []map[string]any {
		return listItems(t, harness.Want(t, 200, "GET", p.Env["CONTROL_PLANE_URL"]+path+"?limit=500", p.Env["CONTROL_PLANE_TOKEN"], nil))
	}
	for _, tt := range []struct {
		path string
		key  string // names the model
		want map[string]any
	}{
		{"/jobs", "model", map[string]any{"scheduler": "mock", "cluster": "local", "partition": "inline", "state": "COMPLETED"}},
		{"/costs", "model", map[string]any{"scheduler": "mock", "synthetic": true, "project": "samples"}},
		{"/evals", "model", map[string]any{"suite": "held-out test", "status": "passed", "passRate": 1.0}},
		{"/compliance", "model", map[string]any{"riskClass": "minimal", "version": "1"}},
	} {
		seen := map[string]bool{}
		rows := list(tt.path)
		for _, row := range rows {
			matches := row["updated_by"] == "system:seed"
			for k, v := range tt.want {
				matches = matches && row[k] == v
			}
			if matches {
				seen[strings.ToUpper(fmt.Sprint(row[tt.key]))] = true
			}
		}
		for _, s := range samples {
			if !seen[s] {
				t.Errorf("%s has no row of %s by system:seed with %v, got %v", tt.path, s, tt.want, rows)
			}
		}
	}
	for _, row := range list("/compliance") {
		if row["updated_by"] == "system:seed" && len(fmt.Sprint(row["provenance"])) != 64 {
			t.Errorf("compliance of %v: provenance %v, want the artifact's SHA-256", row["model"], row["provenance"])
		}
	}
	found := false
	for _, row := range list("/budgets") {
		found = found || row["project"] == "samples" && row["costBudget"] == 50.0 && row["overBudget"] == false
	}
	if !found {
		t.Errorf("budgets %v, want 50 USD of project samples, not exceeded", list("/budgets"))
	}
}
