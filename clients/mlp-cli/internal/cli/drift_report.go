package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

func driftReportCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "report", Usage: "which inputs of a model moved, and how far: the recent requests against their baseline, with histograms", ArgsUsage: "<model>",
		Flags: []cli.Flag{aliasFlag("Production"), &cli.IntFlag{Name: "window", Usage: "compare this many of the newest requests, 20 to 5000", Value: 100},
			&cli.BoolFlag{Name: "all", Usage: "the histograms of all inputs that moved, not only of the first three"}},
		Action: func(c *cli.Context) error {
			a, err := readArguments(c, "model")
			if err != nil {
				return err
			}
			if err := oneOf("--alias", c.String("alias"), aliases...); err != nil {
				return err
			}
			if w := c.Int("window"); w < 20 || w > 5000 {
				return fault.Usage("--window must be from 20 to 5000")
			}
			return driftReport(c.Context, env, strings.ToUpper(a[0]), c.String("alias"), c.Int("window"), c.Bool("all"))
		}}
}

func driftReport(ctx context.Context, env *Env, model, alias string, window int, plotAll bool) error {
	client, err := env.servingClient()
	if err != nil {
		return err
	}
	report, err := decode[inference.DriftReport](client.InputDriftReport(ctx, model, &inference.InputDriftReportParams{Alias: optional(alias), Window: &window}))
	if err != nil {
		return err
	}
	g := output.Grid{Columns: []string{"Input", "Live μ", "Baseline μ", "z-score", "PSI", "Overall", "Decided by", "Values"}, Doc: report, Empty: "No request of " + model + " is kept."}
	all := append(append([]inference.DriftFeature{}, report.Features...), report.Statistics...)
	for _, f := range all {
		var decidedBy any
		switch {
		case f.DecidedBy != nil:
			decidedBy = *f.DecidedBy
		case f.Reason != nil:
			decidedBy = *f.Reason
		}
		g.Rows = append(g.Rows, []any{f.Name, f.LiveMean, f.BaselineMean, f.ZScore, f.Measures["psi"].Value, styledStatus(string(f.Overall)), decidedBy, f.N})
	}
	if report.Overall == inference.NOBASELINE {
		g.Notes = []string{"", "set a baseline with: mlp drift input baseline " + model}
	}
	if err := env.Printer().Print(g); err != nil || env.Format.Structured() {
		return err
	}
	moved := slices.DeleteFunc(all, func(f inference.DriftFeature) bool {
		return f.Overall != inference.WARNING && f.Overall != inference.CRITICAL
	})
	shown := moved
	if !plotAll {
		shown = moved[:min(len(moved), plotMostInputs)]
	}
	if err := env.plotFeatures(shown); err != nil {
		return err
	}
	if more := len(moved) - len(shown); more > 0 {
		env.Talk("%d more moved; for their histograms: --all", more)
	}
	return nil
}

const (
	plotWidth   = 30 // of a bar, in characters
	plotMostBin = 20 // rows of a plot that are printed

	plotMostInputs = 3 // that are drawn unasked; a change of one input often moves dozens that derive from it
)

// plotFeatures draws inputs: of each bin the share of the recent requests, and of the baseline. Bins without either are left
// out, with one line for all that lie side by side.
func (e *Env) plotFeatures(features []inference.DriftFeature) error {
	for _, f := range features {
		labels := histogramLabels(f.Histogram)
		most, width := 0.0, 0
		for i := range f.Histogram.Live {
			most = max(most, f.Histogram.Live[i], f.Histogram.Baseline[i])
		}
		for _, l := range labels {
			width = max(width, len([]rune(l)))
		}
		var b strings.Builder
		fmt.Fprintf(&b, "\n%s: █ the last %d requests, ░ the baseline's %d\n", output.Clean(f.Name), f.N, f.NBaseline)
		left := false
		for i, label := range labels[:min(len(labels), plotMostBin)] {
			if f.Histogram.Live[i] == 0 && f.Histogram.Baseline[i] == 0 {
				if !left {
					fmt.Fprintf(&b, "%*s │\n", width, "⋮")
				}
				left = true
				continue
			}
			left = false
			for k, share := range []float64{f.Histogram.Live[i], f.Histogram.Baseline[i]} {
				mark := []string{"█", "░"}[k]
				bar := 0
				if share > 0 && most > 0 {
					bar = max(1, int(share/most*plotWidth+0.5))
				}
				fmt.Fprintf(&b, "%*s │%-*s %.3g %%\n", width, label, plotWidth, strings.Repeat(mark, bar), 100*share)
				label = ""
			}
		}
		if _, err := fmt.Fprint(e.Out, b.String()); err != nil {
			return err
		}
	}
	return nil
}

func histogramLabels(h inference.DriftHistogram) []string {
	if h.Classes != nil {
		out := make([]string, len(*h.Classes))
		for i, class := range *h.Classes {
			out[i] = output.Clean(class)
		}
		return out
	}
	out := make([]string, len(h.Live))
	for i := range out {
		if h.Edges != nil && i < len(*h.Edges) {
			out[i] = output.Number((*h.Edges)[i]) + " …"
		}
	}
	return out
}
