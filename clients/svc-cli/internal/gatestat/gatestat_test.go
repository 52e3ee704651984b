package gatestat_test

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/gatestat"
)

// exactSum is the sum with numbers of any size, rounded once.
func exactSum(xs []float64) float64 {
	sum := new(big.Float).SetPrec(2200)
	for _, x := range xs {
		sum.Add(sum, big.NewFloat(x))
	}
	f, _ := sum.Float64()
	return f
}

func TestSumsAreRoundedOnce(t *testing.T) {
	t.Parallel()
	cases := [][]float64{
		{}, {0.1}, {1e100, 1, -1e100}, {1, 1e-16, 1e-16}, {0.1, 0.2, 0.3}, {math.SmallestNonzeroFloat64, 1},
		{1, math.Ldexp(1, -53), math.Ldexp(1, -106)},   // a half, and the part below decides
		{1, math.Ldexp(1, -53), -math.Ldexp(1, -106)},  // just below the half
		{-1, -math.Ldexp(1, -53), -math.Ldexp(1, -54)}, // the same on the other side of zero
		{math.Copysign(0, -1), 0},
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		xs := make([]float64, 1+r.IntN(60))
		for i := range xs {
			xs[i] = math.Ldexp(r.Float64()-0.5, r.IntN(200)-150)
		}
		cases = append(cases, xs)
	}
	for _, xs := range cases {
		var s gatestat.Sum
		for _, x := range xs {
			s.Add(x)
		}
		if got, want := s.Value(), exactSum(xs); got != want {
			t.Fatalf("%v: %v, want %v", xs, got, want)
		}
		s.Reset()
		for _, x := range xs {
			s.AddTimes(7, x)
		}
		seven := slices.Concat(xs, xs, xs, xs, xs, xs, xs)
		if got, want := s.Value(), exactSum(seven); got != want {
			t.Fatalf("7 x %v: %v, want %v", xs, got, want)
		}
	}
}

func drawRows(seed *big.Int, n, count int) []int {
	rows := make([]int, count)
	gatestat.NewDraws(seed, n).Fill(rows)
	return rows
}

func TestDrawsFromKnownSeeds(t *testing.T) {
	t.Parallel()
	if got := drawRows(new(big.Int), 12, 12); !slices.Equal(got, []int{6, 6, 0, 4, 8, 7, 6, 4, 7, 5, 9, 3}) {
		t.Error("seed 0:", got, "want slices.Equal(got, []int{6, 6, 0, 4, 8, 7, 6, 4, 7, 5, 9, 3})")
	}
	if !slices.Equal(drawRows(big.NewInt(-23), 100, 50), drawRows(big.NewInt(23), 100, 50)) {
		t.Error("the sign of the seed has an effect")
	}
	// Seeds of one and two limbs start apart, although their low limbs agree.
	if slices.Equal(drawRows(big.NewInt(5), 1000, 50), drawRows(big.NewInt(1<<32+5), 1000, 50)) {
		t.Error("the high limb has no effect")
	}
	for _, n := range []int{1, 2, 3, 4, 255, 256, 257} {
		for _, row := range drawRows(big.NewInt(9), n, 500) {
			if row < 0 || row >= n {
				t.Fatalf("row %d of %d; want row >= 0 && row < n", row, n)
			}
		}
	}
}

func TestCorrelations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n, a, b, joint int
		want           float64
		ok             bool
	}{
		{10, 3, 3, 3, 1, true}, {10, 3, 7, 0, -1, true}, {7, 3, 3, 3, 1, true}, {1000003, 77, 77, 77, 1, true},
		{4, 2, 2, 1, 0, true}, {30, 3, 10, 1, 0, true}, // independent: exactly 0, whatever the means round to
		{10, 0, 3, 0, 0, false}, {10, 3, 10, 3, 0, false}, {2, 1, 1, 0, -1, true},
	} {
		got, ok := gatestat.NewPairs(c.n).Phi(c.a, c.b, c.joint)
		if got != c.want || ok != c.ok {
			t.Errorf("%+v: %v, %v; want got == c.want && ok == c.ok", c, got, ok)
		}
	}
}

