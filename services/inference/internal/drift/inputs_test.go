package drift

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// inputsOf draws n vectors and summarises them.
func inputsOf(r *rand.Rand, n int, vector func(*rand.Rand) []float64) (out Inputs) {
	for range n {
		v := vector(r)
		mean, std := meanAndStd(v)
		var squares float64
		for _, x := range v {
			squares += x * x
		}
		out.Norms, out.Means, out.Stds = append(out.Norms, math.Sqrt(squares)), append(out.Means, mean), append(out.Stds, std)
		if squares == 0 {
			out.Zeros++
		}
	}
	return out
}

func families(r *rand.Rand, kinds, size int) [][]float64 {
	out := make([][]float64, kinds)
	for k := range out {
		out[k] = draw(r, size, func(r *rand.Rand) float64 { return r.NormFloat64() / math.Sqrt(float64(size)) })
	}
	return out
}

// vectors are inputs as producers send them.
func vectors() map[string]func(*rand.Rand) []float64 {
	centroids := families(rand.New(rand.NewPCG(7, 7)), 24, 384)
	return map[string]func(*rand.Rand) []float64{
		"job embeddings": func(r *rand.Rand) []float64 {
			v := slices.Clone(centroids[r.IntN(len(centroids))])
			for i := range v {
				v[i] += 0.02 * r.NormFloat64()
			}
			return v
		},
		"unit vectors": func(r *rand.Rand) []float64 {
			v := draw(r, 64, func(r *rand.Rand) float64 { return r.NormFloat64() })
			var squares float64
			for _, x := range v {
				squares += x * x
			}
			for i := range v {
				v[i] = float64(float32(v[i] / math.Sqrt(squares)))
			}
			return v
		},
		"scaled columns": func(r *rand.Rand) []float64 {
			return []float64{r.NormFloat64(), math.Exp(r.NormFloat64()), float64(r.IntN(3)) - 1, r.Float64()}
		},
		"one column": func(r *rand.Rand) []float64 { return []float64{r.NormFloat64()} },
	}
}

func TestUnshiftedInputsSeldomAlert(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(11, 12))
	pool := inputsOf(r, 10_000, vectors()["job embeddings"])
	pick := func(n int) (out Inputs) {
		for range n {
			i := r.IntN(pool.Len())
			out.Norms, out.Means, out.Stds = append(out.Norms, pool.Norms[i]), append(out.Means, pool.Means[i]), append(out.Stds, pool.Stds[i])
		}
		return out
	}
	wantSeldom(t, 2000, func() Report { return EvaluateInputs(pick(100), pick(1000), Spread).Report })
}

func TestShiftedInputsAreFoundWithinAWindow(t *testing.T) {
	t.Parallel()
	for name, from := range vectors() {
		for what, shift := range map[string]func([]float64) []float64{
			"scaled by two": func(v []float64) []float64 { return mapped(v, func(x float64) float64 { return 2 * x }) },
			"moved":         func(v []float64) []float64 { return mapped(v, func(x float64) float64 { return x + 1.5 }) },
		} {
			t.Run(fmt.Sprint(name, " ", what), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(5, 6))
				base := inputsOf(r, 1000, from)
				live := inputsOf(r, 100, func(r *rand.Rand) []float64 { return shift(from(r)) })
				if got := EvaluateInputs(live, base, Spread); got.Overall != Critical {
					t.Errorf("got overall %s by %q of %q, z %v; want CRITICAL within 100 requests", got.Overall, got.DecidedBy, got.Statistic, got.Z)
				}
			})
		}
	}
}

func mapped(v []float64, f func(float64) float64) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = f(x)
	}
	return out
}

// Traffic that narrows to one job family keeps its mean norm, but not the distribution.
func TestNarrowedInputsAreCriticalWithSmallZ(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	base := inputsOf(r, 1000, func(r *rand.Rand) []float64 { return []float64{math.Exp(2 * r.NormFloat64())} })
	narrow := inputsOf(r, 100, func(r *rand.Rand) []float64 { return []float64{math.Exp(0.3 + 0.1*r.NormFloat64())} })
	got := EvaluateInputs(narrow, base, Spread)
	if got.Status != OK || got.Z == nil || *got.Z > 1 || got.Overall != Critical || got.DecidedBy != measurePSI {
		t.Errorf("got status %s, z %v, overall %s by %q; want OK, a z below 1, CRITICAL by psi", got.Status, got.Z, got.Overall, got.DecidedBy)
	}
}

