// Package app wires the inference service: what is opened, which part gets what, which routes lead where.
package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
	"github.com/nats-io/nats.go"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/outbox/admin"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/inference/api"
	"github.com/mlp-platform/platform/services/inference/internal/announce"
	"github.com/mlp-platform/platform/services/inference/internal/artifact"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
	"github.com/mlp-platform/platform/services/inference/internal/inventory"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
	"github.com/mlp-platform/platform/services/inference/internal/monitor"
	"github.com/mlp-platform/platform/services/inference/internal/predict"
	"github.com/mlp-platform/platform/services/inference/internal/snapshot"
	"github.com/mlp-platform/platform/services/inference/internal/store"
)

// name of the service in logs, metrics and events.
const name = "inference"

func migrations() []postgres.Set {
	return []postgres.Set{outbox.Migrations(), coord.Migrations(), store.Migrations()}
}

// Migrate brings the service's schema up to date.
func Migrate(ctx context.Context, cfg Config) error {
	return postgres.Migrate(ctx, cfg.DatabaseURL.Reveal(), store.Schema, migrations()...)
}

// Run serves until ctx ends. The schema must have been migrated.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	if err := cfg.Validate(); err != nil { // a Config need not come from LoadConfig
		return err
	}
	srv := newServer(cfg, log)
	infra, err := openInfrastructure(ctx, cfg, srv, log)
	if err != nil {
		return err
	}
	defer infra.pool.Close()
	set := metrics.New(srv.Registry)
	events := announce.NewWriter(infra.pool, set, log)
	cat, err := newCatalog(cfg, set, events, log)
	if err != nil {
		return err
	}
	defer cat.Close()
	srv.Registry.MustRegister(catalog.NewCollector(cat))
	snapshots := snapshot.New(infra.pool, cfg.SnapshotQueue, set, log)
	watch := monitor.New(infra.pool, cat, set, log, cmp.Or(cfg.DriftEvery, monitor.Every))

	authenticator := cfg.authenticator(infra.coordinator)
	for _, w := range authenticator.Warnings() {
		log.WarnContext(ctx, "weak credential", slog.String("why", w))
	}
	addRoutes(srv.Echo, authenticator, handlers{
		predictions: predict.New(predict.Config{
			Catalog: cat, Snapshots: snapshots, Metrics: set, Log: log, Timeout: cfg.timeout(), Admit: cfg.MaxInflight + cfg.QueueMax,
		}),
		models: inventory.New(cat, events), drift: watch, outbox: admin.Handlers{Pool: infra.pool, Source: announce.Source},
	})
	addChecks(srv, cat)

	changed := make(chan string, 64)
	srv.Go("aliases", func(ctx context.Context) error { return cat.Run(ctx, changed) })
	srv.Go("snapshots", snapshots.Run)
	srv.Go("events", events.Run)
	connectEvents(srv, infra, watch, changed, log)
	return srv.Run(ctx)
}

func newServer(cfg Config, log *slog.Logger) *service.Server {
	return service.New(service.Options{
		Name: name, Addr: cfg.Addr, Listener: cfg.Listener, Log: log, OpenAPI: api.Document,
		Drain: time.Duration(cfg.DrainSeconds) * time.Second,
		// A line per prediction would cost as much as the prediction; its metrics and snapshot tell more.
		AccessLog: func(c echo.Context) bool { return !isPrediction(c.Path()) || c.Response().Status >= 500 },
	})
}

func newCatalog(cfg Config, set *metrics.Set, events *announce.Writer, log *slog.Logger) (*catalog.Catalog, error) {
	client := tracker.New(cfg.TrackingURI, service.HTTPClient(30*time.Second))
	artifacts, err := artifact.New(cfg.ModelCacheDir, client, cfg.RequireDigest)
	if err != nil {
		return nil, err
	}
	aliases, err := catalog.ParseAliases(cfg.PreloadAliases)
	if err != nil {
		return nil, err
	}
	replica := replicaName()
	return catalog.New(catalog.Config{
		Tracker: client, Artifacts: artifacts, Metrics: set, Log: log, Aliases: aliases,
		Poll: time.Duration(cfg.ReloadPollSeconds) * time.Second, Threads: cfg.ORTThreads, Sessions: cfg.sessions(runtime.GOMAXPROCS(0)),
		BatchRows: cfg.BatchMax, BatchWait: time.Duration(cfg.BatchWaitUS) * time.Microsecond, Waiting: cfg.MaxInflight + cfg.QueueMax,
		Notify: func(e catalog.Event) {
			events.Put(announce.Load(announce.Loaded{Model: e.Model, Alias: e.Alias, Version: e.Version, Reason: e.Reason, Replica: replica}))
		},
	}), nil
}

// infrastructure is what every service of the platform has: database, coordinator, broker and relay.
type infrastructure struct {
	pool        *pgxpool.Pool
	coordinator coord.Coordinator
	broker      *nats.Conn // nil where events are only logged
	relay       *outbox.Relay
	relaying    bool // whether this replica's relay works
}

