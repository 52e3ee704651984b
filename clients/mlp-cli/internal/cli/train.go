//go:build cgo

package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/trainer"
)

// trainHere trains a declared model in this process.
func trainHere(ctx context.Context, env *Env, o runOptions, dir string, r *modelrepo.Repo, m *modelrepo.Model) error {
	conf, err := env.Config()
	if err != nil {
		return err
	}
	commandTimeout, err := time.ParseDuration(cmpOr(env.Getenv("TRAINER_COMMAND_TIMEOUT"), "0"))
	if err != nil {
		return fault.New("trainer", "TRAINER_COMMAND_TIMEOUT is no duration such as 2h: %v", err)
	}
	log := slog.New(slog.DiscardHandler)
	if env.Verbose && !env.Format.Structured() { // a structured run has its document alone
		log = slog.New(slog.NewTextHandler(env.Err, nil))
	}
	t, err := trainer.New(trainer.Config{
		TrackingURI: conf.Get("tracker"), TrackingToken: service.Secret(conf.Get("tracker_token")), ControlPlaneURL: conf.Get("control_plane"), ControlPlaneToken: service.Secret(conf.Get("control_plane_token")),
		ModelRepoDir: dir, Env: o.env, SchedulerMode: cmpOr(env.Getenv("PLATFORM_SCHEDULER_MODE"), "mock"),
		S3Endpoint: env.Getenv("S3_ENDPOINT"), S3Region: env.Getenv("S3_REGION"), S3AccessKey: env.Getenv("S3_ACCESS_KEY"), S3SecretKey: service.Secret(env.Getenv("S3_SECRET_KEY")),
		DataplaneURL: cmpOr(env.Getenv("DATAPLANE_URL"), "http://localhost:8010"), DataplaneToken: service.Secret(env.Getenv("DATAPLANE_TOKEN")), AllowPrivateArchives: env.Getenv("PUBLIC_ARCHIVE_ALLOW_PRIVATE") == "true",
		HPCPartition: env.Getenv("HPC_PARTITION"), HPCAccount: env.Getenv("HPC_ACCOUNT"), HPCQOS: env.Getenv("HPC_QOS"),
		HPCWorkDir: env.Getenv("HPC_WORK_DIR"), HPCTrainer: env.Getenv("HPC_TRAINER"),
		CommandAllow: strings.Split(env.Getenv("TRAINER_COMMAND_ALLOW"), ","), CommandTimeout: commandTimeout,
	}, log)
	if err != nil {
		return fault.New("trainer", "cannot start training: %v", err)
	}
	show, done := env.stageBar(m.Name)
	res, err := t.Train(ctx, trainer.Request{Model: m.Name, Dataset: o.dataset, Dummy: o.dummy, Backend: o.backend}, show)
	done(err == nil)
	if errors.Is(err, trainer.ErrUnknownModel) {
		f := fault.New("model_not_published", "%v; nothing was trained or registered", err)
		if commit := env.foreignCommit(ctx, dir); commit != "" {
			return f.WithHint("the control plane has read commit %.12s, which this folder does not have: pull it, or put the model into the repository that the control plane reads (--repo, or PLATFORM_MODELREPO as shown by: platform env)", commit)
		}
		return f.WithHint("%s", strings.Join(publishCommands(dir, m, r), " && "))
	}
	if res.RunID != "" {
		env.changes.note()
	}
	if err != nil {
		return unfinishedFault(res, m.Name, err, ctx.Err() != nil)
	}
	if o.report != "" {
		if err := writeReport(o.report, res); err != nil {
			return fault.New("report_unwritable", "the model is trained and registered, but its report cannot be written: %v", err)
		}
	}
	if res.Aliases == nil {
		res.Aliases = []string{}
	}
	g := metricGrid(res.Metrics, res.BaselineMetrics)
	g.Title = fmt.Sprintf("%s version %s (run %s), aliases: %s", m.Name, res.Version, res.RunID, cmpOr(strings.Join(res.Aliases, ", "), "none"))
	g.Doc = map[string]any{"run_id": res.RunID, "model": m.Name, "version": res.Version, "metrics": res.Metrics,
		"baseline_metrics": res.BaselineMetrics, "aliases": res.Aliases}
	return env.Printer().Print(g)
}

// unfinishedFault reports how far a failed training got: its version may be registered already.
func unfinishedFault(res trainer.Result, model string, err error, interrupted bool) error {
	code, what := "training_failed", fmt.Sprintf("training %s failed: %v", model, err)
	if interrupted {
		code, what = "interrupted", "interrupted"
	}
	switch {
	case res.Version != "":
		return fault.New(code, "%s; version %s of %s is registered already (tracker run %s), but its aliases may not be set", what, res.Version, model, res.RunID).
			WithHint("see: mlp models info %s", model)
	case interrupted && res.RunID != "":
		return fault.New(code, "interrupted; the tracker run %s is marked KILLED and nothing was registered", res.RunID)
	case interrupted:
		return fault.New(code, "interrupted; nothing was registered")
	}
	return fault.New(code, "%s", what)
}

// stageBar shows training as one bar that names its stage; a training that failed leaves it where it was.
func (e *Env) stageBar(name string) (show trainer.Progress, done func(ok bool)) {
	if !e.ErrTTY || e.Quiet || e.Format.Structured() {
		last := ""
		return func(stage string, _ float64, _ string) {
			if stage != last {
				last = stage
				e.Talk("%s: %s", name, stage)
			}
		}, func(bool) {}
	}
	const total = 1000
	stages := make(chan string, 8)
	shown := ""
	p := mpb.New(mpb.WithOutput(e.bars), mpb.WithWidth(40))
	bar := p.AddBar(total, mpb.PrependDecorators(decor.Name(output.Clean(name)+" ")), mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_GO), decor.Any(func(decor.Statistics) string {
		for {
			select {
			case shown = <-stages:
			default:
				return "  " + shown
			}
		}
	})))
	return func(stage string, fraction float64, _ string) {
			bar.SetCurrent(int64(trainer.Overall(stage, fraction) * (total - 1)))
			select {
			case stages <- stage:
			default:
			}
		}, func(ok bool) {
			if ok {
				bar.SetCurrent(total)
			} else {
				bar.Abort(false)
			}
			p.Wait()
		}
}
