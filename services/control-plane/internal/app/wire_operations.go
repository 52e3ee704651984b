package app

import (
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/outbox/admin"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit"
	"github.com/mlp-platform/platform/services/control-plane/internal/cost"
	"github.com/mlp-platform/platform/services/control-plane/internal/dispatch"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/governance"
	"github.com/mlp-platform/platform/services/control-plane/internal/guarded"
	"github.com/mlp-platform/platform/services/control-plane/internal/health"
	"github.com/mlp-platform/platform/services/control-plane/internal/job"
	"github.com/mlp-platform/platform/services/control-plane/internal/status"
)

// connectRecords builds the records of costs, jobs and governance.
func (p *parts) connectRecords() (err error) {
	p.governance = governance.NewAPI(p.store, p.registry, p.log, time.Now)
	p.costs = cost.NewService(p.store, p.registry, p.tracker, p.cfg.rates(), time.Now)
	p.budgets = cost.NewBudgets(p.store, time.Now)
	p.jobs, err = job.New(job.Parts{Store: p.store, Now: time.Now})
	return err
}

func (c *Config) rates() cost.Rates {
	return cost.Rates{
		GPUHourUSD: c.GPUCostPerHour, CPUHourUSD: c.CPUCostPerHour, GPUWatts: c.CarbonGPUWatts, CoreWatts: c.CarbonCoreWatts,
		PUE: c.CarbonPUE, GridGramsPerKWh: c.CarbonGridGramsPerKWh,
	}
}

// connectOperations builds monitoring for operators.
func (p *parts) connectOperations() error {
	p.expectMetrics()
	p.server.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "platform_dispatch_target_ok", Help: "1 while the orchestrator has the deployment that runs are dispatched to, else 0.",
	}, func() float64 {
		if p.target.Status().State == dispatch.OK {
			return 1
		}
		return 0
	}))
	p.status = status.New(p.store, p.log,
		status.Health("tracker", p.cfg.TrackingURI, ""),
		status.Health("orchestrator", p.cfg.OrchestratorURL, ""),
		status.Health("serving", p.cfg.ServingURL, "SERVING_URL is not configured"),
		status.Health("bus", p.cfg.BusBridgeURL, "BUS_BRIDGE_URL is not configured"),
	)
	p.outbox = admin.Handlers{Pool: p.pool, Source: event.Source}
	return nil
}

// expectMetrics creates the counters of every model and data set in the registry, at 0.
func (p *parts) expectMetrics() {
	for _, m := range p.registry.Models() {
		p.metrics.ExpectModel(m.ID())
		for _, d := range m.DatasetNames() {
			p.metrics.Expect(m.ID(), d)
		}
	}
}

// connectHealth builds this replica's health report.
func (p *parts) connectHealth() (err error) {
	cfg := &p.cfg
	p.health, err = health.New(health.Parts{
		Facts: health.Facts{
			OrchestratorURL: withoutPassword(cfg.OrchestratorURL), Coordinator: cfg.Coordinator, Publisher: cfg.EventPublisher,
			RelayEnabled: cfg.EventRelayEnabled, StateEmbedded: cfg.StateEmbedded, BrokerEmbedded: cfg.BrokerEmbedded,
			ModelRepoDir: cfg.ModelRepoDir, ModelRepoOwn: cfg.checksOut(),
		},
		Server: p.server, Store: p.store, Registry: p.registry, Auth: p.auth, Secrets: cfg.secretWarnings(), Target: p.target,
		Relay: p.relay, Migrated: p.checkSchema, Coordinate: p.coordinator.Ping, Breaker: p.breaker, Poller: p.poller,
	})
	return err
}

// withoutPassword removes the credentials from a URL.
func withoutPassword(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}

// connectAudit builds the audit ledger, and the connection that it and drift use to consume events.
func (p *parts) connectAudit() (err error) {
	if p.nats, err = p.connectNATS(); err != nil {
		return err
	}
	if p.audit.Ledger, err = audit.New(audit.Parts{
		Store: p.store, Conn: p.nats, Stream: p.cfg.eventStream(), Coordinator: p.cfg.Coordinator, Now: time.Now, Log: p.log,
		StateDir: p.cfg.AuditStateDir,
	}, p.cfg.AuditKeyFile, p.cfg.AuditTrustedKeys); err != nil {
		return err
	}
	p.audit.Guard = p.guarded
	p.guarded.Handle(guarded.AuditFailure, p.audit.Ledger.ApplyAcknowledgement)
	p.server.Registry.MustRegister(p.audit.Ledger)
	p.server.CheckOptional("audit", p.audit.Ledger.Check)
	return nil
}

func (c *Config) eventStream() outbox.StreamConfig {
	return outbox.StreamConfig{Replicas: c.NATSReplicas, MaxBytes: c.NATSMaxBytes}
}
