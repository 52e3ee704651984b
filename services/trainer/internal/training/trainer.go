// Package training runs one training from its rows to a registered version on its rung.
package training

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/trainer/internal/controlplane"
	"github.com/mlp-platform/platform/services/trainer/internal/external"
	"github.com/mlp-platform/platform/services/trainer/internal/source"
)

// Request is the training to run, and who requested it.
type Request struct {
	// Model and Dataset in any case; an empty Dataset is the model's first.
	Model, Dataset string
	// Dummy trains on 500 generated rows; the version reaches at most Staging.
	Dummy bool
	// Backend overrides where the data is read from.
	Backend string
	// Parameters may hold "seed" and "hyperparameters", which are laid over those of model.yaml.
	Parameters map[string]any
	// Recorded as tags of the run; all optional.
	FlowRunID, CommitSHA, Tenant, RequestedBy, ApprovalID, RequestID string
	// Traceparent is the W3C trace context that the training belongs to; optional.
	Traceparent string
}

// Result of a training.
type Result struct {
	RunID   string `json:"run_id"`
	Model   string `json:"model"`
	Dataset string `json:"dataset"`
	Version string `json:"version"`
	// Metrics on test, with val_ on validation; BaselineMetrics have the prefixes baseline_ and baseline_running_.
	Metrics         map[string]float64 `json:"metrics"`
	BaselineMetrics map[string]float64 `json:"baseline_metrics"`
	// Rungs as the control plane judged them, or as this process did if there is none.
	Rungs []modelrepo.Verdict `json:"rungs"`
	// Aliases the control plane set, and the promotion it opened.
	Aliases     []string `json:"aliases"`
	PromotionID string   `json:"promotion_id,omitempty"`
	Digest      string   `json:"artifact_digest"`
	Report      Report   `json:"-"`
}

// Stages of a training, in order.
var Stages = []string{"extract", "submit", "wait", "fetch", "evaluate", "log", "register", "ladder"}

// Progress receives how far a stage is, from 0 to 1 and never back. Calls do not overlap, but come from more than one
// goroutine; training waits for each.
type Progress func(stage string, fraction float64, msg string)

// Trainer trains models. It is safe for concurrent use; each training reads the model repository again.
type Trainer struct {
	cfg     Config
	log     *slog.Logger
	tracker *tracker.Client
	control *controlplane.Client // nil without control plane
}

// Config configures trainings; all but Control, Env, CacheDir, Remote and RetryDelays is required.
type Config struct {
	Tracker *tracker.Client
	Control *controlplane.Client // nil: no aliases are moved, and the ladder is judged here
	Log     *slog.Logger
	// ModelRepoDir is the folder of the model repository, Env the registry in force; empty is base alone.
	ModelRepoDir, Env string
	// CacheDir is where models are kept while they are checked; empty is the system's temporary folder.
	CacheDir string
	// Remote fetches data that is not in the repository; nil: nothing does.
	Remote *source.Sources
	// Commands that estimators of kind command may run.
	Commands external.Config
	// RetryDelays are the pauses before each further attempt; none means one attempt.
	RetryDelays []time.Duration
	// GPUCostPerHour in USD prices the synthetic GPU hours of mock jobs.
	GPUCostPerHour float64
	// Batch sends the learning part to a cluster; the zero value keeps it in this process.
	Batch Batch
}

// New refuses a configuration without a required part.
func New(cfg Config) (*Trainer, error) {
	if cfg.Tracker == nil || cfg.Log == nil || cfg.ModelRepoDir == "" || cfg.GPUCostPerHour <= 0 {
		return nil, errors.New("training: a tracker, a log, the model repository and the price of a GPU hour are required")
	}
	return &Trainer{cfg: cfg, log: cfg.Log, tracker: cfg.Tracker, control: cfg.Control}, nil
}

// ErrRequest means that the request itself cannot be served; trying again changes nothing.
var ErrRequest = errors.New("cannot be trained")

// ErrUnknownModel means that no definition of the model has reached the control plane; nothing was recorded.
var ErrUnknownModel = controlplane.ErrUnknownModel

// plan is a request with all it names looked up.
type plan struct {
	Request
	repo    *modelrepo.Repo
	model   *modelrepo.Model
	use     *modelrepo.ModelDataset
	set     *modelrepo.Dataset
	origin  modelrepo.Provenance
	backend string
}

func (t *Trainer) plan(req Request) (*plan, error) {
	p, err := lookUp(t.cfg.ModelRepoDir, t.cfg.Env, req)
	if err != nil {
		return nil, err
	}
	if p.origin, err = modelrepo.ReadProvenance(t.cfg.ModelRepoDir, p.model.File, p.set.File); err != nil {
		return nil, err
	}
	if p.model.Estimator.Kind == modelrepo.EstimatorCommand {
		if err := t.cfg.Commands.Check(p.model.Estimator.Command); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrRequest, p.model.Name, err)
		}
	}
	// Those of the file are sound; the request's may not be.
	if err := p.model.Estimator.CheckHyperparameters(p.model.Type); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRequest, p.model.Name, err)
	}
	return p, nil
}

