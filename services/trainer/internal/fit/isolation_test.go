package fit

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer/internal/dataset"
)

// A model of anomalies is judged by the five metrics of its type alone, and finds rows that are unlike the others.
func TestAnomalies(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	rows := &dataset.Rows{N: 2000, Num: map[string][]float64{}, Cat: map[string][]string{"state": make([]string, 2000)}}
	for _, name := range []string{"a", "b", "c"} {
		rows.Num[name] = make([]float64, rows.N)
	}
	for i := range rows.N {
		rows.Cat["state"][i] = "common"
		for _, c := range rows.Num {
			c[i] = rng.NormFloat64()
		}
		if i%20 == 0 {
			rows.Cat["state"][i] = "odd"
			for _, c := range rows.Num {
				c[i] = 12*rng.Float64() - 6
			}
		}
	}
	md := &modelrepo.ModelDataset{Name: "Readings", Target: modelrepo.Target{Column: "state", Labels: []string{"common", "odd"}}}
	for _, name := range []string{"a", "b", "c"} {
		md.Features = append(md.Features, modelrepo.Feature{Column: name, Kind: modelrepo.Number, Transform: "none"})
	}
	m := &modelrepo.Model{Name: "Odd", Type: modelrepo.Anomaly, Split: modelrepo.Split{Kind: "random", Fractions: []float64{0.6, 0.2, 0.2}, Seed: 1},
		Estimator: modelrepo.Estimator{Kind: "isolation_forest", Seed: 1, Hyperparameters: map[string]any{"contamination": []any{0.02, 0.05}}}}
	s, err := rows.Sample(m.Type, md)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), m, s, &modelrepo.Dataset{}, md, Commands{}, func(float64) {})
	if err != nil {
		t.Fatal(err)
	}
	var plain []string
	for name := range maps.Keys(modelrepo.MetricsOf(m.Type, 2)) {
		plain = append(plain, name)
		if _, ok := r.Metrics[name]; !ok {
			t.Errorf("no metric %s", name)
		}
	}
	for name := range r.Metrics {
		if name != "skill" && !slices.Contains(plain, name) && !slices.Contains(plain, name[len("val_"):]) {
			t.Errorf("metric %s is none of the type's", name)
		}
	}
	if r.Metrics["roc_auc"] < 0.95 || r.Baselines["baseline_roc_auc"] != 0.5 {
		t.Errorf("roc_auc %v, of the baseline %v; want at least 0.95, and 0.5", r.Metrics["roc_auc"], r.Baselines["baseline_roc_auc"])
	}
}
