package app

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/service/startup"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/control-plane/internal/alias"
	"github.com/mlp-platform/platform/services/control-plane/internal/approval"
	"github.com/mlp-platform/platform/services/control-plane/internal/autoretrain"
	"github.com/mlp-platform/platform/services/control-plane/internal/command"
	"github.com/mlp-platform/platform/services/control-plane/internal/dispatch"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/freshness"
	"github.com/mlp-platform/platform/services/control-plane/internal/governance"
	"github.com/mlp-platform/platform/services/control-plane/internal/health"
	"github.com/mlp-platform/platform/services/control-plane/internal/ladder"
	"github.com/mlp-platform/platform/services/control-plane/internal/lock"
	"github.com/mlp-platform/platform/services/control-plane/internal/metrics"
	"github.com/mlp-platform/platform/services/control-plane/internal/promotion"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/retrain"
	"github.com/mlp-platform/platform/services/control-plane/internal/run"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// maxDescription bounds what the gate downloads of an artifact, in bytes: the
// file that holds a version's signature.
const maxDescription = 1 << 20

// breakerName is the same in all replicas.
const breakerName = "orchestrator"

// clientTimeout is the net under the deadlines that each call has.
const clientTimeout = 20 * time.Second

// wire makes the parts and mounts their routes.
func connectParts(cfg Config, log *slog.Logger, base *startup.Foundation) (*parts, error) {
	server, pool, coordinator := base.Server, base.Pool, base.Coordinator
	db := store.Open(pool)
	p := &parts{cfg: cfg, log: log}
	var counted *metrics.Metrics
	// Metrics and policies need the registry; it swaps its reading only after start.
	reg := registry.Open(cfg.ModelRepoDir, cfg.ModelRepoEnv, func(ctx context.Context) error {
		p.expect(counted)
		return p.policies.Load(ctx)
	}, log)
	p.registry = reg
	who := auth.Load(cfg.Token.Reveal(), cfg.Credentials.Reveal(), Rules).
		WithDelegation(auth.Delegation{Audience: name, Trust: cfg.DelegationTrust.Reveal(), Once: coordinator})
	if err := who.State(); err != nil {
		log.Error("credentials are faulty: every bearer is refused", slog.Any("err", err))
	}
	hc := service.HTTPClient(clientTimeout)
	orch := orchestrator.New(cfg.OrchestratorURL, hc)
	track := tracker.New(cfg.TrackingURI, hc)
	locks := lock.New(coordinator, log)
	counted = metrics.New(server.Registry, reg.Label)
	metrics.NewStored(server.Registry, db, time.Now, log)

	var err error
	if p.target, err = dispatch.NewTarget(orch, cfg.Deployment, log); err != nil {
		return nil, err
	}
	breaker := coord.NewBreaker(coordinator, breakerName, cfg.BreakerFailMax, time.Duration(cfg.BreakerResetSeconds)*time.Second)
	retrains := autoretrain.NewSettler(retrain.Settler{}, time.Now)
	if p.commands, err = command.New(command.Parts{
		Store: db, Sender: dispatch.NewSender(orch, p.target, breaker, counted.BreakerOpened, log), Log: log, Now: time.Now,
		Lease: time.Duration(cfg.CommandLeaseSeconds) * time.Second, Owner: uuid.New(), Observe: observeDispatch(counted),
		Settlers: map[string]command.Settler{command.Retrain: retrains, command.Approval: approval.NewSettler(time.Now)},
	}); err != nil {
		return nil, err
	}
	admission := dispatch.NewAdmission(cfg.AdmissionMax, cfg.AdmissionPerTenant)
	book, err := run.NewBook(run.BookParts{Store: db, Head: reg.Head, Count: counted.Run, Now: time.Now})
	if err != nil {
		return nil, err
	}
	p.follower = &run.Follower{Book: book, Orchestrator: orch, Log: log}
	p.runs = &run.API{Book: book, Orchestrator: orch}
	if p.retrain, err = retrain.New(retrain.Parts{
		Store: db, Commands: p.commands, Registry: reg, Admission: admission, Locks: locks, Now: time.Now,
	}); err != nil {
		return nil, err
	}
	p.freshness = freshness.API{Store: db, Registry: reg}

	p.policies = &promotion.Policies{Store: db, Registry: reg, Mode: cfg.ApprovalMode, Now: time.Now}
	p.governance = governance.NewAPI(db, reg, log, time.Now)
	p.wireCosts(db, track)
	gate, err := promotion.NewGate(promotion.GateParts{
		Store: db, Tracker: track, Registry: reg, AllowGenerated: cfg.AllowGenerated,
		Files: tracker.New(cfg.TrackingURI, hc, tracker.MaxDownload(maxDescription)),
	})
	if err != nil {
		return nil, err
	}
	reader, err := p.wireAlerts(db, counted, hc, gate)
	if err != nil {
		return nil, err
	}
	settler := promotion.NewSettler(time.Now, counted.Promotion)
	if p.mover, err = alias.NewMover(alias.Parts{
		Store: db, Tracker: track, Registry: reg, Locks: locks, Log: log, Now: time.Now,
		Settler: settler, External: p.drift.reconciler.Nudge,
	}); err != nil {
		return nil, err
	}
	rules := approval.Rules{Expiry: time.Duration(cfg.ApprovalExpiryHours) * time.Hour, Duties: cfg.SeparationOfDuties == "enforce"}
	promotions, err := promotion.New(promotion.Parts{
		Store: db, Gate: gate, Mover: p.mover, Rules: rules, Settler: settler, Now: time.Now, Count: counted.Promotion,
	})
	if err != nil {
		return nil, err
	}
	approvals, err := approval.New(approval.Parts{
		Store: db, Commands: p.commands, Registry: reg, Admission: admission, Promotions: promotions, Rules: rules,
		Now: time.Now, Count: counted.Approval,
	})
	if err != nil {
		return nil, err
	}
	p.approvals, p.promotions = approval.API{Service: approvals}, promotion.API{Service: promotions}
	if p.ladder, err = ladder.New(ladder.Parts{
		Store: db, Tracker: track, Registry: reg, Mover: p.mover, Promotions: promotions, Gate: gate, Log: log, Now: time.Now,
	}); err != nil {
		return nil, err
	}
	if err := p.wirePushes(db, counted, hc, log); err != nil {
		return nil, err
	}
	if err := p.wirePoller(db, server, coordinator, locks, log); err != nil {
		return nil, err
	}
	server.Go("external models", func(ctx context.Context) error { return reg.FollowTracker(ctx, track) })
	p.aliases = alias.API{Store: db}

	p.operate(db, pool, counted, server.Registry, log)
	p.health = &health.Service{
		Facts: health.Facts{
			OrchestratorURL: withoutPassword(cfg.OrchestratorURL), Coordinator: cfg.Coordinator, Publisher: cfg.EventPublisher,
			RelayEnabled: cfg.EventRelayEnabled, StateEmbedded: cfg.StateEmbedded, BrokerEmbedded: cfg.BrokerEmbedded, ModelRepoDir: cfg.ModelRepoDir, ModelRepoOwn: cfg.checksOut(),
		},
		Server: server, Store: db, Registry: reg, Auth: who, Secrets: cfg.secretWarnings(), Target: p.target, Relay: base.Relay,
		Migrated:   base.CheckSchema,
		Coordinate: coordinator.Ping, Breaker: breaker, Poller: p.poller,
	}
	p.health.Register()
	nc, err := base.ConnectNATS()
	if err != nil {
		return nil, err
	}
	if err := p.wireAudit(db, nc, server, log); err != nil {
		return nil, err
	}
	if err := p.wireDrift(db, pool, nc, reader); err != nil {
		return nil, err
	}
	server.Echo.HTTPErrorHandler = storeErrors(server.Echo.HTTPErrorHandler)
	p.mount(server.Echo, who, wire.NewLimiter(coordinator, log), cfg)
	return p, nil
}

