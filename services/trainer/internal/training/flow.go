package training

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/trainer/internal/controlplane"
	"github.com/mlp-platform/platform/services/trainer/internal/dataset"
	"github.com/mlp-platform/platform/services/trainer/internal/fit"
	"github.com/mlp-platform/platform/services/trainer/internal/scheduler"
	"github.com/mlp-platform/platform/services/trainer/internal/source"
)

// flow is one training under way.
type flow struct {
	*Trainer
	*plan
	result Result

	said     sync.Mutex // guards the fields below
	progress Progress
	reached  map[string]float64

	tracked tracker.Run
	resumed bool // an earlier attempt at the same flow run registered the version; tracked is its run
	job     *scheduler.Job
	key     string // the tag training_id, made before anything else; a job of a cluster is found by it
	jobID   string // of job, or of the cluster's
	jobDir  string // input and output of a cluster's job
	rows    *dataset.Rows
	sample  *dataset.Sample
	fitted  *fit.Result
	dir     string // scratch folder with the model's files
	files   map[string]string
	outcome *outcome
	version string
}

// say reports progress, one call at a time. A stage never goes back: the job may already run before it is waited for,
// and a retry starts from the progress of the last attempt.
func (f *flow) say(stage string, fraction float64, msg string) {
	f.said.Lock()
	defer f.said.Unlock()
	f.reached[stage] = max(f.reached[stage], fraction)
	f.progress(stage, f.reached[stage], msg)
}

// admit asks the control plane whether it knows the model before anything is recorded: otherwise it would refuse the
// version at the end, and leave it in the tracker without an alias. It may not have read the newest commit yet, so it is
// asked a second time about a committed definition. If it does not answer, the training runs: it may answer at the end.
func (f *flow) admit(ctx context.Context) error {
	if f.control == nil {
		return nil
	}
	err := f.control.KnowsModel(ctx, f.result.Model)
	if errors.Is(err, controlplane.ErrUnknownModel) && !f.origin.Dirty() && len(f.cfg.RetryDelays) > 0 {
		delay := f.cfg.RetryDelays[0]
		f.say("extract", 0, fmt.Sprintf("the control plane does not know %s yet, asking again in %s", f.model.Name, delay))
		if err := pause(ctx, delay); err != nil {
			return err
		}
		err = f.control.KnowsModel(ctx, f.result.Model)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !errors.Is(err, controlplane.ErrUnavailable):
		return fmt.Errorf("%w: %s: %w", ErrRequest, f.model.Name, err)
	}
	f.log.WarnContext(ctx, "the control plane cannot be asked about the model", slog.String("model", f.result.Model), slog.Any("err", err))
	return nil
}

// pause waits, or returns why the context ended.
func pause(ctx context.Context, delay time.Duration) error {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (f *flow) run(ctx context.Context) (err error) {
	if err := f.open(ctx); err != nil {
		return err
	}
	started := time.Now()
	log := f.log.With(slog.String("model", f.result.Model), slog.String("dataset", f.result.Dataset), slog.String("run_id", f.result.RunID))
	log.InfoContext(ctx, "training started")
	defer func() {
		err = f.close(ctx, err)
		if err != nil {
			log.ErrorContext(ctx, "training failed", slog.Any("err", err))
			return
		}
		log.InfoContext(ctx, "training finished", slog.String("version", f.version), slog.Duration("took", time.Since(started)))
	}()
	if f.dir, err = os.MkdirTemp(f.cfg.CacheDir, "train-"); err != nil {
		return fmt.Errorf("scratch folder: %w", err)
	}
	scratch := f.dir
	defer func() { _, _ = os.RemoveAll(scratch), os.RemoveAll(f.jobDir) }()
	defer f.closeGraph()
	for _, s := range f.stages() {
		f.say(s.name, 0, "")
		msg, err := f.retried(ctx, s.name, s.do)
		if err != nil {
			if f.job != nil {
				// The job's context is this flow's; after an error in between, nothing else would wait for it.
				_ = f.job.Wait()
			}
			return fmt.Errorf("%s: %w", s.name, err)
		}
		f.say(s.name, 1, msg)
	}
	return nil
}

type stage struct {
	name string
	do   func(context.Context) (string, error)
}

// stages returns the remaining stages: all, or the last two if an earlier attempt already registered the version.
func (f *flow) stages() []stage {
	last := []stage{{"register", f.register}, {"ladder", f.ladder}}
	if f.resumed {
		return last
	}
	if f.cfg.Batch.Cluster != nil {
		return append(f.batchStages(), last...)
	}
	return append([]stage{
		{"extract", f.extract}, {"submit", f.submit}, {"wait", f.wait}, {"fetch", f.fetch},
		{"evaluate", f.evaluate}, {"log", f.record},
	}, last...)
}

// retried repeats a stage after each delay as long as it fails with a transient error.
func (f *flow) retried(ctx context.Context, stage string, do func(context.Context) (string, error)) (string, error) {
	for attempt := 0; ; attempt++ {
		one, span := service.StartChild(ctx, "stage "+stage)
		msg, err := do(one)
		service.EndSpan(span, err)
		if err == nil || ctx.Err() != nil || attempt >= len(f.cfg.RetryDelays) || !isTransient(err) {
			if err != nil && ctx.Err() != nil {
				err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
			}
			return msg, err
		}
		delay := f.cfg.RetryDelays[attempt]
		f.log.WarnContext(ctx, "stage failed, trying again", slog.String("stage", stage), slog.Duration("in", delay), slog.Any("err", err))
		f.say(stage, 0, fmt.Sprintf("trying again in %s: %v", delay, err))
		if ended := pause(ctx, delay); ended != nil {
			return "", fmt.Errorf("%w: %w", ended, err)
		}
	}
}

func isTransient(err error) bool {
	return errors.Is(err, tracker.ErrUnavailable) || errors.Is(err, controlplane.ErrUnavailable) || errors.Is(err, source.ErrUnavailable)
}
