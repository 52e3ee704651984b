package inference_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

type series struct {
	Model, Alias, Metric string
	Step                 int
	BaselineMean         *float64 `json:"baseline_mean"`
	Points               []struct {
		At    time.Time
		Value *float64
	}
}

func (i *instance) series(query string) series {
	i.T.Helper()
	s, body := i.Get("/series/Tagged?" + query)
	if s != 200 {
		i.T.Fatalf("series: %d %s; want s == 200", s, body)
	}
	var out series
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		i.T.Fatalf("%s: %v", body, err)
	}
	return out
}

// values are the measured values, whichever steps they fell into.
func (s series) values() (out []float64) {
	for _, p := range s.Points {
		if p.Value != nil {
			out = append(out, *p.Value)
		}
	}
	return out
}

func sumOf(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

func TestSeriesIsMadeOfStoredPredictions(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("tagged", "Production", reg.Register("tagged", tagged(t, 0), nil))
	i := start(t, reg, slow)
	if v := i.series("metric=requests").values(); len(v) != 0 {
		t.Errorf("without a prediction: %v, want nulls alone", v)
	}
	i.predicts(1, 100, 100)
	i.OK("/drift/tagged/baseline", `{}`, nil)

	wide := "&step=86400&from=" + time.Now().Add(-48*time.Hour).UTC().Format(time.RFC3339)
	got := i.series("metric=requests" + wide)
	if sum := sumOf(got.values()); sum != 100 || got.Model != "TAGGED" || got.Alias != "Production" || got.Step != 86400 {
		t.Errorf("requests: %v in all of %s under %s, step %d; want 100 of TAGGED under Production, step 86400", sum, got.Model, got.Alias, got.Step)
	}
	if len(got.Points) > 1 && got.Points[0].Value != nil {
		t.Errorf("requests of the day before the oldest prediction: %v, want null", *got.Points[0].Value)
	}
	mean := i.series("metric=prediction_mean" + wide)
	if v := mean.values(); len(v) == 0 || math.Abs(v[len(v)-1]-50.5) > 50 || mean.BaselineMean == nil || *mean.BaselineMean != 50.5 {
		t.Errorf("means %v, baseline %v; want values around the baseline of 50.5", v, mean.BaselineMean)
	}
	latencies := i.series("metric=latency_p95" + wide).values()
	if len(latencies) == 0 || slices.Min(latencies) <= 0 || slices.Max(latencies) > 60_000 {
		t.Errorf("latency_p95: %v, want milliseconds of the steps with predictions", latencies)
	}
	if v := i.series("metric=requests&alias=canary" + wide).values(); len(v) != 0 {
		t.Errorf("another alias: %v, want nulls alone", v)
	}
}

func TestSeriesZScoreIsThatOfTheDriftStatus(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("tagged", "Production", reg.Register("tagged", tagged(t, 0), nil))
	i := start(t, reg, slow)
	i.predicts(1, 100, 100)
	i.OK("/drift/tagged/baseline", `{}`, nil)
	i.OK("/drift/tagged/reset", nil, nil)
	i.predicts(501, 30, 30)
	want := *i.drift("?model=tagged")[0].ZScore
	testenv.Eventually(t, 10*time.Second, func() error { // midnight may divide the predictions
		v := i.series("metric=z_score&step=2592000&from=2026-01-01T00:00:00Z").values()
		if len(v) != 1 || math.Abs(v[0]-want) > 1e-9 {
			return fmt.Errorf("z_score %v, want %v as in the drift status", v, want)
		}
		return nil
	})
}

func TestDriftStatusTellsTheTimeOfTheNewestPrediction(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("tagged", "Production", reg.Register("tagged", tagged(t, 0), nil))
	i := start(t, reg, slow)
	newest := func() *time.Time {
		_, body := i.Get("/drift/status")
		var rows []struct {
			NewestAt *time.Time `json:"newest_at"`
		}
		if err := json.Unmarshal([]byte(body), &rows); err != nil || len(rows) != 1 {
			t.Fatalf("%s: %v; want one row", body, err)
		}
		return rows[0].NewestAt
	}
	if at := newest(); at != nil {
		t.Errorf("without a prediction: %s, want none", at)
	}
	before := time.Now().Add(-time.Second)
	i.predicts(1, 3, 3)
	if at := newest(); at == nil || at.Before(before) || at.After(time.Now().Add(time.Second)) {
		t.Errorf("newest_at %v, want the time of the last prediction, about %s", at, time.Now())
	}
}

func TestSeriesHasAtMost500Points(t *testing.T) {
	t.Parallel()
	i := start(t, fixturetest.NewRegistry(t))
	for _, query := range []string{
		"metric=requests&step=1", "metric=requests&from=2020-01-01T00:00:00Z&step=1", "metric=requests&step=1&from=2026-01-01T00:00:07Z&to=2026-01-01T00:08:27Z",
	} {
		got := i.series(query)
		if n := len(got.Points); n < 200 || n > 500 {
			t.Errorf("%s: %d points of %d s, want at most 500", query, n, got.Step)
		}
	}
}

func TestSeriesRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	i := start(t, fixturetest.NewRegistry(t))
	for _, bad := range []string{
		"", "?metric=loss", "?metric=requests&alias=x", "?metric=requests&from=yesterday", "?metric=requests&to=1", "?metric=requests&step=0",
		"?metric=requests&step=x", "?metric=requests&from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
	} {
		if s, body := i.Get("/series/tagged" + bad); s != 422 {
			t.Errorf("%s: %d %s; want 422", bad, s, body)
		}
	}
}
