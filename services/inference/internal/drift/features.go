package drift

import (
	"cmp"
	"context"
	"maps"
	"slices"
)

// Feature is the comparison of one column.
type Feature struct {
	Name string
	Report
	N, NBase  int // values there are of it
	Histogram Histogram
}

// Histogram holds the share of each sample in each bin.
type Histogram struct {
	// Edges are the edges of numeric bins, one more than bins; Classes are the labels, of which the last may be
	// OtherClasses.
	Edges   []float64
	Classes []string
	Live    []float64
	Base    []float64
}

const (
	histogramBins = 20
	// OtherClasses collects the classes that a histogram does not list.
	OtherClasses   = "(other)"
	histogramTexts = 10
	// maxShare limits by how much more seldom each of many columns may err: beyond it drift would be missed.
	maxShare = 10
)

// CompareFeatures compares columns by name, those that moved furthest first. A column that only one sample has is
// compared with none. It ends with ctx: many wide columns take long.
func CompareFeatures(ctx context.Context, live, base map[string]Sample) ([]Feature, error) {
	out := []Feature{}
	names := slices.Sorted(maps.Keys(live))
	for name := range base {
		if _, ok := live[name]; !ok {
			names = append(names, name)
		}
	}
	s := share(max(1, min(len(names), maxShare)))
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l, b := live[name], base[name]
		f := Feature{Name: name, N: l.Len(), NBase: b.Len(), Report: Report{Measures: map[string]Measure{}}}
		f.LiveMean, f.LiveStd = l.Moments()
		f.BaselineMean, f.BaselineStd = b.Moments()
		switch {
		case b.Len() == 0:
			f.Status, f.Overall, f.Reason = NoBaseline, NoBaseline, "no_baseline"
		case l.Len() < MinSnapshots:
			f.Status, f.Overall, f.Reason = Insufficient, Insufficient, "not_enough_snapshots"
		case (l.Labels == nil) != (b.Labels == nil):
			f.Status, f.Overall, f.Reason = NoBaseline, NoBaseline, "baseline_of_other_kind"
		case l.Labels != nil:
			f.labels(l.Labels, b.Labels, Spread, s)
			f.conclude()
		default:
			f.numbers(l.Values, b.Values, Spread, s)
			f.conclude()
		}
		if (l.Labels == nil) == (b.Labels == nil) || b.Len() == 0 || l.Len() == 0 {
			f.Histogram = histogramOf(l, b)
		}
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b Feature) int {
		return cmp.Or(cmp.Compare(severity(b.Overall), severity(a.Overall)), cmp.Compare(psiOf(b), psiOf(a)), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

func psiOf(f Feature) float64 {
	if v := f.Measures[measurePSI].Value; v != nil {
		return *v
	}
	return -1
}

func histogramOf(live, base Sample) (h Histogram) {
	if live.Labels != nil || base.Labels != nil {
		return histogramOfLabels(live.Labels, base.Labels)
	}
	all := slices.Concat(live.Values, base.Values)
	if len(all) == 0 {
		return h
	}
	low, high := slices.Min(all), slices.Max(all)
	bins := histogramBins
	if low == high {
		bins = 1
	}
	for i := range bins + 1 {
		// Each end is weighed: the difference of the two may be too large for a float64.
		h.Edges = append(h.Edges, low*(1-float64(i)/float64(bins))+high*(float64(i)/float64(bins)))
	}
	shares := func(v []float64) []float64 {
		out := make([]float64, bins)
		for _, x := range v {
			i, found := slices.BinarySearch(h.Edges, x)
			if !found {
				i--
			}
			out[max(0, min(i, bins-1))] += 1 / float64(len(v))
		}
		return out
	}
	h.Live, h.Base = shares(live.Values), shares(base.Values)
	return h
}

func histogramOfLabels(live, base []string) (h Histogram) {
	p, q := labelShares(live), labelShares(base)
	h.Classes = slices.SortedFunc(maps.Keys(unionKeys(p, q)), func(a, b string) int {
		return cmp.Or(cmp.Compare(max(p[b], q[b]), max(p[a], q[a])), cmp.Compare(a, b))
	})
	var rest []string
	if len(h.Classes) > histogramTexts {
		rest = h.Classes[histogramTexts-1:]
		h.Classes = append(slices.Clone(h.Classes[:histogramTexts-1]), OtherClasses)
	}
	shares := func(of map[string]float64) []float64 {
		out := make([]float64, len(h.Classes))
		for i, class := range h.Classes {
			out[i] = of[class]
		}
		for i, class := range rest {
			if i == 0 {
				out[len(out)-1] = 0
			}
			out[len(out)-1] += of[class]
		}
		return out
	}
	h.Live, h.Base = shares(p), shares(q)
	return h
}
