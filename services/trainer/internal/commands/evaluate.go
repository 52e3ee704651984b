package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/trainer"
)

func runEvaluate(c *cli.Context, environ []string, out, errOut io.Writer) error {
	if c.String("model") == "" {
		return fmt.Errorf("%w: name the model by --model", errUsage)
	}
	cfg, err := loadConfig(c, environ)
	if err != nil {
		return err
	}
	t, err := trainer.New(cfg, service.NewLogger(errOut, cfg.LogLevel))
	if err != nil {
		return err
	}
	report, err := t.Evaluate(c.Context, trainer.Request{Model: c.String("model"), Dataset: c.String("dataset"), Backend: c.String("backend")}, nil)
	if err != nil {
		return err
	}
	if dir := c.String("report"); dir != "" {
		if err := writeReport(dir, report); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	return writeJSON(out, report)
}

// writeReport writes a run's artifacts other than the model: report.json and the charts.
func writeReport(dir string, report trainer.Report) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "report.json"), append(data, '\n'), 0o644); err != nil {
		return err
	}
	for _, chart := range report.Charts() {
		if err := os.WriteFile(filepath.Join(dir, chart.Name), chart.SVG, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func runFigures(c *cli.Context, environ []string, out, errOut io.Writer) error {
	cfg, err := loadConfig(c, environ)
	if err != nil {
		return err
	}
	t, err := trainer.New(cfg, service.NewLogger(errOut, cfg.LogLevel))
	if err != nil {
		return err
	}
	repo, err := modelrepo.Open(cfg.ModelRepoDir, cfg.Env)
	if err != nil {
		return err
	}
	var table []figure
	rows := 0
	for _, name := range repo.Names() {
		m := repo.Models[name]
		if len(m.Baseline.Margins) == 0 {
			continue
		}
		fmt.Fprintf(errOut, "%s: fitting and judging\n", m.Name)
		report, err := t.Evaluate(c.Context, trainer.Request{Model: m.Name}, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		r := report.Rows
		fmt.Fprintf(errOut, "%s: %s rows to fit, %s to choose, %s to judge, %s purged; %s to judge of an unseen group\n",
			m.Name, groupThousands(r.Train), groupThousands(r.Validation), groupThousands(r.Test), groupThousands(r.Purged), groupThousands(r.Unseen))
		if rows = r.Test; len(table) > 0 && table[0].rows != rows {
			return fmt.Errorf("%s is judged on %d rows and %s on %d; they do not fit into one table", table[0].model, table[0].rows, m.Name, rows)
		}
		table = append(table, figuresOf(m, report)...)
	}
	if len(table) == 0 {
		return fmt.Errorf("no model in %s declares margins over a baseline", cfg.ModelRepoDir)
	}
	fmt.Fprintf(out, "| On the %s test jobs | Model | Running baseline | Fixed baseline |\n|---|---|---|---|\n", groupThousands(rows))
	for _, f := range table {
		fmt.Fprintf(out, "| %s: %s | **%s** | %s | %s |\n", f.model, f.metric, f.value, f.running, f.fixed)
	}
	return nil
}

// figure is one row of the table.
type figure struct {
	model, metric, value, running, fixed string
	rows                                 int
}

// figuresOf has a row for each metric in which the model must beat its baselines.
func figuresOf(m *modelrepo.Model, r trainer.Report) []figure {
	use, _ := m.Dataset(r.Dataset)
	var out []figure
	for _, margin := range m.Baseline.Margins {
		show := func(values map[string]float64, prefix string) string {
			v, ok := values[prefix+margin.Metric]
			if !ok {
				return "-"
			}
			return formatFigure(v)
		}
		out = append(out, figure{
			model: m.Name, metric: describeMetric(margin.Metric, use.Target.Unit), value: show(r.Metrics, ""),
			running: show(r.Baselines, modelrepo.BaselineRunning), fixed: show(r.Baselines, modelrepo.BaselineFixed), rows: r.Rows.Test,
		})
	}
	return out
}

// describeMetric describes a metric in one phrase.
func describeMetric(name, unit string) string {
	if unit == "s" {
		unit = "seconds"
	}
	if unit == "" {
		unit = "value"
	}
	switch name {
	case "male":
		return "mean absolute error of log(1 + " + unit + ")"
	case "mae":
		return "mean absolute error, " + unit
	case "f1_macro":
		return "macro F1"
	}
	return name
}

// formatFigure has three decimals below 100 and none from there on.
func formatFigure(v float64) string {
	if math.Abs(v) < 100 {
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	return groupThousands(int(math.Round(v)))
}

// groupThousands writes 1499 as 1,499.
func groupThousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
