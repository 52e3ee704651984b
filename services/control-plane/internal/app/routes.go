package app

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Classes of rate limits.
const (
	classNone     = ""
	classChanges  = "changes"
	classRetrain  = "retrain"
	classDecision = "decision"
	classOther    = "other"
)

// signed replaces the scope of a route that needs a signature or token of a forge
// instead of a credential; the handler checks it and limits the body itself.
const signed = "signed"

// anyWrite replaces the scope of a route that accepts any scope that writes.
const anyWrite = "any write scope"

// route is one row of the table; an empty scope makes it public.
type route struct {
	method, path string
	scope        string
	class        string
	handler      echo.HandlerFunc
}

// routes lists every route except those of libs/service.
func (p *parts) routes() []route {
	return slices.Concat(
		p.modelRoutes(), p.trainingRoutes(), p.promotionRoutes(), p.auditRoutes(), p.recordRoutes(), p.operationRoutes(),
	)
}

func (p *parts) modelRoutes() []route {
	return []route{
		{http.MethodGet, "/ready", "", classNone, reportAlive},
		{http.MethodGet, "/health", "", classNone, p.health.Get},
		{http.MethodGet, "/capabilities", "", classNone, p.capabilities},
		{http.MethodGet, "/models", "", classNone, p.registry.List},
		{http.MethodGet, "/models/:model/meta", "", classNone, p.registry.Meta},
		{http.MethodGet, "/models/:model/readme", "", classNone, p.registry.ReadmeText},
		{http.MethodGet, "/models/:model/images/:file", "", classNone, p.registry.Image},
		{http.MethodGet, "/model-owners", Read, classNone, p.listOwners},
		{http.MethodGet, "/modelrepo/status", Read, classNone, p.freshness.Status},
		{http.MethodGet, "/modelrepo/events", Read, classNone, p.pushes.List},
		{http.MethodGet, "/modelrepo/config", Read, classNone, p.repoConfig.Get},
		{http.MethodPost, "/modelrepo/sync", Manage, classOther, p.poller.Sync},
		{http.MethodPost, "/admin/reload", Manage, classOther, p.poller.Reload},
		{http.MethodPut, "/modelrepo/config", Manage, classOther, p.repoConfig.Put},
		{http.MethodPost, "/webhooks/modelrepo/forge-a", signed, classNone, p.webhooks.ForgeA},
		{http.MethodPost, "/webhooks/modelrepo/forge-b", signed, classNone, p.webhooks.ForgeB},
	}
}

func (p *parts) listOwners(c echo.Context) error { return registry.ListOwners(p.store.Queries)(c) }

func (p *parts) trainingRoutes() []route {
	return []route{
		{http.MethodPost, "/retrain", Retrain, classRetrain, p.retrain.Start},
		{http.MethodGet, "/retrain/:flow_run_id", Read, classNone, p.runs.Get},
		{http.MethodPost, "/retrain/:flow_run_id/cancel", Retrain, classRetrain, p.runs.Cancel},
		{http.MethodGet, "/runs", Read, classNone, p.runs.List},

		{http.MethodPost, "/api/changes", Changes, classChanges, p.approvals.Changes},
		{http.MethodGet, "/approvals", Read, classNone, p.approvals.List},
		{http.MethodGet, "/approvals/:id", Read, classNone, p.approvals.Get},
		{http.MethodGet, "/approvals/:id/diff", Read, classNone, p.diffs.Get},
		{http.MethodGet, "/approvals/:id/effect", Read, classNone, p.approvals.Effect},
		{http.MethodPost, "/approvals/:id/approve", Approve, classDecision, p.approvals.ApproveByID},
		{http.MethodPost, "/approvals/:id/reject", Approve, classDecision, p.approvals.RejectByID},
		{http.MethodPost, "/approve/:model", Approve, classDecision, p.approvals.ApproveModel},
		{http.MethodPost, "/reject/:model", Approve, classDecision, p.approvals.RejectModel},
	}
}

func (p *parts) promotionRoutes() []route {
	return []route{
		{http.MethodPost, "/versions", Manage, classOther, p.ladder.Post},
		{http.MethodGet, "/promotion-policies", Read, classNone, p.policies.List},
		{http.MethodGet, "/promotion-policies/:model", Read, classNone, p.policies.Get},
		{http.MethodPut, "/promotion-policies/:model", Manage, classOther, p.policies.Put},
		{http.MethodDelete, "/promotion-policies/:model", Manage, classOther, p.policies.Delete},
		{http.MethodGet, "/promotions", Read, classNone, p.promotions.List},
		{http.MethodPost, "/promotions", Approve, classDecision, p.promotions.Open},
		{http.MethodGet, "/promotions/:model/gate", Read, classNone, p.promotions.GetGate},
		{http.MethodGet, "/promotions/:id", Read, classNone, p.promotions.Get},
		{http.MethodPost, "/promotions/:id/approve", Approve, classDecision, p.promotions.Approve},
		{http.MethodPost, "/promotions/:id/reject", Approve, classDecision, p.promotions.Reject},
		{http.MethodGet, "/alias-history", Read, classNone, p.aliases.List},
		{http.MethodPost, "/aliases/:model/:alias/rollback", Approve, classDecision, p.promotions.Rollback},
	}
}

