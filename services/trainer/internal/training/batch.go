package training

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/trainer/internal/controlplane"
	"github.com/mlp-platform/platform/services/trainer/internal/scheduler"
)

// Batch configures trainings as jobs of a cluster; the zero value runs them in this process.
type Batch struct {
	// Mode is the value of the tag hpc_scheduler.
	Mode    string
	Cluster scheduler.Cluster
	// Dir is a folder that this process and the cluster's nodes share, by the same path; so is the model repository.
	Dir string
	// Program is the trainer on the nodes.
	Program string
	// Poll is the poll interval for a job.
	Poll time.Duration
}

// exported are the variables that a job gets in addition to HOME: none of them is a secret.
var exported = []string{"PATH", "TMPDIR", "LANG", "ORT_LIB", "LD_LIBRARY_PATH"}

// exports are the variables with this process's values: over SSH a bare name would take the login shell's. HOME alone is
// the one of the user there.
func exports() ([]string, error) {
	all := []string{"HOME"}
	for _, name := range exported {
		v, ok := os.LookupEnv(name)
		if !ok {
			continue
		}
		if strings.ContainsAny(v, ",\n") {
			return nil, fmt.Errorf("%s is %q; sbatch takes no value with a comma or a line break", name, v)
		}
		all = append(all, name+"="+v)
	}
	return all, nil
}

// jobName is the name of the job of the training with that key: no other job has it.
func (f *flow) jobName(key string) string { return "train-" + f.model.TrackerName() + "-" + key }

// folderOf is the folder of the job of the training with that key, by which the next attempt finds it.
func (f *flow) folderOf(key string) string { return filepath.Join(f.cfg.Batch.Dir, "job-"+key) }

// checkBatch refuses what a node cannot do: it gets no credentials and none of this machine's commands.
func (f *flow) checkBatch() error {
	if f.model.Estimator.Kind == modelrepo.EstimatorCommand {
		return fmt.Errorf("%w: %s: estimators of kind %s do not run as jobs of %s; train it with PLATFORM_SCHEDULER_MODE=%s",
			ErrRequest, f.model.Name, modelrepo.EstimatorCommand, f.cfg.Batch.Mode, scheduler.Mock)
	}
	if f.backend != modelrepo.BackendLocal && !f.Dummy {
		return fmt.Errorf("%w: %s: a job of %s reads data by the backend %s alone, not %s; train it with PLATFORM_SCHEDULER_MODE=%s",
			ErrRequest, f.model.Name, f.cfg.Batch.Mode, modelrepo.BackendLocal, f.backend, scheduler.Mock)
	}
	return nil
}

// Files of a job's folder.
const (
	requestFile = "request.json"
	outcomeFile = "outcome.json"
	outputFile  = "output.log"
)

// jobRequest is the input of a job. It names neither the tracker nor the control plane: the job cannot reach them, and
// needs no credential.
type jobRequest struct {
	Request       Request `json:"request"`
	ModelRepoDir  string  `json:"modelrepo_dir"`
	Env           string  `json:"env"`
	DefinitionSum string  `json:"definition_digest"`
}

// outcome is the result of the learning part, which the other stages need.
type outcome struct {
	// Of the data.
	Version string `json:"dataset_version"`
	Backend string `json:"dataset_backend"`
	URI     string `json:"dataset_uri"`
	Origin  string `json:"data_origin"`
	// TrainingRows were fitted; Hyperparameters are those chosen.
	TrainingRows    int               `json:"training_rows"`
	Hyperparameters map[string]string `json:"hyperparameters"`
	Digest          string            `json:"artifact_digest"`
	Report          Report            `json:"report"`
}

func (f *flow) newOutcome() *outcome {
	o := &outcome{
		Version: f.rows.Version, Backend: f.rows.Backend, URI: f.rows.URI, Origin: f.rows.Origin,
		TrainingRows: len(f.fitted.Parts.Fit()), Hyperparameters: map[string]string{}, Digest: f.result.Digest, Report: f.report(),
	}
	for name, v := range f.fitted.Candidates[f.fitted.Chosen].Hyperparameters {
		o.Hyperparameters[name] = fmt.Sprint(v)
	}
	return o
}

// batchStages replace the stages up to evaluate when a cluster does them.
func (f *flow) batchStages() []stage {
	return []stage{
		{"extract", func(context.Context) (string, error) { return "the job reads the rows", nil }},
		{"submit", f.submitBatch}, {"wait", f.waitBatch}, {"fetch", f.fetchBatch}, {"evaluate", f.evaluate}, {"log", f.record},
	}
}

