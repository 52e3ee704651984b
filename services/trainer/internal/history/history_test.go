package history

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// recomputeStats recomputes a row's statistics from the definition, in O(n) a row.
func recomputeStats(e *Events, group []int, i int) Stats {
	type ended struct{ end, value float64 }
	var past []ended
	for j := range i {
		if group[j] == group[i] && e.End[j] <= e.Submit[i] {
			past = append(past, ended{e.End[j], e.Value[j]})
		}
	}
	if len(past) == 0 {
		return Stats{None, None, None, None, 0}
	}
	slices.SortStableFunc(past, func(a, b ended) int {
		if a.end < b.end {
			return -1
		} else if a.end > b.end {
			return 1
		}
		return 0
	})
	var values []float64
	for _, p := range past {
		values = append(values, p.value)
	}
	median := func(v []float64) float64 {
		v = slices.Sorted(slices.Values(v))
		return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
	}
	n := len(values)
	return Stats{values[n-1], median(values[max(n-5, 0):]), median(values), slices.Max(values), n}
}

func TestOfAgreesWithTheDefinition(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 1 + rng.IntN(200)
		submit, end, value, group := make([]float64, n), make([]float64, n), make([]float64, n), make([]int, n)
		for i := range n {
			submit[i] = float64(rng.IntN(60)) // many at the same second
			value[i] = float64(rng.IntN(40))  // many of zero length
			group[i] = rng.IntN(4)
		}
		slices.Sort(submit)
		for i := range n {
			end[i] = submit[i] + value[i]*float64(rng.IntN(2))
		}
		e := New(submit, end, value)
		for i, got := range Of(e, group) {
			if want := recomputeStats(e, group, i); got != want {
				t.Fatalf("seed %d, row %d of %d: %+v, want %+v", seed, i, n, got, want)
			}
		}
	}
}

// A change of a row's own outcome, or of one that ends later, must not show in its features.
func TestNoLeakage(t *testing.T) {
	t.Parallel()
	submit := []float64{0, 10, 10, 20, 30}
	end := []float64{25, 10, 12, 90, 31}
	value := []float64{25, 0, 2, 70, 1}
	group := make([]int, 5)
	before := Of(New(submit, end, value), group)
	for i := range submit {
		v := slices.Clone(value)
		for j := range v {
			if j >= i || end[j] > submit[i] {
				v[j] = 1e6
			}
		}
		if after := Of(New(submit, end, v), group); after[i] != before[i] {
			t.Errorf("row %d: %+v became %+v; want after[i] == %v", i, before[i], after[i], before[i])
		}
	}
}

func BenchmarkOf(b *testing.B) {
	const n = 100_000
	submit, end, value, group := make([]float64, n), make([]float64, n), make([]float64, n), make([]int, n)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range n {
		submit[i], value[i] = float64(i), rng.ExpFloat64()*1000
		end[i] = submit[i] + value[i]
	}
	for b.Loop() {
		Of(New(submit, end, value), group)
	}
}
