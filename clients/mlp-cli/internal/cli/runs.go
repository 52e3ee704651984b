package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/argv"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/orchestrator"
)

func runsCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "runs", Usage: "training runs", Subcommands: []*cli.Command{
		{Name: "list", Usage: "training runs, newest first", Flags: slices.Concat(watchFlags(), listFlags(50), []cli.Flag{
			&cli.StringFlag{Name: "model", Aliases: []string{"m"}, Usage: "only those of this model"},
			&cli.StringFlag{Name: "state", Usage: "only those in this state, such as running or failed"},
		}), Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			o, err := env.readListOptions(c)
			if err != nil {
				return err
			}
			state := strings.ToUpper(c.String("state"))
			if err := checkState(state); err != nil {
				return err
			}
			return env.maybeWatch(c, func() error { return runsList(c.Context, env, c.String("model"), state, o) })
		}},
		{Name: "show", Usage: "the state of one run", ArgsUsage: "<run>", Flags: []cli.Flag{
			followFlag("watch the run to its end"),
		}, Action: func(c *cli.Context) error {
			a, err := readArguments(c, "run")
			if err != nil {
				return err
			}
			return runsShow(c.Context, env, a[0], c.Bool("follow"))
		}},
		{Name: "logs", Usage: "the log of one run", ArgsUsage: "<run>", Flags: []cli.Flag{
			&cli.IntFlag{Name: "tail", Aliases: []string{"n"}, DefaultText: "all", Usage: "only the last lines"},
			followFlag("keep printing new lines until the run ends"),
		}, Action: func(c *cli.Context) error {
			a, err := readArguments(c, "run")
			if err != nil {
				return err
			}
			if c.IsSet("tail") && c.Int("tail") < 1 {
				return fault.Usage("--tail must be at least 1")
			}
			return runsLogs(c.Context, env, a[0], c.Int("tail"), c.Bool("follow"))
		}},
		{Name: "cancel", Usage: "cancel a run", ArgsUsage: "<run>", Flags: []cli.Flag{
			followFlag("wait until the run has ended"), reasonFlag(), dryRunFlag(),
		}, Action: func(c *cli.Context) error {
			a, err := readArguments(c, "run")
			if err != nil {
				return err
			}
			if err := noReason(c, "the control plane", "a cancelled run"); err != nil {
				return err
			}
			return runsCancel(c.Context, env, a[0], c.Bool("follow"), c.Bool("dry-run"))
		}},
	}}
}

// runStates returns the values of --state of runs.
func runStates() []string {
	states := make([]string, len(orchestrator.StateTypes))
	for i, s := range orchestrator.StateTypes {
		states[i] = string(s)
	}
	return states
}

// checkState refuses text that is not a state of a run, and names the nearest one; empty means any.
func checkState(state string) error {
	states := runStates()
	err := oneOf("--state", state, states...)
	if near := argv.Nearest(state, states); err != nil && near != "" {
		return fault.From(err).WithHint("did you mean: --state %s", strings.ToLower(near))
	}
	return err
}

func runsList(ctx context.Context, env *Env, model, state string, o listOptions) error {
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	runs, more, err := readItems(o.fetch(), func(limit *int, cursor *string) ([]controlplane.Run, *string, error) {
		page, err := decode[controlplane.RunList](cp.ListRuns(ctx, &controlplane.ListRunsParams{Model: optional(strings.ToUpper(model)), State: optional(state), Limit: limit, Cursor: cursor}))
		return page.Items, page.NextCursor, err
	})
	if err != nil {
		return err
	}
	g := output.Grid{Columns: []string{"Run", "Model", "State", "Version", "Dataset", "Origin", "Commit", "Age", "Took"}, Doc: runs,
		Spare: []string{"Commit", "Origin", "Dataset", "Took"},
		Empty: noRuns(model, state)}
	for _, r := range runs {
		var commit, age, took any
		if r.CommitSha != nil {
			commit = shortSHA(*r.CommitSha)
		}
		if r.StartedAt != nil {
			age = output.Age(*r.StartedAt)
			if r.EndedAt != nil {
				took = output.Since(r.EndedAt.Sub(*r.StartedAt))
			}
		}
		g.Rows = append(g.Rows, []any{r.FlowRunId, r.ModelId, styledStatus(r.StateType), r.ModelVersion, r.DatasetName, r.Origin, commit, age, took})
	}
	return env.printList(o, g, more)
}

