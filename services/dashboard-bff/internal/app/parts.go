package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/nats-io/nats.go"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/service/listener"
	"github.com/mlp-platform/platform/libs/service/startup"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/alert"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/announce"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/assistant"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/audit"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/collab"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/compose"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/copilot"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/docs"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/drawer"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/effect"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/facility"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/finops"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/flag"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/governance"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/health"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/idp"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/inbox"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/llmops"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/login"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/mlops"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/notify"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/proxy"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/sealing"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/search"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/selfobs"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/session"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/settings"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/snapshot"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/sso"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/stream"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/webui"
)

// parts are the components that serve the routes; each step of wire fills some.
type parts struct {
	ctx  context.Context
	cfg  Config
	base *startup.Foundation
	log  *slog.Logger

	keys     *sealing.Keys
	sessions session.Store
	guard    *access.Guard
	login    *login.Handlers
	sso      *sso.Handlers

	settings  *settings.Settings
	flags     *flag.Flags
	snapshots *snapshot.Snapshots
	recorder  *announce.Recorder

	delegator *auth.Delegator // nil: services see the configured tokens instead of the person
	clients   *upstream.Clients
	docs      *docs.Library
	ui        *webui.UI

	views      *mlops.Views
	facility   *facility.Views
	llmops     *llmops.Views
	governance *governance.Views
	finops     *finops.Views
	alerts     *alert.Inbox
	inbox      *inbox.Inbox
	notifier   *notify.Notifier
	collab     *collab.Collab
	audit      *audit.Log
	effects    *effect.API
	search     *search.Search

	health   *health.Aggregate
	requests *selfobs.Requests
	self     *selfobs.Self

	copilot *copilot.Copilot
	drawer  *drawer.Drawer
	stream  *stream.Stream
	proxy   *proxy.Proxy

	nats *nats.Conn // nil without a broker
}

// wireSessions wires authentication: sessions, identity providers and guards.
func (p *parts) wireSessions() (err error) {
	if p.keys, err = sealing.ParseKeys(p.cfg.SecretKey); err != nil {
		return err
	}
	if p.sessions, err = p.openSessionStore(); err != nil {
		return err
	}
	verdicts := session.NewVerdicts(p.sessions, time.Now)
	tokens, err := session.NewTokens(session.TokenConfig{
		Secret: p.cfg.JWTSecret, TTL: time.Duration(p.cfg.JWTTTLHours) * time.Hour, Tenant: p.cfg.LocalTenant,
		Viewer: p.cfg.ViewerPassword, Admin: p.cfg.AdminPassword, LocalLogin: p.cfg.LocalLogin, Verdicts: verdicts, Now: time.Now,
	})
	if err != nil {
		return err
	}
	manager, err := session.NewManager(session.ManagerConfig{
		Verdicts: verdicts, Keys: p.keys, Cookies: session.Cookies{Insecure: !p.cfg.SessionCookieSecure},
		Lifetime: time.Duration(p.cfg.SSOSessionHours) * time.Hour, Idle: time.Duration(p.cfg.SSOIdleMinutes) * time.Minute, Now: time.Now,
	})
	if err != nil {
		return err
	}
	limits, err := access.NewLimits(access.LimitsConfig{
		Coordinator: p.base.Coordinator, Store: p.sessions, Rates: access.DefaultRates(), Log: p.log, Now: time.Now,
	})
	if err != nil {
		return err
	}
	providers, err := idp.New(idp.Config{Path: p.cfg.IAMConfig, Log: p.log, Now: time.Now})
	if err != nil {
		return err
	}
	p.base.Server.Go("trust file", providers.Watch)
	p.base.Server.CheckOptional("identity_providers", providers.Check)
	p.guard, err = access.New(access.Config{
		Tokens: tokens, Sessions: manager, Federation: providers, Limits: limits, Pool: p.base.Pool, Log: p.log, Registry: p.base.Server.Registry, Now: time.Now,
		PublicURL: p.cfg.PublicURL, TrustedProxies: p.cfg.TrustedProxies, OperatorTenants: p.cfg.OperatorTenants,
		StepUpActions: p.cfg.StepUpActions, EnforceStepUp: p.cfg.IAMStepUp == "enforce", StepUpMaxAge: time.Duration(p.cfg.IAMStepUpMaxAge) * time.Second,
	})
	if err != nil {
		return err
	}
	p.login, err = login.New(login.Config{
		Guard: p.guard, Limits: limits, Tokens: tokens, Sessions: manager, Federation: providers,
		Viewer: p.cfg.ViewerPassword, Admin: p.cfg.AdminPassword, LocalLogin: p.cfg.LocalLogin, Tenant: p.cfg.LocalTenant,
	})
	if err != nil {
		return err
	}
	p.sso, err = sso.New(sso.Config{
		Providers: providers, Records: p.sessions, Sessions: manager, Ledger: p.guard, Keys: p.keys,
		Cookies: session.Cookies{Insecure: !p.cfg.SessionCookieSecure}, PublicURL: p.cfg.PublicURL, LocalLogin: p.cfg.LocalLogin,
		Log: p.log, Now: time.Now,
	})
	return err
}