func (p *parts) auditRoutes() []route {
	return []route{
		{http.MethodGet, "/audit/events", Read, classNone, p.audit.List},
		{http.MethodPost, "/audit/events", anyWrite, classOther, p.audit.Post},
		{http.MethodGet, "/audit/verify", Read, classNone, p.audit.Verify},
		{http.MethodGet, "/audit/checkpoints", Read, classNone, p.audit.Checkpoints},
		{http.MethodPost, "/audit/checkpoints", Manage, classOther, p.audit.MakeCheckpoint},
		{http.MethodPost, "/audit/acknowledgements", Govern, classDecision, p.audit.Acknowledge},
		{http.MethodGet, "/audit/keys", Read, classNone, p.audit.Keys},
		{http.MethodGet, "/audit/export", Read, classNone, p.audit.Export},
	}
}

func (p *parts) recordRoutes() []route {
	return []route{
		{http.MethodGet, "/costs", Read, classNone, p.costs.List},
		{http.MethodPost, "/costs", Manage, classOther, p.costs.Post},
		{http.MethodGet, "/costs/summary", Read, classNone, p.costs.Summary},
		{http.MethodGet, "/carbon", Read, classNone, p.costs.Carbon},
		{http.MethodGet, "/budgets", Read, classNone, p.budgets.List},
		{http.MethodPut, "/budgets/:project", Manage, classOther, p.budgets.Put},
		{http.MethodDelete, "/budgets/:project", Manage, classOther, p.budgets.Delete},
		{http.MethodGet, "/jobs", Read, classNone, p.jobs.List},
		{http.MethodGet, "/jobs/summary", Read, classNone, p.jobs.Summary},
		{http.MethodGet, "/jobs/:id", Read, classNone, p.jobs.Get},
		{http.MethodPut, "/jobs/:scheduler/:id", Manage, classOther, p.jobs.Put},

		{http.MethodGet, "/evals", Read, classNone, p.governance.Evals.List},
		{http.MethodPost, "/evals", Manage, classOther, p.governance.Evals.Post},
		{http.MethodGet, "/llm/endpoints", Read, classNone, p.governance.Endpoints.List},
		{http.MethodPut, "/llm/endpoints/:model", Manage, classOther, p.governance.Endpoints.Put},
		{http.MethodDelete, "/llm/endpoints/:model", Manage, classOther, p.governance.Endpoints.Delete},
		{http.MethodGet, "/compliance", Read, classNone, p.governance.Classifications.List},
		{http.MethodPut, "/compliance/:model/:version", Manage, classOther, p.governance.Classifications.Put},
		{http.MethodGet, "/model-cards", Read, classNone, p.governance.Cards.List},
		{http.MethodGet, "/model-cards/:model", Read, classNone, p.governance.Cards.Get},
		{http.MethodPut, "/model-cards/:model", Manage, classOther, p.governance.Cards.Put},
		{http.MethodGet, "/governance/posture", Read, classNone, p.governance.Posture.Get},
		{http.MethodGet, "/governance/changes", Read, classNone, p.guarded.List},
		{http.MethodPost, "/governance/changes/:id/approve", Govern, classDecision, p.guarded.Approve},
		{http.MethodPost, "/governance/changes/:id/reject", Govern, classDecision, p.guarded.Reject},
	}
}

func (p *parts) operationRoutes() []route {
	return []route{
		{http.MethodGet, "/auto-retrain", Read, classNone, p.drift.retrains.List},
		{http.MethodPut, "/auto-retrain/:model", Manage, classOther, p.drift.retrains.Put},
		{http.MethodPost, "/drift/trigger", Retrain, classRetrain, p.drift.retrains.Trigger},
		{http.MethodGet, "/alerts", Read, classNone, p.drift.alerts.List},

		{http.MethodGet, "/status", Read, classNone, p.status.Get},
		{http.MethodGet, "/outbox", Read, classNone, p.outbox.List},
		{http.MethodPost, "/outbox/republish", Manage, classOther, p.outbox.Republish},
		{http.MethodPost, "/outbox/:id/replay", Manage, classOther, p.outbox.Replay},
		{http.MethodDelete, "/outbox/:id", Manage, classOther, p.outbox.Drop},
	}
}

// ownRecords lists path prefixes of records that each tenant keeps about any model, so two tenants have two of them.
// Every other route whose path names a model answers 404 to all but the model's owner.
var ownRecords = []string{"/approve/", "/reject/", "/llm/endpoints/", "/compliance/", "/model-cards/"}