func TestQuorumFractions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		share     float64
		votes     int
		threshold int // the most accepting votes that are still a rejection
	}{
		{0.5, 5, 2}, {0.5, 4, 2}, {0, 7, 0}, {1e-320, 7, 0},
		{2.0 / 3, 3, 2}, {0.6666666666666, 3, 2}, {0.66666666666666674, 199, 132}, // two thirds, however many digits are written
		{1.0 / 3, 3, 1}, {0.29, 100, 29}, {0.57, 100, 57}, {0.7, 10, 7},
		{0.999, 1000, 999}, {0.001, 1000, 1},
		{0.66667, 3, 2}, {0.66666, 3, 1}, {0.6666667, 30, 20}, // not two thirds: the exact decimal
		{0.123456789, 256, 31},
	} {
		if got := gatestat.ParseQuorum(c.share).Threshold(c.votes); got != c.threshold {
			t.Errorf("%v of %d votes: threshold %d, want %d", c.share, c.votes, got, c.threshold)
		}
	}
	for share, want := range map[float64]bool{0: true, 0.5: true, 0.999999: true, 1 - 1e-13: false, 1: false, -0.1: false} {
		if got := gatestat.ParseQuorum(share).InRange(); got != want {
			t.Errorf("%v in range: %v, want %v", share, got, want)
		}
	}
}

func TestEffectiveVotes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                        string
		accuracy, good, quorum, err float64
		want                        float64
		ok                          bool
	}{
		{"no better than chance", 0.5, 0.5, 0.5, 0.1, 0, false},
		{"worse than chance", 0.2, 0.5, 0.5, 0.1, 0, false},
		{"as one", 0.8, 0.5, 0.5, 1 - 0.8, 1, true},
		{"worse than one", 0.8, 0.5, 0.5, 0.9, 1, true},
		{"between one and three", 0.8, 0.5, 0.5, 1.0 / 6, 1.6944444444444438, true},
		{"the mix has no effect on a majority", 0.8, 0.1, 0.5, 1.0 / 6, 1.6944444444444438, true},
		{"no error", 0.8, 0.5, 0.5, 0, gatestat.Saturated, true},
		{"perfect verifiers and panel", 1, 0.5, 0.5, 0, 1, true}, // one of them is enough
		{"perfect verifiers, quorum 0", 1, 0.5, 0, 0, 1, true},
		{"quorum 0 on good candidates: one vote accepts", 0.6, 1, 0, 0.1, 1 + 2*(0.4-0.1)/(0.4-0.064), true},
		{"quorum 0 on bad candidates: more verifiers err more", 0.6, 0, 0, 0.3, 0, false},
		{"two thirds: 199 err more than seven do, and the panel less than any", 0.6, 0.5, 2.0 / 3, 0.325, 0, false},
		{"two thirds, no error: sizes that err more lie in between", 0.9, 0.5, 2.0 / 3, 0, 0, false},
		{"next to a half the sizes fall as they do there", 0.8, 0.5, 0.501, 0, gatestat.Saturated, true},
		{"two thirds, as bad as one", 0.8, 0.5, 2.0 / 3, 0.2, 1, true},
		{"two thirds, as bad as one but for rounding", 0.8, 0.5, 2.0 / 3, math.Nextafter(1-0.8, 0), 1, true},
		// E(1) = .2, E(3) = (.488 + .008)/2 = .248, E(5) = (.26272 + .00672)/2 = .13472: the first pair that holds .18.
		{"two thirds, past a panel that errs more", 0.8, 0.5, 2.0 / 3, 0.18, 3 + 2*(0.248-0.18)/(0.248-0.13472), true},
		{"unanimity on good candidates: more are worse, and none is as good", 0.9, 1, 0.999, 0.05, 0, false},
	} {
		s := gatestat.Setting{Accuracy: c.accuracy, Good: c.good, Quorum: gatestat.ParseQuorum(c.quorum)}
		got, ok := gatestat.EffectiveVotes(s, c.err)
		if ok != c.ok || ok && math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, got, ok, c.want, c.ok)
		}
		curves := gatestat.NewCurves(s.Quorum)
		for range 2 {
			if again, okAgain := curves.Votes(c.accuracy, c.good, c.err); again != got || okAgain != ok {
				t.Errorf("%s: from the store %v, %v; want %v, %v", c.name, again, okAgain, got, ok)
			}
		}
	}
	if got, ok := gatestat.NewPairs(7).Phi(3, 4, 0); !ok || got < -1 || got > -1+1e-12 {
		t.Error("opposite errors:", got, "want ok && got >= -1 && got <= -1 + 1e-12")
	}
}

