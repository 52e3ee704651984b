package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/clip"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/table"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// Prometheus is the metrics store. A nil one is not configured.
type Prometheus struct {
	api  v1.API
	now  func() time.Time
	kept keptLabels
}

// NewPrometheus makes a client of the store at base; an empty one gives nil.
func NewPrometheus(base string, now func() time.Time) (*Prometheus, error) {
	if base == "" {
		return nil, nil
	}
	u, err := parseAddress("PROMETHEUS_URL", base)
	if err != nil {
		return nil, err
	}
	c, err := api.NewClient(api.Config{Address: u.String(), Client: newHTTPClient()})
	if err != nil {
		return nil, errors.New("PROMETHEUS_URL is no http or https address")
	}
	return &Prometheus{api: v1.NewAPI(c), now: now}, nil
}

// Query runs a PromQL expression: as of now, or over the last minutes.
func (p *Prometheus) Query(ctx context.Context, promql string, minutes int, hidden Hidden) (turn.Output, error) {
	if p == nil {
		return turn.Output{}, notConfigured("metrics store", "PROMETHEUS_URL")
	}
	asked := promql
	promql, err := hidden.close(promql, true)
	if err != nil {
		return turn.Output{}, err
	}
	var value model.Value
	var warnings v1.Warnings
	now := p.now()
	if minutes == 0 {
		value, warnings, _, err = p.api.Query(ctx, promql, now)
	} else {
		value, warnings, _, err = p.api.QueryRange(ctx, promql, v1.Range{Start: now.Add(-time.Duration(minutes) * time.Minute), End: now, Step: stepFor(minutes)})
	}
	if err != nil {
		return turn.Output{}, failedQuery(err)
	}
	text, cut := formatValue(value, hidden)
	if text == noSeries {
		text += p.explainNothing(ctx, asked, hidden)
	}
	for i, w := range warnings {
		if i == 3 {
			break
		}
		text = "Prometheus warns: " + table.Line(w, maxSentence) + "\n" + text
	}
	text, clipped := clip.Head(redact.Text(text), maxCharacters, "aggregate or select fewer series")
	// Workloads choose the labels of what they expose.
	return turn.Output{Text: text, Truncated: cut || clipped, Untrusted: []string{text}}, nil
}

// failedQuery distinguishes a query that the store rejects from a store that does not answer.
func failedQuery(err error) error {
	var said *v1.Error
	if errors.As(err, &said) && (said.Type == v1.ErrBadData || said.Type == v1.ErrExec) {
		return refusedQuery("Prometheus", said.Msg)
	}
	return unavailableStore(fault.MetricsUnavailable, err)
}

// stepFor gives about sixty points, no closer than scrapes usually are.
func stepFor(minutes int) time.Duration {
	return max(15*time.Second, time.Duration(minutes)*time.Second)
}

// noSeries is the text of an empty result.
const noSeries = "No series match.\n"

// formatValue shows a result, the greatest values first. An entry that is null in the answer
// counts for nothing.
func formatValue(value model.Value, hidden Hidden) (text string, cut bool) {
	switch v := value.(type) {
	case model.Vector:
		v = slices.DeleteFunc(v, func(s *model.Sample) bool { return s == nil || isHiddenSeries(s.Metric, hidden) })
		slices.SortStableFunc(v, func(a, b *model.Sample) int {
			return cmp.Or(compareDescending(a.Value, b.Value), cmp.Compare(a.Metric.String(), b.Metric.String()))
		})
		return formatLines(v, maxSeries, func(s *model.Sample) string {
			if s.Histogram != nil {
				return fmt.Sprintf("%s count %s sum %s", formatMetric(s.Metric), formatNumber(s.Histogram.Count), formatNumber(s.Histogram.Sum))
			}
			return formatMetric(s.Metric) + " " + formatNumber(s.Value)
		})
	case model.Matrix:
		v = slices.DeleteFunc(v, func(s *model.SampleStream) bool { return s == nil || isHiddenSeries(s.Metric, hidden) })
		slices.SortStableFunc(v, func(a, b *model.SampleStream) int {
			return cmp.Or(compareDescending(lastValue(a), lastValue(b)), cmp.Compare(a.Metric.String(), b.Metric.String()))
		})
		return formatLines(v, maxRanges, summarizeSeries)
	case *model.Scalar:
		return formatNumber(v.Value) + "\n", false
	case *model.String:
		return table.Line(v.Value, maxSentence) + "\n", false
	}
	return noSeries, false
}

func formatLines[T any](list []T, most int, line func(T) string) (text string, cut bool) {
	if len(list) == 0 {
		return noSeries, false
	}
	var b strings.Builder
	for i, s := range list {
		if i == most {
			fmt.Fprintf(&b, "[%d of %d series, the greatest first; aggregate or select fewer]\n", most, len(list))
			return b.String(), true
		}
		b.WriteString(line(s) + "\n")
	}
	return b.String(), false
}

// summarizeSeries sums a series up, and shows how it went at a dozen points.
func summarizeSeries(s *model.SampleStream) string {
	const points = 12
	if len(s.Values) == 0 {
		return fmt.Sprintf("%s %d histograms", formatMetric(s.Metric), len(s.Histograms))
	}
	least, most, sum := math.Inf(1), math.Inf(-1), 0.0
	for _, p := range s.Values {
		least, most, sum = min(least, float64(p.Value)), max(most, float64(p.Value)), sum+float64(p.Value)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s last %s, min %s, max %s, mean %s:", formatMetric(s.Metric), formatNumber(lastValue(s)),
		formatNumber(model.SampleValue(least)), formatNumber(model.SampleValue(most)), formatNumber(model.SampleValue(sum/float64(len(s.Values)))))
	every := max(1, (len(s.Values)+points-1)/points)
	for i := (len(s.Values) - 1) % every; i < len(s.Values); i += every {
		fmt.Fprintf(&b, " %s %s", s.Values[i].Timestamp.Time().UTC().Format("15:04"), formatNumber(s.Values[i].Value))
	}
	return b.String()
}

func lastValue(s *model.SampleStream) model.SampleValue {
	if len(s.Values) == 0 {
		return 0
	}
	return s.Values[len(s.Values)-1].Value
}

// compareDescending orders numbers, what is none behind them.
func compareDescending(a, b model.SampleValue) int { return cmp.Compare(b, a) }

func formatMetric(m model.Metric) string { return table.Line(redact.Text(m.String()), maxLabels) }

// formatNumber writes six significant digits, and whole numbers whole: the rest is noise to a
// reader.
func formatNumber[T ~float64](v T) string {
	f := float64(v)
	switch size := math.Abs(f); {
	case size >= 1e15:
	case f == math.Trunc(f):
		return strconv.FormatFloat(f, 'f', -1, 64)
	case size >= 1e5:
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'g', 6, 64)
}

func isHiddenSeries(m model.Metric, hidden Hidden) bool {
	values := make([]string, 0, len(m))
	for _, v := range m {
		values = append(values, string(v))
	}
	return hidden.reveals(values)
}