func (p *parts) openSessionStore() (session.Store, error) {
	if p.cfg.SessionStore == "redis" {
		store, err := session.NewRedis(p.cfg.RedisURL.Reveal(), name+":session:")
		if err != nil {
			return nil, fmt.Errorf("REDIS_URL: %w", err)
		}
		p.base.OnClose(func() { _ = store.Close() })
		return store, nil
	}
	store := session.NewPostgres(p.base.Pool)
	p.base.Server.Go("session store", func(ctx context.Context) error { return store.Run(ctx, p.log) })
	return store, nil
}

// wireRecords creates the parts that store data of the dashboard itself.
func (p *parts) wireRecords() (err error) {
	if p.recorder, err = announce.NewRecorder(p.base.Pool); err != nil {
		return err
	}
	p.settings, err = settings.New(settings.Config{
		Pool: p.base.Pool, Keys: p.keys, Log: p.log, Environment: p.cfg.environment(), AllowedHosts: p.cfg.UpstreamAllow,
		OperatorTenants: p.cfg.OperatorTenants,
		StepUp:          func(c echo.Context) error { return p.guard.CheckStepUp(caller.From(c), access.ConfigSecret) },
	})
	if err != nil {
		return err
	}
	if p.flags, err = flag.New(flag.Config{Pool: p.base.Pool, Log: p.log}); err != nil {
		return err
	}
	if err := errors.Join(p.settings.Load(p.ctx), p.flags.Load(p.ctx)); err != nil {
		return err
	}
	p.base.Server.Go("settings", p.settings.Watch)
	p.base.Server.Go("flags", p.flags.Watch)
	p.snapshots, err = snapshot.New(snapshot.Config{Pool: p.base.Pool})
	return err
}

// wireUpstreams creates the clients of the services behind the dashboard.
func (p *parts) wireUpstreams() (err error) {
	if p.cfg.ActKeyFile != "" {
		if p.delegator, err = auth.LoadOrCreateDelegator(name, p.cfg.ActKeyFile); err != nil {
			return fmt.Errorf("DASHBOARD_ACT_KEY_FILE: %w", err)
		}
	}
	p.clients, err = upstream.New(upstream.Config{
		Settings: p.settings, AssistantURL: p.cfg.AssistantURL, Delegator: p.delegator, ServingToken: p.cfg.ServingToken,
		LocalTenant: p.cfg.LocalTenant,
		Tokens: map[upstream.Service]upstream.Token{
			upstream.Tracker:      {Address: p.cfg.TrackingURI, Secret: p.cfg.TrackingToken},
			upstream.Orchestrator: {Address: p.cfg.OrchestratorURL, Secret: p.cfg.OrchestratorKey},
		},
		Audit: func(ctx context.Context, who caller.Caller, action, target string, details map[string]any) error {
			return p.recorder.Record(ctx, who, announce.Fact{Action: action, Target: target, Outcome: announce.OK, Details: details})
		},
	})
	if err != nil {
		return err
	}
	if p.docs, err = docs.Open(p.cfg.DocsRoot); err != nil {
		return err
	}
	p.base.OnClose(func() { p.docs.Close() })
	p.ui, err = webui.New(webui.Config{})
	return err
}

