// Package standalone runs the whole platform in one process: embedded Postgres and NATS, stand-ins that implement the
// tracker's and the orchestrator's own protocols, and every service with its ordinary configuration. The services do
// not know that they share a process.
package standalone

import (
	"context"

	"github.com/mlp-platform/platform/services/standalone/internal/app"
)

// Config is the one-process platform's own configuration. Everything else in the environment reaches the
// services as it is, so any of their variables can be set for a run.
type Config = app.Config

// LoadConfig reads environ (os.Environ); the error lists every fault.
func LoadConfig(environ []string) (Config, error) { return app.LoadConfig(environ) }

// Run starts everything, seeds the samples on first start, and serves until ctx ends or a part fails.
func Run(ctx context.Context, cfg Config) error { return app.Run(ctx, cfg) }
