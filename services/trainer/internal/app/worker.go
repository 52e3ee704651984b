package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/trainer/internal/worker"
)

// checkWorker reports all faults of the settings that only a worker has.
func (c *Config) checkWorker() error {
	var faults []error
	if c.OrchestratorURL == "" {
		faults = append(faults, errors.New("PREFECT_API_URL is not set"))
	}
	if c.Concurrency < 1 {
		faults = append(faults, errors.New("PLATFORM_TRAINING_CONCURRENCY must be at least 1"))
	}
	if c.WorkerPollSeconds < 1 {
		faults = append(faults, errors.New("WORKER_POLL_SECONDS must be at least 1"))
	}
	if c.WorkerHeartbeatSeconds < 1 {
		faults = append(faults, errors.New("WORKER_HEARTBEAT_SECONDS must be at least 1"))
	}
	if c.WorkerLostSeconds < 3*c.WorkerHeartbeatSeconds {
		faults = append(faults, errors.New("WORKER_LOST_SECONDS must be at least three times WORKER_HEARTBEAT_SECONDS"))
	}
	return errors.Join(faults...)
}

// workerState is the folder of the worker's journal. It is never in the system's temporary folder, where any user could
// create it first.
func (c *Config) workerState() (string, error) {
	switch {
	case c.WorkerStateDir != "":
		return c.WorkerStateDir, nil
	case c.DataCacheDir != "":
		return filepath.Join(c.DataCacheDir, "platform-worker"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("WORKER_STATE_DIR is not set, and this user has no home: %w", err)
	}
	return filepath.Join(home, ".local", "state", "platform-worker"), nil
}

// Worker carries out flow runs, and answers probes meanwhile.
type Worker struct {
	worker *worker.Worker
	probes *service.Server // nil without WORKER_ADDR
}

// NewWorker returns a worker whose trainings are processes of command with the environment environ.
func NewWorker(cfg Config, command, environ []string, log *slog.Logger) (*Worker, error) {
	if err := errors.Join(cfg.Validate(), cfg.checkWorker()); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("WORKER_NAME is not set, and the host has no name: %w", err)
	}
	state, err := cfg.workerState()
	if err != nil {
		return nil, err
	}
	client := orchestrator.New(cfg.OrchestratorURL, service.HTTPClient(orchestrator.DefaultTimeout), orchestrator.Key(cfg.OrchestratorKey.Reveal()))
	w, err := worker.New(worker.Config{
		Client: client, Name: cmp.Or(cfg.WorkerName, host), Limit: cfg.Concurrency,
		StateDir:     state,
		ModelRepoDir: cfg.ModelRepoDir, Env: cfg.Env, Command: command, Environ: environ, Log: log,
		Poll:      time.Duration(cfg.WorkerPollSeconds) * time.Second,
		Heartbeat: time.Duration(cfg.WorkerHeartbeatSeconds) * time.Second,
		LostAfter: time.Duration(cfg.WorkerLostSeconds) * time.Second,
	})
	if err != nil || cfg.WorkerAddr == "" {
		return &Worker{worker: w}, err
	}
	probes := service.New(service.Options{Name: "worker", Addr: cfg.WorkerAddr, Log: log})
	probes.CheckLocal("orchestrator", func() service.Check {
		if err := w.Heard(); err != nil {
			return service.Check{Status: service.Fail, Detail: err.Error()}
		}
		return service.Check{Status: service.OK}
	})
	return &Worker{w, probes}, nil
}

// Run works until ctx ends. The probes answer until the last run was handed back.
func (w *Worker) Run(ctx context.Context) error {
	if w.probes == nil {
		return w.worker.Run(ctx)
	}
	probing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.probes.Run(probing) })
	g.Go(func() error {
		defer stop()
		return w.worker.Run(ctx)
	})
	return g.Wait()
}
