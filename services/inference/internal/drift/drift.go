// Package drift compares a model's recent predictions with those of its baseline. It computes; it keeps
// nothing.
package drift

import (
	"maps"
	"math"
	"slices"
	"strconv"
)

// Level is a verdict, of one measure or of all.
type Level string

// The levels. Only OK, WARNING and CRITICAL are verdicts of a comparison; the others give the reason for having none.
const (
	OK           Level = "OK"
	Warning      Level = "WARNING"
	Critical     Level = "CRITICAL"
	NoBaseline   Level = "NO_BASELINE"
	Insufficient Level = "INSUFFICIENT"
	Corrupt      Level = "CORRUPT"
)

// MinSnapshots is how many predictions a comparison or a baseline needs.
const MinSnapshots = 10

// Thresholds of the measures: warn, critical. For ks they bound the p-value from below. Those of psi are the
// least: see psiThresholds.
const (
	zWarn, zCritical     = 2.0, 3.0
	psiWarn, psiCritical = 0.1, 0.25
	ksWarn, ksCritical   = 0.01, 0.001
	w1Warn, w1Critical   = 0.5, 1.0
)

// How often chance alone may make a measure warn, or critical.
const (
	chanceWarn     = 0.01
	chanceCritical = 0.001
)

// psiThresholds returns the values from which psi is significant. The psi of two samples of one distribution is about
// chi-squared with bins − 1 degrees, times 1/n + 1/nb: with 100 predictions in ten bins, chance alone exceeds the usual
// 0.1 in every fourth window.
func psiThresholds(bins, n, nb int, s share) (warn, critical float64) {
	scale := 1/float64(n) + 1/float64(nb)
	return max(psiWarn, scale*chiSquaredQuantile(1-s.of(chanceWarn), bins-1)),
		max(psiCritical, scale*chiSquaredQuantile(1-s.of(chanceCritical), bins-1))
}

// share is the number of comparisons behind one verdict. Each uses the significance level divided by share, so that
// together they err as often as one alone.
type share int

func (s share) of(p float64) float64 { return p / float64(s) }

// A live sample of which half is zero is corrupt when at most one in twenty of the baseline is: a
// broken producer sends zeros more often than a model predicts them.
const (
	zeroShareLive     = 0.5
	zeroShareBaseline = 0.05
)

// judgePSI compares psi with its thresholds, and unless the samples have drifted anyway with chance, where the
// thresholds are too low for the window.
func judgePSI(psi float64, baseline []float64, n, nb int, s share, drifted bool) Measure {
	warn, critical := psiThresholds(len(baseline), n, nb, s)
	m := gradeAbove(psi, warn, critical)
	if drifted {
		return m
	}
	return m.unlessChance(n, s, func(atLeast float64) float64 {
		return psiChance(psi, baseline, n, nb, atLeast, s)
	})
}

// unlessChance withdraws a verdict that chance alone produces too often. chance is the probability of such a value
// without drift; from atLeast on it need not be exact.
func (m Measure) unlessChance(n int, s share, chance func(atLeast float64) float64) Measure {
	if m.Status == OK || m.Value == nil || n > chanceRows {
		return m
	}
	switch p := chance(s.of(chanceWarn)); {
	case p >= s.of(chanceWarn):
		m.Status = OK
	case m.Status == Critical && p >= s.of(chanceCritical):
		m.Status = Warning
	}
	return m
}

// Mode is the divisor of z_score.
type Mode string

// Spread divides by the baseline's standard deviation: how far a typical prediction has moved.
// StandardError divides by that of the difference of the two means: how sure one can be that it moved.
const (
	Spread        Mode = "spread"
	StandardError Mode = "standard_error"
)

// Sample is predictions: numbers, or class labels if Labels is not nil.
type Sample struct {
	Values []float64
	Labels []string
}

// Len is the number of predictions.
func (s Sample) Len() int {
	if s.Labels != nil {
		return len(s.Labels)
	}
	return len(s.Values)
}

// numeric returns the values; labels count if all of them are numbers.
func (s Sample) numeric() ([]float64, bool) {
	if s.Labels == nil {
		return s.Values, len(s.Values) > 0
	}
	out := make([]float64, len(s.Labels))
	for i, l := range s.Labels {
		v, err := strconv.ParseFloat(l, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, false
		}
		out[i] = v
	}
	return out, len(out) > 0
}

// Moments are mean and population standard deviation; nil where there are no finite numbers.
func (s Sample) Moments() (mean, std *float64) {
	v, ok := s.numeric()
	if !ok {
		return nil, nil
	}
	m, d := meanAndStd(v)
	return finiteOrNil(m), finiteOrNil(d)
}

// Measure is one comparison.
type Measure struct {
	Status Level
	Value  *float64 // nil when it has no finite value
	P      *float64 // only of ks
}

// Report is the comparison of two samples.
type Report struct {
	Status  Level // follows z_score
	Overall Level // the worst measure
	// DecidedBy is the measure that Overall follows: the first of measureOrder where several are as bad; ""
	// where Overall is OK or no comparison was made.
	DecidedBy string
	Z, ZSE    *float64
	// Moments of both samples, see Sample.Moments.
	LiveMean, LiveStd, BaselineMean, BaselineStd *float64
	Measures                                     map[string]Measure
	Reason                                       string // explains the level where the measures do not
}

// The names of the measures.
const (
	measureZ   = "z_score"
	measurePSI = "psi"
	measureKS  = "ks"
	measureW1  = "wasserstein"
)

var measureOrder = []string{measureZ, measurePSI, measureKS, measureW1}

