package learn

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"testing"
)

// Scores of scikit-learn's IsolationForest on the same rows (testdata/isolation.py), whose trees differ at random:
// means over its forests of 20 seeds. Our scores agree within the spread of those seeds.
func TestIsolationForestScoresLikeScikitLearn(t *testing.T) {
	t.Parallel()
	var want struct {
		Rows   [][]float32
		Label  []int
		Score  []float64 // mean
		Spread []float64 // standard deviation over the seeds
	}
	data, err := os.ReadFile("testdata/isolation.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	x := Matrix{Rows: len(want.Rows), Cols: len(want.Rows[0])}
	y := make([]float64, x.Rows)
	for i, r := range want.Rows {
		x.Data = append(x.Data, r...)
		y[i] = float64(want.Label[i])
	}
	m, err := Fit(context.Background(), Spec{Kind: "isolation_forest", Classes: 2, Seed: 1, Hyper: map[string]any{"contamination": 0.05}}, x, y, nil)
	if err != nil {
		t.Fatal(err)
	}
	iso := m.(*Isolation)
	var squares, spread float64
	flagged := 0
	for i := range want.Rows {
		got := iso.Score(x.Row(i))
		squares += (got - want.Score[i]) * (got - want.Score[i])
		spread += want.Spread[i] * want.Spread[i]
		if math.Abs(got-want.Score[i]) > 6*want.Spread[i]+0.005 {
			t.Errorf("row %d: score %.4f, scikit-learn's %.4f ± %.4f", i, got, want.Score[i], want.Spread[i])
		}
		flagged += int(m.Predict(x.Row(i)))
	}
	if ratio := math.Sqrt(squares / spread); ratio > 1.5 {
		t.Errorf("the scores differ from scikit-learn's mean by %.2f of its own spread, want at most 1.5", ratio)
	}
	if wantRows := x.Rows / 20; flagged != wantRows {
		t.Errorf("%d rows are anomalies, want the %d of the contamination", flagged, wantRows)
	}
	again, err := Fit(context.Background(), Spec{Kind: "isolation_forest", Classes: 2, Seed: 1, Hyper: map[string]any{"contamination": 0.05}}, x, y, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := again.(*Isolation).Score(x.Row(0)), iso.Score(x.Row(0)); a != b {
		t.Errorf("%v with the same seed, want %v", a, b)
	}
}

func TestMeanPath(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]float64{0: 0, 1: 0, 2: 1, 3: 1.207392357589623, 256: 10.244770920119917} {
		if got := meanPath(n); math.Abs(got-want) > 1e-12 {
			t.Errorf("%d rows: %v, want %v", n, got, want)
		}
	}
}
