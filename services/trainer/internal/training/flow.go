package training

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/trainer/internal/controlplane"
	"github.com/mlp-platform/platform/services/trainer/internal/dataset"
	"github.com/mlp-platform/platform/services/trainer/internal/export"
	"github.com/mlp-platform/platform/services/trainer/internal/fit"
	"github.com/mlp-platform/platform/services/trainer/internal/scheduler"
	"github.com/mlp-platform/platform/services/trainer/internal/source"
)

// framework is what made the model: the tag of that name.
const framework = "platform-trainer"

// modelFolder is the artifact folder of the model within the run.
const modelFolder = "model"

// ClosingTimeout limits the calls that end a run after its context has ended.
const ClosingTimeout = 20 * time.Second

// flow is one training under way.
type flow struct {
	*Trainer
	*plan
	result Result

	said     sync.Mutex // guards what follows
	progress Progress
	reached  map[string]float64

	tracked tracker.Run
	resumed bool // an earlier attempt at the same flow run registered the version; tracked is its run
	job     *scheduler.Job
	key     string // the tag training_id, made before anything else; a job of a cluster is found by it
	jobID   string // of job, or of the cluster's
	jobDir  string // what a job of a cluster reads and leaves
	rows    *dataset.Rows
	sample  *dataset.Sample
	fitted  *fit.Result
	dir     string // scratch folder with the model's files
	files   map[string]string
	outcome *outcome
	version string
}

