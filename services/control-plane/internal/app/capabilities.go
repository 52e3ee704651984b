package app

import (
	"net/http"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/approval"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// features lists what this build serves; clients check it before they offer a feature.
var features = []string{
	"alerts", "alias_history", "alias_rollback", "approval_diffs", "approvals", "audit", "auto_retrain", "budgets", "carbon", "change_notices", "compliance", "costs", "delegation", "evals", "freshness", "idempotency_keys",
	"governance_posture", "jobs", "llm_endpoints", "model_cards", "modelrepo_config", "modelrepo_polling", "models", "outbox", "promotion_policies", "promotions", "push_webhooks", "retrain", "runs", "separation_of_duties", "status",
	"versions",
}

// capabilities serves GET /capabilities.
func (p *parts) capabilities(c echo.Context) error {
	return c.JSON(http.StatusOK, api.Capabilities{
		Service: name, Version: service.Version, Api: "1", Features: features,
		Limits: map[string]int64{
			"body_bytes": wire.MaxBody, "page": service.MaxPageLimit, "model_ids": approval.MaxModels, "changed_files": approval.MaxFiles,
			"changes_per_minute": int64(p.cfg.ChangesPerMinute), "retrains_per_minute": int64(p.cfg.RetrainsPerMinute),
			"decisions_per_minute": int64(p.cfg.DecisionsPerMin), "writes_per_minute": int64(p.cfg.WritesPerMinute), "approval_expiry_hours": int64(p.cfg.ApprovalExpiryHours),
		},
		Backends: []string{string(api.PublicArchive), string(api.ObjectStore), string(api.Dataplane), string(api.Local)},
	})
}
