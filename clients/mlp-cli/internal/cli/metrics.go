package cli

import (
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"strings"
)

// metricGrid sets each test metric beside its baselines.
func metricGrid(metrics, baseline map[string]float64) output.Grid {
	g := output.Grid{Columns: []string{"Metric", "Value", "Baseline (fixed)", "Baseline (running)"}, Empty: "No metrics."}
	value := func(k string) any {
		for _, m := range []map[string]float64{baseline, metrics} {
			if v, ok := m[k]; ok {
				return v
			}
		}
		return nil
	}
	for _, k := range sortedKeys(metrics) {
		if strings.HasPrefix(k, "baseline_") || strings.HasPrefix(k, "val_") {
			continue
		}
		g.Rows = append(g.Rows, []any{k, metrics[k], value("baseline_" + k), value("baseline_running_" + k)})
	}
	return g
}
