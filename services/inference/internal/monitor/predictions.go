package monitor

import (
	"context"
	"slices"

	"github.com/mlp-platform/platform/services/inference/internal/drift"
	"github.com/mlp-platform/platform/services/inference/internal/store"
)

const (
	kindPrediction = "prediction"
	// predictionRows is how many predictions a baseline keeps.
	predictionRows = 500
)

// predictions monitors the models' answers.
type predictions struct{ queries *store.Queries }

func (predictions) kind() string { return kindPrediction }

func (s predictions) baselines(ctx context.Context) (map[place]*baseline, error) {
	rows, err := s.queries.Baselines(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[place]*baseline, len(rows))
	for _, r := range rows {
		out[place{r.Model, r.Alias}] = &baseline{
			n: max(len(r.Predictions), len(r.Labels)), setAt: r.SetAt, sample: drift.Sample{Values: r.Predictions, Labels: r.Labels},
		}
	}
	return out, nil
}

func (s predictions) compare(ctx context.Context, places []place, baselines map[place]*baseline, window int, mode drift.Mode, each func(status) error) error {
	models, aliases := split(places)
	found, err := s.queries.RecentSnapshotsOfMany(ctx, store.RecentSnapshotsOfManyParams{Models: models, Aliases: aliases, Newest: int32(window)})
	if err != nil {
		return err
	}
	rows := make([][]store.RecentSnapshotsRow, len(places))
	for _, r := range found {
		i := r.Place - 1
		rows[i] = append(rows[i], store.RecentSnapshotsRow{Version: r.Version, Prediction: r.Prediction, Label: r.Label, Ts: r.Ts})
	}
	for i, p := range places {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := each(comparePredictions(p, rows[i], baselines[p], mode)); err != nil {
			return err
		}
	}
	return nil
}

// comparePredictions compares a place's newest predictions, newest first, with its baseline.
func comparePredictions(p place, rows []store.RecentSnapshotsRow, b *baseline, mode drift.Mode) status {
	st := status{place: p, snapshots: len(rows), baseline: b}
	if len(rows) > 0 {
		newest := rows[0].Ts.UTC()
		st.version, st.newest = rows[0].Version, &newest
	}
	base := drift.Sample{}
	if b != nil {
		base = b.sample
	}
	st.Report = drift.Evaluate(splitSample(rows), base, mode)
	for _, r := range slices.Backward(rows[:min(len(rows), recentShown)]) {
		st.recent = append(st.recent, recentValue(r))
	}
	return st
}

// splitSample splits predictions into labels or numbers by the kind of the newest: a model may have changed from one to
// the other, and the two do not compare.
func splitSample(rows []store.RecentSnapshotsRow) drift.Sample {
	var s drift.Sample
	for _, r := range rows {
		switch {
		case (r.Label != nil) != (rows[0].Label != nil):
		case r.Label != nil:
			s.Labels = append(s.Labels, *r.Label)
		case r.Prediction != nil:
			s.Values = append(s.Values, *r.Prediction)
		}
	}
	return s
}

func recentValue(r store.RecentSnapshotsRow) any {
	switch {
	case r.Prediction != nil:
		return *r.Prediction
	case r.Label != nil:
		return *r.Label
	}
	return nil
}

func (predictions) collect(ctx context.Context, q *store.Queries, p place) (set store.SetBaselineParams, err error) {
	rows, err := q.RecentSnapshots(ctx, store.RecentSnapshotsParams{Model: p.model, Alias: p.alias, Newest: predictionRows})
	if err != nil {
		return set, err
	}
	s := splitSample(rows)
	if s.Len() < drift.MinSnapshots {
		return set, errNotEnough{s.Len()}
	}
	if drift.Evaluate(s, drift.Sample{}, drift.Spread).Status == drift.Corrupt {
		return set, errUnusable
	}
	set = store.SetBaselineParams{Version: rows[0].Version, Predictions: s.Values, Labels: s.Labels}
	if set.Predictions == nil {
		set.Predictions = []float64{}
	}
	set.Mean, set.Std = s.Moments()
	return set, nil
}

// forget deletes the snapshots, which are those of inputs as well.
func (predictions) forget(ctx context.Context, q *store.Queries, p place) (int64, error) {
	if _, err := q.DeleteRefusedInputs(ctx, store.DeleteRefusedInputsParams{Model: p.model, Alias: p.alias}); err != nil {
		return 0, err
	}
	return q.DeleteSnapshots(ctx, store.DeleteSnapshotsParams{Model: p.model, Alias: p.alias})
}