// wireViews creates the composed views and the two views of health.
func (p *parts) wireViews() error {
	pool, err := compose.New(compose.Config{Timeout: p.cfg.SourceTimeout, Log: p.log})
	if err != nil {
		return err
	}
	p.base.OnClose(pool.Close)
	if p.views, err = mlops.New(mlops.Parts{Pool: pool, Clients: p.clients, Log: p.log}); err != nil {
		return err
	}
	p.base.Server.Go("served versions", p.views.WatchServing)
	if err := p.wireSmallViews(pool); err != nil {
		return err
	}
	p.health, err = health.New(health.Parts{
		Clients: p.clients, Published: p.cfg.published(), AllowedHosts: p.cfg.AllowedHosts, SchedulerMode: p.cfg.SchedulerMode,
	})
	if err != nil {
		return err
	}
	p.requests = selfobs.NewRequests("/api/v1/stream", "/api/v1/assistant/chat")
	if p.nats, err = p.base.ConnectNATS(); err != nil {
		return err
	}
	p.self, err = selfobs.New(selfobs.Parts{Clients: p.clients, Requests: p.requests, Pool: p.base.Pool, Log: p.log, Checks: p.ownChecks()})
	return err
}

// wireSmallViews creates the views of one or two sources, and alerts, comments, audit, effects and search.
func (p *parts) wireSmallViews(pool *compose.Pool) (err error) {
	if p.facility, err = facility.New(facility.Parts{Pool: pool, Clients: p.clients}); err != nil {
		return err
	}
	if p.llmops, err = llmops.New(llmops.Parts{Pool: pool, Clients: p.clients}); err != nil {
		return err
	}
	if p.governance, err = governance.New(governance.Parts{Pool: pool, Clients: p.clients}); err != nil {
		return err
	}
	if p.finops, err = finops.New(finops.Parts{Pool: pool, Clients: p.clients}); err != nil {
		return err
	}
	if p.alerts, err = alert.New(alert.Config{Pool: p.base.Pool, Clients: p.clients, Views: pool}); err != nil {
		return err
	}
	if p.collab, err = collab.New(collab.Config{Pool: p.base.Pool, Clients: p.clients, Views: pool}); err != nil {
		return err
	}
	if p.audit, err = audit.New(audit.Config{Clients: p.clients}); err != nil {
		return err
	}
	if p.effects, err = effect.New(effect.Config{Clients: p.clients}); err != nil {
		return err
	}
	p.search, err = search.New(search.Config{Pool: pool, Upstream: p.clients, Docs: p.docs, Alerts: p.alerts.ListOpen})
	return err
}

// ownChecks ask the dependencies that this process talks to itself.
func (p *parts) ownChecks() map[string]func(context.Context) error {
	checks := map[string]func(context.Context) error{
		"postgres":    p.base.Pool.Ping,
		"coordinator": p.base.Coordinator.Ping,
		"session_store": func(ctx context.Context) error {
			if _, err := p.sessions.Get(ctx, session.Key("self-observability")); !errors.Is(err, session.ErrNotFound) {
				return err
			}
			return nil
		},
	}
	if p.nats != nil {
		checks["nats"] = func(ctx context.Context) error { return p.nats.FlushWithContext(ctx) }
	}
	return checks
}

