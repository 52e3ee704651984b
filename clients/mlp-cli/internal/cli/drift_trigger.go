package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

func driftTriggerCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "trigger", Usage: "check the enabled models now, and train those that drift", Flags: []cli.Flag{
		&cli.StringFlag{Name: "model", Aliases: []string{"m"}, Usage: "only this model"},
		followFlag("watch the training runs that it starts to their end"),
		reasonFlag(), dryRunFlag(),
	}, Action: func(c *cli.Context) error {
		if _, err := readArguments(c); err != nil {
			return err
		}
		if err := noReason(c, "the control plane", "a trigger"); err != nil {
			return err
		}
		model := strings.ToUpper(c.String("model"))
		if c.Bool("dry-run") {
			return dryTrigger(c.Context, env, model)
		}
		return driftTrigger(c.Context, env, model, c.Bool("follow"))
	}}
}

// triggerRow shows unknown values as null, where the control plane omits them. State and Version are those of the run,
// once it was followed to its end.
type triggerRow struct {
	Model    string   `json:"model"`
	ZScore   *float64 `json:"z_score"`
	Outcome  string   `json:"outcome"`
	Run      *string  `json:"run"`
	Approval *string  `json:"approval"`
	Reason   *string  `json:"reason"`
	State    *string  `json:"state"`
	Version  *string  `json:"model_version"`
}

func (e *Env) trigger(ctx context.Context, model string, dryRun bool) ([]triggerRow, error) {
	cp, err := e.controlPlaneClient()
	if err != nil {
		return nil, err
	}
	res, err := decode[controlplane.DriftTriggered](cp.TriggerDrift(ctx, controlplane.DriftTrigger{DryRun: &dryRun, Model: optional(model)}))
	if err != nil {
		return nil, err
	}
	rows := []triggerRow{}
	for _, r := range res.Results {
		row := triggerRow{Model: r.Model, ZScore: r.ZScore, Outcome: string(r.Outcome), Run: r.FlowRunId, Reason: r.Reason}
		if r.ApprovalId != nil {
			row.Approval = new(r.ApprovalId.String())
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func dryTrigger(ctx context.Context, env *Env, model string) error {
	rows, err := env.trigger(ctx, model, true)
	if err != nil {
		return err
	}
	checks := []Check{}
	for _, w := range rows {
		detail := w.Outcome
		if w.Reason != nil {
			detail += ": " + *w.Reason
		}
		checks = append(checks, Check{Name: w.Model, Pass: w.Outcome == string(controlplane.DriftOutcomeWouldTrigger), Detail: detail})
	}
	if model == "" {
		model = "all enabled models"
	}
	return env.DryRun(model, map[string]any{"results": rows}, checks)
}

func driftTrigger(ctx context.Context, env *Env, model string, follow bool) error {
	yes, err := env.Confirm(ctx, "Train what drifts now?", false)
	if err != nil || !yes {
		return err
	}
	rows, err := env.trigger(ctx, model, false)
	if err != nil {
		return err
	}
	var stopped error // why the runs were not followed to their end: they were started, and are shown
	if follow {
		stopped = env.followTriggered(ctx, rows)
	}
	g := output.Grid{Columns: []string{"Model", "z-score", "Outcome", "Run", "Approval", "Reason"}, Doc: rows, Spare: []string{"Reason", "Approval"}, Empty: "No model trains automatically. Start with: mlp drift auto-retrain enable <model>"}
	if follow {
		g.Columns = append(g.Columns, "State", "Version")
	}
	unchecked, failed := 0, 0
	for _, w := range rows {
		row := []any{w.Model, w.ZScore, styledStatus(w.Outcome), w.Run, w.Approval, w.Reason}
		if follow {
			var state any
			if w.State != nil {
				state = styledStatus(*w.State)
			}
			row = append(row, state, w.Version)
		}
		g.Rows = append(g.Rows, row)
		switch {
		case w.Outcome == string(controlplane.DriftOutcomeFailed):
			unchecked++
		case w.State != nil && *w.State != "COMPLETED":
			failed++
		}
	}
	switch {
	case stopped != nil:
		f := *fault.From(stopped)
		f.Faults = rows
		return env.failWith(&f, g)
	case unchecked > 0:
		f := fault.New("trigger_failed", "%d of %d models could not be checked or trained", unchecked, len(rows))
		f.Faults = rows
		return env.failWith(f, g)
	case failed > 0:
		f := fault.New("run_failed", "%d of the training runs did not complete", failed).WithHint("see the log of one: mlp runs logs <run>")
		f.Faults = rows
		return env.failWith(f, g)
	}
	return env.Printer().Print(g)
}

// followTriggered waits for the runs that a trigger started, one after the other: they run in parallel.
func (e *Env) followTriggered(ctx context.Context, rows []triggerRow) error {
	r, err := e.Config()
	if err != nil {
		return err
	}
	cp := e.controlPlane(r)
	for i := range rows {
		row := &rows[i]
		if row.Run == nil {
			continue
		}
		show, stop := e.spinner(ctx, row.Model+" run "+*row.Run)
		run, err := e.waitForRun(ctx, cp, *row.Run, show)
		stop()
		switch {
		case errors.Is(err, context.Canceled):
			return fault.New("interrupted", "stopped watching; the training that drift started continues").WithHint("see the runs: mlp runs list")
		case err != nil:
			return err
		}
		row.State, row.Version = run.StateType, run.ModelVersion
	}
	return nil
}
