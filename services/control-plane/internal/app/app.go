// Package app puts the control plane together: configuration, wiring, and what
// runs in the background.
package app

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/outbox/admin"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/api"
	"github.com/mlp-platform/platform/services/control-plane/internal/alias"
	"github.com/mlp-platform/platform/services/control-plane/internal/approval"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit"
	"github.com/mlp-platform/platform/services/control-plane/internal/budget"
	"github.com/mlp-platform/platform/services/control-plane/internal/command"
	"github.com/mlp-platform/platform/services/control-plane/internal/cost"
	"github.com/mlp-platform/platform/services/control-plane/internal/diff"
	"github.com/mlp-platform/platform/services/control-plane/internal/dispatch"
	"github.com/mlp-platform/platform/services/control-plane/internal/freshness"
	"github.com/mlp-platform/platform/services/control-plane/internal/health"
	"github.com/mlp-platform/platform/services/control-plane/internal/job"
	"github.com/mlp-platform/platform/services/control-plane/internal/ladder"
	"github.com/mlp-platform/platform/services/control-plane/internal/poller"
	"github.com/mlp-platform/platform/services/control-plane/internal/promotion"
	"github.com/mlp-platform/platform/services/control-plane/internal/push"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/repoconfig"
	"github.com/mlp-platform/platform/services/control-plane/internal/retrain"
	"github.com/mlp-platform/platform/services/control-plane/internal/run"
	"github.com/mlp-platform/platform/services/control-plane/internal/status"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/webhook"
)

// name is the service's in logs, metrics and the source of its events.
const name = "control-plane"

// sweepEvery is how often undecided records are looked at for their age.
const sweepEvery = time.Minute

// migrations are every table in the control plane's schema.
func migrations() []postgres.Set {
	return []postgres.Set{store.Migrations(), outbox.Migrations(), coord.Migrations()}
}

// Migrate brings the schema up to date.
func Migrate(ctx context.Context, cfg Config) error {
	return postgres.Migrate(ctx, cfg.DatabaseURL.Reveal(), store.Schema, migrations()...)
}

// parts are what handlers and background work are made of.
type parts struct {
	registry   *registry.Registry
	health     *health.Service
	freshness  freshness.API
	repoConfig *repoconfig.Service
	poller     *poller.Service
	diffs      diff.API
	pushes     *push.Service
	webhooks   *webhook.API
	retrain    *retrain.API
	runs       *run.API
	approvals  approval.API
	ladder     *ladder.Service
	policies   *promotion.Policies
	promotions promotion.API
	aliases    alias.API
	governance governance
	audit      audit.API
	costs      *cost.Service
	budgets    *budget.Service
	jobs       *job.Service
	status     *status.Service
	outbox     admin.Handlers
	drift      driftParts

	commands *command.Service
	follower *run.Follower
	mover    *alias.Mover
	target   *dispatch.Target
	relay    *outbox.Relay
	cfg      Config
	log      *slog.Logger
}

// Run serves until ctx ends.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	pool, err := postgres.Open(ctx, cfg.DatabaseURL.Reveal(), store.Schema, postgres.MaxConns(20))
	if err != nil {
		return err
	}
	if err := postgres.Check(ctx, pool, migrations()...); err != nil {
		pool.Close()
		return err
	}
	coordinator, err := coordinate(cfg, pool)
	if err != nil {
		pool.Close()
		return err
	}
	if err := expireLeases(ctx, cfg, coordinator); err != nil {
		pool.Close()
		return errors.Join(err, coordinator.Close())
	}
	server := service.New(service.Options{
		Name: name, Addr: cfg.Addr, Listener: cfg.Listener, Log: log, AllowedHosts: cfg.AllowedHosts,
		Drain: time.Duration(cfg.DrainSeconds) * time.Second, OpenAPI: api.Document,
		// Bodies are bounded after credentials and rate limit; see intake.BoundBody.
		BodyLimit: math.MaxInt64,
	})
	server.OnClose(pool.Close)
	server.OnClose(func() {
		if err := coordinator.Close(); err != nil {
			log.Warn("coordinator not closed", slog.Any("err", err))
		}
	})
	p, err := wire(cfg, log, server, pool, coordinator)
	if err != nil {
		pool.Close()
		return errors.Join(err, coordinator.Close())
	}
	server.Go("startup", p.start)
	server.Go("dispatch target", p.target.Run)
	server.Go("model repository settings", p.repoConfig.Run)
	server.Go("model repository poller", p.poller.Run)
	server.Go("leader", func(ctx context.Context) error {
		return coord.Lead(ctx, coordinator, "leader", leaderLease, log, p.lead)
	})
	server.Go("audit ledger", func(ctx context.Context) error {
		return coord.Lead(ctx, coordinator, "audit", leaderLease, log, p.audit.Ledger.Lead)
	})
	server.Go("audit watch", p.audit.Ledger.Watch)
	if cfg.EventRelayEnabled {
		server.Go("event relay", p.relay.Run)
	}
	return server.Run(ctx)
}