func TestInputVerdicts(t *testing.T) {
	t.Parallel()
	ramp := func(n int) Inputs {
		v := rampValues(n, 0.01)
		return Inputs{Norms: v, Means: v, Stds: v}
	}
	constant := func(n int, norm float64) Inputs {
		return Inputs{Norms: repeatValue(norm, n), Means: repeatValue(0, n), Stds: repeatValue(0, n)}
	}
	with := func(in Inputs, change func(*Inputs)) Inputs {
		in = Inputs{slices.Clone(in.Norms), slices.Clone(in.Means), slices.Clone(in.Stds), in.Zeros}
		change(&in)
		return in
	}
	for _, c := range []struct {
		name            string
		live, base      Inputs
		status, overall Level
		statistic       string
		reason          string
	}{
		{"same", ramp(100), ramp(100), OK, OK, "norm", ""},
		{"no baseline", ramp(100), Inputs{}, NoBaseline, NoBaseline, "", "no_baseline"},
		{"nothing at all", Inputs{}, Inputs{}, NoBaseline, NoBaseline, "", "no_baseline"},
		{"nine requests", ramp(9), ramp(100), Insufficient, Insufficient, "", "not_enough_snapshots"},
		{"the deviation alone moves", with(ramp(100), func(in *Inputs) { in.Stds = mapped(in.Stds, func(x float64) float64 { return x + 1 }) }), ramp(100), Critical, Critical, "std", ""},
		{"not a number", with(ramp(100), func(in *Inputs) { in.Means[3] = math.NaN() }), ramp(100), Corrupt, Corrupt, "", "non_finite_input"},
		{"infinite, without baseline", with(ramp(20), func(in *Inputs) { in.Norms[19] = math.Inf(1) }), Inputs{}, Corrupt, Corrupt, "", "non_finite_input"},
		{"half zeros", with(ramp(100), func(in *Inputs) { in.Zeros = 50 }), ramp(100), Corrupt, Corrupt, "", "zeros"},
		{"fewer zeros", with(ramp(100), func(in *Inputs) { in.Zeros = 49 }), ramp(100), OK, OK, "norm", ""},
		{"zeros are usual", with(ramp(100), func(in *Inputs) { in.Zeros = 90 }), with(ramp(100), func(in *Inputs) { in.Zeros = 6 }), OK, OK, "norm", ""},
		{"unit length but for the rounding", constant(50, 1+3e-8), constant(500, 1-2e-8), OK, OK, "norm", ""},
		{"unit length no longer", constant(50, 1.1), constant(500, 1), Critical, Critical, "norm", "zero_variance_baseline"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := EvaluateInputs(c.live, c.base, Spread)
			if got.Status != c.status || got.Overall != c.overall || got.Statistic != c.statistic || got.Reason != c.reason {
				t.Errorf("got %s, overall %s by %q, reason %q; want %s, %s, %q, %q", got.Status, got.Overall, got.Statistic, got.Reason, c.status, c.overall, c.statistic, c.reason)
			}
			if len(got.Statistics) != 3 && c.reason != "non_finite_input" {
				t.Errorf("got statistics %v; want norm, mean and std", got.Statistics)
			}
		})
	}
}

// One round of evaluation takes at most 30 s, also when a whole registry has drifted.
func TestDriftedInputsAreCheap(t *testing.T) {
	t.Parallel()
	const models, limit = 300, 30 * time.Second
	r := rand.New(rand.NewPCG(9, 9))
	base := inputsOf(r, 1000, vectors()["scaled columns"])
	live := inputsOf(r, 100, func(r *rand.Rand) []float64 {
		return mapped(vectors()["scaled columns"](r), func(x float64) float64 { return x + 1.5 })
	})
	began := time.Now()
	for i := range models {
		if got := EvaluateInputs(live, base, Spread); got.Overall != Critical {
			t.Fatalf("overall %s, measures %v; want CRITICAL", got.Overall, got.Measures)
		}
		if took := time.Since(began); took > limit {
			t.Fatalf("%d drifted models took %s; want %d within %s", i+1, took, models, limit)
		}
	}
}
