// Package app assembles the control plane: configuration, wiring and background work.
package app

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/outbox/admin"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/service/startup"
	"github.com/mlp-platform/platform/services/control-plane/internal/alias"
	"github.com/mlp-platform/platform/services/control-plane/internal/approval"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit"
	"github.com/mlp-platform/platform/services/control-plane/internal/command"
	"github.com/mlp-platform/platform/services/control-plane/internal/cost"
	"github.com/mlp-platform/platform/services/control-plane/internal/diff"
	"github.com/mlp-platform/platform/services/control-plane/internal/dispatch"
	"github.com/mlp-platform/platform/services/control-plane/internal/freshness"
	"github.com/mlp-platform/platform/services/control-plane/internal/governance"
	"github.com/mlp-platform/platform/services/control-plane/internal/guarded"
	"github.com/mlp-platform/platform/services/control-plane/internal/health"
	"github.com/mlp-platform/platform/services/control-plane/internal/job"
	"github.com/mlp-platform/platform/services/control-plane/internal/ladder"
	"github.com/mlp-platform/platform/services/control-plane/internal/metrics"
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

// name is the service's name in logs and metrics and the source of its events.
const name = "control-plane"

// sweepEvery is the interval at which undecided records are checked for expiry.
const sweepEvery = time.Minute

// startupOptions returns the options of the shared start-up code.
func startupOptions(cfg Config, log *slog.Logger) startup.Options {
	return startup.Options{
		Name: name, Schema: store.Schema, Migrations: []postgres.Set{store.Migrations()}, MaxConns: 20,
		Base: cfg.Base, Addr: cfg.Addr, Listener: cfg.Listener, Log: log,
		SoleProcess: cfg.SoleProcess,
		Server: service.Options{
			AllowedHosts: cfg.AllowedHosts, OpenAPI: api.Document,
			// Bodies are limited after credentials and rate limit are checked; see wire.BoundBody.
			BodyLimit: math.MaxInt64,
		},
	}
}

// Migrate brings the schema up to date.
func Migrate(ctx context.Context, cfg Config) error {
	return startup.Migrate(ctx, startupOptions(cfg, slog.New(slog.DiscardHandler)))
}

// Schema is the service's schema with every migration that this program knows.
func Schema() postgres.Schema {
	return startupOptions(Config{}, slog.New(slog.DiscardHandler)).Tables()
}

// parts holds the handlers and the background work.
type parts struct {
	shared
	registry   *registry.Registry
	metrics    *metrics.Metrics
	auth       *auth.Authenticator
	guarded    *guarded.Service
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
	governance governance.API
	audit      audit.API
	costs      *cost.Service
	budgets    *cost.Budgets
	jobs       *job.Service
	status     *status.Service
	outbox     admin.Handlers
	drift      driftParts

	commands  *command.Service
	follower  *run.Follower
	gate      *promotion.Gate
	mover     *alias.Mover
	target    *dispatch.Target
	admission *dispatch.Admission
	breaker   *coord.Breaker
	nats      *nats.Conn // nil where events are only logged
}

// Run serves until ctx ends.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	base, err := startup.Open(ctx, startupOptions(cfg, log))
	if err != nil {
		return err
	}
	p, err := connectParts(cfg, log, base)
	if err != nil {
		base.Close()
		return err
	}
	server := base.Server
	server.Go("startup", p.start)
	server.Go("guarded settings", p.guarded.Run)
	server.Go("dispatch target", p.target.Run)
	server.Go("model repository settings", p.repoConfig.Run)
	server.Go("model repository poller", p.poller.Run)
	server.Go("external models", func(ctx context.Context) error { return p.registry.FollowTracker(ctx, p.tracker) })
	server.Go("leader", func(ctx context.Context) error {
		return coord.Lead(ctx, base.Coordinator, "leader", coord.LeadTime, log, p.lead)
	})
	server.Go("audit ledger", func(ctx context.Context) error {
		return coord.Lead(ctx, base.Coordinator, "audit", coord.LeadTime, log, p.audit.Ledger.Lead)
	})
	server.Go("audit watch", p.audit.Ledger.Watch)
	return base.Run(ctx)
}

// start does the work that must finish before the replica is ready.
func (p *parts) start(ctx context.Context) error {
	if err := p.guarded.Load(ctx); err != nil {
		return err
	}
	if err := p.registry.RecordOwners(ctx, p.store.Queries, time.Now()); err != nil {
		return err
	}
	if err := errors.Join(p.policies.Load(ctx), p.repoConfig.Load(ctx)); err != nil {
		return err
	}
	p.poller.Start(ctx)
	p.health.Started()
	if !p.cfg.SoleProcess {
		return nil
	}
	// There is no other process, so unfinished work belongs to a dead predecessor. The leader finishes what cannot be
	// finished now.
	if err := errors.Join(p.commands.TakeOver(ctx, true), p.mover.Resume(ctx, true), p.ladder.Resume(ctx, time.Now())); err != nil && ctx.Err() == nil {
		p.log.WarnContext(ctx, "not all work of the last process could be taken over", slog.Any("err", err))
	}
	return nil
}

// lead runs the work that only one replica does at a time.
func (p *parts) lead(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.follower.Run(ctx) })
	g.Go(func() error { return p.commands.Work(ctx) })
	g.Go(func() error { return p.pushes.Run(ctx) })
	g.Go(func() error { return p.mover.Run(ctx) })
	g.Go(func() error { return p.ladder.Run(ctx) })
	g.Go(func() error { return p.drift.lead(ctx) })
	g.Go(func() error {
		tick := time.NewTicker(sweepEvery)
		defer tick.Stop()
		for {
			err := errors.Join(p.approvals.Service.ExpireDue(ctx), p.promotions.Service.ExpireDue(ctx), p.guarded.ExpireDue(ctx))
			if err != nil && ctx.Err() == nil {
				p.log.WarnContext(ctx, "expiring approvals failed", slog.Any("err", err))
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	})
	return g.Wait()
}
