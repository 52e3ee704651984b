// Package app wires the dashboard: connections, parts and routes.
package app

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/service/listener"
	"github.com/mlp-platform/platform/libs/service/startup"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/notify"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/sealing"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/settings"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/snapshot"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
)

// name of the service in logs, metrics and events.
const name = "dashboard"

// bodyLimit limits request bodies in bytes; routes of the proxy have their own.
const bodyLimit = 256 << 10

// options describes the service's foundation.
func options(cfg Config, log *slog.Logger) startup.Options {
	return startup.Options{
		Name: name, Schema: store.Schema, Migrations: []postgres.Set{store.Migrations()},
		Base: cfg.Base, Addr: cfg.Addr, Listener: cfg.Listener, Log: log,
		Server: service.Options{
			MaxConns: max(2*cfg.StreamMaxClients, listener.DefaultMax()), // a proxy may send them all from one address
			OpenAPI:  api.Document, BodyLimit: bodyLimit, AllowedHosts: cfg.AllowedHosts,
			BodyLimits:  map[string]int64{"/api/proxy/:service": cfg.ProxyMaxBody, "/api/proxy/:service/*": cfg.ProxyMaxBody},
			PassCodings: map[string]bool{"/api/proxy/:service": true, "/api/proxy/:service/*": true}, // for the upstream to decode
		},
	}
}

// Migrate updates the service's schema.
func Migrate(ctx context.Context, cfg Config) error {
	return startup.Migrate(ctx, options(cfg, slog.New(slog.DiscardHandler)))
}

// Schema is the service's schema with every migration that this program knows.
func Schema() postgres.Schema {
	return options(Config{}, slog.New(slog.DiscardHandler)).Tables()
}

// Run serves until ctx ends. The schema must have been migrated.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	if err := cfg.Validate(); err != nil { // a Config need not come from LoadConfig
		return err
	}
	base, err := startup.Open(ctx, options(cfg, log))
	if err != nil {
		return err
	}
	if err := wire(ctx, cfg, base, log); err != nil {
		base.Close()
		return err
	}
	return base.Run(ctx)
}

// RotateSecrets seals every stored secret with the first configured key and returns how many it rewrote.
func RotateSecrets(ctx context.Context, cfg Config) (int, error) {
	keys, err := sealing.ParseKeys(cfg.SecretKey)
	if err != nil {
		return 0, err
	}
	pool, err := postgres.Open(ctx, cfg.DatabaseURL.Reveal(), store.Schema)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	stored, err := settings.New(settings.Config{
		Pool: pool, Keys: keys, Log: slog.New(slog.DiscardHandler), Environment: cfg.environment(),
		AllowedHosts: cfg.UpstreamAllow, OperatorTenants: cfg.OperatorTenants,
		StepUp: func(echo.Context) error { return nil }, // no request comes this way
	})
	if err != nil {
		return 0, err
	}
	return stored.RotateSecrets(ctx, func(ctx context.Context, tx pgx.Tx) ([]string, error) {
		return notify.RotateSecrets(ctx, tx, keys)
	})
}

// wire creates the parts, adds their routes and starts their work.
func wire(ctx context.Context, cfg Config, base *startup.Foundation, log *slog.Logger) error {
	p := &parts{ctx: ctx, cfg: cfg, base: base, log: log}
	for _, step := range []func() error{p.wireSessions, p.wireRecords, p.wireUpstreams, p.wireViews, p.wirePeople, p.wireAssistant, p.wireStream, p.wireProxy} {
		if err := step(); err != nil {
			return err
		}
	}
	renameProblems(base.Server.Echo)
	access.AddHeaders(base.Server.Echo, cfg.PublicURL)
	compress, err := access.CompressJSON()
	if err != nil {
		return err
	}
	base.Server.Echo.Use(compress, snapshot.MaskToken, p.requests.Middleware)
	p.addRoutes(base.Server.Echo)
	return nil
}
