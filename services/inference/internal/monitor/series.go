package monitor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/store"
)

const (
	maxPoints   = 500
	maxStep     = 30 * 24 * time.Hour // how long snapshots are kept
	defaultStep = 5 * time.Minute
	defaultSpan = 24 * time.Hour
)

// span is the time that a series covers, in whole steps.
type span struct {
	from, to time.Time
	step     time.Duration
}

// Series is GET /series/{model_name}.
func (m *Monitor) Series(c echo.Context) error {
	metric := api.SeriesMetric(c.QueryParam("metric"))
	if !metric.Valid() {
		return invalidQuery("metric", "expected prediction_mean, z_score, requests or latency_p95")
	}
	alias, err := aliasOf(c.QueryParam("alias"), "query", catalog.Production)
	if err != nil {
		return err
	}
	s, err := parseSpan(c, time.Now())
	if err != nil {
		return err
	}
	p := place{catalog.UpperName(c.Param("model_name")), alias}
	out := api.Series{Model: p.model, Alias: p.alias, Metric: metric, From: s.from, To: s.to, Step: int(s.step / time.Second)}
	if e := m.catalog.Table().Model(p.model); e != nil && e.Aliases[p.alias] != nil {
		if unit := e.Aliases[p.alias].Model.Schema().Output.Unit; unit != "" {
			out.Unit = &unit
		}
	}
	if out.Points, err = m.points(c.Request().Context(), p, s, &out); err != nil {
		return storeFault(err)
	}
	return c.JSON(http.StatusOK, out)
}

// points are the series' values; it sets the baseline of out as well. All reads see one state of the table.
func (m *Monitor) points(ctx context.Context, p place, s span, out *api.Series) ([]api.SeriesPoint, error) {
	points := s.points()
	if out.Metric == api.LatencyP95 {
		return points, m.fillLatency(ctx, p, s, points)
	}
	var rows []store.SnapshotSeriesRow
	var oldest time.Time
	err := postgres.InTx(ctx, m.pool, func(tx pgx.Tx) error {
		q := m.queries.WithTx(tx)
		base, err := q.BaselineMoments(ctx, store.BaselineMomentsParams{Model: p.model, Alias: p.alias})
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		out.BaselineMean, out.BaselineStd = base.Mean, base.Std
		if oldest, err = q.OldestSnapshot(ctx, store.OldestSnapshotParams{Model: p.model, Alias: p.alias}); errors.Is(err, pgx.ErrNoRows) {
			return nil
		} else if err != nil {
			return err
		}
		rows, err = q.SnapshotSeries(ctx, store.SnapshotSeriesParams{
			Model: p.model, Alias: p.alias, FromTime: s.from, ToTime: s.to, StepSeconds: s.step.Seconds(),
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	if out.Metric == api.Requests && !oldest.IsZero() {
		for i := range points { // no prediction is a measurement too, but not from before the oldest that is kept
			if points[i].At.Add(s.step).After(oldest) {
				points[i].Value = new(float64)
			}
		}
	}
	for _, r := range rows {
		if r.Step >= 0 && int(r.Step) < len(points) {
			points[r.Step].Value = valueOf(r, out)
		}
	}
	return points, nil
}

// fillLatency sets the values to the 95th percentile of each step's answer times in milliseconds.
func (m *Monitor) fillLatency(ctx context.Context, p place, s span, points []api.SeriesPoint) error {
	rows, err := m.queries.LatencySeries(ctx, store.LatencySeriesParams{
		Model: p.model, Alias: p.alias, FromTime: s.from, ToTime: s.to, StepSeconds: s.step.Seconds(),
	})
	for _, r := range rows {
		if r.Step >= 0 && int(r.Step) < len(points) {
			ms := r.P95Seconds * 1000
			points[r.Step].Value = &ms
		}
	}
	return err
}

func valueOf(r store.SnapshotSeriesRow, out *api.Series) *float64 {
	v := float64(r.N)
	if out.Metric == api.Requests {
		return &v
	}
	if r.Numbers == 0 {
		return nil
	}
	v = r.Total / float64(r.Numbers)
	if out.Metric == api.PredictionMean {
		return &v
	}
	if out.BaselineMean == nil || out.BaselineStd == nil || *out.BaselineStd == 0 {
		return nil
	}
	v = (v - *out.BaselineMean) / *out.BaselineStd
	if v < 0 {
		v = -v
	}
	return &v
}

func (s span) points() []api.SeriesPoint {
	out := []api.SeriesPoint{}
	for at := s.from; at.Before(s.to); at = at.Add(s.step) {
		out = append(out, api.SeriesPoint{At: at})
	}
	return out
}

// parseSpan reads from, to and step. Steps begin at multiples of their length, so that a page that is loaded again
// shows the same points.
func parseSpan(c echo.Context, now time.Time) (span, error) {
	s := span{to: now, step: defaultStep}
	var err error
	if v := c.QueryParam("to"); v != "" {
		if s.to, err = time.Parse(time.RFC3339, v); err != nil {
			return s, invalidQuery("to", "expected a time such as 2026-01-02T03:04:05Z")
		}
	}
	s.from = s.to.Add(-defaultSpan)
	if v := c.QueryParam("from"); v != "" {
		if s.from, err = time.Parse(time.RFC3339, v); err != nil {
			return s, invalidQuery("from", "expected a time such as 2026-01-02T03:04:05Z")
		}
	}
	if !s.from.Before(s.to) {
		return s, invalidQuery("from", "expected a time before to")
	}
	if v := c.QueryParam("step"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > int(maxStep/time.Second) {
			return s, invalidQuery("step", fmt.Sprintf("expected a whole number of seconds from 1 to %d", int(maxStep/time.Second)))
		}
		s.step = time.Duration(n) * time.Second
	}
	if least := (s.to.Sub(s.from) + maxPoints - 2) / (maxPoints - 1); s.step < least { // one more for the part before from
		s.step = least.Truncate(time.Second) + time.Second
	}
	s.from = s.from.UTC().Truncate(s.step)
	s.to = s.to.UTC()
	return s, nil
}
