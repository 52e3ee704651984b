package cli

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

// Values of options of auto-retrain.
var (
	gates      = []string{"approval", "direct"}
	driftKinds = []string{"prediction", "input", "any"}
)

func dryRunFlag() cli.Flag {
	return &cli.BoolFlag{Name: "dry-run", Usage: "show what would happen, change nothing"}
}

func driftResetCommand(env *Env, kind driftKind, usage string) *cli.Command {
	return &cli.Command{Name: "reset", Usage: usage, ArgsUsage: "<model>",
		Flags: []cli.Flag{aliasFlag("Production"), reasonFlag(), dryRunFlag()}, Action: func(c *cli.Context) error {
			a, err := readArguments(c, "model")
			if err != nil {
				return err
			}
			if err := oneOf("--alias", c.String("alias"), aliases...); err != nil {
				return err
			}
			if err := noReason(c, "inference", "a reset"); err != nil {
				return err
			}
			return driftReset(c.Context, env, kind, strings.ToUpper(a[0]), aliasOrProduction(c.String("alias")), c.Bool("dry-run"))
		}}
}

func driftReset(ctx context.Context, env *Env, kind driftKind, model, alias string, dryRun bool) error {
	now, err := env.driftUnder(ctx, kind, model, alias)
	if err == nil && now == nil {
		err = fault.New("model_not_loaded", "%s is not served under %s", model, alias).WithHint("see what is served: mlp drift status")
	}
	if dryRun {
		check := Check{Name: "model is served", Pass: err == nil}
		would := map[string]any{"alias": alias, "action": kind.forget + " the recent " + kind.many, "snapshots": nil}
		if err != nil {
			check.Detail = err.Error()
		} else {
			check.Detail, would["snapshots"] = "under "+alias, now.NSnapshots
		}
		return env.DryRun(model, would, []Check{check})
	}
	if err != nil {
		return env.orMisspelt(ctx, model, err)
	}
	yes, err := env.Confirm(ctx, fmt.Sprintf("%s the %d recent %s of %s (%s)?", strings.ToUpper(kind.forget[:1])+kind.forget[1:], now.NSnapshots, kind.many, model, alias), false)
	if err != nil || !yes {
		return err
	}
	r, err := env.Config()
	if err != nil {
		return err
	}
	var res inference.DriftReset
	if err := env.serving(r).post(ctx, kind.path+"/"+escapeSegment(model)+"/reset", inference.AliasChoice{Alias: &alias}, &res); err != nil {
		return err
	}
	return env.done(map[string]any{"model": model, "alias": alias, "deleted": res.Deleted}, "%d %s of %s (%s) %s; the baseline stays", res.Deleted, kind.many, model, alias, kind.forgotten)
}

func driftAutoRetrainCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "auto-retrain", Usage: "automatic retraining on drift", Subcommands: []*cli.Command{
		{Name: "enable", Usage: "let a model's drift start training", ArgsUsage: "<model>", Flags: []cli.Flag{
			&cli.StringFlag{Name: "dataset", Aliases: []string{"d"}, Usage: "dataset (default: the stored one, else the first declared)"},
			&cli.Float64Flag{Name: "min-z", DefaultText: "the stored one, else 3", Usage: "lowest z-score that counts as drift"},
			&cli.IntFlag{Name: "cooldown", DefaultText: "the stored one, else 3600", Usage: "seconds between two runs"},
			&cli.StringFlag{Name: "gate", Usage: "approval or direct (default: the stored one, else approval)"},
			&cli.StringFlag{Name: "kind", Usage: "prediction, input or any (default: the stored one, else prediction)"},
			reasonFlag(), dryRunFlag(),
		}, Action: func(c *cli.Context) error {
			a, err := readArguments(c, "model")
			if err != nil {
				return err
			}
			if err := noReason(c, "the control plane", "this setting"); err != nil {
				return err
			}
			in := controlplane.AutoRetrainInput{Enabled: true, DatasetName: optional(c.String("dataset"))}
			if c.IsSet("min-z") {
				if z := c.Float64("min-z"); !(z > 0) || math.IsInf(z, 0) {
					return fault.Usage("--min-z must be above 0")
				}
				in.MinZ = new(c.Float64("min-z"))
			}
			if c.IsSet("cooldown") {
				if c.Int("cooldown") < 0 || c.Int("cooldown") > math.MaxInt32 {
					return fault.Usage("--cooldown must be a number of seconds from 0")
				}
				in.CooldownSeconds = new(int32(c.Int("cooldown")))
			}
			if err := oneOf("--gate", c.String("gate"), gates...); err != nil {
				return err
			}
			if gate := c.String("gate"); gate != "" {
				in.Gate = new(controlplane.AutoRetrainGate(gate))
			}
			if err := oneOf("--kind", c.String("kind"), driftKinds...); err != nil {
				return err
			}
			if kind := c.String("kind"); kind != "" {
				in.Kind = new(controlplane.DriftKind(kind))
			}
			return autoRetrainPut(c.Context, env, strings.ToUpper(a[0]), in, c.Bool("dry-run"))
		}},
		{Name: "disable", Usage: "stop automatic retraining of a model; its settings are kept", ArgsUsage: "<model>", Flags: []cli.Flag{reasonFlag(), dryRunFlag()}, Action: func(c *cli.Context) error {
			a, err := readArguments(c, "model")
			if err != nil {
				return err
			}
			if err := noReason(c, "the control plane", "this setting"); err != nil {
				return err
			}
			return autoRetrainPut(c.Context, env, strings.ToUpper(a[0]), controlplane.AutoRetrainInput{}, c.Bool("dry-run"))
		}},
		{Name: "status", Usage: "models with automatic retraining, and when each was last triggered", Flags: listFlags(0), Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			o, err := env.readListOptions(c)
			if err != nil {
				return err
			}
			return autoRetrainStatus(c.Context, env, o)
		}},
	}}
}

