package drift

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
)

type vector struct {
	Name       string
	Live, Base []float64
	LiveLabels []string `json:"live_labels"`
	BaseLabels []string `json:"base_labels"`
	LiveMean   float64  `json:"live_mean"`
	LiveStd    float64  `json:"live_std"`
	BaseMean   float64  `json:"base_mean"`
	BaseStd    float64  `json:"base_std"`
	Z          float64
	ZSE        float64 `json:"z_se"`
	PSI        float64
	KS         float64
	KSP        float64 `json:"ks_p"`
	W1         float64
}

// The reference is SciPy; testdata/vectors.py computes its values.
func TestAgreesWithSciPy(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			r := Evaluate(Sample{v.Live, v.LiveLabels}, Sample{v.Base, v.BaseLabels}, Spread)
			requireClose(t, "z", r.Z, v.Z)
			requireClose(t, "z_se", r.ZSE, v.ZSE)
			requireClose(t, "psi", r.Measures["psi"].Value, v.PSI)
			if v.LiveLabels != nil {
				if len(r.Measures) != 2 {
					t.Errorf("labels have measures %v, want z_score and psi only", r.Measures)
				}
				return
			}
			requireClose(t, "ks", r.Measures["ks"].Value, v.KS)
			requireClose(t, "ks p", r.Measures["ks"].P, v.KSP)
			requireClose(t, "wasserstein", r.Measures["wasserstein"].Value, v.W1)
			requireClose(t, "live mean", r.LiveMean, v.LiveMean)
			requireClose(t, "live std", r.LiveStd, v.LiveStd)
			requireClose(t, "baseline mean", r.BaselineMean, v.BaseMean)
			requireClose(t, "baseline std", r.BaselineStd, v.BaseStd)
			se := Evaluate(Sample{Values: v.Live}, Sample{Values: v.Base}, StandardError)
			requireClose(t, "z by standard error", se.Z, v.ZSE)
		})
	}
}

func requireClose(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil {
		t.Errorf("%s is null, want %g", what, want)
		return
	}
	if math.Abs(*got-want) > 1e-9*math.Max(1e-9, math.Abs(want)) {
		t.Errorf("%s = %.15g, want %.15g", what, *got, want)
	}
}

func repeatValue(v float64, n int) []float64 { return slices.Repeat([]float64{v}, n) }

func rampValues(n int, step float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 1 + float64(i)*step
	}
	return out
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	base := rampValues(100, 0.01) // mean 1.495, std 0.2887
	shift := func(z float64) []float64 {
		_, sigma := meanAndStd(base)
		out := slices.Clone(base)
		for i := range out {
			out[i] += z * sigma
		}
		return out
	}
	for _, c := range []struct {
		name            string
		live, base      Sample
		status, overall Level
		reason          string
		nullZ           bool
	}{
		{"same", Sample{Values: base}, Sample{Values: base}, OK, OK, "", false},
		{"just below the warning", Sample{Values: shift(1.99)}, Sample{Values: base}, OK, Critical, "", false},
		{"warning", Sample{Values: shift(2.01)}, Sample{Values: base}, Warning, Critical, "", false},
		{"critical", Sample{Values: shift(3.01)}, Sample{Values: base}, Critical, Critical, "", false},
		{"no baseline", Sample{Values: base}, Sample{}, NoBaseline, NoBaseline, "no_baseline", true},
		{"nothing at all", Sample{}, Sample{}, NoBaseline, NoBaseline, "no_baseline", true},
		{"nine snapshots", Sample{Values: base[:9]}, Sample{Values: base}, Insufficient, Insufficient, "not_enough_snapshots", true},
		{"none live", Sample{}, Sample{Values: base}, Insufficient, Insufficient, "not_enough_snapshots", true},
		{"constant, same mean", Sample{Values: repeatValue(0.1, 50)}, Sample{Values: repeatValue(0.1, 500)}, OK, OK, "", false},
		{"constant, other mean", Sample{Values: repeatValue(0.2, 50)}, Sample{Values: repeatValue(0.1, 500)}, Critical, Critical, "zero_variance_baseline", true},
		{"not a number", Sample{Values: append(rampValues(20, 1), math.NaN())}, Sample{Values: base}, Corrupt, Corrupt, "non_finite_prediction", true},
		{"infinite, without baseline", Sample{Values: []float64{math.Inf(-1)}}, Sample{}, Corrupt, Corrupt, "non_finite_prediction", true},
		{"zeros", Sample{Values: append(repeatValue(0, 50), base[:50]...)}, Sample{Values: base}, Corrupt, Corrupt, "zeros", true},
		{"fewer zeros", Sample{Values: append(repeatValue(0, 49), base[:51]...)}, Sample{Values: base}, Warning, Critical, "", false},
		{"zeros are usual", Sample{Values: repeatValue(0, 50)}, Sample{Values: append(repeatValue(0, 10), base...)}, Warning, Critical, "", false},
		{"label zero is no zero", Sample{Labels: slices.Repeat([]string{"0"}, 30)}, Sample{Labels: slices.Repeat([]string{"0", "1"}, 30)}, OK, Critical, "", false},
		{"labels against numbers", Sample{Labels: slices.Repeat([]string{"a"}, 30)}, Sample{Values: base}, NoBaseline, NoBaseline, "baseline_of_other_kind", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := Evaluate(c.live, c.base, Spread)
			if r.Status != c.status || r.Overall != c.overall || r.Reason != c.reason || (r.Z == nil) != c.nullZ {
				t.Errorf("got %s, overall %s, reason %q, z %v; want %s, %s, %q, null z %v", r.Status, r.Overall, r.Reason, r.Z, c.status, c.overall, c.reason, c.nullZ)
			}
		})
	}
}

func TestMomentsOfLabels(t *testing.T) {
	t.Parallel()
	if m, s := (Sample{Labels: []string{"0", "1", "1", "0"}}).Moments(); m == nil || *m != 0.5 || *s != 0.5 {
		t.Errorf("moments of 0 and 1: %v, %v; want 0.5, 0.5", m, s)
	}
	if m, s := (Sample{Labels: []string{"0", "NaN"}}).Moments(); m != nil || s != nil {
		t.Errorf("a label named NaN made a mean: %v, %v; want m == nil && s == nil", m, s)
	}
}
