package monitor

import (
	"context"
	"slices"

	"github.com/mlp-platform/platform/services/inference/internal/drift"
	"github.com/mlp-platform/platform/services/inference/internal/store"
)

const (
	kindInput = "input"
	// inputRows is how many inputs a baseline keeps.
	inputRows = 1000
)

// inputs monitors the models' inputs, by norm, mean and deviation of each request.
type inputs struct{ queries *store.Queries }

func (inputs) kind() string { return kindInput }

func (s inputs) baselines(ctx context.Context) (map[place]*baseline, error) {
	rows, err := s.queries.InputBaselines(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[place]*baseline, len(rows))
	for _, r := range rows {
		out[place{r.Model, r.Alias}] = &baseline{n: int(r.N), setAt: r.SetAt}
	}
	return out, nil
}

func (s inputs) compare(ctx context.Context, places []place, baselines map[place]*baseline, window int, mode drift.Mode, each func(status) error) error {
	models, aliases := split(places)
	rows, err := s.queries.RecentInputsOfMany(ctx, store.RecentInputsOfManyParams{Models: models, Aliases: aliases, Newest: int32(window)})
	if err != nil {
		return err
	}
	stored, err := s.queries.InputBaselinesOfMany(ctx, store.InputBaselinesOfManyParams{Models: models, Aliases: aliases})
	if err != nil {
		return err
	}
	out := make([]status, len(places))
	live, base := make([]drift.Inputs, len(places)), make([]drift.Inputs, len(places))
	for _, b := range stored {
		base[b.Place-1] = drift.Inputs{Norms: b.Norms, Means: b.Means, Stds: b.Stds, Zeros: int(b.Zeros)}
	}
	for _, r := range rows {
		i := r.Place - 1
		if out[i].newest == nil {
			newest := r.Ts.UTC()
			out[i].version, out[i].newest = r.Version, &newest
		}
		addInput(&live[i], r.Norm, r.Mean, r.Std, r.Zeros)
	}
	for i, p := range places {
		if err := ctx.Err(); err != nil {
			return err
		}
		report := drift.EvaluateInputs(live[i], base[i], mode)
		out[i].place, out[i].snapshots, out[i].baseline = p, live[i].Len(), baselines[p]
		out[i].Report, out[i].inputs = report.Report, &report
		for _, v := range slices.Backward(live[i].Norms[:min(live[i].Len(), recentShown)]) {
			out[i].recent = append(out[i].recent, finiteValue(v))
		}
		if err := each(out[i]); err != nil {
			return err
		}
	}
	return nil
}

func addInput(in *drift.Inputs, norm, mean, std float64, zeros bool) {
	in.Norms, in.Means, in.Stds = append(in.Norms, norm), append(in.Means, mean), append(in.Stds, std)
	if zeros {
		in.Zeros++
	}
}

func (inputs) collect(ctx context.Context, q *store.Queries, p place) (set store.SetBaselineParams, err error) {
	in, columns, version, err := readInputs(ctx, q, p, inputRows)
	if err != nil {
		return set, err
	}
	if in.Len() < drift.MinSnapshots {
		return set, errNotEnough{in.Len()}
	}
	if drift.EvaluateInputs(in, drift.Inputs{}, drift.Spread).Status == drift.Corrupt {
		return set, errUnusable
	}
	zeros := int32(in.Zeros)
	set = store.SetBaselineParams{Version: version, Predictions: in.Norms, Means: in.Means, Stds: in.Stds, Zeros: &zeros}
	set.Mean, set.Std = drift.Sample{Values: in.Norms}.Moments()
	set.Features, err = storeColumns(columns)
	return set, err
}

// forget leaves the snapshots to the drift of predictions, which has no use for refused inputs.
func (inputs) forget(ctx context.Context, q *store.Queries, p place) (int64, error) {
	refused, err := q.DeleteRefusedInputs(ctx, store.DeleteRefusedInputsParams{Model: p.model, Alias: p.alias})
	if err != nil {
		return 0, err
	}
	hidden, err := q.HideSnapshots(ctx, store.HideSnapshotsParams{Model: p.model, Alias: p.alias})
	return hidden + refused, err
}
