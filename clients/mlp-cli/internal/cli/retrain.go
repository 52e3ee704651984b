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
)

// backends are the values of --backend: the control plane's.
var backends = []string{string(controlplane.PublicArchive), string(controlplane.ObjectStore), string(controlplane.Dataplane), string(controlplane.Local)}

func retrainCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "retrain", Usage: "train a model through the control plane", ArgsUsage: "<model>", Flags: []cli.Flag{
		&cli.StringFlag{Name: "dataset", Aliases: []string{"d"}, Usage: "dataset (default: the first declared)"},
		&cli.BoolFlag{Name: "dummy", Usage: "500 generated rows; the version never gets past Staging"},
		&cli.StringFlag{Name: "backend", Usage: strings.Join(backends, ", ")},
		followFlag("watch the run to its end"),
		reasonFlag(),
		dryRunFlag(),
	}, Action: func(c *cli.Context) error {
		a, err := readArguments(c, "model")
		if err != nil {
			return err
		}
		if err := oneOf("--backend", c.String("backend"), backends...); err != nil {
			return err
		}
		if err := noReason(c, "the control plane", "a retrain request"); err != nil {
			return err
		}
		return runRetrain(c.Context, env, retrainOptions{model: a[0], dataset: c.String("dataset"), dummy: c.Bool("dummy"),
			backend: c.String("backend"), follow: c.Bool("follow"), dryRun: c.Bool("dry-run")})
	}}
}

type retrainOptions struct {
	model, dataset, backend string
	dummy, follow, dryRun   bool
}

// reasonFlag and noReason are for mutations whose API records no reason: a reason given is refused, since dropping it
// silently would lose what the user meant to be on record.
func reasonFlag() cli.Flag {
	return &cli.StringFlag{Name: "reason", Aliases: []string{"r"}, Usage: "not supported: the service records no reason for this command"}
}

func noReason(c *cli.Context, who, what string) error {
	if !c.IsSet("reason") {
		return nil
	}
	return fault.New("reason_not_kept", "%s keeps no reason for %s, so --reason would be lost; nothing changed", who, what).
		WithHint("leave --reason out")
}

// findDeclared finds a model in the control plane's registry.
func findDeclared(ctx context.Context, cp *remote, model string) (*controlplane.Model, error) {
	var list []controlplane.Model
	if err := cp.get(ctx, "/models", &list); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(list))
	for i := range list {
		if strings.EqualFold(list[i].ModelName, model) {
			return &list[i], nil
		}
		names = append(names, list[i].ModelName)
	}
	if len(names) == 0 {
		return nil, fault.New("no_models", "the control plane knows no models").WithHint("see what it reads: mlp modelrepo status")
	}
	f := fault.New("unknown_model", "the control plane knows no model %s; it knows %s", strings.ToUpper(model), listNames(names))
	if near := argv.Nearest(strings.ToUpper(model), names); near != "" {
		return nil, f.WithHint("did you mean: %s", near)
	}
	return nil, f
}

// refuseUnknownModel is for a query about a model that found nothing: a misspelt name is a fault and not an empty
// answer. Nothing is refused if the control plane does not return the models it knows.
func (e *Env) refuseUnknownModel(ctx context.Context, model string) error {
	r, err := e.Config()
	if err != nil {
		return err
	}
	if _, err = findDeclared(ctx, e.controlPlane(r), model); err != nil && fault.From(err).Code == "unknown_model" {
		return err
	}
	return nil
}

// requireModel is for a setting that its service would store for any name: one that neither the tracker nor the
// control plane knows is a fault. Nothing is refused if the tracker does not return its models.
func (e *Env) requireModel(ctx context.Context, model string) error {
	list, err := e.registered(ctx)
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(list))
	for _, m := range list {
		names = append(names, strings.ToUpper(m.Name))
	}
	if r, err := e.Config(); err == nil {
		var declared []controlplane.Model
		if e.controlPlane(r).get(ctx, "/models", &declared) == nil {
			for _, m := range declared {
				names = append(names, strings.ToUpper(m.ModelName))
			}
		}
	}
	if slices.Contains(names, strings.ToUpper(model)) {
		return nil
	}
	f := fault.New("unknown_model", "there is no model %s", strings.ToUpper(model))
	if near := argv.Nearest(strings.ToUpper(model), names); near != "" {
		return f.WithHint("did you mean: %s", near)
	}
	return f.WithHint("see what is registered: mlp models list")
}

// orMisspelt returns err; if a service serves no such model and the name is unknown, its hint names the nearest.
func (e *Env) orMisspelt(ctx context.Context, model string, err error) error {
	if err == nil || fault.From(err).Code != "model_not_loaded" {
		return err
	}
	if unknown := e.requireModel(ctx, model); unknown != nil {
		return fault.From(err).WithHint("%s", fault.From(unknown).Hint)
	}
	return err
}

func runRetrain(ctx context.Context, env *Env, o retrainOptions) error {
	r, err := env.Config()
	if err != nil {
		return err
	}
	cp := env.controlPlane(r)
	if cp.token == "" {
		return fault.New("no_token", "retraining needs a control plane token").
			WithHint("set CONTROL_PLANE_TOKEN, or run: mlp config set control_plane_token")
	}
	m, err := findDeclared(ctx, cp, o.model)
	if o.dryRun {
		check := Check{Name: "model is declared", Pass: err == nil}
		would := map[string]any{"dummy": o.dummy, "backend": nullIfEmpty(o.backend), "dataset": nullIfEmpty(o.dataset)}
		if err != nil {
			check.Detail = err.Error()
		} else {
			check.Detail = "datasets: " + strings.Join(m.Datasets, ", ")
			if o.dataset == "" && len(m.Datasets) > 0 {
				would["dataset"] = m.Datasets[0]
			}
		}
		return env.DryRun(strings.ToUpper(o.model), would, []Check{check})
	}
	if err != nil {
		return err
	}
	if o.dataset == "" {
		if len(m.Datasets) == 0 {
			return fault.New("no_dataset", "%s declares no dataset", m.ModelName).WithHint("name one: mlp retrain %s --dataset <name>", m.ModelName)
		}
		o.dataset = m.Datasets[0]
	}
	yes, err := env.Confirm(ctx, "Train "+m.ModelName+" on "+o.dataset+" now?", false)
	if err != nil || !yes {
		return err
	}
	body := controlplane.RetrainRequest{ModelName: m.ModelName, DatasetName: o.dataset, IsDummy: &o.dummy}
	if o.backend != "" {
		b := controlplane.Backend(o.backend)
		body.BackendName = &b
	}
	var res controlplane.Dispatch
	if err := cp.post(ctx, "/retrain", body, &res); err != nil {
		return err
	}
	doc := map[string]any{"flow_run_id": res.FlowRunId, "deployment": res.Deployment, "status_url": res.StatusUrl,
		"model": m.ModelName, "dataset": o.dataset, "dummy": o.dummy}
	if o.follow {
		return env.follow(ctx, cp, doc, res.FlowRunId)
	}
	return env.done(doc, "training run %s started; watch it with: mlp runs show %s --follow", res.FlowRunId, res.FlowRunId)
}

func derefString(s *string) string {
	if s == nil {
		return output.Null
	}
	return *s
}
