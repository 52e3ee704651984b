package cli

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

type driftRow struct {
	Model        string                  `json:"model"`
	Alias        string                  `json:"alias"`
	LiveMean     *float64                `json:"live_mean"`
	LiveStd      *float64                `json:"live_std"`
	BaselineMean *float64                `json:"baseline_mean"`
	BaselineStd  *float64                `json:"baseline_std"`
	ZScore       *float64                `json:"z_score"`
	Status       string                  `json:"status"`
	Overall      string                  `json:"overall"`
	DecidedBy    *string                 `json:"decided_by"`
	Snapshots    int                     `json:"n_snapshots"`
	Recent       []any                   `json:"recent"` // numbers, or class labels
	Measures     map[string]driftMeasure `json:"measures"`
}

// driftMeasure and driftRow are printed instead of inference's own types because those omit unknown values, and mlp's
// documents show them as null.
type driftMeasure struct {
	Value  *float64 `json:"value"`
	PValue *float64 `json:"p_value"`
	Status string   `json:"status"`
}

func driftRowOf(d inference.DriftStatus) driftRow {
	row := driftRow{Model: d.Model, Alias: d.Alias, LiveMean: d.LiveMean, LiveStd: d.LiveStd, BaselineMean: d.BaselineMean,
		BaselineStd: d.BaselineStd, ZScore: d.ZScore, Status: string(d.Status), Overall: string(d.Overall), DecidedBy: d.DecidedBy, Snapshots: d.NSnapshots, Recent: d.Recent,
		Measures: map[string]driftMeasure{}}
	if row.Recent == nil {
		row.Recent = []any{}
	}
	for name, m := range d.Measures {
		row.Measures[name] = driftMeasure{m.Value, m.PValue, string(m.Status)}
	}
	return row
}

// series returns the recent predictions as numbers; labels become their index among those seen, in order of name.
func (d driftRow) series() []float64 {
	seen := map[string]int{}
	for _, v := range d.Recent {
		if s, ok := v.(string); ok {
			seen[s] = 0
		}
	}
	for i, s := range sortedKeys(seen) {
		seen[s] = i
	}
	out := make([]float64, 0, len(d.Recent))
	for _, v := range d.Recent {
		switch x := v.(type) {
		case float64:
			out = append(out, x)
		case string:
			out = append(out, float64(seen[x]))
		}
	}
	return out
}

func driftCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "drift", Usage: "live predictions against their baseline", Subcommands: []*cli.Command{
		{Name: "status", Usage: "drift of each served model: its z-score (2 warns, 3 is critical) and the worst measure", ArgsUsage: "[model]",
			Flags: slices.Concat(watchFlags(), listFlags(0), []cli.Flag{&cli.BoolFlag{Name: "plot", Usage: "draw the recent predictions"}}),
			Action: func(c *cli.Context) error {
				a, err := readArguments(c, "[model]")
				if err != nil {
					return err
				}
				o, err := env.readListOptions(c)
				if err != nil {
					return err
				}
				return env.maybeWatch(c, func() error { return driftStatus(c.Context, env, a[0], o, c.Bool("plot")) })
			}},
		driftBaselineCommand(env, predictionDrift, "store the last 500 snapshots as the baseline"),
		driftResetCommand(env, predictionDrift, "delete the recent predictions of a model; the baseline stays"),
		driftReportCommand(env),
		driftInputCommand(env),
		driftAutoRetrainCommand(env),
		driftTriggerCommand(env),
	}}
}

// driftKind is a kind of measurement compared with a baseline.
type driftKind struct {
	path              string // of its routes
	many              string // the measured values
	forget, forgotten string // verbs for what a reset does with them
}

var (
	predictionDrift = driftKind{"/drift", "predictions", "delete", "deleted"}
	inputDrift      = driftKind{"/drift/input", "inputs", "forget", "forgotten"}
)

func driftBaselineCommand(env *Env, kind driftKind, usage string) *cli.Command {
	return &cli.Command{Name: "baseline", Usage: usage, ArgsUsage: "<model>", Flags: []cli.Flag{aliasFlag("Production"), reasonFlag(), dryRunFlag()},
		Action: func(c *cli.Context) error {
			a, err := readArguments(c, "model")
			if err != nil {
				return err
			}
			if err := oneOf("--alias", c.String("alias"), aliases...); err != nil {
				return err
			}
			if err := noReason(c, "inference", "a baseline"); err != nil {
				return err
			}
			return driftBaseline(c.Context, env, kind, a[0], c.String("alias"), c.Bool("dry-run"))
		}}
}

func (e *Env) drift(ctx context.Context, model string) ([]driftRow, error) {
	list, err := e.driftStatuses(ctx, predictionDrift, model)
	rows := make([]driftRow, len(list))
	for i, d := range list {
		rows[i] = driftRowOf(d)
	}
	return rows, err
}

