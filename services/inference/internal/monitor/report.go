package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/drift"
	"github.com/mlp-platform/platform/services/inference/internal/store"
)

// storedColumn is a column of a baseline as it is stored.
type storedColumn struct {
	Numbers []float64 `json:"numbers,omitempty"`
	Texts   []string  `json:"texts,omitempty"`
}

// featureRows is how many rows with features one statement reads: each may be a few KiB of JSON, and more as a map.
const featureRows = 500

// readInputs reads the newest inputs of a place, newest first, with their columns: of those that have any. version is
// that of the newest.
func readInputs(ctx context.Context, q *store.Queries, p place, newest int) (in drift.Inputs, columns map[string]drift.Sample, version string, err error) {
	columns = map[string]drift.Sample{}
	for before := int64(math.MaxInt64); newest > 0; {
		size := min(newest, featureRows)
		rows, err := q.RecentFeatures(ctx, store.RecentFeaturesParams{Model: p.model, Alias: p.alias, Before: before, Newest: int32(size)})
		if err != nil {
			return in, nil, "", err
		}
		for _, r := range rows {
			if version == "" {
				version = r.Version
			}
			addInput(&in, r.Norm, r.Mean, r.Std, r.Zeros)
			if err := addColumns(columns, r.Features); err != nil {
				return in, nil, "", err
			}
			before = r.ID
		}
		if len(rows) < size {
			break
		}
		newest -= size
	}
	for name, s := range columns {
		if s.Labels != nil && s.Values != nil { // the column has changed its kind within the window
			delete(columns, name)
		}
	}
	return in, columns, version, nil
}

// addColumns adds one row's features, if it has any. Anything but a JSON object was not written by this service.
func addColumns(columns map[string]drift.Sample, features []byte) error {
	if features == nil {
		return nil
	}
	var values map[string]any
	if err := json.Unmarshal(features, &values); err != nil {
		return fmt.Errorf("read the features of a snapshot: %w", err)
	}
	for name, v := range values {
		s := columns[name]
		switch x := v.(type) {
		case float64:
			s.Values = append(s.Values, x)
		case string:
			s.Labels = append(s.Labels, x)
		}
		columns[name] = s
	}
	return nil
}

func storeColumns(columns map[string]drift.Sample) ([]byte, error) {
	if len(columns) == 0 {
		return nil, nil
	}
	stored := make(map[string]storedColumn, len(columns))
	for name, s := range columns {
		stored[name] = storedColumn{s.Values, s.Labels}
	}
	return json.Marshal(stored)
}

func readColumns(raw []byte) (map[string]drift.Sample, error) {
	out := map[string]drift.Sample{}
	if raw == nil {
		return out, nil
	}
	var stored map[string]storedColumn
	if err := json.Unmarshal(raw, &stored); err != nil {
		return nil, fmt.Errorf("read the features of a baseline: %w", err)
	}
	for name, c := range stored {
		out[name] = drift.Sample{Values: c.Numbers, Labels: c.Texts}
	}
	return out, nil
}

// Report is GET /drift/input/{model_name}/report.
func (m *Monitor) Report(c echo.Context) error {
	alias, err := aliasOf(c.QueryParam("alias"), "query", catalog.Production)
	if err != nil {
		return err
	}
	window, err := windowOf(c)
	if err != nil {
		return err
	}
	leave, err := m.enter(c.Request().Context())
	if err != nil {
		return err
	}
	defer leave()
	p, err := m.known(c.Request().Context(), place{catalog.UpperName(c.Param("model_name")), alias})
	if err != nil {
		return err
	}
	out, err := m.report(c.Request().Context(), p, window)
	if err != nil {
		return storeFault(err)
	}
	return c.JSON(http.StatusOK, out)
}

func (m *Monitor) report(ctx context.Context, p place, window int) (out api.DriftReport, err error) {
	out = api.DriftReport{Model: p.model, Alias: p.alias, Statistics: []api.DriftFeature{}, Features: []api.DriftFeature{}}
	live, columns, _, err := readInputs(ctx, m.queries, p, window)
	if err != nil {
		return out, err
	}
	base, err := m.queries.InputBaseline(ctx, store.InputBaselineParams{Model: p.model, Alias: p.alias})
	switch {
	case err == nil:
		out.BaselineSetAt, out.NBaseline = &base.SetAt, len(base.Norms)
	case !errors.Is(err, pgx.ErrNoRows):
		return out, err
	}
	was := drift.Inputs{Norms: base.Norms, Means: base.Means, Stds: base.Stds, Zeros: int(base.Zeros)}
	verdict := drift.EvaluateInputs(live, was, drift.Spread)
	out.NSnapshots, out.Overall = live.Len(), api.DriftLevel(verdict.Overall)
	if verdict.Reason != "" {
		out.Reason = &verdict.Reason
	}
	stored, err := readColumns(base.Features)
	if err != nil {
		return out, err
	}
	if verdict.Statistics != nil && verdict.Reason != "non_finite_input" { // such values have no histogram
		if out.Statistics, err = compareColumns(ctx, statisticsOf(live), statisticsOf(was)); err != nil {
			return out, err
		}
	}
	out.Features, err = compareColumns(ctx, columns, stored)
	return out, err
}

func compareColumns(ctx context.Context, live, base map[string]drift.Sample) ([]api.DriftFeature, error) {
	features, err := drift.CompareFeatures(ctx, live, base)
	out := make([]api.DriftFeature, 0, len(features))
	for _, f := range features {
		out = append(out, wireFeature(f))
	}
	return out, err
}

func statisticsOf(in drift.Inputs) map[string]drift.Sample {
	return map[string]drift.Sample{drift.StatisticNorm: {Values: in.Norms}, drift.StatisticMean: {Values: in.Means}, drift.StatisticStd: {Values: in.Stds}}
}

func wireFeature(f drift.Feature) api.DriftFeature {
	out := api.DriftFeature{
		Name: f.Name, Kind: api.DriftFeatureKindNumber, Status: api.DriftLevel(f.Status), Overall: api.DriftLevel(f.Overall), ZScore: f.Z,
		LiveMean: f.LiveMean, LiveStd: f.LiveStd, BaselineMean: f.BaselineMean, BaselineStd: f.BaselineStd, N: f.N, NBaseline: f.NBase,
		Measures: map[string]api.DriftMeasure{}, Histogram: api.DriftHistogram{Live: orEmpty(f.Histogram.Live), Baseline: orEmpty(f.Histogram.Base)},
	}
	for name, v := range f.Measures {
		out.Measures[name] = wireMeasure(v)
	}
	if f.DecidedBy != "" {
		out.DecidedBy = &f.DecidedBy
	}
	if f.Reason != "" {
		out.Reason = &f.Reason
	}
	if f.Histogram.Classes != nil {
		out.Kind, out.Histogram.Classes = api.DriftFeatureKindCategory, &f.Histogram.Classes
	} else if f.Histogram.Edges != nil {
		out.Histogram.Edges = &f.Histogram.Edges
	}
	return out
}

func orEmpty(v []float64) []float64 {
	if v == nil {
		return []float64{}
	}
	return v
}
