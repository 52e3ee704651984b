package cli

import (
	"context"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
)

// inputDriftRow shows unknown values as null.
type inputDriftRow struct {
	Model      string                       `json:"model"`
	Alias      string                       `json:"alias"`
	NormMean   *float64                     `json:"norm_mean"`
	EmbMean    *float64                     `json:"emb_mean"`
	EmbStd     *float64                     `json:"emb_std"`
	FullMean   *float64                     `json:"embedding_mean"` // the same by its longer name
	FullStd    *float64                     `json:"embedding_std"`
	MaxZ       *float64                     `json:"max_z"`
	Status     string                       `json:"status"`
	Overall    string                       `json:"overall"`
	DecidedBy  *string                      `json:"decided_by"`
	Statistic  *string                      `json:"statistic"`
	Reason     *string                      `json:"reason"`
	Snapshots  int                          `json:"snapshots"`
	N          int                          `json:"n_snapshots"` // the same as drift status names it
	Baseline   int                          `json:"n_baseline"`
	Statistics map[string]inputStatisticRow `json:"statistics"`
}

type inputStatisticRow struct {
	LiveMean     *float64 `json:"live_mean"`
	LiveStd      *float64 `json:"live_std"`
	BaselineMean *float64 `json:"baseline_mean"`
	BaselineStd  *float64 `json:"baseline_std"`
	ZScore       *float64 `json:"z_score"`
	Status       string   `json:"status"`
	Overall      string   `json:"overall"`
}

func inputDriftRowOf(d inference.DriftStatus) inputDriftRow {
	row := inputDriftRow{Model: d.Model, Alias: d.Alias, MaxZ: d.ZScore, Status: string(d.Status), Overall: string(d.Overall), DecidedBy: d.DecidedBy,
		Statistic: d.Statistic, Reason: d.Reason, Snapshots: d.NSnapshots, N: d.NSnapshots, Baseline: d.NBaseline, Statistics: map[string]inputStatisticRow{}}
	if d.Statistics == nil {
		return row
	}
	for name, s := range *d.Statistics {
		row.Statistics[name] = inputStatisticRow{s.LiveMean, s.LiveStd, s.BaselineMean, s.BaselineStd, s.ZScore, string(s.Status), string(s.Overall)}
	}
	row.NormMean, row.EmbMean, row.EmbStd = row.Statistics["norm"].LiveMean, row.Statistics["mean"].LiveMean, row.Statistics["std"].LiveMean
	row.FullMean, row.FullStd = row.EmbMean, row.EmbStd
	return row
}

func driftInputCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "input", Usage: "model inputs compared with their baseline", Subcommands: []*cli.Command{
		{Name: "status", Usage: "drift of each model's inputs: norm, mean and deviation of the embedding, or of the numeric columns", ArgsUsage: "[model]",
			Flags: slices.Concat(watchFlags(), listFlags(0)), Action: func(c *cli.Context) error {
				a, err := readArguments(c, "[model]")
				if err != nil {
					return err
				}
				o, err := env.readListOptions(c)
				if err != nil {
					return err
				}
				return env.maybeWatch(c, func() error { return inputDriftStatus(c.Context, env, a[0], o) })
			}},
		driftBaselineCommand(env, inputDrift, "store the inputs of the last 1000 snapshots as the baseline"),
		driftResetCommand(env, inputDrift, "forget the recent inputs of a model; predictions and baseline stay"),
	}}
}

func inputDriftStatus(ctx context.Context, env *Env, model string, o listOptions) error {
	list, err := env.driftStatuses(ctx, inputDrift, model)
	if err != nil {
		return err
	}
	if model != "" && len(list) == 0 {
		return env.orMisspelt(ctx, model, notServed(model, "inputs"))
	}
	rows := make([]inputDriftRow, len(list))
	g := output.Grid{Columns: []string{"Model", "Alias", "Norm μ", "Emb μ", "Emb σ", "Max Z", "Status", "Overall", "Decided by", "Snapshots"}, Empty: "No model is served."}
	for i, d := range list {
		row := inputDriftRowOf(d)
		rows[i] = row
		var decidedBy any
		switch {
		case row.DecidedBy != nil && row.Statistic != nil:
			decidedBy = *row.DecidedBy + " of " + *row.Statistic
		case row.Overall == "CORRUPT" && row.Reason != nil:
			decidedBy = *row.Reason
		}
		g.Rows = append(g.Rows, []any{row.Model, row.Alias, row.NormMean, row.EmbMean, row.EmbStd, row.MaxZ, styledStatus(row.Status), styledStatus(row.Overall), decidedBy, row.Snapshots})
		if row.Status == "NO_BASELINE" && row.Snapshots >= leastBaseline {
			g.Notes = baselineHint("mlp drift input baseline")
		}
	}
	g.Doc = rows
	return env.printList(o, g, false)
}
