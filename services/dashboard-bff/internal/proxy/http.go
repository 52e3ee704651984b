package proxy

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// Forward answers any method of /api/proxy/:service and /api/proxy/:service/* on the dashboard's origin.
func (p *Proxy) Forward(c echo.Context) error {
	return p.serve(c.Response(), c.Request(), p.dashboard, caller.From(c))
}

// CreateTicket answers POST /api/proxy-ticket: an address on the tools origin, for one use within 30 s.
func (p *Proxy) CreateTicket(c echo.Context) error {
	var asked api.TicketRequest
	if err := service.DecodeJSON(c, &asked, true); err != nil {
		return err
	}
	ctx, who := c.Request().Context(), caller.From(c)
	if !p.cfg.Enabled(ctx, who) {
		return fault.FeatureOff.New("The proxy to the tools is switched off by the flag toolProxy; an admin can switch it on.")
	}
	s, err := parseService(asked.Service)
	if err == nil && s == upstream.ControlPlane {
		err = fault.UnknownService.New("The control plane is not served on the tools origin; use the dashboard.")
	}
	if err != nil {
		return fault.ValidationFailed.New(err.(*problem.Error).Detail).WithErrors(problem.Field{Loc: []string{"body", "service"}, Msg: fmt.Sprintf("%.60q is not served on the tools origin", asked.Service)})
	}
	if err := p.checkTenant(who, s); err != nil {
		return err
	}
	if _, err := p.address(s); err != nil {
		return err
	}
	url, err := p.issueTicket(ctx, s, who)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Cache-Control", "no-store") // it is a credential
	return c.JSON(http.StatusOK, api.Ticket{Url: url})
}
