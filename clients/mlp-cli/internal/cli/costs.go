package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

func modelsCostCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "cost", Usage: "what the versions of a model have cost, newest first", ArgsUsage: "<model>", Flags: append(listFlags(0),
		&cli.BoolFlag{Name: "plot", Usage: "draw the cost over time"},
		&cli.BoolFlag{Name: "record", Usage: "ask the scheduler what each version's job used, and record it"},
		reasonFlag(), dryRunFlag()),
		Action: func(c *cli.Context) error {
			a, err := readArguments(c, "model")
			if err != nil {
				return err
			}
			if c.Bool("dry-run") && !c.Bool("record") {
				return fault.Usage("--dry-run goes with --record")
			}
			if err := noReason(c, "the control plane", "costs"); err != nil {
				return err
			}
			if c.Bool("record") {
				return recordCosts(c.Context, env, strings.ToUpper(a[0]), c.Bool("dry-run"))
			}
			o, err := env.readListOptions(c)
			if err != nil {
				return err
			}
			return modelsCost(c.Context, env, strings.ToUpper(a[0]), o, c.Bool("plot"))
		}}
}

func modelsCost(ctx context.Context, env *Env, model string, o listOptions, plot bool) error {
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	list, more, err := readItems(o.fetch(), func(limit *int, cursor *string) ([]controlplane.Cost, *string, error) {
		page, err := decode[controlplane.CostList](cp.ListCosts(ctx, &controlplane.ListCostsParams{Model: &model, Limit: limit, Cursor: cursor}))
		return page.Items, page.NextCursor, err
	})
	if err != nil {
		return err
	}
	if len(list) == 0 {
		if err := env.refuseUnknownModel(ctx, model); err != nil {
			return err
		}
	}
	g := output.Grid{Columns: []string{"Version", "Run ID", "Job ID", "GPU Hours", "Cost (USD)", "Recorded", "Synthetic"}, Doc: mapRows(list, func(c controlplane.Cost) costRow { return costRow{c, c.RecordedAt} }), Spare: []string{"Run ID", "Job ID"},
		Empty: "No cost of " + model + " is recorded."}
	values := make([]float64, 0, len(list))
	for _, c := range list {
		g.Rows = append(g.Rows, []any{c.Version, c.RunId, c.JobId, c.GpuHours, c.CostUsd, c.RecordedAt, c.Synthetic})
		values = append(values, c.CostUsd)
	}
	slices.Reverse(values)
	if err := env.printList(o, g, more); err != nil || !plot || env.Format.Structured() || len(values) < 2 {
		return err
	}
	_, err = fmt.Fprintf(env.Out, "\nUSD, oldest to newest  %s  %s to %s\n", output.Sparkline(values), output.Number(slices.Min(values)), output.Number(slices.Max(values)))
	return err
}

// costDimensions are the values of --by of costs.
var costDimensions = []string{"model", "project"}

func costsCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "costs", Usage: "what training has cost, highest first", Flags: append(listFlags(0),
		&cli.StringFlag{Name: "by", Value: "model", Usage: "model or project"},
		&cli.StringFlag{Name: "model", Aliases: []string{"m"}, Usage: "only this model"},
		&cli.StringFlag{Name: "project", Usage: "only this project"},
		&cli.BoolFlag{Name: "include-synthetic", Usage: "also the made-up figures of the mock scheduler"},
	), Action: func(c *cli.Context) error {
		if _, err := readArguments(c); err != nil {
			return err
		}
		if err := oneOf("--by", c.String("by"), costDimensions...); err != nil {
			return err
		}
		o, err := env.readListOptions(c)
		if err != nil {
			return err
		}
		by, synthetic := controlplane.CostDimension(c.String("by")), c.Bool("include-synthetic")
		return costs(c.Context, env, controlplane.CostSummaryParams{By: &by, Model: optional(c.String("model")), Project: optional(c.String("project")), IncludeSynthetic: &synthetic}, o)
	}}
}

func costs(ctx context.Context, env *Env, q controlplane.CostSummaryParams, o listOptions) error {
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	var total controlplane.CostSummary
	rows, more, err := readItems(o.fetch(), func(limit *int, cursor *string) ([]controlplane.CostRow, *string, error) {
		q.Limit, q.Cursor = limit, cursor
		page, err := decode[controlplane.CostSummary](cp.CostSummary(ctx, &q))
		total = page
		return page.Cost.Rows, page.NextCursor, err
	})
	if err != nil {
		return err
	}
	type row struct {
		Key      string  `json:"key"`
		Runs     int64   `json:"runs"`
		GPUHours float64 `json:"gpu_hours"`
		CostUSD  float64 `json:"cost_usd"`
	}
	doc := []row{}
	g := output.Grid{Columns: []string{strings.ToUpper(string(*q.By)[:1]) + string(*q.By)[1:], "Runs", "GPU Hours", "Cost (USD)"}, Empty: "No costs are recorded."}
	if !*q.IncludeSynthetic {
		g.Empty = "No costs are recorded. Figures that the mock scheduler made up are left out; see them with: mlp costs --include-synthetic"
	}
	for _, r := range rows {
		doc = append(doc, row{r.Key, r.Runs, r.GpuHours, r.CostUsd})
		g.Rows = append(g.Rows, []any{r.Key, r.Runs, r.GpuHours, r.CostUsd})
	}
	if err := o.arrange(&g, &doc); err != nil {
		return err
	}
	g.Doc = map[string]any{"by": *q.By, "rows": doc, "total_gpu_hours": total.Cost.TotalGpuHours, "total_cost_usd": total.Cost.TotalCostUsd,
		"cost_per_training_run_usd": total.UnitEconomics.CostPerTrainingRun, "includes_synthetic": *q.IncludeSynthetic}
	if len(rows) > 0 {
		g.Notes = []string{"", fmt.Sprintf("total %s USD for %s GPU hours", output.Number(total.Cost.TotalCostUsd), output.Number(total.Cost.TotalGpuHours))}
		if per := total.UnitEconomics.CostPerTrainingRun; per != nil {
			g.Notes[1] += fmt.Sprintf("; %s USD a training run", output.Number(*per))
		}
	}
	return env.printList(listOptions{}, g, more)
}
