package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/embedded/natsd"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant"
	controlplane "github.com/mlp-platform/platform/services/control-plane"
	dashboard "github.com/mlp-platform/platform/services/dashboard-bff"
	evidenceapi "github.com/mlp-platform/platform/services/evidence-api"
	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/standalone/internal/credentials"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord"
	"github.com/mlp-platform/platform/services/standalone/internal/trackerd"
	"github.com/mlp-platform/platform/services/trainer"
)

// environ is the environment of a service: the caller's overrides defaults, and fixed, which only this process knows,
// overrides the caller's.
func (p *platform) environ(defaults, fixed map[string]string) []string {
	env := map[string]string{}
	for k, v := range defaults {
		env[k] = v
	}
	for _, kv := range p.cfg.environ {
		if k, v, ok := strings.Cut(kv, "="); ok && v != "" {
			env[k] = v
		}
	}
	for k, v := range fixed {
		env[k] = v
	}
	out := make([]string, 0, len(env))
	for k, v := range env {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return out
}

func (p *platform) common() map[string]string {
	return map[string]string{
		"PLATFORM_DATABASE_URL": p.databaseURL,
		"NATS_URL":              p.natsURL,
		"TRACKING_URI":          p.cfg.trackerURL(),
		"MLFLOW_TRACKING_TOKEN": p.creds.TrackerToken,
		"NATS_STREAM_MAX_BYTES": strconv.Itoa(streamMaxBytes),
		"PLATFORM_DATA_DISK":    p.root,
		"LOG_LEVEL":             p.cfg.LogLevel,
		"OTEL_SERVICE_NAME":     "",   // each service keeps its own
		"DRAIN_DELAY":           "0s", // there is no other replica to send requests to
	}
}

// setOrchestratorKey gives a service our orchestrator's key. Where a variable names another orchestrator, the caller's
// own PREFECT_API_KEY stays: our key must not leave the platform.
func (p *platform) setOrchestratorKey(fixed map[string]string, addressVariable string) {
	if !p.cfg.isSet(addressVariable) {
		fixed["PREFECT_API_KEY"] = p.creds.OrchestratorKey
	}
}

func (p *platform) controlPlaneConfig() (controlplane.Config, error) {
	fixed := p.common()
	fixed["CONTROL_PLANE_ADDR"] = p.cfg.ControlPlaneAddr
	fixed["CONTROL_PLANE_TOKEN"] = p.creds.ControlPlaneToken
	fixed["SERVING_URL"] = p.cfg.inferenceURL()
	fixed["SERVING_TOKEN"] = p.creds.ServingControlPlaneToken
	fixed["BUS_BRIDGE_URL"] = p.cfg.busURL()
	fixed["MODELREPO_DIR"] = p.repo
	fixed["MODELREPO_WEBHOOK_SECRET"] = p.creds.WebhookSecret
	p.setOrchestratorKey(fixed, "PREFECT_API_URL")
	cfg, err := controlplane.LoadConfig(p.environ(map[string]string{
		"DELEGATION_TRUST_JSON":              p.delegationTrust,
		"PREFECT_API_URL":                    p.cfg.orchestratorURL(),
		"CONTROL_PLANE_CREDENTIALS_JSON":     p.creds.ControlPlaneMap(),
		"CONTROL_PLANE_SEPARATION_OF_DUTIES": "enforce",
		"ALLOW_GENERATED_PRODUCTION":         "true",
		"PROMOTION_APPROVAL_MODE_DEFAULT":    "run",
		// Everyone who can write to the repository in the data directory owns this installation, and holds this token.
		"MODELREPO_IDENTITIES_JSON": `{"local": "` + auth.LegacyPrincipal + `"}`,
		"AUDIT_SIGNING_KEY_FILE":    p.path("audit-signing.key"),
	}, fixed))
	cfg.SystemCredentials = service.Secret(p.creds.ControlPlaneSystemMap())
	// No other process can hold a lease on an embedded database.
	cfg.SoleProcess, cfg.StateEmbedded, cfg.BrokerEmbedded = p.embeddedPG != nil, p.embeddedPG != nil, true
	return cfg, err
}

func (p *platform) inferenceConfig() (inference.Config, error) {
	fixed := p.common()
	fixed["INFERENCE_ADDR"] = p.cfg.InferenceAddr
	fixed["INFERENCE_GRPC_ADDR"] = p.cfg.InferenceGRPC
	fixed["CONTROL_PLANE_URL"] = p.cfg.controlPlaneURL()
	fixed["CONTROL_PLANE_TOKEN"] = p.creds.InferenceToken
	return inference.LoadConfig(p.environ(map[string]string{
		"DELEGATION_TRUST_JSON":              p.delegationTrust,
		"INFERENCE_CREDENTIALS_JSON":         p.creds.InferenceMap(),
		"MODEL_CACHE_DIR":                    p.path("cache", "models"),
		"CONTROL_PLANE_SEPARATION_OF_DUTIES": "enforce", // the control plane's default here; REQUIRE_GATE follows it
	}, fixed))
}

// busUsers are the broker's users for the message bus. The bridge publishes to the reply subject that a producer
// chooses: without limits it would write to the event subjects named as one.
func (p *platform) busUsers() []natsd.User {
	return []natsd.User{
		{Name: credentials.BusUser, Password: p.creds.BusPassword, Publish: inference.BusRequests(), Subscribe: []string{"_INBOX.>", inference.BusResults}},
		{Name: credentials.BridgeUser, Password: p.creds.BridgePassword, Publish: []string{"_INBOX.>", inference.BusResults}, Subscribe: inference.BusRequests()},
	}
}

// bridgeConfig serves the bus of our own broker.
func (p *platform) bridgeConfig() (inference.BridgeConfig, error) {
	fixed := p.common()
	fixed["BUS_ADDR"] = p.cfg.BusAddr
	fixed["BUS_NATS_URL"] = (&url.URL{Scheme: "nats", User: url.UserPassword(credentials.BridgeUser, p.creds.BridgePassword), Host: p.cfg.NATSAddr}).String()
	fixed["SERVING_URL"] = p.cfg.inferenceURL()
	fixed["SERVING_TOKEN"] = p.creds.BusServingToken
	fixed["CONTROL_PLANE_URL"] = p.cfg.controlPlaneURL()
	fixed["CONTROL_PLANE_TOKEN"] = p.creds.BusControlPlaneToken
	return inference.LoadBridgeConfig(p.environ(map[string]string{"BUS_CREDENTIALS_JSON": p.creds.BusMap()}, fixed))
}

// assistantConfig uses the cluster of KUBECONFIG, or without one a sample cluster.
func (p *platform) assistantConfig() (assistant.Config, error) {
	fixed := p.common()
	fixed["ASSISTANT_ADDR"] = p.cfg.AssistantAddr
	fixed["ASSISTANT_ADMIN_KEYS"] = p.creds.AssistantAdminKey()
	fixed["ASSISTANT_OPERATOR_KEYS"] = p.creds.AssistantOperatorKey()
	fixed["ASSISTANT_READONLY_KEYS"] = p.creds.AssistantReadonlyKey()
	defaults := map[string]string{"DELEGATION_TRUST_JSON": p.assistantTrust}
	named := func(kv string) bool {
		return strings.HasPrefix(kv, "ASSISTANT_CONTEXTS=") && kv != "ASSISTANT_CONTEXTS="
	}
	if !slices.ContainsFunc(p.cfg.environ, named) { // clusters that are named leave no room for a sample
		defaults["ASSISTANT_CLUSTER"] = "sample"
	}
	return assistant.LoadConfig(p.environ(defaults, fixed))
}

// dashboardConfig acts for people at the control plane and at inference by delegations. Services that this process does
// not run are not configured, so that their health is unknown rather than down.
func (p *platform) dashboardConfig() (dashboard.Config, error) {
	fixed := p.common()
	fixed["DASHBOARD_ADDR"] = p.cfg.DashboardAddr
	fixed["DASHBOARD_TOOLS_ADDR"] = p.cfg.ToolsAddr
	fixed["CONTROL_PLANE_URL"] = p.cfg.controlPlaneURL()
	fixed["SERVING_URL"] = p.cfg.inferenceURL()
	fixed["ASSISTANT_URL"] = p.cfg.assistantURL()
	fixed["BUS_BRIDGE_URL"] = p.cfg.busURL()
	fixed["ASSISTANT_READONLY_KEY"] = p.creds.AssistantReadonlyKey()
	fixed["ASSISTANT_OPERATOR_KEY"] = p.creds.AssistantOperatorKey()
	fixed["DASHBOARD_ACT_KEY_FILE"] = p.path(delegationKeyFile)
	p.setOrchestratorKey(fixed, "ORCHESTRATOR_API_URL")
	cfg, err := dashboard.LoadConfig(p.environ(map[string]string{
		"ORCHESTRATOR_API_URL":            p.cfg.orchestratorURL(),
		"DASHBOARD_ADMIN_PASSWORD":        p.creds.DashboardAdmin,
		"DASHBOARD_VIEWER_PASSWORD":       p.creds.DashboardViewer,
		"DASHBOARD_JWT_SECRET":            p.creds.DashboardSigning,
		"DASHBOARD_SECRET_KEY":            p.creds.DashboardSecretKey(),
		"DASHBOARD_SESSION_COOKIE_SECURE": "false", // plain HTTP on loopback
		"PLATFORM_SCHEDULER_MODE":         "mock",
	}, fixed))
	return cfg, err
}

// delegationKeyFile is where the key is that the dashboard signs delegations with.
const delegationKeyFile = "delegation.key"

// trustDashboard makes the delegation key on the first start and lets the services accept its signatures.
func (p *platform) trustDashboard() error {
	delegator, err := auth.LoadOrCreateDelegator(delegationIssuer, p.path(delegationKeyFile))
	if err != nil {
		return err
	}
	return p.trustKey(delegator.PublicKey())
}

// delegationIssuer is the name in which the dashboard signs delegations.
const delegationIssuer = "dashboard"

// trustKey lets the services accept delegations of the dashboard that are signed with this key.
func (p *platform) trustKey(publicKey string) (err error) {
	trust := func(scopes ...string) (string, error) {
		text, err := json.Marshal(map[string]any{delegationIssuer: map[string]any{
			"public_key": publicKey, "tenants": []string{auth.LegacyTenant}, "scopes": scopes,
		}})
		return string(text), err
	}
	if p.delegationTrust, err = trust("read", "write", "predict", "admin"); err != nil {
		return err
	}
	p.assistantTrust, err = trust("limits") // no role, which the dashboard has keys for: the assistant does not know this scope
	return err
}

// trainerConfig is the trainer's environment. The samples' registry is that of dev.
func (p *platform) trainerConfig() (trainer.Config, error) {
	fixed := p.common()
	fixed["CONTROL_PLANE_URL"] = p.cfg.controlPlaneURL()
	fixed["CONTROL_PLANE_TOKEN"] = p.creds.TrainerToken
	fixed["MODELREPO_DIR"] = p.repo
	return trainer.LoadConfig(p.environ(map[string]string{
		"MODELREPO_ENV":           "dev",
		"DATA_CACHE_DIR":          p.path("cache", "data"),
		"PLATFORM_SCHEDULER_MODE": "mock",
	}, fixed))
}

// hosted is a service that runs in this process.
type hosted struct {
	name    string
	migrate func(context.Context) error // nil where the service has no schema in Postgres
	run     func(context.Context, *slog.Logger) error
}

// configs are the configurations of all services.
type configs struct {
	dashboard    dashboard.Config
	assistant    assistant.Config
	evidence     evidenceapi.Config
	inference    inference.Config
	bridge       inference.BridgeConfig
	controlPlane controlplane.Config
}

// configs reads them all; each error names the service that rejects a variable.
func (p *platform) configs() (c configs, errs []error) {
	load := func(name string, read func() error) {
		for _, err := range splitErrors(read()) {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	load("dashboard", func() (err error) { c.dashboard, err = p.dashboardConfig(); return err })
	load("assistant", func() (err error) { c.assistant, err = p.assistantConfig(); return err })
	load("evidence API", func() (err error) { c.evidence, err = p.evidenceConfig(); return err })
	load("inference", func() (err error) { c.inference, err = p.inferenceConfig(); return err })
	load("bus bridge", func() (err error) { c.bridge, err = p.bridgeConfig(); return err })
	load("control plane", func() (err error) { c.controlPlane, err = p.controlPlaneConfig(); return err })
	load("trainer", func() (err error) { _, err = p.trainerConfig(); return err })
	return c, errs
}

// services configures every service onto its listener.
func (p *platform) services(ls *listeners) ([]hosted, error) {
	if err := p.trustDashboard(); err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	c, errs := p.configs()
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	db, as, ev, inf, br, cp := c.dashboard, c.assistant, c.evidence, c.inference, c.bridge, c.controlPlane
	db.Listener, db.ToolsListener = ls.dashboard, ls.tools
	as.Listener, ev.Listener, inf.Listener, cp.Listener = ls.assistant, ls.evidence, ls.inference, ls.controlPlane
	br.Listener, inf.GRPCListener = ls.bus, ls.inferenceGRPC
	inference.LinkBridge(&inf, &br)
	return []hosted{
		{"dashboard", withConfig(db, dashboard.Migrate), runWith(db, dashboard.Run)},
		{"assistant", withConfig(as, assistant.Migrate), runWith(as, assistant.Run)},
		{"evidence API", nil, runWith(ev, evidenceapi.Run)},
		{"inference", withConfig(inf, inference.Migrate), runWith(inf, inference.Run)},
		{"bus bridge", nil, runWith(br, inference.RunBridge)},
		{"control plane", withConfig(cp, controlplane.Migrate), runWith(cp, controlplane.Run)},
	}, nil
}

func withConfig[C any](cfg C, migrate func(context.Context, C) error) func(context.Context) error {
	return func(ctx context.Context) error { return migrate(ctx, cfg) }
}

func runWith[C any](cfg C, run func(context.Context, C, *slog.Logger) error) func(context.Context, *slog.Logger) error {
	return func(ctx context.Context, log *slog.Logger) error { return run(ctx, cfg, log) }
}

// logName is the service's name in the log, such as control-plane.
func (h hosted) logName() string { return strings.ReplaceAll(strings.ToLower(h.name), " ", "-") }

// startServices runs the services until ctx ends. One that ends before that ends the group.
func (p *platform) startServices(ctx context.Context, g *errgroup.Group, services []hosted) {
	for _, h := range services {
		g.Go(func() error {
			if err := h.run(ctx, p.log.With(slog.String("service", h.logName()))); err != nil {
				return fmt.Errorf("%s: %w", h.name, err)
			}
			return ctx.Err()
		})
	}
}

// migrate migrates all schemas in parallel: none depends on another.
func (p *platform) migrate(ctx context.Context, services []hosted) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return postgres.Migrate(ctx, p.databaseURL, trackerd.Schema, trackerd.Migrations())
	})
	g.Go(func() error {
		return postgres.Migrate(ctx, p.databaseURL, orchestratord.Schema, orchestratord.Migrations())
	})
	for _, h := range services {
		if h.migrate != nil {
			g.Go(func() error { return h.migrate(ctx) })
		}
	}
	return g.Wait()
}
