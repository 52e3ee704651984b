package fit

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/onnx/graph"
	"github.com/mlp-platform/platform/services/trainer/internal/dataset"
	"github.com/mlp-platform/platform/services/trainer/internal/export"
	"github.com/mlp-platform/platform/services/trainer/internal/external"
	"github.com/mlp-platform/platform/services/trainer/internal/frame"
)

// The feature that makes the target counts most, one that only repeats chance counts for nothing; the same seed gives
// the same figures.
func TestImportanceFindsWhatTheModelUses(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 3))
	const n = 600
	strong, weak, noise := make([]float32, n), make([]float32, n), make([]float32, n)
	on := rows{frame.Table{Rows: n}, frame.Target{Name: "y", Transform: modelrepo.TransformNone, Values: make([]float64, n)}}
	for i := range n {
		strong[i], weak[i], noise[i] = rng.Float32(), rng.Float32(), rng.Float32()
		on.target.Values[i] = 10*float64(strong[i]) + float64(weak[i])
	}
	md := &modelrepo.ModelDataset{}
	for name, values := range map[string][]float32{"noise": noise, "strong": strong, "weak": weak} {
		on.table.Columns = append(on.table.Columns, frame.Column{Name: name, Kind: modelrepo.Number, Num: values})
		md.Features = append(md.Features, modelrepo.Feature{Column: name, Kind: modelrepo.Number})
	}
	m := &modelrepo.Model{
		Type: modelrepo.Regression, Estimator: modelrepo.Estimator{Kind: "ridge", Seed: 1},
		Lifecycle: []modelrepo.Rung{{Name: "Staging", Metric: "rmse", Direction: modelrepo.Lower}},
	}
	fitted, err := fitModel(context.Background(), m, md, Commands{}, nil, on, nil, func(float64) {})
	if err != nil {
		t.Fatal(err)
	}
	got, err := fitted.importances(context.Background(), m, on)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, f := range got.Features {
		order = append(order, f.Feature)
	}
	if d := cmp.Diff([]string{"strong", "weak", "noise"}, order); d != "" || got.Metric != "rmse" || got.Rows != n {
		t.Errorf("got %+v; want the features in this order, on %d rows: %s", got, n, d)
	}
	// Shuffled, the strong feature is off by 10·(u-v) of two uniform values: an rmse of 10/√6 = 4.08.
	if w := got.Features[0].Worse; w < 3.7 || w > 4.5 {
		t.Errorf("the strong feature: got %.3f, want about 4.08", w)
	}
	if w := got.Features[2].Worse; w < -0.01 || w > 0.01 {
		t.Errorf("the noise: got %.4f, want about 0", w)
	}
	again, err := fitted.importances(context.Background(), m, on)
	if d := cmp.Diff(got, again); d != "" || err != nil {
		t.Errorf("the second time it differs (%v): %s", err, d)
	}
}

// However many rows and features there are, the rows are few enough for the predictions to stay within their limit.
func TestImportanceIsBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ test, features, want int }{
		{3648, 21, 793}, {100, 1, 100}, {1_000_000, 1, importanceMaxRows}, {1_000_000, 5000, importanceMinRows}, {10, 5000, 10},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			if got := importanceRows(c.test, c.features); got != c.want {
				t.Errorf("got %d rows, want %d", got, c.want)
			}
		})
	}
}