func (f *flow) submitBatch(ctx context.Context) (string, error) {
	b := f.cfg.Batch
	if err := f.checkBatch(); err != nil {
		return "", err
	}
	env, err := exports()
	if err != nil {
		return "", err
	}
	dir := f.folderOf(f.key)
	if err := os.Mkdir(dir, 0o700); err != nil && f.jobDir != dir { // an earlier try of this flow may have made it
		return "", fmt.Errorf("the folder of the job: %w", err)
	}
	f.jobDir = dir
	repo, err := filepath.Abs(f.cfg.ModelRepoDir)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(jobRequest{f.Request, repo, f.cfg.Env, f.origin.Digest})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, requestFile), text, 0o600); err != nil {
		return "", fmt.Errorf("the folder of the job: %w", err)
	}
	f.jobID, err = b.Cluster.Submit(ctx, scheduler.Spec{
		Name: f.jobName(f.key), Resources: f.model.Resources, Output: filepath.Join(dir, outputFile),
		Command: []string{b.Program, "job", dir}, Export: env,
	})
	if err != nil {
		if err := f.findSubmitted(ctx, err); err != nil {
			return "", err
		}
	}
	// At once: should this process die, the next attempt finds the job by it, and cancels it.
	if err := f.tracker.LogBatch(ctx, f.tracked.ID, nil, nil, map[string]string{"hpc_job_id": f.jobID, b.Mode + "_job_id": f.jobID}); err != nil {
		return "", errors.Join(err, b.Cluster.Cancel(context.WithoutCancel(ctx), f.jobID))
	}
	return f.jobID, nil
}

// findSubmitted checks whether the scheduler accepted the job although its answer was lost. The training continues with
// the job, or cancels it if the training itself was stopped.
func (f *flow) findSubmitted(ctx context.Context, cause error) error {
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), ClosingTimeout)
	defer stop()
	ids, err := f.cfg.Batch.Cluster.Find(last, f.jobName(f.key))
	if err != nil || len(ids) == 0 {
		return errors.Join(cause, err)
	}
	f.log.WarnContext(ctx, "the job was submitted, though its answer was lost", slog.String("job", ids[0]), slog.Any("err", cause))
	if ctx.Err() != nil {
		return errors.Join(cause, f.cfg.Batch.Cluster.Cancel(last, ids[0]))
	}
	f.jobID = ids[0]
	return nil
}

// giveUpJob cancels a job that may still run. While it may, its folder stays.
func (f *flow) giveUpJob(ctx context.Context) error {
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), ClosingTimeout)
	defer stop()
	err := f.cfg.Batch.Cluster.Cancel(last, f.jobID)
	if err != nil {
		f.log.WarnContext(ctx, "a job may still run; cancel it by hand, then remove its folder", slog.String("job", f.jobID), slog.String("folder", f.jobDir), slog.Any("err", err))
		f.jobDir = ""
	}
	return err
}

func (f *flow) waitBatch(ctx context.Context) (string, error) {
	b := f.cfg.Batch
	st, err := scheduler.Wait(ctx, b.Cluster, f.jobID, b.Poll, func(st scheduler.State) {
		f.say("wait", 0, "job "+f.jobID+" is "+string(st))
		f.reportJob(ctx, st)
	})
	if err != nil {
		if !st.Ended() {
			err = errors.Join(err, f.giveUpJob(ctx))
		}
		return "", fmt.Errorf("job %s: %w", f.jobID, err)
	}
	if st != scheduler.Completed {
		return "", fmt.Errorf("job %s of %s ended %s: %s", f.jobID, b.Mode, st, f.lastWords())
	}
	return "job " + f.jobID + " completed", nil
}

// reportJob reports the job's state to the control plane. A failure to report does not fail the training.
func (f *flow) reportJob(ctx context.Context, st scheduler.State) {
	if f.control == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ClosingTimeout)
	defer cancel()
	if err := f.control.Job(ctx, controlplane.Job{
		Scheduler: f.cfg.Batch.Mode, ID: f.jobID, State: string(st), Model: f.result.Model, Dataset: f.use.Name,
		Resources: f.model.Resources, FlowRunID: f.FlowRunID, RunID: f.result.RunID,
	}); err != nil {
		f.log.WarnContext(ctx, "the job's state was not reported to the control plane", slog.String("job", f.jobID), slog.String("state", string(st)), slog.Any("err", err))
	}
}

// lastWords returns the last line of the job's output.
func (f *flow) lastWords() string {
	const most = 4 << 10
	b, err := os.ReadFile(filepath.Join(f.jobDir, outputFile))
	if err != nil {
		return "it left no output"
	}
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(b[max(0, len(b)-most):]), "")), "\n")
	return lines[len(lines)-1]
}

