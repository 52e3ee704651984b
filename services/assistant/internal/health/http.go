// Package health answers the health route that clients of the API call. The probes of the orchestrator are in libs/service.
package health

import (
	"net/http"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/assistant"
	"github.com/mlp-platform/platform/libs/service"
)

// Serve answers without calling any dependency.
func Serve(c echo.Context) error {
	return c.JSON(http.StatusOK, api.Health{Status: "ok", Version: service.Version})
}
