package score

import (
	"math"
	"testing"

	"github.com/mlp-platform/platform/services/trainer/internal/dataset"
	"github.com/mlp-platform/platform/services/trainer/internal/frame"
)

func requireSameScores(t *testing.T, got map[string]float64, want map[string]float64) {
	t.Helper()
	for name, w := range want {
		if g, ok := got[name]; !ok || math.Abs(g-w) > 1e-9*max(1, math.Abs(w)) {
			t.Errorf("%s is %v, want %v", name, g, w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("metrics %v, want %d of them", got, len(want))
	}
}

// The expected values are scikit-learn 1.9's.
func TestRegression(t *testing.T) {
	t.Parallel()
	requireSameScores(t, Regression([]float64{1, 0, 10, 250, 3600}, []float64{2, -1, 8, 300, 1800}), map[string]float64{
		"mse": 648501.2, "rmse": math.Sqrt(648501.2), "mae": 370.8, "r2": 0.6770777986014492, "mape": 0.475, "male": 0.2961325295320655,
	})
	// Equal values have no spread to explain, and -1 has no logarithm.
	requireSameScores(t, Regression([]float64{-1, -1}, []float64{-1, -3}), map[string]float64{"mse": 2, "rmse": math.Sqrt2, "mae": 1, "mape": 1})
	requireSameScores(t, Regression([]float64{0, 0}, []float64{0, 0}), map[string]float64{"mse": 0, "rmse": 0, "mae": 0, "male": 0})
}

func TestBinary(t *testing.T) {
	t.Parallel()
	want := []int{0, 1, 1, 0, 1, 0, 1, 1}
	p := []float64{.1, .4, .35, .35, .8, .6, .6, .9}
	var got []int
	var proba [][]float64
	for _, v := range p {
		proba = append(proba, []float64{1 - v, v})
		if v > 0.5 {
			got = append(got, 1)
		} else {
			got = append(got, 0)
		}
	}
	requireSameScores(t, Classification(want, got, proba, 2), map[string]float64{
		"accuracy": 0.625, "f1_macro": 0.6190476190476191, "f1_weighted": 0.6309523809523809, "log_loss": 0.5322345888419119,
		"precision": 0.75, "recall": 0.6, "f1": 2. / 3, "roc_auc": 0.8, "pr_auc": 0.8528571428571428,
	})
	// One class only: no curve.
	one := Classification([]int{1, 1}, []int{1, 1}, [][]float64{{0, 1}, {0, 1}}, 2)
	if _, ok := one["roc_auc"]; ok || one["accuracy"] != 1 || one["f1_macro"] != 1 {
		t.Errorf(`one class: %v; want !ok && one["accuracy"] == 1 && one["f1_macro"] == 1`, one)
	}
}

func TestClasses(t *testing.T) {
	t.Parallel()
	proba := [][]float64{{.7, .2, .1, 0}, {.1, .3, .6, 0}, {.2, .2, .6, 0}, {.1, .1, .8, 0}, {.2, .5, .3, 0}, {.3, .6, .1, 0}, {.5, .1, .4, 0}}
	// The fourth class never occurs and must not weigh in the mean.
	requireSameScores(t, Classification([]int{0, 1, 2, 2, 1, 0, 2}, []int{0, 2, 2, 2, 1, 1, 0}, proba, 4), map[string]float64{
		"accuracy": 4. / 7, "f1_macro": 5. / 9, "f1_weighted": 4. / 7, "log_loss": 0.7297182343007008,
	})
}

func TestSkill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		model, base float64
		higher      bool
		want        float64
		ok          bool
	}{{0.5, 1, false, 0.5, true}, {2, 1, false, -1, true}, {0.8, 0.6, true, 0.5, true}, {0.5, 0, false, 0, false}, {1, 1, true, 0, false}} {
		if got, ok := Skill(c.model, c.base, c.higher); math.Abs(got-c.want) > 1e-12 || ok != c.ok {
			t.Errorf("%+v: %v, %v; want math.Abs(got - c.want) <= 1e-12 && ok == c.ok", c, got, ok)
		}
	}
}

// Jobs of two users; user 2 has an application of his own from the fourth job on.
func sampleJobs() *dataset.Sample {
	return &dataset.Sample{
		Rows: &dataset.Rows{N: 6, Num: map[string][]float64{
			"user": {1, 1, 2, 2, 2, 3}, "app": {7, 7, 7, 9, 9, 1},
			"submit": {0, 10, 20, 30, 40, 50}, "end": {5, 45, 21, 200, 48, 60},
		}},
		Target: frame.Target{Values: []float64{5, 35, 1, 170, 8, 10}},
	}
}

func TestBaselines(t *testing.T) {
	t.Parallel()
	s := sampleJobs()
	b, err := NewBaseline(s, [][]string{{"user", "app"}, {"user"}})
	if err != nil {
		t.Fatal(err)
	}
	fit, test := []int{0, 1, 2}, []int{3, 4, 5}
	// User 2 with application 9 is new, so his other job counts; user 3 is new, so all do.
	if g := b.Fixed(fit, test); g.Values[0] != 1 || g.Values[1] != 1 || g.Values[2] != 5 {
		t.Errorf("fixed %v; want g.Values[0] == 1 && g.Values[1] == 1 && g.Values[2] == 5", g.Values)
	}
	// At 40 the job of 30 still runs. At 50 four have ended: 5, 35, 1, 8.
	if g := b.Running(s.Rows.Num["submit"], s.Rows.Num["end"], test); g.Values[0] != 1 || g.Values[1] != 1 || g.Values[2] != 6.5 {
		t.Errorf("running %v; want g.Values[0] == 1 && g.Values[1] == 1 && g.Values[2] == 6.5", g.Values)
	}
	if n := b.Unseen(fit, test); n != 3 {
		t.Errorf("unseen %d; want 3", n)
	}
	if _, err := NewBaseline(s, [][]string{{"color"}}); err == nil {
		t.Error("a grouping by a column that does not exist")
	}
	s.Target = frame.Target{Class: true, Labels: []string{"a", "b"}, Y: []int{0, 1, 1, 0, 0, 0}}
	if b, err = NewBaseline(s, nil); err != nil {
		t.Fatal(err)
	}
	g := b.Fixed(fit, test)
	if g.Classes[0] != 1 || math.Abs(g.Proba[0][1]-3./5) > 1e-12 || b.Unseen(fit, test) != 0 {
		t.Errorf("majority %v, shares %v; want g.Classes[0] == 1 && math.Abs(g.Proba[0][1] - 3./5) <= 1e-12 && b.Unseen(fit, test) == 0", g.Classes, g.Proba)
	}
	if got := g.Metrics(s.Target.Select(test)); got["accuracy"] != 0 || got["log_loss"] <= 0 {
		t.Errorf(`metrics %v; want got["accuracy"] == 0 && got["log_loss"] > 0`, got)
	}
}

// A test job's own outcome must not change the guess for it or for jobs before its end.
func TestRunningBaselineDoesNotLeak(t *testing.T) {
	t.Parallel()
	s := sampleJobs()
	test := []int{3, 4, 5}
	guess := func() []float64 {
		b, err := NewBaseline(s, [][]string{{"user"}})
		if err != nil {
			t.Fatal(err)
		}
		return b.Running(s.Rows.Num["submit"], s.Rows.Num["end"], test).Values
	}
	before := guess()
	s.Target.Values[3] = 1e9 // still running when the others are submitted
	s.Target.Values[5] = 1e9
	for i, v := range guess() {
		if v != before[i] {
			t.Errorf("guess %d: %v became %v; want v == %v", i, before[i], v, before[i])
		}
	}
}