// fetchBatch takes over the job's files. They are digested here, so that the registered files are the ones read.
func (f *flow) fetchBatch(context.Context) (string, error) {
	text, err := os.ReadFile(filepath.Join(f.jobDir, outcomeFile))
	if err != nil {
		return "", fmt.Errorf("job %s completed without a result: %w; it said: %s", f.jobID, err, f.lastWords())
	}
	f.outcome = &outcome{}
	if err := json.Unmarshal(text, f.outcome); err != nil {
		return "", fmt.Errorf("the result of job %s: %w", f.jobID, err)
	}
	if f.files, err = hashFiles(filepath.Join(f.jobDir, modelFolder)); err != nil {
		return "", fmt.Errorf("the model of job %s: %w", f.jobID, err)
	}
	if f.result.Digest = tracker.Digest(f.files); f.result.Digest != f.outcome.Digest {
		return "", fmt.Errorf("the model of job %s has the digest %s; the job says %s", f.jobID, f.result.Digest, f.outcome.Digest)
	}
	f.dir = f.jobDir
	return fmt.Sprintf("%d files of job %s", len(f.files), f.jobID), nil
}

// hashFiles returns the SHA-256 of each file in dir, in hex, by name.
func hashFiles(dir string) (map[string]string, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, e := range list {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(b)
		files[e.Name()] = hex.EncodeToString(sum[:])
	}
	return files, nil
}

// account records the job's resources, as tags of the version and at the control plane. A scheduler's accounting trails
// the job by a moment. A version without it is still valid.
func (f *flow) account(ctx context.Context) error {
	b := f.cfg.Batch
	var used scheduler.Usage
	var err error
	for attempt := 0; attempt < accountTries; attempt++ {
		if used, err = b.Cluster.Usage(ctx, f.jobID, f.model.Resources.GPUs); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(b.Poll):
		}
	}
	if err != nil {
		f.log.WarnContext(ctx, "no accounting of the job; its cost is not recorded", slog.String("job", f.jobID), slog.Any("err", err))
		return nil
	}
	cost := used.GPUHours * f.cfg.GPUCostPerHour
	for key, value := range map[string]string{"gpu_hours": fmt.Sprintf("%.6f", used.GPUHours), "cpu_hours": fmt.Sprintf("%.6f", used.CPUHours), "cost_usd": fmt.Sprintf("%.6f", cost)} {
		if err := f.tracker.SetModelVersionTag(ctx, f.model.TrackerName(), f.version, key, value); err != nil {
			return err
		}
	}
	if f.control == nil {
		return nil
	}
	_, err = f.retried(ctx, "register", func(ctx context.Context) (string, error) {
		return "", f.control.Cost(ctx, controlplane.Cost{
			Scheduler: b.Mode, JobID: f.jobID, Model: f.result.Model, Version: f.version, RunID: f.result.RunID,
			GPUHours: used.GPUHours, CPUHours: used.CPUHours,
		})
	})
	if err != nil && ctx.Err() == nil {
		f.log.WarnContext(ctx, "the control plane did not take the cost of the job", slog.String("job", f.jobID), slog.Any("err", err))
		return nil
	}
	return err
}

const accountTries = 5

// RunJob does the learning part of a training, on a node of the cluster, by the request in dir, and leaves the model
// and the outcome there. It may run again after a requeue.
func RunJob(ctx context.Context, dir string, log *slog.Logger) error {
	text, err := os.ReadFile(filepath.Join(dir, requestFile))
	if err != nil {
		return fmt.Errorf("the job's request: %w", err)
	}
	var in jobRequest
	if err := json.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("the job's request: %w", err)
	}
	t := &Trainer{cfg: Config{ModelRepoDir: in.ModelRepoDir, Env: in.Env, Log: log}, log: log}
	p, err := t.plan(in.Request)
	if err != nil {
		return err
	}
	if p.origin.Digest != in.DefinitionSum {
		return errors.New("the definition of the model has changed since the job was submitted")
	}
	f := &flow{Trainer: t, plan: p, progress: func(stage string, done float64, msg string) {
		if msg != "" {
			log.InfoContext(ctx, msg, slog.String("stage", stage), slog.Float64("done", done))
		}
	}, reached: map[string]float64{}, result: Result{Model: p.model.ID(), Dataset: p.use.Name}, dir: dir}
	defer f.closeGraph()
	if err := os.RemoveAll(filepath.Join(dir, modelFolder)); err != nil {
		return err
	}
	if err := f.learn(ctx); err != nil {
		return err
	}
	text, err = json.Marshal(f.outcome)
	if err != nil {
		return err
	}
	tmp := filepath.Join(dir, outcomeFile+".new")
	if err := os.WriteFile(tmp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(dir, outcomeFile))
}
