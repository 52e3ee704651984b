package training

import (
	"fmt"

	"github.com/mlp-platform/platform/services/trainer/internal/chart"
)

// Chart is a drawing of a run, as a file.
type Chart struct {
	// Name of the file, such as importance.svg.
	Name string
	SVG  []byte
}

// chartFolder is the artifact folder of the charts within the run.
const chartFolder = "charts"

// chartedFeatures are the most that the chart of the importance shows; the report has all.
const chartedFeatures = 30

// Charts draws the report's charts, in reading order.
func (r Report) Charts() []Chart {
	var out []Chart
	add := func(name string, svg []byte) { out = append(out, Chart{name, svg}) }
	if a := r.Agreement; a != nil {
		add("predicted_actual.svg", chart.Grid{
			Title: r.Model + ": predicted against actual " + a.Target,
			X:     "predicted " + a.Target + inUnit(a.Unit), Y: "actual " + a.Target + inUnit(a.Unit), Edges: a.Edges, Log: a.Log, Counts: a.Counts,
		}.SVG())
	}
	if c := r.Confusion; c != nil {
		add("predicted_actual.svg", chart.Matrix{
			Title: r.Model + ": test rows by actual and predicted label",
			X:     "predicted label", Y: "actual label", Labels: c.Labels, Counts: c.Counts,
		}.SVG())
	}
	if h := r.Hours; h != nil {
		add("error_by_hour.svg", hourChart(r.Model, h))
	}
	if i := r.Importance; i != nil {
		b := chart.Bars{
			Title: r.Model + ": importance of the features by permutation",
			X:     fmt.Sprintf("how much worse %s gets with the feature shuffled: mean and deviation of %d shuffles of %d test rows", i.Metric, i.Repeats, i.Rows),
		}
		for _, f := range i.Features[:min(len(i.Features), chartedFeatures)] {
			b.Names, b.Values, b.Deviation = append(b.Names, f.Feature), append(b.Values, f.Worse), append(b.Deviation, f.Std)
		}
		add("importance.svg", b.SVG())
	}
	return out
}

func hourChart(model string, h *HourlyError) []byte {
	c := chart.Columns{Title: model + ": error by hour of the submit", X: "hour of the day"}
	if h.Zone != "" {
		c.X += ", " + h.Zone
	}
	scale, unit := 1.0, ""
	switch h.Of {
	case "wrong":
		c.Y, scale, unit = "wrong labels (%)", 100, " %"
	case "log_error":
		c.Y = "mean |Δ log(1 + value)|"
	default:
		c.Y = "mean absolute error" + inUnit(h.Unit)
		unit = " " + h.Unit
	}
	for hour, n := range h.Rows {
		v := h.Errors[hour] * scale
		c.Names, c.Values, c.Known = append(c.Names, fmt.Sprint(hour)), append(c.Values, v), append(c.Known, n > 0)
		c.Hints = append(c.Hints, fmt.Sprintf("%d:00: %.4g%s, %d test rows", hour, v, unit, n))
	}
	return c.SVG()
}

func inUnit(unit string) string {
	if unit == "" {
		return ""
	}
	return " (" + unit + ")"
}
