package app

import (
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlp-platform/platform/libs/outbox/admin"
	"github.com/mlp-platform/platform/services/control-plane/internal/dispatch"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/metrics"
	"github.com/mlp-platform/platform/services/control-plane/internal/status"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// operate makes what operators look after the platform with.
func (p *parts) operate(db *store.Store, pool *pgxpool.Pool, counted *metrics.Metrics, reg prometheus.Registerer, log *slog.Logger) {
	p.expect(counted)
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "platform_dispatch_target_ok", Help: "1 while the orchestrator has the deployment that runs are dispatched to, else 0.",
	}, func() float64 {
		if p.target.Status().State == dispatch.OK {
			return 1
		}
		return 0
	}))
	p.status = status.New(db, log,
		status.Health("tracker", p.cfg.TrackingURI, ""),
		status.Health("orchestrator", p.cfg.OrchestratorURL, ""),
		status.Health("serving", p.cfg.ServingURL, "SERVING_URL is not configured"),
		status.Health("bus", p.cfg.BusBridgeURL, "BUS_BRIDGE_URL is not configured"),
	)
	p.outbox = admin.Handlers{Pool: pool, Source: event.Source}
}

// expect makes the counters of every model and dispatch that the registry knows.
func (p *parts) expect(counted *metrics.Metrics) {
	for _, m := range p.registry.Models() {
		counted.ExpectModel(m.ID())
		for _, d := range m.DatasetNames() {
			counted.Expect(m.ID(), d)
		}
	}
}
