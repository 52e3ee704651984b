// Package inference serves predictions from the models that a registry's aliases point to, follows those
// aliases, and watches the predictions for drift. docs/inference.md describes it from the outside.
package inference

import (
	"context"
	"log/slog"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/inference/internal/announce"
	"github.com/mlp-platform/platform/services/inference/internal/app"
	"github.com/mlp-platform/platform/services/inference/internal/trial"
)

// Config holds all settings of the service.
type Config = app.Config

// LoadConfig reads environ (os.Environ); the error lists every fault.
func LoadConfig(environ []string) (Config, error) { return app.LoadConfig(environ) }

// Migrate brings the service's schema up to date.
func Migrate(ctx context.Context, cfg Config) error { return app.Migrate(ctx, cfg) }

// Schema is the service's schema with every migration that this program knows.
func Schema() postgres.Schema { return app.Schema() }

// Run serves until ctx ends. The schema must have been migrated.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error { return app.Run(ctx, cfg, log) }

// Events are all that this service publishes.
func Events() outbox.Catalogue { return announce.Events }

// ServeTrial serves the trial of a model if the arguments (without the program's name) request one; asked reports
// whether they did. Every binary that calls Run must call it first and exit with the code if asked: before loading a
// model, the service restarts its own binary to try it.
func ServeTrial(args []string) (code int, asked bool) { return trial.Serve(args) }
