//go:build cgo

package cli

import (
	"errors"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"sync"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/services/trainer"
)

// reportBar is one column of a plot, in user units of its drawing.
type reportBar struct {
	X, Y, W, H float64
	Label      string
}

// reportCell is one field of the confusion matrix; Share is of its row, percent.
type reportCell struct {
	Count int
	Share float64
}

// reportPage is parsed at its first use: every other command would wait for it.
var reportPage = sync.OnceValue(func() *template.Template { return template.Must(template.New("report").Parse(reportText)) })

const reportText = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.R.Model}} version {{.R.Version}}</title>
<style>
:root{color-scheme:light dark;--ink:#0f172a;--dim:#64748b;--line:#cbd5e1;--bar:#0e7490;--bg:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#e2e8f0;--dim:#94a3b8;--line:#334155;--bar:#22d3ee;--bg:#0b1220}}
body{font:14px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--bg);max-width:60rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.25rem .8rem;border-bottom:1px solid var(--line);text-align:right}th:first-child,td:first-child{text-align:left}
caption{text-align:left;font-weight:600;padding:.5rem 0}p{color:var(--dim)}svg{width:100%;height:auto}rect{fill:var(--bar)}text{fill:var(--dim);font-size:11px}
</style>
<h1>{{.R.Model}} version {{.R.Version}}</h1>
<p>{{.R.Report.Estimator}} on {{.R.Dataset}}; {{.R.Report.Rows.Train}} rows to fit, {{.R.Report.Rows.Validation}} to choose, {{.R.Report.Rows.Test}} to judge. Tracker run {{.R.RunID}}.</p>
<table><caption>Test metrics</caption><tr><th>Metric</th><th>Model</th><th>Baseline (fixed)</th><th>Baseline (running)</th></tr>
{{range .Metrics}}<tr><td>{{.Name}}</td><td>{{.Value}}</td><td>{{.Fixed}}</td><td>{{.Running}}</td></tr>
{{end}}</table>
{{with .Bars}}<h2>{{$.Of}}</h2><svg viewBox="0 0 800 240" role="img" aria-label="histogram">{{range .}}<rect x="{{.X}}" y="{{.Y}}" width="{{.W}}" height="{{.H}}"><title>{{.Label}}</title></rect>{{end}}
<text x="0" y="236">{{$.First}}</text><text x="800" y="236" text-anchor="end">{{$.Last}}</text></svg>{{end}}
{{with .Cells}}<table><caption>Test rows by actual (row) and predicted (column) class</caption><tr><th></th>{{range $.Labels}}<th>{{.}}</th>{{end}}</tr>
{{range $i, $row := .}}<tr><td>{{index $.Labels $i}}</td>{{range $row}}<td>{{.Count}} <small>({{printf "%.0f" .Share}} %)</small></td>{{end}}</tr>
{{end}}</table>{{end}}
{{range .Charts}}<p>{{.}}</p>
{{end}}</html>
`

// writeReport writes report.json, the charts as SVG, and report.html with its plots inside, into dir.
func writeReport(dir string, res trainer.Result) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	data, err := output.MarshalIndent(res.Report)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "report.json"), append(data, '\n'), 0o644); err != nil {
		return err
	}
	type metric struct{ Name, Value, Fixed, Running string }
	page := struct {
		R               trainer.Result
		Metrics         []metric
		Bars            []reportBar
		Of, First, Last string
		Cells           [][]reportCell
		Labels          []string
		Charts          []template.HTML
	}{R: res}
	for _, c := range res.Report.Charts() {
		if err := os.WriteFile(filepath.Join(dir, c.Name), c.SVG, 0o644); err != nil {
			return err
		}
		page.Charts = append(page.Charts, template.HTML(c.SVG)) //nolint:gosec // the drawing escapes the names in it
	}
	show := func(m map[string]float64, k string) string {
		if v, ok := m[k]; ok {
			return fmt.Sprintf("%.4g", v)
		}
		return ""
	}
	for _, row := range metricGrid(res.Metrics, res.BaselineMetrics).Rows {
		k := row[0].(string)
		page.Metrics = append(page.Metrics, metric{k, show(res.Metrics, k), show(res.BaselineMetrics, "baseline_"+k), show(res.BaselineMetrics, "baseline_running_"+k)})
	}
	if h := res.Report.Residuals; h != nil && len(h.Counts) > 0 {
		most := 1
		for _, c := range h.Counts {
			most = max(most, c)
		}
		w := 800 / float64(len(h.Counts))
		for i, c := range h.Counts {
			height := 215 * float64(c) / float64(most)
			page.Bars = append(page.Bars, reportBar{X: float64(i) * w, Y: 220 - height, W: w - 1, H: height, Label: fmt.Sprintf("%d test rows", c)})
		}
		page.Of = map[string]string{"residual": "Prediction minus value", "log_residual": "log1p(prediction) minus log1p(value)"}[h.Of]
		if n := len(h.Edges); n > 0 {
			page.First, page.Last = fmt.Sprintf("%.3g", h.Edges[0]), fmt.Sprintf("%.3g", h.Edges[n-1])
		}
	}
	if c := res.Report.Confusion; c != nil {
		page.Labels = c.Labels
		for _, row := range c.Counts {
			sum := 0
			for _, n := range row {
				sum += n
			}
			cells := make([]reportCell, len(row))
			for j, n := range row {
				cells[j] = reportCell{n, 100 * float64(n) / float64(max(1, sum))}
			}
			page.Cells = append(page.Cells, cells)
		}
	}
	f, err := os.Create(filepath.Join(dir, "report.html"))
	if err != nil {
		return err
	}
	return errors.Join(reportPage().Execute(f, page), f.Close())
}
