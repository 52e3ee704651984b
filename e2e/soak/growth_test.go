//go:build e2e || soak

// Package soak keeps a running platform busy for minutes, and looks at what only time shows: memory and goroutines that
// keep growing, and errors that come once in thousands of requests. `make soak` runs it; docs/performance.md describes
// it.
package soak

import (
	"slices"
	"testing"
)

// growth is the change of a measure from the first third of a run to its last.
type growth struct {
	first, last float64 // medians
	keepsOn     bool
}

// floors are the minimum changes that count as growth: a share of the first third, and a number.
type floors struct{ share, least float64 }

// measureGrowth compares the thirds of a series. It keeps growing if each third is above the previous one, the last
// rise is at least a quarter of the whole, and no value of the last third is as low as the first third's median. So a
// model loaded in between is no growth, nor are the fluctuations of a garbage collector.
func measureGrowth(values []float64, f floors) growth {
	n := len(values) / 3
	if n == 0 {
		return growth{}
	}
	first, middle, last := values[:n], values[n:len(values)-n], values[len(values)-n:]
	a, b, c := median(first), median(middle), median(last)
	return growth{
		first: a, last: c,
		keepsOn: c-a > max(f.least, f.share*a) && b > a && c-b >= (c-a)/4 && slices.Min(last) > a,
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// makeSeries returns n values of f.
func makeSeries(n int, f func(i int) float64) (values []float64) {
	for i := range n {
		values = append(values, f(i))
	}
	return values
}

func TestGrowthIsToldFromWarmUpAndNoise(t *testing.T) {
	t.Parallel()
	saw := func(i int) float64 { return float64(i%7) * 5 }
	for name, c := range map[string]struct {
		values []float64
		want   bool
	}{
		"a leak":                            {makeSeries(60, func(i int) float64 { return 50 + float64(i) }), true},
		"a leak under a garbage collector":  {makeSeries(60, func(i int) float64 { return 50 + 2*float64(i) + saw(i) }), true},
		"a leak too small to matter":        {makeSeries(60, func(i int) float64 { return 500 + float64(i)/2 }), false},
		"flat":                              {makeSeries(60, func(int) float64 { return 50 }), false},
		"a garbage collector alone":         {makeSeries(60, func(i int) float64 { return 50 + saw(i) }), false},
		"a model loaded on the way":         {makeSeries(60, func(i int) float64 { return map[bool]float64{false: 50, true: 90}[i > 25] }), false},
		"memory that is given back":         {makeSeries(60, func(i int) float64 { return 120 - float64(i) }), false},
		"high for a while at the end":       {makeSeries(60, func(i int) float64 { return map[bool]float64{false: 50, true: 120}[i > 45] }), false},
		"fewer samples than thirds of them": {[]float64{1, 1000}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := measureGrowth(c.values, floors{share: 0.1, least: 16}); got.keepsOn != c.want {
				t.Errorf("got %+v of %v, want keepsOn %v", got, c.values, c.want)
			}
		})
	}
}
