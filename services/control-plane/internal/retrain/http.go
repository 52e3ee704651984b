package retrain

import (
	"net/http"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Start serves POST /retrain.
func (a *API) Start(c echo.Context) error {
	ctx := c.Request().Context()
	key, err := idempotencyKey(c.Request().Header)
	if err != nil {
		return err
	}
	var body api.RetrainRequest
	if err := wire.Decode(c, &body); err != nil {
		return err
	}
	if err := validateRequest(body); err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	answer, replayed, err := a.start(ctx, p, key, body)
	if err != nil {
		return err
	}
	if replayed {
		c.Response().Header().Set("Idempotency-Replayed", "true")
	}
	return c.JSON(http.StatusOK, answer)
}
