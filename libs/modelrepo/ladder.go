package modelrepo

import (
	"fmt"
	"math"
)

// Prefixes of the metrics that hold each baseline's score on the same rows.
const (
	// BaselineFixed is the guess from the rows before the test rows.
	BaselineFixed = "baseline_"
	// BaselineRunning is the same guess renewed before each test row; reported where rows have times.
	BaselineRunning = "baseline_running_"
)

// Verdict is the result of one rung for a version.
type Verdict struct {
	Alias string `json:"alias"`
	Pass  bool   `json:"pass"`
	// Reason is why it failed; empty if it passed.
	Reason string `json:"reason,omitempty"`
}

// Judge climbs the ladder with the test metrics of a version. Each rung needs those below it; an absent or
// non-finite metric fails.
func (m *Model) Judge(metrics map[string]float64) []Verdict {
	out := make([]Verdict, 0, len(m.Lifecycle))
	below := ""
	for _, r := range m.Lifecycle {
		v := Verdict{Alias: r.Name}
		if below != "" {
			v.Reason = "rung " + below + " was not reached"
		} else {
			v.Reason = m.judge(r, metrics)
		}
		v.Pass = v.Reason == ""
		if !v.Pass && below == "" {
			below = r.Name
		}
		out = append(out, v)
	}
	return out
}

func (m *Model) judge(r Rung, metrics map[string]float64) string {
	got, ok := finiteMetric(metrics, r.Metric)
	if !ok {
		return fmt.Sprintf("metric %s is absent or not finite", r.Metric)
	}
	if r.Direction == Lower && got > r.Threshold || r.Direction == Higher && got < r.Threshold {
		return fmt.Sprintf("%s is %.4g; want at %s %.4g", r.Metric, got, map[string]string{Lower: "most", Higher: "least"}[r.Direction], r.Threshold)
	}
	if !r.BeatsBaseline {
		return ""
	}
	if reason := checkMargin(metrics, Margin{Metric: r.Metric}, r.Direction); reason != "" {
		return reason
	}
	for _, mg := range m.Baseline.Margins {
		direction, _ := MetricDirection(mg.Metric)
		if reason := checkMargin(metrics, mg, direction); reason != "" {
			return reason
		}
	}
	return ""
}

// MetricDirection returns which way a metric is better, and whether any type yields it; names mean the same for
// every type. A metric that none yields is Lower.
func MetricDirection(metric string) (direction string, known bool) {
	for _, yielded := range []map[string]string{regressionMetrics, classMetrics, binaryMetrics} {
		if d, ok := yielded[metric]; ok {
			return d, true
		}
	}
	return Lower, false
}

func checkMargin(metrics map[string]float64, mg Margin, direction string) string {
	got, ok := finiteMetric(metrics, mg.Metric)
	if !ok {
		return fmt.Sprintf("metric %s is absent or not finite", mg.Metric)
	}
	for _, b := range []struct{ name, prefix string }{{"fixed", BaselineFixed}, {"running", BaselineRunning}} {
		name := b.prefix + mg.Metric
		base, ok := finiteMetric(metrics, name)
		if _, reported := metrics[name]; !reported && b.prefix == BaselineRunning {
			continue
		}
		if !ok {
			return fmt.Sprintf("metric %s is absent or not finite", name)
		}
		// By a margin, "at least that much better"; without one, better at all.
		gain, need := base-got, mg.Absolute+mg.Relative*math.Abs(base)
		if direction == Higher {
			gain = -gain
		}
		if gain < need || gain <= 0 {
			by := ""
			if need > 0 {
				by = fmt.Sprintf(" by %.4g", need)
			}
			return fmt.Sprintf("%s %.4g does not beat the %s baseline's %.4g%s", mg.Metric, got, b.name, base, by)
		}
	}
	return ""
}

// finiteMetric counts the largest float as infinite too: trackers clamp infinities to it.
func finiteMetric(metrics map[string]float64, name string) (float64, bool) {
	v, ok := metrics[name]
	return v, ok && math.Abs(v) < math.MaxFloat64 // false for NaN
}

// Primary is the metric by which versions of the model are compared, and its better direction: the one of the
// highest rung, or rmse, accuracy or roc_auc for a model without ladder.
func (m *Model) Primary() (metric, direction string) {
	if n := len(m.Lifecycle); n > 0 {
		return m.Lifecycle[n-1].Metric, m.Lifecycle[n-1].Direction
	}
	switch m.Type {
	case Classification:
		return "accuracy", Higher
	case Anomaly:
		return "roc_auc", Higher
	}
	return "rmse", Lower
}

// CapDummy lowers the verdicts of a dummy run: invented rows are no evidence about real jobs, so such a version reaches
// at most Staging.
func CapDummy(verdicts []Verdict) []Verdict {
	for i := range verdicts {
		if verdicts[i].Alias != Aliases[0] && verdicts[i].Pass {
			verdicts[i].Pass, verdicts[i].Reason = false, "a dummy run reaches at most "+Aliases[0]
		}
	}
	return verdicts
}

// DataBackend returns the backend from which the data of one of the model's data sets is read.
func (m *Model) DataBackend(d *ModelDataset) string {
	if d.Backend != "" {
		return d.Backend
	}
	return m.Backend
}