// openInfrastructure connects to it; the server closes all but the pool. The relay is made also where another
// replica does its work: its metrics tell of the rows.
func openInfrastructure(ctx context.Context, cfg Config, srv *service.Server, log *slog.Logger) (infrastructure, error) {
	pool, err := postgres.Open(ctx, cfg.DatabaseURL.Reveal(), store.Schema)
	if err != nil {
		return infrastructure{}, err
	}
	infra := infrastructure{pool: pool, relaying: cfg.EventRelayEnabled}
	if err := infra.connect(ctx, cfg, srv); err != nil {
		pool.Close()
		return infrastructure{}, err
	}
	infra.relay = outbox.NewRelay(outbox.RelayConfig{
		Service: name, Schema: store.Schema, Pool: pool, Conn: infra.broker, LogOnly: infra.broker == nil, MaxAttempts: cfg.EventMaxAttempts,
		Stream: outbox.StreamConfig{Replicas: cfg.NATSReplicas, MaxBytes: cfg.NATSMaxBytes},
	}, log, srv.Registry)
	return infra, nil
}

func (i *infrastructure) connect(ctx context.Context, cfg Config, srv *service.Server) (err error) {
	if err := postgres.Check(ctx, i.pool, migrations()...); err != nil {
		return err
	}
	i.coordinator = coord.NewPostgres(i.pool)
	if cfg.Coordinator == "redis" {
		if i.coordinator, err = coord.NewRedis(cfg.RedisURL.Reveal(), "platform:"); err != nil {
			return err
		}
	}
	srv.OnClose(func() { _ = i.coordinator.Close() }) // its connections end with the process in any case
	if cfg.EventPublisher != "nats" {
		return nil
	}
	i.broker, err = nats.Connect(cfg.NATSURL.Reveal(), nats.Name(name), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
		nats.ReconnectWait(500*time.Millisecond), nats.ReconnectJitter(250*time.Millisecond, 250*time.Millisecond), nats.Timeout(5*time.Second))
	if err != nil {
		return fmt.Errorf("NATS: %w", err)
	}
	srv.OnClose(i.broker.Close)
	return nil
}

func isPrediction(route string) bool {
	return route == "/predict/:model_name" || route == "/infer-pipeline/infer"
}

// replicaName tells the processes of the service apart.
func replicaName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// handlers are those of the service's own routes; all are required.
type handlers struct {
	predictions *predict.Handlers
	models      *inventory.Handlers
	drift       *monitor.Monitor
	outbox      admin.Handlers
}

// addRoutes adds the service's own routes; libs/service has added those that all services share.
func addRoutes(e *echo.Echo, a *auth.Authenticator, h handlers) {
	open := !a.Configured()
	may := func(scope string) []echo.MiddlewareFunc {
		if open {
			return nil
		}
		return []echo.MiddlewareFunc{a.Require(scope)}
	}
	write := append(may(scopeAdmin), sameOrigin)
	service.Get(e, "/health", h.models.Health)
	service.Get(e, "/models", h.models.Models, may(scopePredict)...)
	e.POST("/predict/:model_name", h.predictions.Predict, may(scopePredict)...)
	e.POST("/infer-pipeline/infer", h.predictions.Pipeline, may(scopePredict)...)
	e.POST("/reload", h.models.Reload, write...)
	e.POST("/reload/:model_name", h.models.Reload, write...)
	service.Get(e, "/drift/status", h.drift.Status, may(scopePredict)...)
	e.POST("/drift/:model_name/baseline", h.drift.SetBaseline, write...)
	e.POST("/drift/:model_name/reset", h.drift.Reset, write...)
	service.Get(e, "/outbox", h.outbox.List, may(scopeAdmin)...)
	e.POST("/outbox/republish", h.outbox.Republish, write...)
	e.POST("/outbox/:id/replay", h.outbox.Replay, write...)
	e.DELETE("/outbox/:id", h.outbox.Drop, write...)
}

// sameOrigin keeps other web pages in a user's browser from using a service that is open on loopback.
func sameOrigin(next echo.HandlerFunc) echo.HandlerFunc {
	protection := http.NewCrossOriginProtection()
	return func(c echo.Context) error {
		if err := protection.Check(c.Request()); err != nil {
			return fault.CrossOrigin.New("Web pages of another origin may not send this request.").WithCause(err)
		}
		return next(c)
	}
}

// addChecks says when the replica may get traffic: once the aliases were scanned. What is down later does not
// keep loaded models from answering.
func addChecks(srv *service.Server, cat *catalog.Catalog) {
	srv.Check("aliases", func(context.Context) service.Check {
		switch s := cat.State(); {
		case s.LastScan.IsZero() && s.LastError != "":
			return service.Check{Status: service.Fail, Detail: "the registry could not be read yet: " + s.LastError}
		case s.LastScan.IsZero():
			return service.Check{Status: service.Fail, Detail: "what the registry names is still being loaded"}
		case s.LastError != "":
			return service.Check{Status: service.Warn, Detail: s.LastError}
		}
		if f := cat.Failures(""); len(f) > 0 {
			return service.Check{Status: service.Warn, Detail: fmt.Sprintf("%d aliases do not hold their version; /health lists them", len(f))}
		}
		return service.Check{Status: service.OK}
	})
}
