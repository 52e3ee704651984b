package app

import (
	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/alert"
	"github.com/mlp-platform/platform/services/assistant/internal/caller"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/health"
	"github.com/mlp-platform/platform/services/assistant/internal/mcpserver"
	"github.com/mlp-platform/platform/services/assistant/internal/session"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// chatPath is the main route.
const chatPath = "/v1/chat/completions"

// mcpPath is the route of the Model Context Protocol.
const mcpPath = "/mcp"

// handlers answer the routes.
type handlers struct {
	sample     bool // the cluster is this process's own
	access     *caller.Access
	streams    *turn.Streams
	models     chat.Models
	namespaces echo.HandlerFunc
	demoKeys   echo.HandlerFunc
	sessions   *session.Service
	actions    *action.Service
	mcp        *mcpserver.Server
	alerts     *alert.Service
}

// mount adds the routes. Each passes, in this order: key, rate limit, handler.
func (h handlers) mount(e *echo.Echo) {
	for _, path := range []string{"/healthz", "/v1/healthz"} {
		service.Get(e, path, health.Handler(h.sample))
	}
	chain := h.access.Chain()
	e.POST(chatPath, h.streams.ServeChat, chain...)
	e.GET("/v1/events/replay/:session_id", h.streams.ServeReplay, chain...)
	service.Get(e, "/v1/models", h.models.ServeList, chain...)
	service.Get(e, "/v1/models/:model", h.models.ServeOne, chain...)
	service.Get(e, "/v1/namespaces", h.namespaces, chain...)
	e.POST("/v1/auth/demo-keys", h.demoKeys, chain...)
	e.POST(mcpPath, h.mcp.Serve, chain...)
	e.POST("/v1/alerts", h.alerts.Serve, h.access.AlertChain()...)
	service.Get(e, "/v1/sessions", h.sessions.ServeList, chain...)
	service.Get(e, "/v1/sessions/:session_id", h.sessions.ServeOne, chain...)
	e.DELETE("/v1/sessions/:session_id", h.sessions.ServeDelete, chain...)
	service.Get(e, "/v1/sessions/:session_id/actions", h.actions.ServeList, chain...)
	service.Get(e, "/v1/sessions/:session_id/actions/:action_id", h.actions.ServeOne, chain...)
	e.POST("/v1/sessions/:session_id/actions/:action_id", h.actions.ServeDecision, chain...)
}

// isProbe reports whether a route stays out of the request log.
func isProbe(route string) bool {
	switch route {
	case "/livez", "/readyz", "/metrics", "/healthz", "/v1/healthz":
		return true
	}
	return false
}
