// Package app puts the assistant together: configuration, wiring, and what runs in the background.
package app

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	api "github.com/mlp-platform/platform/clients/go/assistant"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/service/startup"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/alert"
	"github.com/mlp-platform/platform/services/assistant/internal/caller"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/clustername"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/limit"
	"github.com/mlp-platform/platform/services/assistant/internal/mcpclient"
	"github.com/mlp-platform/platform/services/assistant/internal/mcpserver"
	"github.com/mlp-platform/platform/services/assistant/internal/metrics"
	"github.com/mlp-platform/platform/services/assistant/internal/observe"
	"github.com/mlp-platform/platform/services/assistant/internal/session"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/registry"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// name identifies the service in logs, metrics and the source of its events.
const name = "assistant"

// maxConns limits the database connections. A turn holds none while its engine works.
const maxConns = 20

// clusterSeen is how long after its last answer the cluster counts as reachable.
const clusterSeen = 60 * time.Second

// options returns the options of the shared start-up.
func options(cfg Config, log *slog.Logger) startup.Options {
	return startup.Options{
		Name: name, Schema: store.Schema, Migrations: []postgres.Set{store.Migrations()}, MaxConns: maxConns,
		Base: cfg.Base, Addr: cfg.Addr, Listener: cfg.Listener, Log: log,
		Server: service.Options{
			OpenAPI: api.Document,
			// Bodies are limited after key and rate limit: a caller without a key learns only that the key is missing.
			BodyLimit: math.MaxInt64,
			AccessLog: func(c echo.Context) bool { return !isProbe(c.Path()) },
		},
	}
}

// Migrate applies the schema migrations.
func Migrate(ctx context.Context, cfg Config) error {
	return startup.Migrate(ctx, options(cfg, slog.New(slog.DiscardHandler)))
}

// Schema is the service's schema with every migration that this program knows.
func Schema() postgres.Schema {
	return options(Config{}, slog.New(slog.DiscardHandler)).Tables()
}

// parts holds what handlers and background work depend on.
type parts struct {
	store    *store.Store
	actions  *action.Service
	turns    *turn.Service
	sessions *session.Service
	streams  *turn.Streams
	alerts   *alert.Service
	clusters *clusters
	servers  *mcpclient.Client
}

// Run serves until ctx ends. The schema must have been migrated.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	if err := cfg.Validate(); err != nil { // a Config need not come from LoadConfig
		return err
	}
	f, err := startup.Open(ctx, options(cfg, log))
	if err != nil {
		return err
	}
	p, err := wireParts(ctx, cfg, log, f)
	if err != nil {
		f.Close()
		return err
	}
	addChecks(f.Server, p)
	drainOnStop(f.Server, p, time.Duration(cfg.DrainSeconds)*time.Second, log)
	f.Server.Go("cluster", p.clusters.run)
	f.Server.Go("servers", p.servers.Run)
	f.Server.Go("actions", p.actions.Run)
	f.Server.Go("turns", p.turns.Run)
	f.Server.Go("sessions", p.sessions.Run)
	f.Server.Go("alerts", p.alerts.Run)
	f.Server.Go("runbooks", p.clusters.runbooks.Run)
	return f.Run(ctx)
}