// A metric that is infinite on shuffled rows is left out: JSON, and so the report, has no infinity.
func TestImportanceThatOverflowsIsLeftOut(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 3))
	const n = 400
	a, b := make([]float32, n), make([]float32, n)
	on := rows{frame.Table{Rows: n}, frame.Target{Name: "y", Transform: modelrepo.TransformLog1p, Values: make([]float64, n)}}
	for i := range n { // only the small difference of two features that go together counts
		a[i] = rng.Float32()
		b[i] = a[i] + rng.Float32()/1000
		on.target.Values[i] = 4000 * float64(b[i]-a[i])
	}
	md := &modelrepo.ModelDataset{Features: []modelrepo.Feature{{Column: "a", Kind: modelrepo.Number}, {Column: "b", Kind: modelrepo.Number}}}
	on.table.Columns = []frame.Column{{Name: "a", Kind: modelrepo.Number, Num: a}, {Name: "b", Kind: modelrepo.Number, Num: b}}
	m := &modelrepo.Model{
		Type: modelrepo.Regression, Estimator: modelrepo.Estimator{Kind: "ridge", Seed: 1},
		Lifecycle: []modelrepo.Rung{{Name: "Staging", Metric: "rmse", Direction: modelrepo.Lower}},
	}
	fitted, err := fitModel(context.Background(), m, md, Commands{}, map[string]any{"alpha": 1e-9}, on, nil, func(float64) {})
	if err != nil {
		t.Fatal(err)
	}
	if shuffled, _, _, err := fitted.judge(context.Background(), rows{shuffleColumn(on.table, 0, rng.Perm(n)), on.target}); err != nil || isFinite(shuffled["rmse"]) {
		t.Fatalf("shuffled rows: rmse %v, %v; the test needs one that is not finite", shuffled["rmse"], err)
	}
	if got, err := fitted.importances(context.Background(), m, on); got != nil || err != nil {
		t.Errorf("got %+v, %v; want neither", got, err)
	}
}

// The graph of a command may refuse rows that no job ever had; the training succeeds without the importance.
func TestRefusedShuffledRowsFailNoTraining(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := graph.New("M", "test", "1")
	// Not a number unless x is above z, as it is in every row of the data set.
	b.Node("Sqrt", "root", []string{b.Node("Sub", "gap", []string{b.Input("x", graph.Float, -1, 1), b.Input("z", graph.Float, -1, 1)})})
	b.Node("Concat", export.Probabilities, []string{"root", "root"}, graph.AttrInt("axis", 1))
	b.Node("ArgMax", export.Label, []string{export.Probabilities}, graph.AttrInt("axis", 1), graph.AttrInt("keepdims", 0))
	b.Output(export.Label, graph.Int64, -1)
	b.Output(export.Probabilities, graph.Float, -1, 2)
	data, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "graph"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	argv := []string{"sh", "-c", "cp " + dir + `/graph "$OUT_DIR/model.onnx"`}
	const n = 200
	jobs := &dataset.Rows{N: n, Num: map[string][]float64{"x": make([]float64, n), "z": make([]float64, n)}, Cat: map[string][]string{"c": make([]string, n)}}
	for i := range n {
		jobs.Num["x"][i], jobs.Num["z"][i], jobs.Cat["c"][i] = float64(i)+0.25, float64(i), fmt.Sprint(i%2)
	}
	md := &modelrepo.ModelDataset{Name: "Jobs", Target: modelrepo.Target{Column: "c"}, Features: []modelrepo.Feature{
		{Column: "x", Kind: modelrepo.Number, Transform: "none"}, {Column: "z", Kind: modelrepo.Number, Transform: "none"},
	}}
	m := &modelrepo.Model{Name: "M", Type: modelrepo.Classification, Split: modelrepo.Split{Kind: "random", Fractions: []float64{0.6, 0.2, 0.2}, Seed: 1},
		Estimator: modelrepo.Estimator{Kind: modelrepo.EstimatorCommand, Command: argv},
		Lifecycle: []modelrepo.Rung{{Name: "Staging", Metric: "accuracy", Direction: modelrepo.Higher}}}
	s, err := jobs.Sample(m.Type, md)
	if err != nil {
		t.Fatal(err)
	}
	commands := Commands{Dir: dir, Config: external.Config{Allow: [][]string{argv}, Timeout: time.Minute, Log: slog.New(slog.DiscardHandler)}}
	r, err := Run(context.Background(), m, s, &modelrepo.Dataset{}, md, commands, func(float64) {})
	if err != nil {
		t.Fatalf("got %v, want a fit", err)
	}
	t.Cleanup(func() { _ = r.Graph.Close() })
	if _, known := r.Metrics["accuracy"]; r.Importance != nil || !known {
		t.Errorf("importance %+v, metrics %v; want none, and an accuracy", r.Importance, r.Metrics)
	}
}
