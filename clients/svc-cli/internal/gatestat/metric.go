package gatestat

import (
	"math"
	"slices"
)

// Metric is a figure and its percentile interval. Undefined figures are null.
type Metric struct {
	Point               *float64 `json:"point"`
	CILow               *float64 `json:"ci_low"`
	CIHigh              *float64 `json:"ci_high"`
	ReplicatesUsed      int      `json:"replicates_used"`
	ReplicatesUndefined int      `json:"replicates_undefined"`
}

// Metric makes the interval of the values that the replicates gave; the others were undefined. It sorts values.
func (b Bootstrap) Metric(point *float64, values []float64) Metric {
	m := Metric{Point: point, ReplicatesUsed: len(values), ReplicatesUndefined: b.Replicates - len(values)}
	if len(values) > 0 {
		slices.Sort(values)
		p := (1 - b.ConfidenceLevel) / 2
		low, high := percentileAt(values, p), percentileAt(values, 1-p)
		m.CILow, m.CIHigh = &low, &high
	}
	return m
}

// percentileAt reads sorted values at position p(k-1), on the straight line between neighbours.
func percentileAt(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(math.Floor(at))
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + float64((at-float64(i))*(sorted[i+1]-sorted[i]))
}
