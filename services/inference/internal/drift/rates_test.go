package drift

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// sources are distributions of predictions as models make them.
var sources = map[string]func(*rand.Rand) float64{
	"normal":       func(r *rand.Rand) float64 { return 100 + 15*r.NormFloat64() },
	"uniform":      func(r *rand.Rand) float64 { return r.Float64() },
	"exponential":  func(r *rand.Rand) float64 { return r.ExpFloat64() },
	"heavy-tailed": func(r *rand.Rand) float64 { return math.Exp(2 * r.NormFloat64()) },
	"power law":    func(r *rand.Rand) float64 { return math.Pow(1-r.Float64(), -1/3.5) },
	"few values":   func(r *rand.Rand) float64 { return float64(r.IntN(7)) },
	"two clusters": func(r *rand.Rand) float64 { return float64(10*r.IntN(2)) + 0.1*r.NormFloat64() },
}

func draw(r *rand.Rand, n int, from func(*rand.Rand) float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = from(r)
	}
	return out
}

// People who are woken by alerts of a model whose traffic has not changed stop reading alerts.
func TestUnshiftedTrafficSeldomAlerts(t *testing.T) {
	t.Parallel()
	const windows = 2000
	for name, from := range sources {
		for _, size := range []struct{ n, nb int }{{100, 500}, {50, 500}} {
			t.Run(fmt.Sprintf("%s, %d of %d", name, size.n, size.nb), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(1, uint64(size.n)))
				wantSeldom(t, windows, func() Report {
					return Evaluate(Sample{Values: draw(r, size.n, from)}, Sample{Values: draw(r, size.nb, from)}, Spread)
				})
			})
		}
	}
	t.Run("labels", func(t *testing.T) {
		t.Parallel()
		r := rand.New(rand.NewPCG(1, 2))
		draw := func(n int) Sample {
			s := Sample{Labels: make([]string, n)}
			for i := range s.Labels {
				s.Labels[i] = []string{"long", "long", "long", "short", "short", "none"}[r.IntN(6)]
				if r.IntN(50) == 0 {
					s.Labels[i] = "rare"
				}
			}
			return s
		}
		wantSeldom(t, windows, func() Report { return Evaluate(draw(100), draw(500), Spread) })
	})
}

// wantSeldom fails when more than 3 % of windows warn, or 0.5 % are critical.
func wantSeldom(t *testing.T, windows int, evaluate func() Report) {
	t.Helper()
	by := map[string]int{}
	warned, critical := 0, 0
	for range windows {
		switch r := evaluate(); r.Overall {
		case Critical:
			critical++
			warned++
			by["CRITICAL "+r.DecidedBy]++
		case Warning:
			warned++
			by["WARNING "+r.DecidedBy]++
		}
	}
	t.Logf("of %d windows %d warn or worse and %d are critical, by %v", windows, warned, critical, by)
	if warned*1000 > 30*windows || critical*1000 > 5*windows {
		t.Errorf("of %d windows %d warn and %d are critical, by %v; want at most 3 %% and 0.5 %%", windows, warned, critical, by)
	}
}

// The mean of a heavy-tailed model hardly moves when its traffic narrows to one kind of job, since its spread is
// that of the few largest; the other measures see it.
func TestNarrowedTrafficIsCriticalWithSmallZ(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	base := draw(r, 500, sources["heavy-tailed"])
	narrow := draw(r, 100, func(r *rand.Rand) float64 { return math.Exp(0.3 + 0.1*r.NormFloat64()) })
	got := Evaluate(Sample{Values: narrow}, Sample{Values: base}, Spread)
	if got.Status != OK || got.Z == nil || *got.Z > 1 || got.Overall != Critical || got.DecidedBy != measurePSI {
		t.Errorf("got status %s, z %v, overall %s by %q; want OK, a z below 1, CRITICAL by psi", got.Status, *got.Z, got.Overall, got.DecidedBy)
	}
}

// The reference is SciPy: stats.chi2.ppf.
func TestChiSquaredQuantiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p       float64
		degrees int
		want    float64
	}{
		{0.99, 1, 6.6348966010212145}, {0.999, 1, 10.827566170662733}, {0.99, 2, 9.21034037197618}, {0.99, 9, 21.665994333461924}, {0.999, 9, 27.877164871256568}, {0.999, 100, 149.44925277903886}, {0.99, 0, 0},
	} {
		if got := chiSquaredQuantile(c.p, c.degrees); math.Abs(got-c.want) > 1e-9*max(1, c.want) {
			t.Errorf("quantile %g of %d degrees = %.12g, want %.12g", c.p, c.degrees, got, c.want)
		}
	}
}

func TestPSIThresholdsKnowTheWindow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bins, n, nb    int
		warn, critical float64
	}{
		{10, 5000, 5000, 0.1, 0.25},
		{10, 100, 500, 21.665994333461924 * 0.012, 27.877164871256568 * 0.012},
		{3, 100, 500, 9.21034037197618 * 0.012, 0.25},
	} {
		if warn, critical := psiThresholds(c.bins, c.n, c.nb, 1); math.Abs(warn-c.warn) > 1e-9 || math.Abs(critical-c.critical) > 1e-9 {
			t.Errorf("%d bins, %d of %d: got %g and %g, want %g and %g", c.bins, c.n, c.nb, warn, critical, c.warn, c.critical)
		}
	}
}
