package mlops_test

import (
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/viewtest"
)

func (f *fixture) series(t *testing.T, query string) viewtest.Answer {
	t.Helper()
	return viewtest.Get(t, f.views.Series, "/m/:name/series", "/m/jpcp/series?"+query)
}

// day is the one in which the answers were recorded.
const day = "&from=2026-11-22T00:00:00Z&to=2026-11-23T00:00:00Z&step=3600"

func TestSeriesOfPredictions(t *testing.T) {
	t.Parallel()
	f := setup(t)
	got := f.series(t, "metric=prediction_mean"+day)
	got.WantPartial()
	got.Want(map[string]any{"metric": "prediction_mean", "unit": "W", "points.0.0": 1795305600000, "points.0.1": nil})
	if baseline, _ := got.At("thresholds.baseline").(float64); baseline < 200 || baseline > 260 {
		t.Errorf("thresholds.baseline is %v, want the mean of the baseline", got.At("thresholds.baseline"))
	}
	points, _ := got.At("points").([]any)
	if v, _ := got.At("points.22.1").(float64); len(points) != 24 || v < 200 || v > 260 {
		t.Errorf("%d points, that of 22:00 is %v; want 24, and the mean of the predictions then", len(points), got.At("points.22.1"))
	}
	got = f.series(t, "metric=z_score"+day)
	got.Want(map[string]any{"thresholds": map[string]any{"warning": 2, "critical": 3}, "unit": "σ"})
	got = f.series(t, "metric=requests"+day)
	if n, _ := got.At("points.22.1").(float64); n < 100 {
		t.Errorf("%v requests at 22:00, want those of the first start", got.At("points.22.1"))
	}
	f.series(t, "metric=latency_p95"+day).Want(map[string]any{"unit": "ms", "points.22.1": nil})
}

func TestSeriesOfCostLeavesOutMockRuns(t *testing.T) {
	t.Parallel()
	got := setup(t).series(t, "metric=cost_usd"+day)
	got.WantPartial()
	got.Want(map[string]any{"unit": "USD", "points.22.1": 7.85, "points.21.1": 0, "thresholds": map[string]any{}})
}

func TestSeriesHasAtMost500PointsAndBeginsOnASteps(t *testing.T) {
	t.Parallel()
	f := setup(t)
	got := f.series(t, "metric=cost_usd&from=2026-11-01T00:00:01Z&to=2026-11-23T00:00:00Z&step=1")
	points, _ := got.At("points").([]any)
	if n := len(points); n < 400 || n > 500 {
		t.Errorf("%d points, want at most 500", n)
	}
}

func TestSeriesWithoutItsSource(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Serving.Break()
	f.ControlPlane.Break()
	got := f.series(t, "metric=requests"+day)
	got.WantPartial("drift")
	got.Want(map[string]any{"points": []any{}, "metric": "requests"})
	f.series(t, "metric=cost_usd"+day).WantPartial("cost")
}

func TestSeriesRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, query := range []string{
		"", "metric=loss", "metric=requests&from=x", "metric=requests&to=x", "metric=requests&step=0", "metric=requests&step=604801",
		"metric=requests&from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "metric=requests&from=1926-01-02T00:00:00Z",
	} {
		got := viewtest.Do(t, viewtest.Request{Route: "/m/:name/series", Path: "/m/jpcp/series?" + query, Handler: f.views.Series})
		got.WantProblem(422, "validation_failed")
		if detail, _ := got.At("detail").(string); !strings.Contains(detail, "must") {
			t.Errorf("?%s: detail %q, want what the parameter has to be", query, detail)
		}
	}
}