// wireAssistant creates the two routes to the cluster assistant.
func (p *parts) wireAssistant() error {
	clients, err := assistant.New(assistant.Config{Addresses: p.clients, ReadOnlyKey: p.cfg.ReadonlyKey, OperatorKey: p.cfg.OperatorKey, Delegator: p.delegator})
	if err != nil {
		return err
	}
	enabled := p.enabled("copilotDrawer")
	p.copilot, err = copilot.New(copilot.Config{
		Assistant: clients, Recorder: p.recorder, Enabled: enabled, Secret: p.cfg.JWTSecret, Log: p.log, Timeout: p.cfg.CopilotTimeout,
	})
	if err != nil {
		return err
	}
	p.drawer, err = drawer.New(drawer.Config{
		Assistant: clients, Recorder: p.recorder, Enabled: enabled, Secret: p.cfg.JWTSecret, Log: p.log,
		FollowSession: func(ctx context.Context, who caller.Caller) (context.Context, context.CancelFunc) {
			ctx, end := context.WithCancel(ctx)
			watched, _ := p.guard.Watch(ctx, who)
			return watched, end
		},
	})
	return err
}

// enabled reports whether a flag is on for a caller; a flag that is not defined is off.
func (p *parts) enabled(flagName string) func(context.Context, caller.Caller) bool {
	return func(ctx context.Context, who caller.Caller) bool {
		on, err := p.flags.Enabled(ctx, who, flagName)
		return err == nil && on
	}
}

// wireStream creates the event stream.
func (p *parts) wireStream() (err error) {
	p.stream, err = stream.New(stream.Config{
		Conn: p.nats, Watch: p.guard.Watch, Log: p.log, Registerer: p.base.Server.Registry, MaxClients: p.cfg.StreamMaxClients,
		Stream: outbox.StreamConfig{Replicas: p.cfg.NATSReplicas, MaxBytes: p.cfg.NATSMaxBytes},
	})
	if err != nil {
		return err
	}
	p.base.Server.Go("stream", p.stream.Run)
	p.base.Server.OnDrain(p.stream.Close)
	p.base.Server.OnDrain(p.drawer.Close)
	p.base.Server.OnDrain(p.copilot.Close)
	p.base.Server.CheckOptional("stream", p.stream.Check)
	p.base.Server.CheckOptional("settings", func(ctx context.Context) service.Check {
		if err := p.settings.Check(ctx); err != nil {
			return service.Check{Status: service.Warn, Detail: err.Error()}
		}
		return service.Check{Status: service.OK}
	})
	return nil
}

// wireProxy creates the proxy to the tools, and the second origin on which their own pages run.
func (p *parts) wireProxy() (err error) {
	published := p.cfg.published()
	p.proxy, err = proxy.New(proxy.Config{
		Upstreams: p.clients, Pool: p.base.Pool, Log: p.log, Alive: p.guard.Alive, Touch: p.guard.Touch,
		StepUp: func(_ context.Context, who caller.Caller, action string) error {
			return p.guard.CheckStepUp(who, action)
		},
		Enabled:       p.enabled("toolProxy"),
		ClientIP:      func(r *http.Request) string { return p.guard.Address(r).String() },
		PublicAddress: func(s upstream.Service) string { return published[string(s)] },
		PublicURL:     p.cfg.PublicURL, ToolsURL: p.cfg.ToolsURL, OperatorTenants: p.cfg.OperatorTenants,
		Keys: p.keys, MaxBody: p.cfg.ProxyMaxBody,
	})
	if err != nil {
		return err
	}
	tools := p.cfg.ToolsListener
	if tools == nil {
		if tools, err = listener.Listen(p.cfg.ToolsAddr, "the tools origin (DASHBOARD_TOOLS_ADDR)", 0); err != nil {
			return err
		}
	}
	p.base.OnClose(func() { _ = tools.Close() })
	p.base.OnClose(p.proxy.Close)
	p.base.Server.OnDrain(p.proxy.Drain)
	p.base.Server.Go("tools origin", func(ctx context.Context) error { return p.proxy.ServeTools(ctx, tools) })
	p.base.Server.Go("proxy tickets", p.proxy.SweepTickets)
	return nil
}
