// Package health answers the health route that clients of the API call. The probes of the orchestrator are in libs/service.
package health

import (
	"net/http"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/assistant"
	"github.com/mlp-platform/platform/libs/service"
)

// Handler answers without calling any dependency. With sample it names the blocker that each replica has a sample
// cluster of its own: a change made at one is not seen at another.
func Handler(sample bool) echo.HandlerFunc {
	answer := api.Health{Status: "ok", Version: service.Version}
	if sample {
		answer.HorizontalScalingBlockers = &[]api.HealthHorizontalScalingBlockers{api.SampleCluster}
	}
	return func(c echo.Context) error { return c.JSON(http.StatusOK, answer) }
}