func TestSmallerErrorsAreNeverWorthLess(t *testing.T) {
	t.Parallel()
	for _, accuracy := range []float64{0.500001, 0.51, 0.6, 0.75, 0.9, 0.999999} {
		curves, before := gatestat.NewCurves(gatestat.Majority()), 0.0
		for err := 0.6; err >= 0; err -= 0.001 {
			votes, ok := curves.Votes(accuracy, 0.5, err)
			if !ok || votes < before-1e-9 || votes < 1 || votes > gatestat.Saturated {
				t.Fatalf("accuracy %v, error %v: %v, %v after %v; want ok && votes >= before - 1e-9 && votes >= 1 && votes <= gatestat.Saturated", accuracy, err, votes, ok, before)
			}
			before = votes
		}
	}
}

func TestIntervals(t *testing.T) {
	t.Parallel()
	b := gatestat.Bootstrap{Replicates: 100, Seed: new(big.Int), ConfidenceLevel: 0.5}
	point := 3.0
	m := b.Metric(&point, []float64{4, 1, 3, 2}) // positions 0.75 and 2.25 of 1 2 3 4
	if *m.CILow != 1.75 || *m.CIHigh != 3.25 || m.ReplicatesUsed != 4 || m.ReplicatesUndefined != 96 {
		t.Errorf("%v %v %+v; want *m.CILow == 1.75 && *m.CIHigh == 3.25 && m.ReplicatesUsed == 4 && m.ReplicatesUndefined == 96", *m.CILow, *m.CIHigh, m)
	}
	if m := b.Metric(nil, []float64{7}); *m.CILow != 7 || *m.CIHigh != 7 || m.Point != nil {
		t.Errorf("one value: %+v; want *m.CILow == 7 && *m.CIHigh == 7 && m.Point == nil", m)
	}
	if m := b.Metric(nil, nil); m.CILow != nil || m.CIHigh != nil || m.ReplicatesUndefined != 100 {
		t.Errorf("no value: %+v; want m.CILow == nil && m.CIHigh == nil && m.ReplicatesUndefined == 100", m)
	}
}

func TestBootstrapsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]gatestat.Bootstrap{
		"few replicates":  {Replicates: 99, ConfidenceLevel: 0.9},
		"many replicates": {Replicates: 100_001, ConfidenceLevel: 0.9},
		"level 0":         {Replicates: 100}, "level 1": {Replicates: 100, ConfidenceLevel: 1},
		"no number": {Replicates: 100, ConfidenceLevel: math.NaN()},
	} {
		if b.Check() == nil {
			t.Error(name, "was taken", "want b.Check() != nil")
		}
	}
	good := gatestat.Bootstrap{Replicates: 2000, Seed: new(big.Int), ConfidenceLevel: 0.95}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	if err := good.Affordable(gatestat.MaxWork / 2000); err != nil {
		t.Error(err)
	}
	if err := good.Affordable(0); err != nil {
		t.Error(err)
	}
	if good.Affordable(gatestat.MaxWork/2000+1) == nil {
		t.Error("too much work was taken")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := good.Run(ctx, 10, nil, func([]int) {}); err != context.Canceled {
		t.Error("an ended command went on:", err, "want", context.Canceled)
	}
}

func TestProgressReachesItsEnd(t *testing.T) {
	t.Parallel()
	var seen []int
	b := gatestat.Bootstrap{Replicates: 200, Seed: big.NewInt(1), ConfidenceLevel: 0.9}
	if err := b.Run(t.Context(), 6, func(done, total int) { seen = append(seen, done) }, func([]int) {}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seen, []int{0, 64, 128, 192, 200}) {
		t.Error(seen, "want slices.Equal(seen, []int{0, 64, 128, 192, 200})")
	}
}
