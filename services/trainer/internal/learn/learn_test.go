package learn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// sampleTable makes rows of 8 features, a number that depends on three of them, and three classes of it.
func sampleTable(rows int) (x Matrix, number, class []float64) {
	rng := rand.New(rand.NewPCG(1, 1))
	x = Matrix{Rows: rows, Cols: 8}
	for range rows {
		row := make([]float32, 8)
		for j := range row {
			row[j] = float32(rng.NormFloat64())
		}
		row[7] = float32(rng.IntN(5)) // few distinct values
		v := 3*math.Abs(float64(row[0])) + 2*float64(row[1])*float64(row[7]) + float64(row[2])
		c := 0.0
		if v > 2 {
			c = 1
		}
		if v > 6 {
			c = 2
		}
		x.Data = append(x.Data, row...)
		number = append(number, v)
		class = append(class, c)
	}
	return x, number, class
}

func fitModel(t testing.TB, s Spec, x Matrix, y []float64) Model {
	t.Helper()
	m, err := Fit(context.Background(), s, x, y, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var specs = []Spec{
	{Kind: "ridge"},
	{Kind: "logistic", Classes: 3},
	{Kind: "random_forest", Hyper: map[string]any{"n_estimators": 12}},
	{Kind: "random_forest", Classes: 3, Hyper: map[string]any{"n_estimators": 12, "class_weight": "balanced", "max_depth": 8}},
	{Kind: "gbt", Hyper: map[string]any{"n_estimators": 12, "subsample": 0.7, "colsample": 0.6, "early_stopping_rounds": 3}},
	{Kind: "gbt", Hyper: map[string]any{"n_estimators": 12, "loss": "absolute_error", "max_leaves": 0, "max_depth": 4}},
	{Kind: "gbt", Classes: 3, Hyper: map[string]any{"n_estimators": 12, "subsample": 0.7, "l2": 1}},
}

func (s Spec) name() string { return fmt.Sprint(s.Kind, s.Classes, s.Hyper) }

// The same seed and data give the same model, however many processors work on it; another seed another.
func TestDeterministic(t *testing.T) {
	x, number, class := sampleTable(2000)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, s := range specs {
		y := number
		if s.Classes > 0 {
			y = class
		}
		s.Seed = 5
		runtime.GOMAXPROCS(1)
		one := fitModel(t, s, x, y)
		runtime.GOMAXPROCS(4)
		for range 2 {
			if !reflect.DeepEqual(one, fitModel(t, s, x, y)) {
				t.Errorf("%s: two fits differ", s.name())
			}
		}
		if s.Kind == "random_forest" {
			s.Seed = 6
			if reflect.DeepEqual(one, fitModel(t, s, x, y)) {
				t.Errorf("%s: the seed changes nothing; want !reflect.DeepEqual(one, fitModel(t, s, x, y))", s.name())
			}
		}
	}
}

func rootMeanSquaredError(m Model, x Matrix, y []float64) float64 {
	sum := 0.0
	for i := range y {
		d := m.Predict(x.Row(i)) - y[i]
		sum += d * d
	}
	return math.Sqrt(sum / float64(len(y)))
}

func classAccuracy(m Model, x Matrix, y []float64) float64 {
	right := 0.0
	for i := range y {
		if m.Predict(x.Row(i)) == y[i] {
			right++
		}
	}
	return right / float64(len(y))
}

func splitTable(x Matrix, at int) (Matrix, Matrix) {
	return Matrix{at, x.Cols, x.Data[:at*x.Cols]}, Matrix{x.Rows - at, x.Cols, x.Data[at*x.Cols:]}
}

// Unlimited trees learn the training rows by heart; with usual settings every estimator beats the mean or
// the majority on rows it has not seen.
func TestLearns(t *testing.T) {
	t.Parallel()
	x, number, class := sampleTable(3000)
	train, test := splitTable(x, 2000)
	byHeart := map[string]any{"n_estimators": 1, "bootstrap": false, "max_features": "all"}
	if e := rootMeanSquaredError(fitModel(t, Spec{Kind: "random_forest", Hyper: byHeart}, train, number[:2000]), train, number[:2000]); e > 0.05 {
		t.Errorf("a full tree has rmse %v on its own rows; want e <= 0.05", e)
	}
	if a := classAccuracy(fitModel(t, Spec{Kind: "random_forest", Hyper: byHeart, Classes: 3}, train, class[:2000]), train, class[:2000]); a < 0.999 {
		t.Errorf("a full tree has accuracy %v on its own rows; want a >= 0.999", a)
	}
	if e := rootMeanSquaredError(fitModel(t, Spec{Kind: "gbt", Hyper: map[string]any{"n_estimators": 300, "min_samples_leaf": 1}}, train, number[:2000]), train, number[:2000]); e > 0.1 {
		t.Errorf("long boosting has rmse %v on its own rows; want e <= 0.1", e)
	}
	for _, c := range []struct {
		spec Spec
		want float64 // rmse at most, or accuracy at least
	}{
		{Spec{Kind: "ridge"}, 4}, // the mean has 4.6
		{Spec{Kind: "random_forest"}, 2},
		{Spec{Kind: "gbt"}, 1.1},
		{Spec{Kind: "gbt", Hyper: map[string]any{"loss": "absolute_error"}}, 1.4},
		{Spec{Kind: "gbt", Hyper: map[string]any{"n_estimators": 2000, "early_stopping_rounds": 5}}, 1.1},
		{Spec{Kind: "logistic", Classes: 3}, 0.62}, // the majority has 0.53
		{Spec{Kind: "random_forest", Classes: 3}, 0.8},
		{Spec{Kind: "gbt", Classes: 3}, 0.85},
	} {
		if c.spec.Classes == 0 {
			if e := rootMeanSquaredError(fitModel(t, c.spec, train, number[:2000]), test, number[2000:]); e > c.want {
				t.Errorf("%s: rmse %v, want at most %v", c.spec.name(), e, c.want)
			}
			continue
		}
		m := fitModel(t, c.spec, train, class[:2000])
		if a := classAccuracy(m, test, class[2000:]); a < c.want {
			t.Errorf("%s: accuracy %v, want at least %v", c.spec.name(), a, c.want)
		}
		p := make([]float64, 3)
		for i := range test.Rows {
			m.Proba(test.Row(i), p)
			if sum := p[0] + p[1] + p[2]; math.Abs(sum-1) > 1e-4 || min(p[0], p[1], p[2]) < 0 {
				t.Fatalf("%s: probabilities %v; want math.Abs(sum - 1) <= 1e-4 && min(p[0], p[1], p[2]) >= 0", c.spec.name(), p)
			}
		}
	}
}

// The unit of the target must not matter.
func TestScaleOfTarget(t *testing.T) {
	t.Parallel()
	x, number, _ := sampleTable(500)
	tiny, far := make([]float64, 500), make([]float64, 500)
	for i, v := range number {
		tiny[i], far[i] = v*1e-9, v+1e6
	}
	for _, kind := range []string{"ridge", "random_forest", "gbt"} {
		s := Spec{Kind: kind}
		want := rootMeanSquaredError(fitModel(t, s, x, number), x, number)
		if got := rootMeanSquaredError(fitModel(t, s, x, tiny), x, tiny) * 1e9; math.Abs(got-want) > 0.01*want {
			t.Errorf("%s: rmse %v for a small unit, %v otherwise", kind, got, want)
		}
		// float32 scores near a million have steps of 0.06.
		if got := rootMeanSquaredError(fitModel(t, s, x, far), x, far); math.Abs(got-want) > 0.1*want {
			t.Errorf("%s: rmse %v far from zero, %v otherwise", kind, got, want)
		}
	}
}

// The median minimises absolute error: a tenth of wild rows must not move it.
func TestAbsoluteErrorEstimatesMedian(t *testing.T) {
	t.Parallel()
	x, y := Matrix{Rows: 400, Cols: 1, Data: make([]float32, 400)}, make([]float64, 400)
	for i := range y {
		x.Data[i] = float32(i % 2)
		y[i] = 10 * float64(i%2)
		if i%10 < 2 {
			y[i] = 1e6
		}
	}
	m := fitModel(t, Spec{Kind: "gbt", Hyper: map[string]any{"loss": "absolute_error", "learning_rate": 1, "n_estimators": 5}}, x, y)
	for v := range 2 {
		if got := m.Predict([]float32{float32(v)}); math.Abs(got-10*float64(v)) > 1e-3 {
			t.Errorf("group %d: %v; want math.Abs(got - 10*float64(v)) <= 1e-3", v, got)
		}
	}
}

// Early stopping keeps the trees up to the best round.
func TestEarlyStopping(t *testing.T) {
	t.Parallel()
	x, number, _ := sampleTable(600)
	rng := rand.New(rand.NewPCG(2, 2))
	for i := range number {
		number[i] += 10 * rng.NormFloat64()
	}
	m := fitModel(t, Spec{Kind: "gbt", Hyper: map[string]any{"n_estimators": 1000, "early_stopping_rounds": 10}}, x, number).(*Ensemble)
	if n := len(m.Trees); n == 0 || n > 200 {
		t.Errorf("%d trees kept of 1000; want n != 0 && n <= 200", n)
	}
}

func TestLinearModelsAsScikitLearn(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/linear.json")
	if err != nil {
		t.Fatal(err)
	}
	var fixed struct {
		X, Test  []float32
		Features int
		Cases    []struct {
			Kind    string
			Hyper   map[string]any
			Classes int
			Y       []float64
			Want    [][]float64
		}
	}
	if err := json.Unmarshal(data, &fixed); err != nil {
		t.Fatal(err)
	}
	matrix := func(v []float32) Matrix { return Matrix{len(v) / fixed.Features, fixed.Features, v} }
	test := matrix(fixed.Test)
	for _, c := range fixed.Cases {
		m := fitModel(t, Spec{Kind: c.Kind, Hyper: c.Hyper, Classes: c.Classes}, matrix(fixed.X), c.Y)
		for i, want := range c.Want {
			got := make([]float64, len(want))
			m.Proba(test.Row(i), got)
			for k := range want {
				if math.Abs(got[k]-want[k]) > 1e-4 {
					t.Fatalf("%s %v: row %d answers %v, scikit-learn %v", c.Kind, c.Hyper, i, got, want)
				}
			}
		}
	}
}

// A target that does not vary, features that do not, and hardly any rows still make a model.
func TestPoorData(t *testing.T) {
	t.Parallel()
	constant := Matrix{4, 2, make([]float32, 8)}
	for _, s := range []Spec{{Kind: "ridge"}, {Kind: "random_forest"}, {Kind: "gbt"}, {Kind: "gbt", Hyper: map[string]any{"loss": "absolute_error", "early_stopping_rounds": 2}}} {
		if got := fitModel(t, s, constant, []float64{7, 7, 7, 7}).Predict([]float32{1, 2}); math.Abs(got-7) > 1e-5 {
			t.Errorf("%s answers %v for a constant 7; want math.Abs(got - 7) <= 1e-5", s.name(), got)
		}
		if got := fitModel(t, s, Matrix{1, 2, []float32{1, 2}}, []float64{3}).Predict([]float32{1, 2}); math.Abs(got-3) > 1e-5 {
			t.Errorf("%s answers %v after one row of 3; want math.Abs(got - 3) <= 1e-5", s.name(), got)
		}
	}
	for _, kind := range []string{"logistic", "random_forest", "gbt"} {
		m := fitModel(t, Spec{Kind: kind, Classes: 3}, constant, []float64{0, 2, 2, 2}) // class 1 never occurs
		if got := m.Predict([]float32{0, 0}); got != 2 {
			t.Errorf("%s answers class %v, the majority is 2; want got == 2", kind, got)
		}
	}
	if got := fitModel(t, Spec{Kind: "random_forest", Classes: 20}, Matrix{4, 1, []float32{1, 2, 3, 4}}, []float64{0, 19, 19, 19}).Predict([]float32{9}); got != 19 {
		t.Errorf("20 classes: %v; want 19", got)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	x, number, class := sampleTable(10)
	nan := x
	nan.Data = append([]float32(nil), x.Data...)
	nan.Data[3*8+2] = float32(math.NaN())
	flat := Matrix{10, 2, make([]float32, 20)}
	for want, c := range map[string]struct {
		spec Spec
		x    Matrix
		y    []float64
	}{
		"estimator \"svm\" is unknown":               {Spec{Kind: "svm"}, x, number},
		"estimator logistic does not suit type regr": {Spec{Kind: "logistic"}, x, number},
		"estimator ridge does not suit type class":   {Spec{Kind: "ridge", Classes: 2}, x, class},
		"at least 2 classes":                         {Spec{Kind: "gbt", Classes: 1}, x, class},
		`no hyperparameter "alhpa"; known are alpha`: {Spec{Kind: "ridge", Hyper: map[string]any{"alhpa": 1}}, x, number},
		"class_weight":                               {Spec{Kind: "random_forest", Hyper: map[string]any{"class_weight": "balanced"}}, x, number},
		"n_estimators is 1.5":                        {Spec{Kind: "gbt", Hyper: map[string]any{"n_estimators": 1.5}}, x, number},
		"learning_rate is fast":                      {Spec{Kind: "gbt", Hyper: map[string]any{"learning_rate": "fast"}}, x, number},
		"bootstrap is yes, want true or false":       {Spec{Kind: "random_forest", Hyper: map[string]any{"bootstrap": "yes"}}, x, number},
		"max_features is some":                       {Spec{Kind: "random_forest", Hyper: map[string]any{"max_features": "some"}}, x, number},
		"there is no data":                           {Spec{Kind: "gbt"}, Matrix{}, nil},
		"79 values for 10 rows":                      {Spec{Kind: "gbt"}, Matrix{10, 8, x.Data[:79]}, number},
		"9 targets for 10 rows":                      {Spec{Kind: "gbt"}, x, number[:9]},
		"row 3, feature 2 is NaN":                    {Spec{Kind: "random_forest"}, nan, number},
		"row 0 has target +Inf":                      {Spec{Kind: "ridge"}, x, append([]float64{math.Inf(1)}, number[1:]...)},
		"row 9 has class 3":                          {Spec{Kind: "gbt", Classes: 3}, x, append(append([]float64{}, class[:9]...), 3)},
		"all rows have the same class":               {Spec{Kind: "logistic", Classes: 2}, x, make([]float64, 10)},
		"constant or follow from others":             {Spec{Kind: "ridge", Hyper: map[string]any{"alpha": 0}}, flat, number},
	} {
		_, err := Fit(context.Background(), c.spec, c.x, c.y, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// Cancelling ends the fit at the next tree or step.
func TestCancel(t *testing.T) {
	t.Parallel()
	x, number, class := sampleTable(500)
	for _, s := range []Spec{{Kind: "random_forest"}, {Kind: "gbt"}} {
		ctx, cancel := context.WithCancel(context.Background())
		calls := 0
		_, err := Fit(ctx, s, x, number, func(f float64) {
			if calls++; f > 0.1 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || calls > 20 {
			t.Errorf("%s: %v after %d calls; want errors.Is(err, context.Canceled) && calls <= 20", s.Kind, err, calls)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Fit(ctx, Spec{Kind: "logistic", Classes: 3}, x, class, nil); !errors.Is(err, context.Canceled) {
		t.Error(err, "want errors.Is(err, context.Canceled)")
	}
}

// Cuts are between neighbouring values in float32 too, and codes follow the cuts.
func TestCuts(t *testing.T) {
	t.Parallel()
	next := func(v float32) float32 { return math.Nextafter32(v, math.MaxFloat32) }
	if got := fmt.Sprint(cutPoints([]float32{1, 1, 2, 4})); got != "[1.5 3]" {
		t.Error(got, `want "[1.5 3]"`)
	}
	if lo := float32(3); cutBetween(lo, next(lo)) != lo {
		t.Error("no room, so the lower value is the cut")
	}
	if got := cutPoints([]float32{1, next(1), next(next(1)), 2}); len(got) != 1 {
		t.Errorf("values in the last bits were told apart: %v; want len(got) == 1", got)
	}
	rng := rand.New(rand.NewPCG(4, 4))
	sorted := make([]float32, 5000)
	sum := float32(0)
	for i := range sorted {
		if rng.IntN(3) > 0 {
			sum += rng.Float32()
		}
		sorted[i] = sum
	}
	cuts := cutPoints(sorted)
	if len(cuts) != maxBins-1 {
		t.Errorf("%d cuts; want len(cuts) == maxBins - 1", len(cuts))
	}
	counts := make([]int, maxBins)
	for _, v := range sorted {
		c := newBinFinder(cuts).code(v)
		if int(c) < len(cuts) && v > cuts[c] || c > 0 && v <= cuts[c-1] {
			t.Fatalf("%v has code %d; want (int(c) >= len(cuts) || v <= cuts[c]) && (c <= 0 || v > cuts[c-1])", v, c)
		}
		counts[c]++
	}
	for b, n := range counts {
		if n < 5 || n > 60 {
			t.Errorf("interval %d has %d rows of 5000; want n >= 5 && n <= 60", b, n)
		}
	}
}
