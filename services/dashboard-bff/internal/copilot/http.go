package copilot

import (
	"net/http"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/assistant"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
)

// AskQuestion serves POST /api/v1/copilot/ask. Trouble with the assistant is part of the answer.
func (p *Copilot) AskQuestion(c echo.Context) error {
	ctx, who := c.Request().Context(), caller.From(c)
	if !p.Enabled(ctx, who) {
		return fault.FeatureOff.New("The copilot is switched off; an admin can switch the flag copilotDrawer on again.")
	}
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	var body api.CopilotQuestion
	if err := service.DecodeJSON(c, &body, true); err != nil {
		return err
	}
	m, err := assistant.NewMessage(body.Question, body.Context)
	if err != nil {
		return err
	}
	a := p.ask(ctx, who, m)
	page := ""
	if body.Context != nil && body.Context.Page != nil {
		page = cutRunes(*body.Context.Page, 200)
	}
	p.record(ctx, who, m, page, a)
	if ctx.Err() != nil {
		return ctx.Err() // the client has gone
	}
	return c.JSON(http.StatusOK, a.document())
}
