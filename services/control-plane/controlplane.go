// Package controlplane is the control plane: retraining, the approval gate, the promotion of versions, and the records
// about them.
package controlplane

import (
	"context"
	"log/slog"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/control-plane/internal/app"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
)

// Config holds all settings of the control plane.
type Config = app.Config

// LoadConfig reads environ (os.Environ); the error lists every fault.
func LoadConfig(environ []string) (Config, error) { return app.LoadConfig(environ) }

// Migrate brings the control plane's schema up to date.
func Migrate(ctx context.Context, cfg Config) error { return app.Migrate(ctx, cfg) }

// Schema is the service's schema with every migration that this program knows.
func Schema() postgres.Schema { return app.Schema() }

// CheckAuditKey reads the key that signs the audit ledger's checkpoints, and reports why it cannot be used.
func CheckAuditKey(path string) error { return chain.CheckKey(path) }

// Run serves until ctx ends. It returns nil after an orderly stop.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error { return app.Run(ctx, cfg, log) }

// Events lists the events that this service publishes.
func Events() outbox.Catalogue { return event.Declared }

// Subscriptions lists the events that this service consumes.
func Subscriptions() []outbox.Subscription { return app.Subscriptions }
