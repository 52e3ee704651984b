package ladder

import (
	"net/http"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/promotion"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Post serves POST /versions.
func (s *Service) Post(c echo.Context) error {
	ctx := c.Request().Context()
	var body api.VersionReport
	if err := wire.Decode(c, &body); err != nil {
		return err
	}
	var faults []problem.Field
	bad := func(msg, name string) { faults = append(faults, problem.Field{Loc: []string{"body", name}, Msg: msg}) }
	if !registry.ValidName(body.Model) {
		bad(registry.NameRule, "model")
	}
	if !promotion.ValidVersion(body.Version) {
		bad(promotion.VersionRule, "version")
	}
	flowRunID := ""
	if body.FlowRunId != nil {
		if flowRunID = *body.FlowRunId; !registry.ValidName(flowRunID) {
			bad(registry.NameRule, "flow_run_id")
		}
	}
	if err := fault.InvalidAll(faults); err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	out, err := s.Report(ctx, p, body.Model, body.Version, flowRunID)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}
