package training

import (
	"math"
	"slices"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer/internal/dataset"
	"github.com/mlp-platform/platform/services/trainer/internal/fit"
	"github.com/mlp-platform/platform/services/trainer/internal/frame"
)

// agreementBins is the number of intervals on each axis of an Agreement.
const agreementBins = 36

// Agreement counts test rows by actual (row) and predicted (column) value between the same edges; the outer intervals
// also count values beyond them.
type Agreement struct {
	Target string `json:"target"`
	Unit   string `json:"unit,omitempty"`
	// Log is set if the edges are equally spaced in log1p(value).
	Log    bool      `json:"log"`
	Edges  []float64 `json:"edges"`
	Counts [][]int   `json:"counts"`
}

// HourlyError is the mean error of the test rows submitted in each hour of the day.
type HourlyError struct {
	// Of is absolute_error (in Unit), log_error (the mean of |log1p(prediction) - log1p(value)|) or wrong (the share of
	// wrong labels).
	Of   string `json:"of"`
	Unit string `json:"unit,omitempty"`
	// Zone of the hours, empty if the data has none.
	Zone string `json:"zone,omitempty"`
	// Rows and Errors have 24 members; the error of an hour without rows is 0.
	Rows   []int     `json:"rows"`
	Errors []float64 `json:"errors"`
}

// newAgreement spans all but the outermost half percent of the actual values on either side, so that one wild value
// does not squeeze the rest into a corner.
func newAgreement(test frame.Target, predicted []float64) *Agreement {
	a := &Agreement{Target: test.Name, Unit: test.Unit, Log: test.Transform == modelrepo.TransformLog1p}
	forth, back := func(v float64) float64 { return v }, func(v float64) float64 { return v }
	if a.Log {
		forth, back = func(v float64) float64 { return math.Log1p(max(v, 0)) }, math.Expm1
	}
	sorted := slices.Sorted(slices.Values(test.Values))
	lo, hi := forth(interpolateQuantile(sorted, 0.005)), forth(interpolateQuantile(sorted, 0.995))
	if lo == hi {
		lo, hi = lo-0.5, hi+0.5
	}
	for i := range agreementBins + 1 {
		a.Edges = append(a.Edges, back(lo+(hi-lo)*float64(i)/agreementBins))
	}
	bin := func(v float64) int {
		return min(max(int((forth(v)-lo)/(hi-lo)*agreementBins), 0), agreementBins-1)
	}
	a.Counts = make([][]int, agreementBins)
	for i := range a.Counts {
		a.Counts[i] = make([]int, agreementBins)
	}
	for i, v := range test.Values {
		a.Counts[bin(v)][bin(predicted[i])]++
	}
	return a
}

// newHourlyError returns nil if the rows have no hour of their submit.
func newHourlyError(rows *dataset.Rows, span modelrepo.Span, index []int, test frame.Target, fitted *fit.Result) *HourlyError {
	hours, zone := rows.Hours(span)
	if hours == nil {
		return nil
	}
	h := &HourlyError{Zone: zone, Rows: make([]int, 24), Errors: make([]float64, 24)}
	var fault func(i int) float64
	switch {
	case test.Class:
		h.Of = "wrong"
		fault = func(i int) float64 {
			if fitted.Classes[i] != test.Y[i] {
				return 1
			}
			return 0
		}
	case test.Transform == modelrepo.TransformLog1p:
		h.Of = "log_error"
		fault = func(i int) float64 {
			return math.Abs(math.Log1p(max(fitted.Values[i], 0)) - math.Log1p(test.Values[i]))
		}
	default:
		h.Of, h.Unit = "absolute_error", test.Unit
		fault = func(i int) float64 { return math.Abs(fitted.Values[i] - test.Values[i]) }
	}
	known := 0
	for i, row := range index {
		if hour := hours[row]; hour >= 0 {
			h.Rows[hour]++
			h.Errors[hour] += fault(i)
			known++
		}
	}
	if known == 0 {
		return nil
	}
	for hour, n := range h.Rows {
		if n > 0 {
			h.Errors[hour] /= float64(n)
		}
	}
	return h
}