// wireParts creates the parts and mounts their routes.
func wireParts(ctx context.Context, cfg Config, log *slog.Logger, f *startup.Foundation) (*parts, error) {
	callers, err := caller.New(cfg.callers(f.Coordinator))
	if err != nil {
		return nil, err
	}
	for _, w := range callers.Warnings() {
		log.WarnContext(ctx, "credentials", slog.String("why", w))
	}
	db, policy := store.Open(f.Pool), cfg.policy()
	counted := metrics.New(f.Server.Registry, cfg.engine())
	metrics.NewStored(f.Server.Registry, db, time.Now, log)
	p := &parts{store: db}
	if p.servers, err = connectServers(ctx, cfg, db, log); err != nil {
		return nil, err
	}
	if p.clusters, err = connectClusters(ctx, cfg, clusterDeps{policy: policy, servers: p.servers, counted: counted, log: log}); err != nil {
		return nil, err
	}
	f.OnClose(p.clusters.close)
	if err := p.clusters.nameStored(ctx, db); err != nil {
		return nil, err
	}
	fleet, names := p.clusters.fleet, p.clusters.names
	watch := observe.New(counted, f.Tracing, cfg.ModelName, cfg.LLMModel)
	p.actions, err = action.New(action.Config{TTL: cfg.ActionTTL, FourEyes: cfg.ApprovalPolicy == policyFourEyes}, action.Deps{
		Store: db, Target: fleet.Target, Judge: p.clusters.all[0].changes.Judge, Log: log, Moved: counted.Moved,
	})
	if err != nil {
		return nil, err
	}
	p.turns, err = turn.New(turn.Config{Model: cfg.ModelName, Limit: cfg.TurnTimeout, Orphan: cfg.OrphanTimeout, Notice: p.clusters.notice(), Clusters: names}, turn.Deps{
		Store: db, Actions: p.actions, Engine: watch.Engine(fleet), Tools: watch.Tools(fleet),
		Planner: watch.Planner(fleet), Log: log, Finished: counted.Turn,
	})
	if err != nil {
		return nil, err
	}
	p.sessions, err = session.New(session.Deps{Store: db, Actions: p.actions, TTL: cfg.SessionTTL, Now: time.Now, Log: log})
	if err != nil {
		return nil, err
	}
	slots := limit.NewSlots(cfg.MaxStreams)
	p.streams, err = turn.NewStreams(turn.StreamConfig{Model: cfg.ModelName, MaxBody: cfg.MaxBody}, turn.StreamDeps{
		Turns: p.turns, Actions: p.actions, Sessions: p.sessions, Slots: slots, Meter: counted, Log: log,
	})
	if err != nil {
		return nil, err
	}
	programs, err := mcpserver.New(mcpserver.Config{MaxBody: cfg.MaxBody, Notice: p.clusters.notice(), Clusters: names}, mcpserver.Deps{
		Registry: registry.New(cfg.sources()...), Tools: watch.Tools(fleet), Turns: p.turns, Store: db, Slots: slots, Now: time.Now, Log: log,
	})
	if err != nil {
		return nil, err
	}
	p.alerts, err = alert.New(alert.Config{TTL: cfg.SessionTTL, Clusters: names}, alert.Deps{
		Store: db, Turns: p.turns, Engine: watch.Engine(fleet), Tools: watch.Tools(fleet), Received: counted.Alerted, Now: time.Now, Log: log,
	})
	if err != nil {
		return nil, err
	}
	access, err := caller.NewAccess(caller.AccessDeps{
		Callers: callers, Store: db, Rate: limit.NewRate(cfg.RatePerMinute, cfg.RateBurst, time.Now), Refused: counted.Refused,
		Now: time.Now, Log: log,
	})
	if err != nil {
		return nil, err
	}
	f.Server.Echo.HTTPErrorHandler = fault.Handler(log)
	if origins := trimEntries(cfg.AllowedOrigins); len(origins) > 0 {
		f.Server.Echo.Use(crossOrigin(origins))
	}
	handlers{
		sample: p.clusters.sample(), access: access, streams: p.streams, models: chat.NewModels(cfg.ModelName, time.Now()),
		namespaces: cluster.NamespacesHandler(names, p.clusters.listers(), policy.Visible), demoKeys: callers.MintHandler(db, time.Now),
		sessions: p.sessions, actions: p.actions, mcp: programs, alerts: p.alerts,
	}.mount(f.Server.Echo)
	return p, nil
}

// crossOrigin allows pages of these origins to read responses, besides the service's own.
func crossOrigin(origins []string) echo.MiddlewareFunc {
	return middleware.CORSWithConfig(middleware.CORSConfig{
		AllowOrigins: origins, MaxAge: 600,
		AllowHeaders: []string{"Authorization", "Content-Type", chat.SessionHeader, clustername.Header, chat.RequestIDHeader, "X-Stream-Profile", "X-Stream-Ids", "Last-Event-ID",
			"Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"},
		ExposeHeaders: []string{chat.SessionHeader, chat.RequestIDHeader, "Retry-After", "X-RateLimit-Limit"},
	})
}

// addChecks adds the readiness checks.
func addChecks(server *service.Server, p *parts) {
	server.Check("store", func(ctx context.Context) service.Check {
		if err := p.store.Pool().Ping(ctx); err != nil {
			return service.Check{Status: service.Fail, Detail: "the database does not answer"}
		}
		return service.Check{Status: service.OK}
	})
	if p.servers.Configured() {
		server.CheckLocal("mcp_servers", p.servers.Check)
	}
	names := p.clusters.names.List()
	if names == nil {
		server.CheckLocal("cluster", p.clusters.all[0].check)
		return
	}
	// One cluster that is down does not prevent answers about the others.
	for i, name := range names {
		server.CheckLocal("cluster "+name, func() service.Check {
			c := p.clusters.all[i].check()
			if c.Status == service.Fail {
				c.Status = service.Warn
			}
			return c
		})
	}
	server.CheckLocal("cluster", func() service.Check {
		for _, r := range p.clusters.all {
			if r.check().Status == service.OK {
				return service.Check{Status: service.OK}
			}
		}
		return service.Check{Status: service.Fail, Detail: "no cluster answers"}
	})
}

// check reports whether the cluster has answered lately.
func (r *reach) check() service.Check {
	switch seen := r.cluster.Seen(); {
	case seen.IsZero():
		return service.Check{Status: service.Fail, Detail: "the cluster has not answered yet"}
	case time.Since(seen) > clusterSeen:
		return service.Check{Status: service.Fail, Detail: fmt.Sprintf("the cluster has not answered for %s", time.Since(seen).Round(time.Second))}
	}
	return service.Check{Status: service.OK}
}

// drainOnStop ends turns and streams when the stop begins. Engines stop immediately, and a started write gets as much time
// as requests do; what is left after that is settled by the next process.
func drainOnStop(server *service.Server, p *parts, patience time.Duration, log *slog.Logger) {
	closed := make(chan struct{})
	server.OnDrain(func() {
		go func() { // ends with patience; awaited before the pools close
			defer close(closed)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if err := p.turns.Drain(ctx); err != nil {
				log.Warn("not every turn was closed; another process will do so", slog.Any("err", err))
			}
			p.streams.EndStreams() // those of turns that other replicas answer do not end by themselves
		}()
	})
	server.OnClose(func() {
		if server.Draining() { // otherwise it never listened
			<-closed
		}
	})
}
