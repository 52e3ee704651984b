package training

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/trainer/internal/scheduler"
)

// cluster does a job in this process as it is submitted, and fails where a real one cannot be made to: e2e/slurm trains
// on a real one.
type cluster struct {
	loseAnswer, lose, noCancel bool
	usageErr                   error

	mu        sync.Mutex
	name      string // of the last job
	dir       string
	submitted int
	cancelled []string
	gpus      int
}

func (c *cluster) Submit(ctx context.Context, j scheduler.Spec) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.submitted++
	c.name, c.dir = j.Name, j.Command[2]
	if !c.lose {
		if err := RunJob(ctx, c.dir, slog.New(slog.DiscardHandler)); err != nil {
			return "", err
		}
	}
	if c.loseAnswer {
		return "", errors.New("sbatch: context deadline exceeded")
	}
	return "17", nil
}

func (c *cluster) State(context.Context, string) (scheduler.State, error) {
	if c.lose {
		return scheduler.Unknown, nil
	}
	return scheduler.Completed, nil
}

func (c *cluster) Cancel(_ context.Context, id string) error {
	if c.noCancel {
		return errors.New("scancel: unable to contact the controller")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancelled = append(c.cancelled, id)
	return nil
}

func (c *cluster) Find(_ context.Context, name string) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if name == c.name {
		return []string{"17"}, nil
	}
	return nil, nil
}

func (c *cluster) Usage(_ context.Context, _ string, gpus int) (scheduler.Usage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gpus = gpus
	return scheduler.Usage{GPUHours: 1, CPUHours: 2}, c.usageErr
}

func newBatch(t *testing.T, c *cluster) (*remote, *Trainer) {
	t.Helper()
	r, tr := newRemote(t)
	tr.cfg.Batch = Batch{Mode: "slurm", Cluster: c, Dir: t.TempDir(), Program: "trainer", Poll: time.Millisecond}
	return r, tr
}

// sbatch did not answer in time, but the job was accepted: the training continues with it.
func TestJobWhoseNumberWasLost(t *testing.T) {
	t.Parallel()
	c := &cluster{loseAnswer: true}
	r, tr := newBatch(t, c)
	res, err := tr.Train(t.Context(), dummy(), nil)
	if err != nil || res.Version != "3" || c.submitted != 1 || r.tags["hpc_job_id"] != "17" {
		t.Errorf("%+v, %v, %d jobs, tags %v; want a version of job 17, submitted once", res, err, c.submitted, r.tags)
	}
	if want := "train-jpcp-" + r.tags["training_id"]; c.name != want {
		t.Errorf("the job's name is %q; want %q", c.name, want)
	}
}

// The training was stopped meanwhile: the orphaned job is cancelled.
func TestStoppedWhileSubmitting(t *testing.T) {
	t.Parallel()
	c := &cluster{loseAnswer: true, lose: true}
	_, tr := newBatch(t, c)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	_, err := tr.Train(ctx, dummy(), func(stage string, _ float64, _ string) {
		if stage == "submit" {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) || !slices.Equal(c.cancelled, []string{"17"}) {
		t.Errorf("%v, cancelled %v; want job 17 cancelled", err, c.cancelled)
	}
}

// A job that the scheduler lost may run on: it is cancelled, and if that fails its folder stays.
func TestLostJobIsCancelled(t *testing.T) {
	t.Parallel()
	for _, noCancel := range []bool{false, true} {
		c := &cluster{lose: true, noCancel: noCancel}
		r, tr := newBatch(t, c)
		_, err := tr.Train(t.Context(), dummy(), nil)
		if !errors.Is(err, scheduler.ErrLost) || r.status != "FAILED" || (len(c.cancelled) == 1) == noCancel {
			t.Errorf("%v, run %s, cancelled %v; want a lost job, cancelled %v", err, r.status, c.cancelled, !noCancel)
		}
		if _, err := os.Stat(c.dir); (err == nil) != noCancel {
			t.Errorf("the job's folder: %v; want it kept %v", err, noCancel)
		}
	}
}

// The process died between the submission and storing the job's number.
func TestJobOfADeadProcessIsFoundByItsName(t *testing.T) {
	t.Parallel()
	c := &cluster{}
	r, tr := newBatch(t, c)
	r.run, r.tags["training_id"], r.tags["hpc_scheduler"] = object{}, "k1", "slurm" // the result of runs/search
	r.findBy("prefect_flow_run_id")
	c.name = "train-jpcp-k1"
	if res, err := tr.Train(t.Context(), dummy(), nil); err != nil || res.Version != "3" {
		t.Errorf("%+v, %v; want a version", res, err)
	}
	if !slices.Equal(c.cancelled, []string{"17"}) {
		t.Errorf("cancelled %v; want job 17", c.cancelled)
	}
}

func TestWhatNodesCannotDoIsRefused(t *testing.T) {
	t.Parallel()
	c := &cluster{}
	_, tr := newBatch(t, c)
	req := dummy()
	req.Dummy, req.Backend = false, "object_store"
	if _, err := tr.Train(t.Context(), req, nil); !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), "object_store") || c.submitted != 0 {
		t.Errorf("%v, %d jobs; want a refusal that names the backend, and none", err, c.submitted)
	}
	p, err := tr.plan(dummy())
	if err != nil {
		t.Fatal(err)
	}
	p.model.Estimator.Kind = "command"
	if err := (&flow{Trainer: tr, plan: p}).checkBatch(); !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), "command") {
		t.Errorf("an estimator of kind command: %v; want a refusal", err)
	}
}

