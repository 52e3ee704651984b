package cli

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

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
		&cli.BoolFlag{Name: "follow", Usage: "watch the run to its end"},
		reasonFlag(),
		&cli.BoolFlag{Name: "dry-run", Usage: "show what would happen, change nothing"},
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

// reasonFlag and noReason are for mutations whose API keeps no reason: a reason given is refused, since
// dropping it silently would lose what somebody meant to be on record.
func reasonFlag() cli.Flag {
	return &cli.StringFlag{Name: "reason", Aliases: []string{"r"}, Usage: "refused: the service keeps no reason for this"}
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
	f := fault.New("unknown_model", "the control plane knows no model %s; it knows %s", strings.ToUpper(model), listNames(names))
	if near := argv.Nearest(strings.ToUpper(model), names); near != "" {
		return nil, f.WithHint("did you mean: %s", near)
	}
	return nil, f
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

// follow polls a run to its end, then prints doc with how it ended. A run that did not complete is an error.
func (e *Env) follow(ctx context.Context, cp *remote, doc map[string]any, id string) error {
	state := "SCHEDULED"
	var bar *mpb.Progress
	var line *mpb.Bar
	if e.ErrTTY && !e.Quiet && !e.Format.Structured() {
		bar = mpb.NewWithContext(ctx, mpb.WithOutput(e.bars), mpb.WithRefreshRate(120*time.Millisecond), mpb.WithWidth(30))
		states := make(chan string, 1)
		shown := state
		line = bar.New(1, mpb.SpinnerStyle(), mpb.PrependDecorators(decor.Name("run "+output.Clean(id)+"  ")),
			mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_GO), decor.Any(func(decor.Statistics) string {
				select {
				case shown = <-states:
				default:
				}
				return "  " + shown
			})))
		defer func() { line.Abort(true); bar.Wait() }()
		return e.followLoop(ctx, cp, doc, id, func(s string) {
			select {
			case states <- s:
			default:
			}
		})
	}
	return e.followLoop(ctx, cp, doc, id, func(s string) {
		if s != state {
			state = s
			e.Talk("run %s is %s", id, s)
		}
	})
}

func (e *Env) followLoop(ctx context.Context, cp *remote, doc map[string]any, id string, show func(string)) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	failures := 0
	for {
		var run controlplane.RunStatus
		err := cp.get(ctx, "/retrain/"+escapeSegment(id), &run)
		switch {
		case ctx.Err() != nil:
			return fault.New("interrupted", "stopped watching; run %s goes on", id).WithHint("cancel it with: mlp runs cancel %s", id)
		case err != nil:
			// The control plane may be restarting: the run goes on without it. A refusal will not become an answer.
			if failures++; failures > 60 || isRefusal(err) {
				return err
			}
		default:
			failures = 0
			if run.StateType != nil {
				show(output.Clean(*run.StateType))
			}
			if run.IsTerminal {
				doc["flow_run_id"] = id
				doc["state"], doc["model_version"], doc["tracker_run_id"] = run.StateType, run.ModelVersion, run.TrackerRunId
				if run.StateType == nil || *run.StateType != "COMPLETED" {
					return fault.New("run_failed", "run %s ended %s", id, derefString(run.StateType)).WithHint("see its log: mlp runs logs %s", id)
				}
				return e.done(doc, "run %s completed; version %s registered", id, derefString(run.ModelVersion))
			}
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// isRefusal tells a 4xx answer other than 429.
func isRefusal(err error) bool {
	status := fault.From(err).Status
	return status/100 == 4 && status != http.StatusTooManyRequests
}

func derefString(s *string) string {
	if s == nil {
		return output.Null
	}
	return *s
}
