package app

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/trainer/internal/worker"
)

// checkWorker tells all that is wrong with the settings that only a worker has.
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

// workerState is the folder of the worker's journal. It is never in the system's temporary folder, where anybody may
// make it first.
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

// NewWorker returns a worker whose trainings are processes of command with the environment environ.
func NewWorker(cfg Config, command, environ []string, log *slog.Logger) (*worker.Worker, error) {
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
	return worker.New(worker.Config{
		Client: client, Name: cmp.Or(cfg.WorkerName, host), Limit: cfg.Concurrency,
		StateDir:     state,
		ModelRepoDir: cfg.ModelRepoDir, Env: cfg.Env, Command: command, Environ: environ, Log: log,
		Poll:      time.Duration(cfg.WorkerPollSeconds) * time.Second,
		Heartbeat: time.Duration(cfg.WorkerHeartbeatSeconds) * time.Second,
		LostAfter: time.Duration(cfg.WorkerLostSeconds) * time.Second,
	})
}
