package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
)

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
		if err := oneOf("--by", c.String("by"), "model", "project"); err != nil {
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
		g.Empty = "No costs are recorded, except perhaps made-up ones of the mock scheduler; see them with: mlp costs --include-synthetic"
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
