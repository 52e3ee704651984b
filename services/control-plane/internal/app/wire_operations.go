package app

import (
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/outbox/admin"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/status"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// operate makes what operators look after the platform with.
func (p *parts) operate(db *store.Store, pool *pgxpool.Pool, log *slog.Logger) {
	p.status = status.New(db, log,
		status.Health("tracker", p.cfg.TrackingURI, ""),
		status.Health("orchestrator", p.cfg.OrchestratorURL, ""),
		status.Health("serving", p.cfg.ServingURL, "SERVING_URL is not configured"),
		status.Health("bus", p.cfg.BusBridgeURL, "BUS_BRIDGE_URL is not configured"),
	)
	p.outbox = admin.Handlers{Pool: pool, Source: event.Source}
}
