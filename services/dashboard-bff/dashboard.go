// Package dashboard is the backend of the web UI: login, composed views, comments and other records of people, the
// event stream and a proxy to the tools behind it. docs/dashboard.md describes it from the outside.
package dashboard

import (
	"context"
	"log/slog"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/announce"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/app"
)

// Config is the complete configuration of the service.
type Config = app.Config

// LoadConfig reads environ (os.Environ); the error lists every fault.
func LoadConfig(environ []string) (Config, error) { return app.LoadConfig(environ) }

// Migrate updates the service's schema.
func Migrate(ctx context.Context, cfg Config) error { return app.Migrate(ctx, cfg) }

// Schema is the service's schema with every migration that this program knows.
func Schema() postgres.Schema { return app.Schema() }

// Run serves until ctx ends. The schema must have been migrated.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error { return app.Run(ctx, cfg, log) }

// RotateSecrets seals every stored secret with the first key of DASHBOARD_SECRET_KEY and returns how many it rewrote.
func RotateSecrets(ctx context.Context, cfg Config) (int, error) { return app.RotateSecrets(ctx, cfg) }

// Events returns all events that this service publishes.
func Events() outbox.Catalogue { return announce.Events }

// Subscriptions returns the events that this service consumes.
func Subscriptions() []outbox.Subscription { return app.Subscriptions }
