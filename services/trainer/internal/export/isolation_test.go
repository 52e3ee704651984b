package export

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"testing"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/services/trainer/internal/frame"
	"github.com/mlp-platform/platform/services/trainer/internal/learn"
)

// The graph of an isolation forest scores each row as the forest itself does, within 2e-5, and labels it by the
// threshold.
func TestIsolationForestParity(t *testing.T) {
	t.Parallel()
	table, _, target := sampleJobs(2000)
	target.Labels, target.Anomaly = []string{"common", "odd"}, true
	for i, c := range target.Y {
		target.Y[i] = min(c, 1)
	}
	p, err := FitTransforms(sampleFeatures("log1p", "ordinal"), table)
	if err != nil {
		t.Fatal(err)
	}
	x, err := p.Apply(table)
	if err != nil {
		t.Fatal(err)
	}
	fitted, err := learn.Fit(context.Background(), learn.Spec{Kind: "isolation_forest", Classes: 2, Seed: 3}, x, learnedTarget(target), nil)
	if err != nil {
		t.Fatal(err)
	}
	m := fitted.(*learn.Isolation)
	dir := t.TempDir()
	if _, err := Write(dir, Meta{Model: "M", Dataset: "D", Estimator: "isolation_forest"}, p, m, target); err != nil {
		t.Fatal(err)
	}
	s, err := runtime.Open(filepath.Join(dir, ModelFile), runtime.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	out, err := s.Run(p.tensors(table))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]runtime.Tensor{}
	for _, o := range out {
		got[o.Name] = o
	}
	worst, odd := 0.0, 0
	for i := range table.Rows {
		score := m.Score(x.Row(i))
		answered := float64(got[Probabilities].Floats[2*i+1])
		worst = max(worst, math.Abs(answered-score))
		if label := got[Label].Strings[i]; (label == "odd") != (answered >= float64(m.Threshold)) {
			t.Errorf("row %d: label %s with the score %v, threshold %v", i, label, answered, m.Threshold)
		} else if label == "odd" {
			odd++
		}
	}
	if worst > 2e-5 {
		t.Errorf("the scores differ by up to %g, want at most 2e-5", worst)
	}
	if odd != table.Rows/10 {
		t.Errorf("%d rows are odd, want the tenth that is the contamination", odd)
	}
	if err := errors.Join(Verify(dir, table, p, m, target), Verify(dir, table.Select([]int{7}), p, m, target)); err != nil {
		t.Error(err)
	}
	if target.Class && taskOf(frame.Target{Class: true, Anomaly: true}) != "anomaly" {
		t.Error("platform.json does not say anomaly")
	}
}
