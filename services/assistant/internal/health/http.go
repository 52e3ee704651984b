// Package health serves the health route for clients of the API. The probes of the orchestrator are in libs/service.
package health

import (
	"net/http"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/assistant"
	"github.com/mlp-platform/platform/libs/service"
)

// Handler responds without calling any dependency. With sample it reports a blocker: each replica has a separate sample
// cluster, so a change made in one is not visible in another.
func Handler(sample bool) echo.HandlerFunc {
	answer := api.Health{Status: "ok", Version: service.Version}
	if sample {
		answer.HorizontalScalingBlockers = &[]api.HealthHorizontalScalingBlockers{api.SampleCluster}
	}
	return func(c echo.Context) error { return c.JSON(http.StatusOK, answer) }
}