// observeDispatch counts how a dispatch ended.
func observeDispatch(m *metrics.Metrics) func(store.Command, error, time.Duration) {
	return func(c store.Command, err error, took time.Duration) {
		outcome := "ok"
		if err != nil {
			outcome = problem.From(err).Kind.Code
		}
		m.Dispatch(c.ModelID, c.DatasetName, outcome, took)
		if c.Kind == command.Approval {
			action := approval.Approved
			if err != nil {
				action = "dispatch_failed"
			}
			m.Approval(action, c.ModelID, 1)
		}
	}
}

// withoutPassword is a URL fit to be shown.
func withoutPassword(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}

// storeErrors answers 503 where the database cannot be reached: the same request
// may succeed later.
func storeErrors(next echo.HTTPErrorHandler) echo.HTTPErrorHandler {
	return func(err error, c echo.Context) {
		var p *problem.Error
		if !errors.As(err, &p) && postgres.Unavailable(err) {
			err = fault.StoreUnavailable.New("The database does not answer; try again later.").WithCause(err).After(5 * time.Second)
		}
		next(err, c)
	}
}

// start does what must be done once before the replica is ready.
func (p *parts) start(ctx context.Context) error {
	if err := errors.Join(p.policies.Load(ctx), p.repoConfig.Load(ctx)); err != nil {
		return err
	}
	p.poller.Start(ctx)
	p.health.Started()
	if !p.cfg.SoleProcess {
		return nil
	}
	// Nobody else can be at work: what is left belongs to a dead predecessor. What
	// cannot be finished now is left to the leader.
	if err := errors.Join(p.commands.TakeOver(ctx, true), p.mover.Resume(ctx, true), p.ladder.Resume(ctx, time.Now())); err != nil && ctx.Err() == nil {
		p.log.WarnContext(ctx, "not all work of the last process could be taken over", slog.Any("err", err))
	}
	return nil
}

// lead is the work of one replica at a time.
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
			err := errors.Join(p.approvals.Service.ExpireDue(ctx), p.promotions.Service.ExpireDue(ctx))
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
