package drift

import (
	"math"
)

// Inputs are the summaries of requests: of each its input's norm, mean and standard deviation.
type Inputs struct {
	Norms, Means, Stds []float64
	Zeros              int // requests of which every numeric input was zero
}

// Len is the number of requests.
func (in Inputs) Len() int { return len(in.Norms) }

// The statistics of an input.
const (
	StatisticNorm = "norm"
	StatisticMean = "mean"
	StatisticStd  = "std"
)

var statisticOrder = []string{StatisticNorm, StatisticMean, StatisticStd}

func (in Inputs) values() map[string][]float64 {
	return map[string][]float64{StatisticNorm: in.Norms, StatisticMean: in.Means, StatisticStd: in.Stds}
}

func (in Inputs) finite() bool {
	return !hasNonFinite(in.Norms) && !hasNonFinite(in.Means) && !hasNonFinite(in.Stds)
}

// InputReport is the comparison of two samples of inputs.
type InputReport struct {
	// Report is that of all statistics together: the largest z, and of each measure the worst. The moments are
	// those of the norm.
	Report
	// Statistic is the one that decided Overall; without drift, the one with the largest z. "" if nothing was compared.
	Statistic  string
	Statistics map[string]Report
}

// EvaluateInputs compares live with base, which is empty when there is no baseline.
func EvaluateInputs(live, base Inputs, mode Mode) InputReport {
	r := InputReport{Report: Report{Measures: map[string]Measure{}}, Statistics: map[string]Report{}}
	if !live.finite() {
		r.Status, r.Overall, r.Reason = Corrupt, Corrupt, "non_finite_input"
		return r
	}
	liveValues, baseValues := live.values(), base.values()
	for _, name := range statisticOrder {
		liveValues[name], baseValues[name] = roundAll(liveValues[name]), roundAll(baseValues[name])
	}
	for _, name := range statisticOrder {
		s := Report{Measures: map[string]Measure{}}
		l, b := Sample{Values: liveValues[name]}, Sample{Values: baseValues[name]}
		s.LiveMean, s.LiveStd = l.Moments()
		s.BaselineMean, s.BaselineStd = b.Moments()
		r.Statistics[name] = s
	}
	norm := r.Statistics[StatisticNorm]
	r.LiveMean, r.LiveStd, r.BaselineMean, r.BaselineStd = norm.LiveMean, norm.LiveStd, norm.BaselineMean, norm.BaselineStd
	verdict := func(l Level, reason string) InputReport {
		r.Status, r.Overall, r.Reason = l, l, reason
		for name, s := range r.Statistics {
			s.Status, s.Overall = l, l
			r.Statistics[name] = s
		}
		return r
	}
	switch {
	case base.Len() == 0:
		return verdict(NoBaseline, "no_baseline")
	case live.Len() < MinSnapshots:
		return verdict(Insufficient, "not_enough_snapshots")
	case zerosOf(live) >= zeroShareLive && zerosOf(base) <= zeroShareBaseline:
		return verdict(Corrupt, "zeros")
	}
	for _, name := range statisticOrder {
		s := r.Statistics[name]
		s.numbers(liveValues[name], baseValues[name], mode, share(len(statisticOrder)))
		s.conclude()
		r.Statistics[name] = s
		r.take(s)
	}
	r.conclude()
	for _, name := range statisticOrder {
		s := r.Statistics[name]
		z, most := s.Measures[measureZ], r.Statistics[r.Statistic].Measures[measureZ]
		switch {
		case r.DecidedBy != "" && r.Statistic == "" && s.Measures[r.DecidedBy].Status == r.Overall:
			r.Statistic = name
		case r.DecidedBy == "" && (r.Statistic == "" || larger(z.Value, most.Value)):
			r.Statistic = name
		}
	}
	return r
}

// take adds a statistic's measures: the worst of each name stays, of equally bad ones the one that is further out.
func (r *InputReport) take(s Report) {
	for name, m := range s.Measures {
		had, ok := r.Measures[name]
		if !ok || severity(m.Status) > severity(had.Status) || severity(m.Status) == severity(had.Status) && larger(m.Value, had.Value) {
			r.Measures[name] = m
		}
	}
	r.Z = r.Measures[measureZ].Value
	if larger(s.ZSE, r.ZSE) {
		r.ZSE = s.ZSE
	}
	if r.Reason == "" {
		r.Reason = s.Reason
	}
}

// larger reports whether a is above b; a missing b is below all.
func larger(a, b *float64) bool { return a != nil && (b == nil || *a > *b) }

// significantDigits are those of a statistic that are compared. Vectors that their producer has scaled to length 1
// differ from that by no more than float32 can express, which is no drift.
const significantDigits = 5

func roundAll(v []float64) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = roundSignificant(x)
	}
	return out
}

func roundSignificant(x float64) float64 {
	if x == 0 {
		return 0
	}
	scale := math.Pow(10, significantDigits-1-math.Floor(math.Log10(math.Abs(x))))
	if math.IsInf(scale, 0) || scale == 0 {
		return x
	}
	return math.Round(x*scale) / scale
}

func zerosOf(in Inputs) float64 { return float64(in.Zeros) / float64(in.Len()) }
