package mlops

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/compose"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/figure"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
)

const (
	maxPoints   = 500
	maxStep     = 604800 // seconds
	defaultStep = 5 * time.Minute
	defaultSpan = 24 * time.Hour
	maxSpan     = 10 * 366 * 24 * time.Hour
	// The thresholds of the drift of predictions.
	zWarning, zCritical = 2.0, 3.0
)

// seriesQuery is one series; its times are in steps, so that those who look at the same time share the answer.
type seriesQuery struct {
	model    string
	metric   api.SeriesMetric
	from, to int64 // seconds since 1970
	step     int64 // seconds
}

// Series serves GET /api/v1/mlops/model/{name}/series.
func (v *Views) Series(c echo.Context) error {
	if err := input.CheckQuery(c, "metric", "from", "to", "step"); err != nil {
		return err
	}
	q, err := parseSeries(c, v.now())
	if err != nil {
		return err
	}
	view := v.pool.Begin(c)
	out := api.Series{Metric: q.metric, Points: [][]*float64{}, Thresholds: map[string]float64{}, Unit: seriesUnits[q.metric]}
	if q.metric == api.CostUsd {
		if costs, ok := compose.Ask(view, v.sources.costs, q.model).Get(); ok {
			out.Points = costPoints(costs, q)
		}
		return view.Answer(out)
	}
	s, ok := compose.Ask(view, v.sources.series, q).Get()
	if q.metric == api.ZScore {
		out.Thresholds["warning"], out.Thresholds["critical"] = zWarning, zCritical
	}
	if !ok {
		return view.Answer(out)
	}
	if q.metric == api.PredictionMean {
		if s.Unit != nil {
			out.Unit = *s.Unit
		}
		if s.BaselineMean != nil {
			out.Thresholds["baseline"] = *s.BaselineMean
		}
	}
	out.Points = make([][]*float64, len(s.Points))
	for i, p := range s.Points {
		out.Points[i] = point(p.At.UnixMilli(), p.Value)
	}
	return view.Answer(out)
}

// seriesUnits of the measures; that of predictions is the model's, if it has one.
var seriesUnits = map[api.SeriesMetric]string{
	api.PredictionMean: "", api.ZScore: "σ", api.Requests: "requests", api.LatencyP95: "ms", api.CostUsd: "USD",
}

func point(ms int64, value *float64) []*float64 {
	at := float64(ms)
	return []*float64{&at, value}
}

// series reads a series from the serving service.
func (c clients) series(ctx context.Context, who caller.Caller, q seriesQuery) (inference.Series, error) {
	client, err := c.Inference(who)
	if err != nil {
		return inference.Series{}, err
	}
	from, to, step := time.Unix(q.from, 0).UTC(), time.Unix(q.to, 0).UTC(), int(q.step)
	s, err := wire.Decode[inference.Series](client.Series(ctx, q.model, &inference.SeriesParams{
		Metric: inference.SeriesMetric(q.metric), From: &from, To: &to, Step: &step,
	}))
	if isNotFound(err) {
		return s, fmt.Errorf("the serving service has no series: %w: %w", compose.ErrSkipped, err)
	}
	return s, err
}

// listCosts reads the costs of a model's training for the tenant, run by run.
func (c clients) listCosts(ctx context.Context, who caller.Caller, model string) ([]controlplane.Cost, error) {
	client, err := c.ControlPlane(who)
	if err != nil {
		return nil, err
	}
	limit := pageLimit
	return compose.ReadPages(ctx, func(ctx context.Context, cursor *string) ([]controlplane.Cost, *string, error) {
		page, err := wire.Decode[controlplane.CostList](client.ListCosts(ctx, &controlplane.ListCostsParams{Model: &model, Limit: &limit, Cursor: cursor}))
		return page.Items, page.NextCursor, err
	})
}

// costPoints adds up the recorded cost of each step; that of mock runs is in no sum. Nothing recorded is 0.
func costPoints(costs []controlplane.Cost, q seriesQuery) [][]*float64 {
	sums := make([]float64, (q.to-q.from+q.step-1)/q.step)
	for _, cost := range costs {
		if i := (cost.RecordedAt.Unix() - q.from) / q.step; !cost.Synthetic && cost.RecordedAt.Unix() >= q.from && i < int64(len(sums)) {
			sums[i] += cost.CostUsd
		}
	}
	out := make([][]*float64, len(sums))
	for i, sum := range sums {
		sum = figure.Round(sum, 2)
		out[i] = point((q.from+int64(i)*q.step)*1000, &sum)
	}
	return out
}

// parseSeries reads the query. Steps begin at multiples of their length.
func parseSeries(c echo.Context, now time.Time) (seriesQuery, error) {
	var q seriesQuery
	var err error
	if q.model, err = nameFromPath(c); err != nil {
		return q, err
	}
	if q.metric = api.SeriesMetric(c.QueryParam("metric")); !q.metric.Valid() {
		return q, invalidQuery("metric", "must be prediction_mean, z_score, requests, latency_p95 or cost_usd")
	}
	to := now
	if v := c.QueryParam("to"); v != "" {
		if to, err = time.Parse(time.RFC3339, v); err != nil {
			return q, invalidQuery("to", "must be a time such as 2026-01-02T03:04:05Z")
		}
	}
	from := to.Add(-defaultSpan)
	if v := c.QueryParam("from"); v != "" {
		if from, err = time.Parse(time.RFC3339, v); err != nil {
			return q, invalidQuery("from", "must be a time such as 2026-01-02T03:04:05Z")
		}
	}
	if span := to.Sub(from); span <= 0 || span > maxSpan {
		return q, invalidQuery("from", "must be before to, by at most ten years")
	}
	q.step = int64(defaultStep / time.Second)
	if v := c.QueryParam("step"); v != "" {
		if q.step, err = strconv.ParseInt(v, 10, 64); err != nil || q.step < 1 || q.step > maxStep {
			return q, invalidQuery("step", fmt.Sprintf("must be a whole number of seconds from 1 to %d", maxStep))
		}
	}
	seconds := int64(math.Ceil(to.Sub(from).Seconds()))
	q.step = max(q.step, (seconds+maxPoints-4)/(maxPoints-3)) // two more where the span begins and ends within a step
	q.from = from.Unix() - from.Unix()%q.step
	q.to = to.Unix() + (q.step-to.Unix()%q.step)%q.step
	return q, nil
}

func invalidQuery(name, msg string) error {
	return fault.ValidationFailed.New("The query parameter " + name + " " + msg + ".").WithErrors(problem.Field{Loc: []string{"query", name}, Msg: msg})
}