// repositoryRoutes belong to the tenant of the model repository.
var repositoryRoutes = []string{"/modelrepo/config", "/modelrepo/sync", "/admin/reload"}

// mount adds the routes. Each request is checked in this order: credentials, scope, rate
// limit, storable text, known query parameters, size of the body.
func (p *parts) mount(e *echo.Echo, limiter *wire.Limiter) {
	cfg, who := &p.cfg, p.auth
	limits := map[string]echo.MiddlewareFunc{
		classChanges:  limiter.Per(classChanges, cfg.ChangesPerMinute, false),
		classRetrain:  limiter.Per(classRetrain, cfg.RetrainsPerMinute, true),
		classDecision: limiter.Per(classDecision, cfg.DecisionsPerMin, false),
		classOther:    limiter.Per(classOther, cfg.WritesPerMinute, false),
	}
	e.DELETE("/outbox/republish", allowOnlyPost) // otherwise the route of a single event would match
	known := documentedParameters(api.Document)
	for _, r := range p.routes() {
		parameters := wire.Parameters(known[documentedOperation(r)])
		if r.scope == signed {
			e.Add(r.method, r.path, r.handler, wire.RequireStorableText, parameters)
			continue
		}
		var chain []echo.MiddlewareFunc
		switch r.scope {
		case "":
		case anyWrite:
			chain = append(chain, who.Require(Changes, Retrain, Approve, Manage, Govern))
		default:
			chain = append(chain, who.Require(r.scope))
		}
		if r.class != classNone {
			chain = append(chain, limits[r.class])
		}
		chain = append(chain, wire.RequireStorableText, parameters, wire.BoundBody)
		switch {
		case r.scope == "": // public routes need no tenant
		case strings.Contains(r.path, ":model") && !slices.ContainsFunc(ownRecords, func(prefix string) bool { return strings.HasPrefix(r.path, prefix) }):
			chain = append(chain, p.registry.OwnedOnly(p.store.Queries))
		case slices.Contains(repositoryRoutes, r.path):
			chain = append(chain, registry.RepositoryOnly)
		}
		if r.method == http.MethodGet {
			service.Get(e, r.path, r.handler, chain...)
			continue
		}
		e.Add(r.method, r.path, r.handler, chain...)
	}
}

// storeErrors answers 503 where the database cannot be reached: the same request
// may succeed later.
func storeErrors(next echo.HTTPErrorHandler) echo.HTTPErrorHandler {
	return func(err error, c echo.Context) {
		var p *problem.Error
		if !errors.As(err, &p) && postgres.Unavailable(err) {
			err = fault.StoreUnavailable.New("The database does not answer; try again later.").WithCause(err).After(5 * time.Second)
		}
		next(err, c)
	}
}

func reportAlive(c echo.Context) error {
	return c.JSON(http.StatusOK, map[string]string{"status": "alive"})
}

// allowOnlyPost refuses a method that a route with a parameter would otherwise match.
func allowOnlyPost(c echo.Context) error {
	c.Response().Header().Set(echo.HeaderAllow, http.MethodPost)
	return echo.ErrMethodNotAllowed
}

// pathParameter matches a route parameter; the OpenAPI document writes it in braces.
var pathParameter = regexp.MustCompile(`:([a-z_]+)`)

// documentedOperation returns the key of a route in documentedParameters.
func documentedOperation(r route) string {
	return strings.ToLower(r.method) + " " + pathParameter.ReplaceAllString(r.path, "{$1}")
}

// documentedParameters reads the query parameters of each operation of an OpenAPI
// document, so that the document and the routes cannot differ.
func documentedParameters(document []byte) map[string][]string {
	type parameter struct {
		Ref  string `yaml:"$ref"`
		Name string `yaml:"name"`
		In   string `yaml:"in"`
	}
	type operation struct {
		Parameters []parameter `yaml:"parameters"`
	}
	var doc struct {
		Paths map[string]struct {
			Get    operation `yaml:"get"`
			Post   operation `yaml:"post"`
			Put    operation `yaml:"put"`
			Delete operation `yaml:"delete"`
		} `yaml:"paths"`
		Components struct {
			Parameters map[string]parameter `yaml:"parameters"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(document, &doc); err != nil {
		panic(err) // the document is embedded
	}
	out := map[string][]string{}
	for path, o := range doc.Paths {
		for method, operation := range map[string]operation{"get": o.Get, "post": o.Post, "put": o.Put, "delete": o.Delete} {
			for _, p := range operation.Parameters {
				if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
					p = doc.Components.Parameters[name]
				}
				if p.In == "query" {
					out[method+" "+path] = append(out[method+" "+path], p.Name)
				}
			}
		}
	}
	return out
}