// say tells of progress, one call at a time. A stage never goes back: the job may be under way before it is waited
// for, and a further attempt starts from where the last one came to.
func (f *flow) say(stage string, fraction float64, msg string) {
	f.said.Lock()
	defer f.said.Unlock()
	f.reached[stage] = max(f.reached[stage], fraction)
	f.progress(stage, f.reached[stage], msg)
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
				// The job's context is this flow's; after an error in between nobody else would wait for it.
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

// stages are what is left to do: all, or the last two if an earlier attempt registered the version already.
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

// retried does a stage again after each delay as long as it fails in a way that may pass by itself.
func (f *flow) retried(ctx context.Context, stage string, do func(context.Context) (string, error)) (string, error) {
	for attempt := 0; ; attempt++ {
		msg, err := do(ctx)
		if err == nil || ctx.Err() != nil || attempt >= len(f.cfg.RetryDelays) || !isTransient(err) {
			if err != nil && ctx.Err() != nil {
				err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
			}
			return msg, err
		}
		delay := f.cfg.RetryDelays[attempt]
		f.log.WarnContext(ctx, "stage failed, trying again", slog.String("stage", stage), slog.Duration("in", delay), slog.Any("err", err))
		f.say(stage, 0, fmt.Sprintf("trying again in %s: %v", delay, err))
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return "", fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

func isTransient(err error) bool {
	return errors.Is(err, tracker.ErrUnavailable) || errors.Is(err, controlplane.ErrUnavailable) || errors.Is(err, source.ErrUnavailable)
}

// open starts the tracker's run before anything can fail, so that every failure has a place to show.
func (f *flow) open(ctx context.Context) error {
	// An attempt whose answer was lost may have made the run; the key finds it.
	key := uuid.Must(uuid.NewV7()).String()
	f.key = key
	tags := map[string]string{
		"training_id": key, "prefect_flow_run_id": f.FlowRunID, "requested_by": f.RequestedBy, "approval_id": f.ApprovalID,
		"tenant": f.Tenant, "modelrepo_commit": f.origin.Commit, "definition_digest": f.origin.Digest,
		"dummy": fmt.Sprint(f.Dummy), "hpc_scheduler": cmp.Or(f.cfg.Batch.Mode, scheduler.Mock), "modelrepo_dirty": fmt.Sprint(f.origin.Dirty()),
	}
	if f.CommitSHA != f.origin.Commit {
		tags["requested_commit"] = f.CommitSHA
	}
	maps.DeleteFunc(tags, func(_, v string) bool { return v == "" })
	_, err := f.retried(ctx, "extract", func(ctx context.Context) (string, error) {
		exp, err := f.tracker.EnsureExperiment(ctx, strings.ToLower(f.model.Name+"_"+f.use.Name))
		if err != nil {
			return "", err
		}
		found, _, err := f.tracker.SearchRuns(ctx, tracker.RunQuery{ExperimentIDs: []string{exp.ID}, Filter: "tags.training_id = " + tracker.Quote(key)})
		if err != nil {
			return "", err
		}
		if len(found) > 0 {
			f.tracked = found[0]
			return "", nil
		}
		if err := f.resume(ctx, exp.ID); err != nil || f.resumed {
			return "", err
		}
		f.tracked, err = f.tracker.CreateRun(ctx, tracker.NewRun{ExperimentID: exp.ID, Name: f.model.Name + "_" + f.use.Name, Tags: tags})
		return "", err
	})
	if err != nil {
		return fmt.Errorf("start a run in the tracker: %w", err)
	}
	f.result.RunID = f.tracked.ID
	return nil
}

// close ends the tracker's run: FINISHED, KILLED or FAILED with a reason.
func (f *flow) close(ctx context.Context, err error) error {
	status, reason := tracker.Finished, ""
	switch {
	case err == nil:
	case ctx.Err() != nil:
		status, reason = tracker.Killed, "cancelled"
	default:
		status, reason = tracker.Failed, err.Error()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ClosingTimeout)
	defer cancel()
	ended := time.Now()
	var terr, uerr error
	for delay := f.firstDelay(); ; delay *= 2 {
		if reason != "" {
			// The tracker's bound of a tag's value is 5,000 bytes.
			terr = f.tracker.SetTag(ctx, f.tracked.ID, "failure_reason", strings.ToValidUTF8(reason[:min(len(reason), 1000)], ""))
		}
		uerr = f.tracker.UpdateRun(ctx, f.tracked.ID, status, ended)
		// Both calls may be made again, so that a tracker that is away for a moment does not undo a whole training.
		if !isTransient(terr) && !isTransient(uerr) {
			break
		}
		f.log.WarnContext(ctx, "the tracker's run is not ended yet, trying again", slog.Duration("in", delay), slog.Any("err", errors.Join(terr, uerr)))
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
			continue
		case <-ctx.Done():
			timer.Stop()
		}
		break
	}
	if terr != nil {
		f.log.ErrorContext(ctx, "failure reason not recorded", slog.Any("err", terr))
	}
	if uerr != nil {
		return errors.Join(err, fmt.Errorf("end the tracker's run as %s: %w", status, uerr))
	}
	return err
}

// firstDelay is the pause before a second attempt to end the run, doubled after each; several fit into ClosingTimeout.
func (f *flow) firstDelay() time.Duration {
	delay := time.Second
	for _, d := range f.cfg.RetryDelays {
		delay = min(delay, d)
	}
	return max(delay, time.Millisecond)
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

// closeGraph frees the graph of a command, whatever stage ended the flow.
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

func (f *flow) record(ctx context.Context) (string, error) {
	params := map[string]string{
		"model_name": f.result.Model, "dataset": f.use.Name, "estimator": f.model.Estimator.Kind,
		"framework": framework, "seed": fmt.Sprint(f.model.Estimator.Seed),
	}
	maps.Copy(params, f.outcome.Hyperparameters)
	tags := map[string]string{
		"hpc_job_id": f.jobID,
		// Older readers look for the job's id under this name whatever the scheduler.
		"slurm_job_id":    f.jobID,
		"dataset_version": f.outcome.Version, "dataset_backend": f.outcome.Backend, "dataset_uri": f.outcome.URI,
		"training_rows": fmt.Sprint(f.outcome.TrainingRows), "data_origin": f.outcome.Origin,
		"artifact_digest": f.result.Digest,
	}
	if err := f.tracker.LogBatch(ctx, f.tracked.ID, tracker.Metrics(f.metrics(), time.Now()), params, tags); err != nil {
		return "", err
	}
	for i, name := range slices.Sorted(maps.Keys(f.files)) {
		if err := f.upload(ctx, modelFolder+"/"+name); err != nil {
			return "", err
		}
		f.say("log", float64(i+1)/float64(len(f.files)+2), name)
	}
	report, err := json.MarshalIndent(f.result.Report, "", "  ")
	if err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	return "metrics, model and report stored", f.tracker.UploadArtifact(ctx, f.tracked.ID, "report.json", bytes.NewReader(append(report, '\n')))
}

func (f *flow) upload(ctx context.Context, name string) error {
	file, err := os.Open(filepath.Join(f.dir, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	defer file.Close()
	return f.tracker.UploadArtifact(ctx, f.tracked.ID, name, file)
}

func (f *flow) register(ctx context.Context) (string, error) {
	name := f.model.TrackerName()
	if _, err := f.tracker.EnsureRegisteredModel(ctx, name, nil); err != nil {
		return "", err
	}
	// A former attempt may have made the version without our learning of it.
	v, err := f.versionOf(ctx, f.tracked.ID)
	if err != nil {
		return "", err
	}
	if f.version = v.Version; f.version == "" {
		tags := map[string]string{
			"framework": framework, "artifact_digest": f.result.Digest, "modelrepo_commit": f.origin.Commit,
			"definition_digest": f.origin.Digest, "modelrepo_dirty": fmt.Sprint(f.origin.Dirty()), "data_origin": f.outcome.Origin, "dummy": fmt.Sprint(f.Dummy),
		}
		maps.DeleteFunc(tags, func(_, v string) bool { return v == "" })
		v, err := f.tracker.CreateModelVersion(ctx, name, f.tracked.ArtifactURI+"/"+modelFolder, f.tracked.ID, tags)
		if err != nil {
			return "", err
		}
		f.version = v.Version
	}
	f.result.Version = f.version
	// An earlier attempt may have trained elsewhere than this process would.
	if mode := f.scheduler(); mode != scheduler.Mock {
		if f.cfg.Batch.Cluster == nil || f.cfg.Batch.Mode != mode {
			f.log.WarnContext(ctx, "the scheduler of the earlier attempt is not configured here; the cost of its job is not recorded", slog.String("scheduler", mode), slog.String("job", f.jobID))
			return "version " + f.version, nil
		}
		return "version " + f.version, f.account(ctx)
	}
	hours := modelrepo.MockGPUHours(f.result.Model, f.version)
	for key, value := range map[string]string{
		"gpu_hours": fmt.Sprintf("%.2f", hours), "cost_usd": fmt.Sprintf("%.2f", math.Round(hours*f.cfg.GPUCostPerHour*100)/100),
		"cost_synthetic": "true",
	} {
		if err := f.tracker.SetModelVersionTag(ctx, name, f.version, key, value); err != nil {
			return "", err
		}
	}
	return "version " + f.version, nil
}

// scheduler is the mode in which the version was trained.
func (f *flow) scheduler() string {
	if f.resumed && f.tracked.Tags["hpc_scheduler"] != "" {
		return f.tracked.Tags["hpc_scheduler"]
	}
	return cmp.Or(f.cfg.Batch.Mode, scheduler.Mock)
}

// ladder lets the control plane move the aliases. Without one no alias moves: this process only reports what would happen.
func (f *flow) ladder(ctx context.Context) (string, error) {
	if f.control == nil {
		return "no control plane is configured: no alias was moved", nil
	}
	l, err := f.control.Version(ctx, f.result.Model, f.version, f.FlowRunID)
	if err != nil {
		return "", err
	}
	f.result.Rungs, f.result.PromotionID = l.Rungs, l.PromotionID
	f.result.Aliases = append(f.result.Aliases, l.AliasesSet...)
	msg := "aliases set: none"
	if len(l.AliasesSet) > 0 {
		msg = "aliases set: " + strings.Join(l.AliasesSet, ", ")
	}
	if l.PromotionID != "" {
		msg += "; promotion " + l.PromotionID
	}
	return msg, nil
}