func autoRetrainPut(ctx context.Context, env *Env, model string, in controlplane.AutoRetrainInput, dryRun bool) error {
	r, err := env.Config()
	if err != nil {
		return err
	}
	verb := "disable"
	if in.Enabled {
		verb = "enable"
	}
	declared, err := findDeclared(ctx, env.controlPlane(r), model)
	if dryRun {
		check := Check{Name: "model is declared", Pass: err == nil}
		if err != nil {
			check.Detail = err.Error()
		} else {
			check.Detail = "datasets: " + strings.Join(declared.Datasets, ", ")
		}
		return env.DryRun(model, map[string]any{"enabled": in.Enabled, "dataset_name": in.DatasetName, "min_z": in.MinZ, "cooldown_seconds": in.CooldownSeconds, "gate": in.Gate, "kind": in.Kind}, []Check{check})
	}
	if err != nil {
		return err
	}
	question := "Stop automatic training of " + model + " on drift?"
	if in.Enabled {
		question = "Let the drift of " + model + " start training?"
	}
	yes, err := env.Confirm(ctx, question, false)
	if err != nil || !yes {
		return err
	}
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	set, waits, err := decodeGuarded[controlplane.AutoRetrain](cp.PutAutoRetrain(ctx, model, in))
	if err != nil {
		return err
	}
	if waits != nil {
		return env.changeWaits(waits)
	}
	doc := map[string]any{"model": set.Model, "enabled": set.Enabled, "min_z": set.MinZ, "dataset_name": set.DatasetName, "cooldown_seconds": set.CooldownSeconds, "gate": set.Gate, "kind": set.Kind}
	return env.done(doc, "auto-retrain of %s %sd: from z %s, %d s between runs, gate %s", set.Model, verb, output.Number(set.MinZ), set.CooldownSeconds, set.Gate)
}

func autoRetrainStatus(ctx context.Context, env *Env, o listOptions) error {
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	list, more, err := readItems(o.fetch(), func(limit *int, cursor *string) ([]controlplane.AutoRetrain, *string, error) {
		page, err := decode[controlplane.AutoRetrainList](cp.ListAutoRetrain(ctx, &controlplane.ListAutoRetrainParams{Limit: limit, Cursor: cursor}))
		return page.Items, page.NextCursor, err
	})
	if err != nil {
		return err
	}
	g := output.Grid{Columns: []string{"Model", "Enabled", "Min Z", "Dataset", "Cooldown (s)", "Gate", "Last Triggered", "Kind"},
		Doc: mapRows(list, func(a controlplane.AutoRetrain) autoRetrainRow {
			return autoRetrainRow{a, a.DatasetName, a.CooldownSeconds, a.LastTriggeredAt}
		}),
		Empty: "No model trains automatically. Start with: mlp drift auto-retrain enable <model>"}
	for _, a := range list {
		g.Rows = append(g.Rows, []any{a.Model, a.Enabled, a.MinZ, a.DatasetName, int(a.CooldownSeconds), string(a.Gate), a.LastTriggeredAt, string(a.Kind)})
	}
	return env.printList(o, g, more)
}
