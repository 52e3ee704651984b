package drift

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFeaturesThatMovedAreNamedFirst(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	normal := func(n int, mean float64) Sample {
		return Sample{Values: draw(r, n, func(r *rand.Rand) float64 { return mean + r.NormFloat64() })}
	}
	texts := func(n int, of ...string) Sample {
		s := Sample{Labels: []string{}}
		for range n {
			s.Labels = append(s.Labels, of[r.IntN(len(of))])
		}
		return s
	}
	live := map[string]Sample{"steady": normal(100, 5), "moved": normal(100, 9), "queue": texts(100, "debug"), "user": texts(100, "a", "b"), "new": normal(100, 0), "changed": texts(100, "1")}
	base := map[string]Sample{"steady": normal(1000, 5), "moved": normal(1000, 5), "queue": texts(1000, "debug", "batch", "long"), "user": texts(1000, "a", "b"), "gone": normal(1000, 0), "changed": normal(1000, 1)}
	var got []string
	features, err := CompareFeatures(t.Context(), live, base)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range features {
		got = append(got, f.Name+" "+string(f.Overall)+" "+f.Reason)
	}
	want := []string{"moved CRITICAL ", "queue CRITICAL ", "steady OK ", "user OK ", "changed NO_BASELINE baseline_of_other_kind", "gone INSUFFICIENT not_enough_snapshots", "new NO_BASELINE no_baseline"}
	slices.Sort(got[2:4]) // both are well
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("features (-want +got):\n%s", diff)
	}
}

func TestFeaturesAreNotComparedForNobody(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	column := map[string]Sample{"a": {Values: rampValues(100, 1)}}
	if got, err := CompareFeatures(ctx, column, column); !errors.Is(err, context.Canceled) || got != nil {
		t.Errorf("got %v, %v; want nothing, context canceled", got, err)
	}
}

func TestHistogramsAddUpToOne(t *testing.T) {
	t.Parallel()
	many := make([]string, 30)
	for i := range many {
		many[i] = string(rune('a' + i%26))
	}
	for name, c := range map[string]struct {
		live, base Sample
		bins       int
	}{
		"numbers":        {Sample{Values: rampValues(10, 1)}, Sample{Values: rampValues(100, 0.5)}, 20},
		"one value":      {Sample{Values: repeatValue(3, 10)}, Sample{Values: repeatValue(3, 100)}, 1},
		"widest range":   {Sample{Values: []float64{-math.MaxFloat64, math.MaxFloat64}}, Sample{Values: []float64{0}}, 20},
		"few classes":    {Sample{Labels: []string{"a", "b"}}, Sample{Labels: []string{"b"}}, 2},
		"many classes":   {Sample{Labels: many}, Sample{Labels: many[:5]}, 10},
		"without a live": {Sample{}, Sample{Values: rampValues(10, 1)}, 20},
	} {
		h := histogramOf(c.live, c.base)
		if len(h.Base) != c.bins || len(h.Live) != c.bins || max(len(h.Edges)-1, len(h.Classes)) != c.bins {
			t.Errorf("%s: %d bins, %d edges, %d classes; want %d bins", name, len(h.Base), len(h.Edges), len(h.Classes), c.bins)
		}
		for what, shares := range map[string][]float64{"live": h.Live, "base": h.Base} {
			sum := 0.0
			for _, s := range shares {
				sum += s
			}
			if want := 1.0; math.Abs(sum-want) > 1e-9 && (what == "base" || c.live.Len() > 0) {
				t.Errorf("%s, %s: shares add up to %g; want 1", name, what, sum)
			}
		}
	}
}