func lookUp(dir, env string, req Request) (*plan, error) {
	repo, err := modelrepo.Open(dir, env)
	if err != nil {
		return nil, err
	}
	m, ok := repo.Model(req.Model)
	if !ok {
		return nil, fmt.Errorf("%w: unknown model %q; %s", ErrRequest, req.Model, listKnownModels(repo, req.Model))
	}
	use, ok := m.Dataset(req.Dataset)
	if !ok {
		return nil, fmt.Errorf("%w: %s has no data set %q; it has %s", ErrRequest, m.Name, req.Dataset, strings.Join(m.DatasetNames(), ", "))
	}
	p := &plan{Request: req, repo: repo, model: m, use: use, set: repo.Datasets[use.Name], backend: m.DataBackend(use)}
	if req.Backend != "" {
		p.backend = req.Backend
	}
	if p.Tenant == "" {
		p.Tenant = "default"
	}
	return p, p.override()
}

// listKnownModels names the models there are, and the faults that may have kept one out.
func listKnownModels(repo *modelrepo.Repo, name string) string {
	msg := "the repository has " + strings.Join(repo.Names(), ", ")
	for _, f := range repo.Faults {
		if strings.Contains(strings.ToUpper(f.File), "/"+strings.ToUpper(name)+"/") {
			return f.Error()
		}
	}
	if n := len(repo.Faults); n > 0 {
		msg += fmt.Sprintf(" and %d faults, the first: %s", n, repo.Faults[0].Error())
	}
	return msg
}

// override lays the request's parameters over the model's.
func (p *plan) override() error {
	for name, v := range p.Parameters {
		switch name {
		case "seed":
			f, ok := v.(float64)
			if i, isInt := v.(int); isInt {
				f, ok = float64(i), true
			}
			if !ok || f != float64(int64(f)) {
				return fmt.Errorf("%w: parameter seed is %v, want a whole number", ErrRequest, v)
			}
			p.model.Estimator.Seed = int64(f)
		case "hyperparameters":
			h, ok := v.(map[string]any)
			if !ok {
				return fmt.Errorf("%w: parameter hyperparameters must be an object", ErrRequest)
			}
			if p.model.Estimator.Hyperparameters == nil {
				p.model.Estimator.Hyperparameters = map[string]any{}
			}
			for k, v := range h {
				p.model.Estimator.Hyperparameters[k] = v
			}
		default:
			return fmt.Errorf("%w: unknown parameter %q; known are seed and hyperparameters", ErrRequest, name)
		}
	}
	return nil
}

// Train runs the training flow. When ctx ends, the tracker's run ends KILLED; when a stage fails, FAILED with the
// tag failure_reason.
func (t *Trainer) Train(ctx context.Context, req Request, progress Progress) (_ Result, err error) {
	if progress == nil {
		progress = func(string, float64, string) {}
	}
	if req.RequestID != "" || req.Traceparent != "" {
		ctx = service.WithRequestID(ctx, req.RequestID)
	}
	ctx, span := service.ContinueTrace(ctx, req.Traceparent, "train")
	defer func() { service.EndSpan(span, err) }()
	p, err := t.plan(req)
	if err != nil {
		return Result{Model: req.Model, Dataset: req.Dataset}, err
	}
	f := &flow{Trainer: t, plan: p, progress: progress, reached: map[string]float64{}, result: Result{Model: p.model.ID(), Dataset: p.use.Name, Aliases: []string{}}}
	if err = f.admit(ctx); err == nil {
		err = f.run(ctx)
	}
	return f.result, err
}

// Evaluate fits and judges a model in this process as Train does, and records nothing: neither the tracker nor the
// control plane is asked.
func (t *Trainer) Evaluate(ctx context.Context, req Request, progress Progress) (Report, error) {
	if progress == nil {
		progress = func(string, float64, string) {}
	}
	p, err := t.plan(req)
	if err != nil {
		return Report{}, err
	}
	f := &flow{Trainer: t, plan: p, progress: progress, reached: map[string]float64{}, result: Result{Model: p.model.ID(), Dataset: p.use.Name}}
	if f.dir, err = os.MkdirTemp(t.cfg.CacheDir, "evaluate-"); err != nil {
		return Report{}, fmt.Errorf("scratch folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(f.dir) }()
	defer f.closeGraph()
	if err := f.learn(ctx); err != nil {
		return Report{}, err
	}
	return f.result.Report, nil
}