// driftStatuses returns the statuses of one model or, without a name, of all.
func (e *Env) driftStatuses(ctx context.Context, kind driftKind, model string) ([]inference.DriftStatus, error) {
	r, err := e.Config()
	if err != nil {
		return nil, err
	}
	path := kind.path + "/status"
	if model != "" {
		path += "?" + url.Values{"model": {strings.ToUpper(model)}}.Encode()
	}
	var list []inference.DriftStatus
	err = e.serving(r).get(ctx, path, &list)
	return list, err
}

// driftUnder returns the status under an alias, or nil.
func (e *Env) driftUnder(ctx context.Context, kind driftKind, model, alias string) (*inference.DriftStatus, error) {
	list, err := e.driftStatuses(ctx, kind, model)
	for i := range list {
		if strings.EqualFold(list[i].Alias, alias) {
			return &list[i], err
		}
	}
	return nil, err
}

func driftStatus(ctx context.Context, env *Env, model string, o listOptions, plot bool) error {
	rows, err := env.drift(ctx, model)
	if err != nil {
		return err
	}
	if model != "" && len(rows) == 0 {
		return env.orMisspelt(ctx, model, notServed(model, "drift"))
	}
	g := output.Grid{Columns: []string{"Model", "Alias", "Live μ", "Baseline μ", "z-score", "Status", "Overall", "Decided by", "Snapshots", "Trend"}, Doc: rows,
		Spare: []string{"Baseline μ", "Live μ", "Snapshots", "Status", "Decided by", "Trend"}, Empty: "No model is served."}
	g.Notes = driftNotes(rows)
	for _, d := range rows {
		trend := output.Sparkline(d.series())
		var decidedBy any
		if d.DecidedBy != nil {
			decidedBy = *d.DecidedBy
		}
		g.Rows = append(g.Rows, []any{d.Model, d.Alias, d.LiveMean, d.BaselineMean, d.ZScore, styledStatus(d.Status), styledStatus(d.Overall), decidedBy, d.Snapshots, trend})
	}
	if env.Format == output.CSV {
		for i, d := range rows {
			g.Rows[i][9] = d.Recent
		}
	}
	if err := env.printList(o, g, false); err != nil || !plot || env.Format.Structured() {
		return err
	}
	return env.plotDrift(rows)
}

// notServed returns the fault for a request that only a served model can answer.
func notServed(model, what string) error {
	return fault.New("model_not_loaded", "%s is not served, so nothing is known of its %s", strings.ToUpper(model), what).WithHint("see what is served: mlp models list")
}

// driftNotes suggests what to do about the rows: set a baseline, or find out why a model drifts.
func driftNotes(rows []driftRow) (notes []string) {
	var drifted []driftRow
	for _, d := range rows {
		if d.Status == "NO_BASELINE" && d.Snapshots >= leastBaseline {
			notes = baselineHint("mlp drift baseline")
		}
		if d.Overall == string(inference.WARNING) || d.Overall == string(inference.CRITICAL) {
			drifted = append(drifted, d)
		}
	}
	report := "mlp drift report <model>"
	switch {
	case len(drifted) == 0:
		return notes
	case len(drifted) == 1:
		report = "mlp drift report " + output.Clean(drifted[0].Model)
		if drifted[0].Alias != "Production" {
			report += " --alias " + output.Clean(drifted[0].Alias)
		}
	}
	return append(notes, "", "see which inputs moved: "+report)
}

// leastBaseline is how many snapshots a baseline needs; with fewer, the service refuses one.
const leastBaseline = 10

func baselineHint(command string) []string {
	return []string{"", "set a baseline with: " + command + " <model>"}
}

func driftBaseline(ctx context.Context, env *Env, kind driftKind, model, alias string, dryRun bool) error {
	alias = aliasOrProduction(alias)
	now, err := env.driftUnder(ctx, kind, model, alias)
	if dryRun {
		c := Check{Name: "at least 10 snapshots"}
		switch {
		case err != nil:
			c.Detail = err.Error()
		case now == nil:
			c.Detail = "the model is not served under " + alias
		default:
			c.Pass, c.Detail = now.NSnapshots >= leastBaseline, output.Number(float64(now.NSnapshots))+" snapshots"
		}
		return env.DryRun(strings.ToUpper(model), map[string]any{"alias": alias, "action": "store the newest snapshots as baseline of " + kind.many}, []Check{c})
	}
	if err != nil {
		return err
	}
	if now != nil && now.BaselineSetAt != nil {
		yes, err := env.Confirm(ctx, "Replace the baseline of the "+kind.many+" of "+strings.ToUpper(model)+" ("+alias+")?", false)
		if err != nil || !yes {
			return err
		}
	}
	r, err := env.Config()
	if err != nil {
		return err
	}
	var res inference.DriftBaseline
	if err := env.serving(r).post(ctx, kind.path+"/"+escapeSegment(strings.ToUpper(model))+"/baseline", inference.AliasChoice{Alias: &alias}, &res); err != nil {
		return env.orMisspelt(ctx, model, err)
	}
	return env.done(map[string]any{"model": res.Model, "alias": res.Alias, "n": res.N, "mean": res.Mean, "std": res.Std, "set_at": res.SetAt},
		"baseline of the %s of %s (%s) set from %d snapshots", kind.many, res.Model, res.Alias, res.N)
}