// A job's cost is useful, but not worth losing a version.
func TestRefusedCostFailsNoTraining(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*cluster{"refused": {}, "no accounting of GPUs": {usageErr: errors.New("no gres/gpu")}} {
		r, tr := newBatch(t, c)
		asked := 0
		r.before = func(path string, _ int) int {
			if path == "/costs" {
				asked++
				return http.StatusUnprocessableEntity
			}
			return 0
		}
		res, err := tr.Train(t.Context(), dummy(), nil)
		if err != nil || res.Version != "3" || r.status != "FINISHED" {
			t.Errorf("%s: %+v, %v, run %s; want version 3, FINISHED", name, res, err, r.status)
		}
		if want := c.usageErr == nil; (asked == 1) != want || (r.vtags["gpu_hours"] == "1.000000") != want || r.vtags["cost_synthetic"] != "" {
			t.Errorf("%s: asked %d times, tags %v; want the cost recorded %v", name, asked, r.vtags, want)
		}
	}
}

// A version of a Slurm job gets no synthetic cost from a process without Slurm.
func TestCostFollowsTheSchedulerOfTheRun(t *testing.T) {
	t.Parallel()
	r, tr := newRemote(t)
	r.run, r.version = object{}, object{"name": "jpcp"}
	r.tags["hpc_scheduler"], r.tags["hpc_job_id"] = "slurm", "17"
	r.findBy("prefect_flow_run_id")
	res, err := tr.Train(t.Context(), dummy(), nil)
	if err != nil || res.Version != "3" || len(r.vtags) != 0 {
		t.Errorf("%+v, %v, tags %v; want version 3 without a cost", res, err, r.vtags)
	}
}

// An attempt that died leaves its job's folder; the next one removes that folder, but none that a tag of another run
// names.
func TestFolderOfAnAttemptThatDied(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key, flowRun, model string
		goes                bool
	}{
		"its own":            {"0196f0a0-0000-7000-8000-000000000001", "f1", "jpcp", true},
		"another flow run's": {"0196f0a0-0000-7000-8000-000000000002", "f2", "jpcp", false},
		"another model's":    {"0196f0a0-0000-7000-8000-000000000003", "f1", "mack", false},
		"a path":             {"../job-x", "f1", "jpcp", false},
	} {
		_, tr := newBatch(t, &cluster{})
		f := &flow{Trainer: tr, plan: &plan{Request: dummy()}}
		f.cfg.Batch.Dir = filepath.Join(t.TempDir(), "jobs")
		dir := f.folderOf(c.key)
		text, err := json.Marshal(jobRequest{Request: Request{Model: c.model, FlowRunID: c.flowRun}})
		if err := errors.Join(err, os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, requestFile), text, 0o600)); err != nil {
			t.Fatal(err)
		}
		if got := f.ownsFolder(c.key); got != c.goes {
			t.Errorf("%s: owned %v, want %v", name, got, c.goes)
		}
	}
}
