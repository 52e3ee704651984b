package inference

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"time"

	"github.com/labstack/echo/v4"

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
	pool, err := postgres.Open(ctx, cfg.DatabaseURL.Reveal(), store.Schema)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := postgres.Check(ctx, pool, migrations()...); err != nil {
		return err
	}
	client := tracker.New(cfg.TrackingURI, service.HTTPClient(30*time.Second))
	artifacts, err := artifact.New(cfg.ModelCacheDir, client, cfg.RequireDigest)
	if err != nil {
		return err
	}
	aliases, err := catalog.ParseAliases(cfg.PreloadAliases)
	if err != nil {
		return err
	}
	srv := service.New(service.Options{
		Name: name, Addr: cfg.Addr, Listener: cfg.Listener, Log: log, OpenAPI: api.Document,
		Drain: time.Duration(cfg.DrainSeconds) * time.Second,
		// A line per prediction would cost as much as the prediction; its metrics and snapshot tell more.
		AccessLog: func(c echo.Context) bool { return !isPrediction(c.Path()) || c.Response().Status >= 500 },
	})
	set := metrics.New(srv.Registry)
	events := announce.NewWriter(pool, set, log)
	replica := replicaName()
	cat := catalog.New(catalog.Config{
		Tracker: client, Artifacts: artifacts, Metrics: set, Log: log, Aliases: aliases,
		Poll: time.Duration(cfg.ReloadPollSeconds) * time.Second, Threads: cfg.ORTThreads, Sessions: cfg.sessions(runtime.GOMAXPROCS(0)),
		BatchRows: cfg.BatchMax, BatchWait: time.Duration(cfg.BatchWaitUS) * time.Microsecond, Waiting: cfg.MaxInflight + cfg.QueueMax,
		Notify: func(e catalog.Event) {
			events.Put(announce.Load(announce.Loaded{Model: e.Model, Alias: e.Alias, Version: e.Version, Reason: e.Reason, Replica: replica}))
		},
	})
	defer cat.Close()
	srv.Registry.MustRegister(catalog.NewCollector(cat))
	snapshots := snapshot.New(pool, cfg.SnapshotQueue, set, log)
	watch := monitor.New(pool, cat, set, log, cmp.Or(cfg.driftEvery, monitor.Every))

	c, err := coordinator(cfg, pool)
	if err != nil {
		return err
	}
	srv.OnClose(func() { _ = c.Close() }) // its connections end with the process in any case
	authenticator := cfg.authenticator(c)
	for _, w := range authenticator.Warnings() {
		log.WarnContext(ctx, "weak credential", slog.String("why", w))
	}
	routes(srv.Echo, authenticator, predict.New(predict.Config{
		Catalog: cat, Snapshots: snapshots, Metrics: set, Log: log, Timeout: cfg.timeout(), Admit: cfg.MaxInflight + cfg.QueueMax,
	}), inventory.New(cat, events), watch, admin.Handlers{Pool: pool, Source: announce.Source})
	checks(srv, cat)

	changed := make(chan string, 64)
	srv.Go("aliases", func(ctx context.Context) error { return cat.Run(ctx, changed) })
	srv.Go("snapshots", snapshots.Run)
	srv.Go("events", events.Run)
	if err := messaging(ctx, srv, cfg, pool, c, watch, changed, log); err != nil {
		return err
	}
	return srv.Run(ctx)
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

// routes adds the service's own routes; libs/service has added those that all services share.
func routes(e *echo.Echo, a *auth.Authenticator, p *predict.Handlers, i *inventory.Handlers, m *monitor.Monitor, o admin.Handlers) {
	open := !a.Configured()
	may := func(scope string) []echo.MiddlewareFunc {
		if open {
			return nil
		}
		return []echo.MiddlewareFunc{a.Require(scope)}
	}
	write := append(may(scopeAdmin), sameOrigin)
	service.Get(e, "/health", i.Health)
	service.Get(e, "/models", i.Models, may(scopePredict)...)
	e.POST("/predict/:model_name", p.Predict, may(scopePredict)...)
	e.POST("/infer-pipeline/infer", p.Pipeline, may(scopePredict)...)
	e.POST("/reload", i.Reload, write...)
	e.POST("/reload/:model_name", i.Reload, write...)
	service.Get(e, "/drift/status", m.Status, may(scopePredict)...)
	e.POST("/drift/:model_name/baseline", m.SetBaseline, write...)
	e.POST("/drift/:model_name/reset", m.Reset, write...)
	service.Get(e, "/outbox", o.List, may(scopeAdmin)...)
	e.POST("/outbox/republish", o.Republish, write...)
	e.POST("/outbox/:id/replay", o.Replay, write...)
	e.DELETE("/outbox/:id", o.Drop, write...)
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

// checks says when the replica may get traffic: once the aliases were scanned. What is down later does not
// keep loaded models from answering.
func checks(srv *service.Server, cat *catalog.Catalog) {
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

// Events are all that this service publishes.
func Events() outbox.Catalogue { return announce.Events }
