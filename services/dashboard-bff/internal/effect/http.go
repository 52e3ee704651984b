// Package effect shows what approving a record will do, as the control plane says it.
package effect

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// timeout of the call; a person waits before a button.
const timeout = 5 * time.Second

// Config of New.
type Config struct{ Clients *upstream.Clients }

// API serves GET /api/v1/approvals/{id}/effect.
type API struct{ clients *upstream.Clients }

// New refuses a missing part.
func New(cfg Config) (*API, error) {
	if err := service.RequireParts("effect", cfg); err != nil {
		return nil, err
	}
	return &API{cfg.Clients}, nil
}

// Get calls the control plane as the person: what their approval does depends on who they are. The answer is passed on
// unchanged, and not shared between callers.
func (a *API) Get(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return input.Invalid("must be the id of an approval, a UUID", "path", "id")
	}
	client, err := a.clients.ControlPlane(caller.From(c))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), timeout)
	defer cancel()
	answer, err := wire.Decode[api.ApprovalEffect](client.GetApprovalEffect(ctx, id))
	if err != nil {
		return upstream.ExplainControlPlane(err, "approvals")
	}
	return c.JSON(http.StatusOK, answer)
}
