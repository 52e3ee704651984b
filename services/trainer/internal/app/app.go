// Package app wires the trainer from its configuration.
package app

import (
	"cmp"
	"log/slog"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/trainer/internal/controlplane"
	"github.com/mlp-platform/platform/services/trainer/internal/training"
)

// New checks the configuration and returns a trainer.
func New(cfg Config, log *slog.Logger) (*training.Trainer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := cfg.MakeCacheDir(); err != nil {
		return nil, err
	}
	delays := cfg.RetryDelays
	if delays == nil {
		delays = DefaultRetryDelays
	}
	parts := training.Config{
		Tracker: tracker.New(cfg.TrackingURI, service.HTTPClient(tracker.DefaultTimeout), tracker.Token(cfg.TrackingToken.Reveal())), Log: log,
		ModelRepoDir: cfg.ModelRepoDir, Env: cfg.Env, CacheDir: cfg.DataCacheDir, RetryDelays: delays, Remote: cfg.Sources(), Commands: cfg.commands(log),
		GPUCostPerHour: cmp.Or(cfg.GPUCostPerHour, DefaultGPUCostPerHour),
	}
	var err error
	if parts.Batch, err = cfg.batch(); err != nil {
		return nil, err
	}
	if cfg.ControlPlaneURL != "" {
		control, err := controlplane.New(cfg.ControlPlaneURL, cfg.ControlPlaneToken)
		if err != nil {
			return nil, err
		}
		parts.Control = control
	}
	return training.New(parts)
}