// noRuns returns the text for an empty list, with its filters.
func noRuns(model, state string) string {
	switch {
	case state != "" && model != "":
		return "No run of " + output.Clean(strings.ToUpper(model)) + " is " + state + "."
	case state != "":
		return "No run is " + state + "."
	case model != "":
		return "No runs of " + output.Clean(strings.ToUpper(model)) + ". Start one with: mlp retrain " + output.Clean(strings.ToUpper(model))
	}
	return "No runs. Start one with: mlp retrain <model>"
}

func runsShow(ctx context.Context, env *Env, id string, follow bool) error {
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	run, err := decode[controlplane.RunStatus](cp.GetRetrain(ctx, id))
	if err != nil {
		return runFault(err, id)
	}
	if follow {
		r, err := env.Config()
		if err != nil {
			return err
		}
		return env.follow(ctx, env.controlPlane(r), map[string]any{"model": run.ModelId, "dataset": run.DatasetName}, id)
	}
	var state any
	if run.StateType != nil {
		state = styledStatus(*run.StateType)
	}
	g := output.Grid{Columns: []string{"Field", "Value"}, Doc: run, Rows: [][]any{
		{"Run", run.FlowRunId}, {"Model", run.ModelId}, {"State", state}, {"Dataset", run.DatasetName}, {"Commit", run.CommitSha},
		{"Version", run.ModelVersion}, {"Tracker run", run.TrackerRunId},
	}}
	if failed(run) {
		g.Notes = append(g.Notes, "", "see why it failed: mlp runs logs "+id)
	}
	if run.Stale {
		g.Notes = append(g.Notes, "", "The orchestrator does not answer just now; this is the last known state.")
	}
	return env.Printer().Print(g)
}

// runFault adds how to find a run to a refusal that it is unknown.
func runFault(err error, id string) error {
	if f := fault.From(err); f.Status == 404 || f.Status == 422 {
		unknown := fault.New("unknown_run", "the control plane knows no run %s", id)
		unknown.Service, unknown.Status, unknown.RequestID, unknown.Cause = f.Service, f.Status, f.RequestID, err
		return unknown.WithHint("see the runs: mlp runs list")
	}
	return err
}

func runsCancel(ctx context.Context, env *Env, id string, follow, dryRun bool) error {
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	run, err := decode[controlplane.RunStatus](cp.GetRetrain(ctx, id))
	if dryRun {
		check := Check{Name: "run goes on", Pass: err == nil && !run.IsTerminal, Detail: derefString(run.StateType)}
		if err != nil {
			check.Detail = runFault(err, id).Error()
		}
		return env.DryRun(id, map[string]any{"action": "cancel", "model": run.ModelId}, []Check{check})
	}
	if err != nil {
		return runFault(err, id)
	}
	if run.IsTerminal {
		return fault.New("run_ended", "run %s has ended: it is %s", id, derefString(run.StateType))
	}
	yes, err := env.Confirm(ctx, "Cancel run "+id+" of "+derefString(run.ModelId)+"?", false)
	if err != nil || !yes {
		return err
	}
	run, err = decode[controlplane.RunStatus](cp.CancelRetrain(ctx, id))
	if err != nil {
		return runFault(err, id)
	}
	doc := map[string]any{"flow_run_id": run.FlowRunId, "model": run.ModelId, "state": run.StateType}
	if follow {
		return env.followCancelled(ctx, doc, id)
	}
	return env.done(doc, "run %s is being cancelled; watch it with: mlp runs show %s --follow", id, id)
}
