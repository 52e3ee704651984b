// Package assistant answers questions about a Kubernetes cluster, and changes in it what a person approved.
package assistant

import (
	"context"
	"log/slog"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/services/assistant/internal/app"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
)

// Config is everything the assistant can be told.
type Config = app.Config

// LoadConfig reads environ (os.Environ); the error lists every fault.
func LoadConfig(environ []string) (Config, error) { return app.LoadConfig(environ) }

// Migrate brings the assistant's schema up to date.
func Migrate(ctx context.Context, cfg Config) error { return app.Migrate(ctx, cfg) }

// Run serves until ctx ends. It returns nil after an orderly stop.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error { return app.Run(ctx, cfg, log) }

// Events are all that this service publishes.
func Events() outbox.Catalogue { return event.Declared }