// Evaluate compares live with base, which has no predictions when there is no baseline.
func Evaluate(live, base Sample, mode Mode) Report {
	r := Report{Measures: map[string]Measure{}}
	r.LiveMean, r.LiveStd = live.Moments()
	r.BaselineMean, r.BaselineStd = base.Moments()
	verdict := func(l Level, reason string) Report {
		r.Status, r.Overall, r.Reason = l, l, reason
		return r
	}
	switch {
	case hasNonFinite(live.Values):
		return verdict(Corrupt, "non_finite_prediction")
	case base.Len() == 0:
		return verdict(NoBaseline, "no_baseline")
	case live.Len() < MinSnapshots:
		return verdict(Insufficient, "not_enough_snapshots")
	case (live.Labels == nil) != (base.Labels == nil):
		return verdict(NoBaseline, "baseline_of_other_kind")
	case live.Labels == nil && zeroShare(live.Values) >= zeroShareLive && zeroShare(base.Values) <= zeroShareBaseline:
		return verdict(Corrupt, "zeros")
	}
	if live.Labels != nil {
		r.labels(live.Labels, base.Labels, mode, 1)
	} else {
		r.numbers(live.Values, base.Values, mode, 1)
	}
	r.conclude()
	return r
}

// drifted reports whether a measure that needs no simulation is critical: then the worst measure is critical whatever
// the simulations of the others yield, and they would be most of the cost of a drifted model.
func (r *Report) drifted() bool {
	return r.Measures[measureZ].Status == Critical || r.Measures[measureKS].Status == Critical
}

// conclude sets the levels that follow from the measures.
func (r *Report) conclude() {
	r.Status = r.Measures[measureZ].Status
	r.Overall = OK
	for _, name := range measureOrder {
		if m, ok := r.Measures[name]; ok && severity(m.Status) > severity(r.Overall) {
			r.Overall, r.DecidedBy = m.Status, name
		}
	}
}

func (r *Report) numbers(live, base []float64, mode Mode, s share) {
	m, _ := meanAndStd(live)
	mu, sigma := meanAndStd(base)
	d, p := twoSampleKS(live, base)
	k := Measure{Status: OK, Value: finiteOrNil(d), P: finiteOrNil(p)}
	switch {
	case p < s.of(ksCritical):
		k.Status = Critical
	case p < s.of(ksWarn):
		k.Status = Warning
	}
	r.Measures[measureKS] = k
	w1 := wassersteinDistance(live, base)
	if sigma == 0 {
		z := Measure{Status: Critical}
		w := Measure{Status: Critical}
		if m == mu {
			z = Measure{Status: OK, Value: finiteOrNil(0)}
		}
		if w1 == 0 {
			w = Measure{Status: OK, Value: finiteOrNil(0)}
		}
		if z.Value == nil || w.Value == nil {
			r.Reason = "zero_variance_baseline"
		}
		r.Measures[measureZ], r.Measures[measureW1] = z, w
		r.Z, r.ZSE = z.Value, z.Value
	} else {
		spread := math.Abs(m-mu) / sigma
		r.scores(spread, spread/seFactor(len(live), len(base)), mode)
		w := gradeAbove(w1/sigma, w1Warn, w1Critical)
		if !r.drifted() {
			w = w.unlessChance(len(live), s, func(atLeast float64) float64 {
				return wassersteinChance(w1, live, base, atLeast, s)
			})
		}
		r.Measures[measureW1] = w
	}
	psi, bins := psiNumbers(live, base)
	r.Measures[measurePSI] = judgePSI(psi, bins, len(live), len(base), s, r.drifted())
}

func (r *Report) labels(live, base []string, mode Mode, s share) {
	p, q := labelShares(live), labelShares(base)
	nb := float64(len(base))
	var z float64
	for class := range unionKeys(p, q) {
		// A class that was never or always seen has zero variance; 1/n is the least that a sample of this size could
		// have shown.
		kept := min(max(q[class], 1/nb), 1-1/nb)
		z = max(z, math.Abs(p[class]-q[class])/math.Sqrt(kept*(1-kept)))
	}
	r.scores(z, z/seFactor(len(live), len(base)), mode)
	classes := make([]float64, 0, len(q))
	for _, class := range slices.Sorted(maps.Keys(unionKeys(p, q))) {
		classes = append(classes, q[class])
	}
	r.Measures[measurePSI] = judgePSI(psiShares(p, q), classes, len(live), len(base), s, r.drifted())
}

func (r *Report) scores(spread, se float64, mode Mode) {
	z := spread
	if mode == StandardError {
		z = se
	}
	m := gradeAbove(z, zWarn, zCritical)
	r.Measures[measureZ] = m
	r.Z, r.ZSE = m.Value, finiteOrNil(se)
}

// seFactor turns a deviation in units of the spread into one of the standard error of a difference of
// two means.
func seFactor(n, nb int) float64 { return math.Sqrt(1/float64(n) + 1/float64(nb)) }

func gradeAbove(v, warn, critical float64) Measure {
	m := Measure{Status: OK, Value: finiteOrNil(v)}
	switch {
	case m.Value == nil, v >= critical:
		m.Status = Critical
	case v >= warn:
		m.Status = Warning
	}
	return m
}

func severity(l Level) int { return slices.Index([]Level{OK, Warning, Critical}, l) }

func finiteOrNil(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func hasNonFinite(v []float64) bool {
	return slices.ContainsFunc(v, func(x float64) bool { return finiteOrNil(x) == nil })
}

func zeroShare(v []float64) float64 {
	n := 0
	for _, x := range v {
		if x == 0 {
			n++
		}
	}
	return float64(n) / float64(len(v))
}
