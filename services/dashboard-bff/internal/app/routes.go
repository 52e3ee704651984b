package app

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/proxy"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// addRoutes adds the service's own routes; libs/service has added those that all services share.
func (p *parts) addRoutes(e *echo.Echo) {
	viewer := func(opts ...access.Option) echo.MiddlewareFunc { return p.guard.Require(caller.Viewer, opts...) }
	admin := func(opts ...access.Option) echo.MiddlewareFunc { return p.guard.Require(caller.Admin, opts...) }

	e.POST("/api/auth/login", p.login.Login, p.guard.Public(access.Login))
	e.POST("/api/auth/logout", p.login.Logout, viewer())
	service.Get(e, "/api/auth/me", p.login.Me, viewer())

	signOn := p.guard.Public(access.SSO)
	service.Get(e, "/api/auth/sso/providers", p.sso.Providers, p.guard.Public(access.Providers))
	// Not by HEAD: it would spend the sign-in.
	e.GET("/api/auth/sso/callback", p.sso.Callback, signOn)
	e.GET("/api/auth/sso/:provider/login", p.sso.Login, signOn)
	e.POST("/api/auth/sso/logout", p.sso.Logout, viewer())

	service.Get(e, "/api/health", p.health.Get)
	service.Get(e, "/api/v1/selfobs/status", p.self.Status, viewer())
	e.POST("/api/v1/selfobs/action", p.self.Action, viewer())

	service.Get(e, "/api/v1/overview", p.views.Overview, viewer())
	service.Get(e, "/api/v1/mlops/registry", p.views.Registry, viewer())
	service.Get(e, "/api/v1/mlops/model/:name", p.views.Model, viewer())
	service.Get(e, "/api/v1/mlops/model/:name/series", p.views.Series, viewer())
	service.Get(e, "/api/v1/mlops/promotion/:name", p.views.Promotion, viewer())
	service.Get(e, "/api/v1/runs", p.views.Runs, viewer())
	service.Get(e, "/api/v1/runs/:id", p.views.Run, viewer())

	service.Get(e, "/api/v1/facility/overview", p.facility.Overview, viewer())
	service.Get(e, "/api/v1/facility/queue", p.facility.Queue, viewer())
	service.Get(e, "/api/v1/facility/job/:job_id", p.facility.Job, viewer())
	service.Get(e, "/api/v1/llmops/overview", p.llmops.Overview, viewer())
	service.Get(e, "/api/v1/governance/overview", p.governance.Overview, viewer())
	service.Get(e, "/api/v1/finops/overview", p.finops.Overview, viewer())
	service.Get(e, "/api/v1/alerts", p.alerts.List, viewer())
	e.POST("/api/v1/alerts/:alert_id/ack", p.alerts.Ack, viewer())
	service.Get(e, "/api/v1/inbox", p.inbox.List, viewer())
	e.POST("/api/v1/inbox/read-all", p.inbox.ReadAll, viewer())
	e.POST("/api/v1/inbox/:id/read", p.inbox.Read, viewer())
	channels := "/api/v1/notifications/channels"
	service.Get(e, channels, p.notifier.List, admin())
	e.POST(channels, p.notifier.Create, admin(access.StepUp(access.ConfigSecret)))
	e.PUT(channels+"/:id", p.notifier.Change, admin(access.StepUp(access.ConfigSecret)))
	e.DELETE(channels+"/:id", p.notifier.Delete, admin(access.StepUp(access.ConfigSecret)))
	e.POST(channels+"/:id/test", p.notifier.Test, admin())
	service.Get(e, "/api/v1/search", p.search.FindEntries, viewer(access.Limit(access.Search)))
	service.Get(e, "/api/v1/approvals/:id/effect", p.effects.Get, viewer())
	service.Get(e, "/api/audit", p.audit.List, admin())

	service.Get(e, "/api/v1/flags", p.flags.List, viewer())
	service.Get(e, "/api/v1/flags/admin", p.flags.ListDefinitions, admin())
	e.POST("/api/v1/flags/:name", p.flags.Set, admin(access.StepUp(access.FlagWrite)))
	e.DELETE("/api/v1/flags/:name", p.flags.Clear, admin(access.StepUp(access.FlagWrite)))
	e.POST("/ofrep/v1/evaluate/flags", p.flags.EvaluateAll, viewer())
	e.POST("/ofrep/v1/evaluate/flags/:key", p.flags.Evaluate, viewer())

	service.Get(e, "/api/config", p.settings.Get, viewer())
	service.Get(e, "/api/config/keys", p.settings.Keys, viewer())
	e.PUT("/api/config", p.settings.Put, admin(access.OperatorTenant()))

	comments := "/api/v1/collab/:type/:id/comments"
	service.Get(e, comments, p.collab.ListComments, viewer(access.Limit(access.CollabReads)))
	e.POST(comments, p.collab.AddComment, viewer(access.Limit(access.Comments)))
	e.DELETE(comments+"/:comment_id", p.collab.DeleteComment, viewer(access.Limit(access.Comments)))
	service.Get(e, "/api/v1/collab/:type/:id/activity", p.collab.Activity, viewer(access.Limit(access.CollabReads)))
	e.POST("/api/v1/collab/snapshot", p.snapshots.Create, access.NoStore, viewer(access.Limit(access.Snapshots)))
	service.Get(e, "/api/v1/collab/snapshot/:token", p.snapshots.Get, access.NoStore, viewer(access.Limit(access.CollabReads)))

	e.POST("/api/v1/copilot/ask", p.copilot.AskQuestion, viewer(access.Limit(access.Copilot)))
	e.POST("/api/v1/assistant/chat", p.drawer.StreamAnswer, viewer(access.Limit(access.Copilot)))
	service.Get(e, "/api/v1/assistant/clusters", p.drawer.ListClusters, viewer())
	service.Get(e, "/api/v1/assistant/sessions/:session/replay", p.drawer.ReplaySession, viewer())
	service.Get(e, "/api/v1/assistant/sessions/:session", p.drawer.GetSession, viewer())
	service.Get(e, "/api/v1/assistant/sessions/:session/actions", p.drawer.ListActions, viewer())
	e.POST("/api/v1/assistant/sessions/:session/actions/:action_id", p.drawer.DecideAction, admin(access.StepUp(access.AssistantDecide)))

	service.Get(e, "/api/docs/tree", p.docs.ListPages, viewer())
	service.Get(e, "/api/docs/content", p.docs.GetPage, viewer())
	service.Get(e, "/api/v1/stream", p.stream.Serve, viewer())

	p.addProxyRoutes(e)
	e.Match([]string{http.MethodGet, http.MethodHead}, "/*", p.ui.Serve)
}

// addProxyRoutes adds the proxy under every method it serves. Reads need a viewer, writes an admin.
func (p *parts) addProxyRoutes(e *echo.Echo) {
	operator := access.OperatorTenantIf(func(c echo.Context) bool { return proxy.OperatorOnly(upstream.Service(c.Param("service"))) })
	read := p.guard.Require(caller.Viewer, operator)
	write := p.guard.Require(caller.Admin, operator, access.StepUpAll(func(c echo.Context) []string { return proxy.StepUpActions(c.Request()) }))
	e.POST("/api/proxy-ticket", p.proxy.CreateTicket, access.NoStore, p.guard.Require(caller.Viewer))
	for _, path := range []string{"/api/proxy/:service", "/api/proxy/:service/*"} {
		e.Match([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, path, p.proxy.Forward, read)
		e.Match([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, path, p.proxy.Forward, write)
	}
}
