package training

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/trainer/internal/dataset"
	"github.com/mlp-platform/platform/services/trainer/internal/export"
	"github.com/mlp-platform/platform/services/trainer/internal/fit"
	"github.com/mlp-platform/platform/services/trainer/internal/scheduler"
)

// modelFolder is the artifact folder of the model within the run.
const modelFolder = "model"

// learn runs the stages that need neither the tracker nor the control plane: the work of a cluster's job, and an
// evaluation.
func (f *flow) learn(ctx context.Context) error {
	for _, s := range []stage{{"extract", f.extract}, {"submit", f.submit}, {"wait", f.wait}, {"fetch", f.fetch}, {"evaluate", f.evaluate}} {
		msg, err := s.do(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		f.say(s.name, 1, msg)
	}
	return nil
}

func (f *flow) extract(ctx context.Context) (string, error) {
	var err error
	f.rows, err = dataset.Load(ctx, dataset.Source{Repo: f.cfg.ModelRepoDir, Set: f.set, Backend: f.backend, Dummy: f.Dummy,
		Remote: f.cfg.Remote, CacheDir: f.cfg.CacheDir})
	if err != nil {
		return "", err
	}
	if f.sample, err = f.rows.Sample(f.model.Type, f.use); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d rows, %d left out", f.sample.Rows.N, f.rows.Dropped+f.sample.NoLabel+f.sample.NoFeature), nil
}

func (f *flow) submit(ctx context.Context) (string, error) {
	f.job = scheduler.Submit(ctx, func(ctx context.Context) error {
		var err error
		f.fitted, err = fit.Run(ctx, f.model, f.sample, f.set, f.use, fit.Commands{Config: f.cfg.Commands, Dir: f.dir}, func(done float64) { f.say("wait", min(done, 0.999), "") })
		return err
	})
	f.jobID = f.job.ID
	return f.job.ID, nil
}

// closeGraph frees the graph of a command, at whichever stage the flow ended.
func (f *flow) closeGraph() {
	if f.fitted != nil && f.fitted.Graph != nil {
		_ = f.fitted.Graph.Close()
	}
}

func (f *flow) wait(context.Context) (string, error) {
	if err := f.job.Wait(); err != nil {
		return "", fmt.Errorf("job %s: %w", f.job.ID, err)
	}
	return f.job.ID + " completed", nil
}

// fetch writes the model's files and verifies that the graph agrees with the estimator.
func (f *flow) fetch(ctx context.Context) (string, error) {
	// The commit is a tag of the version, not a part of the files: the same seed and data make the same bytes.
	meta := export.Meta{
		Model: f.result.Model, Dataset: f.use.Name, TaskType: f.model.TaskType, Estimator: f.model.Estimator.Kind,
		Seed: f.model.Estimator.Seed, Rows: len(f.fitted.Parts.Fit()),
	}
	dir := filepath.Join(f.dir, modelFolder)
	var err error
	if f.fitted.Graph != nil {
		// The graph itself was judged, so there is nothing to compare it with.
		if f.files, err = export.WriteGraph(dir, meta, f.fitted.Graph); err != nil {
			return "", err
		}
		f.result.Digest = tracker.Digest(f.files)
		return "graph of the command", f.fitted.Graph.Close()
	}
	if f.files, err = export.Write(dir, meta, f.fitted.Pipeline, f.fitted.Model, f.sample.Target); err != nil {
		return "", err
	}
	f.result.Digest = tracker.Digest(f.files)
	rows := spreadIndices(f.sample.Rows.N, 1000)
	if err := export.Verify(dir, f.sample.Table.Select(rows), f.fitted.Pipeline, f.fitted.Model, f.sample.Target.Select(rows)); err != nil {
		return "", fmt.Errorf("check the graph against the estimator: %w", err)
	}
	return fmt.Sprintf("graph agrees on %d rows", len(rows)), ctx.Err()
}

func (f *flow) evaluate(context.Context) (string, error) {
	if f.fitted != nil { // otherwise a job has evaluated
		f.outcome = f.newOutcome()
	}
	f.result.Report = f.outcome.Report
	f.result.Metrics, f.result.BaselineMetrics = f.result.Report.Metrics, f.result.Report.Baselines
	f.result.Rungs = f.model.Judge(f.metrics())
	if f.Dummy {
		f.result.Rungs = modelrepo.CapDummy(f.result.Rungs)
	}
	metric, _ := f.model.Primary()
	return fmt.Sprintf("%s %.4g", metric, f.result.Metrics[metric]), nil
}

// metrics are all the run logs.
func (f *flow) metrics() map[string]float64 {
	all := maps.Clone(f.result.Metrics)
	maps.Copy(all, f.result.BaselineMetrics)
	return all
}
