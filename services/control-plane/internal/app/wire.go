package app

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/service/startup"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/control-plane/internal/lock"
	"github.com/mlp-platform/platform/services/control-plane/internal/metrics"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// clientTimeout is the fallback for calls without their own deadline.
const clientTimeout = 20 * time.Second

// shared holds the dependencies that several parts use.
type shared struct {
	cfg          Config
	log          *slog.Logger
	server       *service.Server
	pool         *pgxpool.Pool
	coordinator  coord.Coordinator
	relay        *outbox.Relay
	checkSchema  func(context.Context) error
	connectNATS  func() (*nats.Conn, error)
	store        *store.Store
	http         *http.Client
	orchestrator *orchestrator.Client
	tracker      *tracker.Client
	locks        *lock.Locker
}

func newShared(cfg Config, log *slog.Logger, base *startup.Foundation) shared {
	hc := service.HTTPClient(clientTimeout)
	return shared{
		cfg: cfg, log: log, server: base.Server, pool: base.Pool, coordinator: base.Coordinator, relay: base.Relay,
		checkSchema: base.CheckSchema, connectNATS: base.ConnectNATS,
		store: store.Open(base.Pool), http: hc, orchestrator: orchestrator.New(cfg.OrchestratorURL, hc, orchestrator.Key(cfg.OrchestratorKey.Reveal())),
		tracker: tracker.New(cfg.TrackingURI, hc, tracker.Token(cfg.TrackingToken.Reveal())), locks: lock.New(base.Coordinator, log),
	}
}

// connectParts builds the parts in order of their dependencies, and mounts their routes.
func connectParts(cfg Config, log *slog.Logger, base *startup.Foundation) (*parts, error) {
	p := &parts{shared: newShared(cfg, log, base)}
	p.connectRegistry()
	if err := p.connectAuth(); err != nil {
		return nil, err
	}
	for _, connect := range []func() error{
		p.connectGuarded, p.connectDispatch, p.connectRuns, p.connectRecords,
		p.connectGate, p.connectAlerts, p.connectPromotions, p.connectApprovals, p.connectLadder,
		p.connectPushes, p.connectPoller,
		p.connectOperations, p.connectHealth, p.connectAudit, p.connectAutoRetrain,
	} {
		if err := connect(); err != nil {
			return nil, err
		}
	}
	p.server.Echo.HTTPErrorHandler = storeErrors(p.server.Echo.HTTPErrorHandler)
	p.mount(p.server.Echo, wire.NewLimiter(p.coordinator, log))
	return p, nil
}

// connectRegistry opens the registry of models and the metrics labelled by model.
func (p *parts) connectRegistry() {
	// Metrics and policies need the registry, which swaps its reading only after start.
	p.registry = registry.Open(p.cfg.ModelRepoDir, p.cfg.ModelRepoEnv, func(ctx context.Context) error {
		p.expectMetrics()
		if err := p.registry.RecordOwners(ctx, p.store.Queries, time.Now()); err != nil {
			return err
		}
		return p.policies.Load(ctx)
	}, p.log)
	p.metrics = metrics.New(p.server.Registry, p.registry.Label)
	metrics.NewStored(p.server.Registry, p.store, time.Now, p.log)
}

// connectAuth reads the credentials. Invalid ones do not prevent the start.
func (p *parts) connectAuth() (err error) {
	p.auth = auth.Load(p.cfg.Token.Reveal(), p.cfg.Credentials.Reveal(), Rules).
		WithDelegation(auth.Delegation{Audience: name, Trust: p.cfg.DelegationTrust.Reveal(), Once: p.coordinator})
	if err := p.auth.State(); err != nil {
		p.log.Error("credentials are faulty: every bearer is refused", slog.Any("err", err))
	}
	p.auth, err = p.auth.WithSystem(p.cfg.SystemCredentials.Reveal())
	return err
}
