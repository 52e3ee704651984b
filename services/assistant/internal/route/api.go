// Package route is the assistant's HTTP surface: who is let in, in which order a request is refused, how a turn becomes a
// stream, and the documents about sessions and actions.
package route

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/caller"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/limit"
	"github.com/mlp-platform/platform/services/assistant/internal/metrics"
	"github.com/mlp-platform/platform/services/assistant/internal/session"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// ChatPath is the main route.
const ChatPath = "/v1/chat/completions"

// Cluster is what the list of namespaces is read from. It answers until ctx ends.
type Cluster interface {
	Namespaces(ctx context.Context) ([]string, error)
}

// Config is what may be set.
type Config struct {
	Model   string // the service's own name for it
	MaxBody int64  // bytes of a chat request
	// Silence is how long a stream may say nothing before a heartbeat; 0 means 15 s.
	Silence time.Duration
}

// Deps is what the routes work with.
type Deps struct {
	Callers  *caller.Callers
	Turns    *turn.Service
	Actions  *action.Service
	Sessions *session.Service
	Cluster  Cluster
	Policy   guard.Policy
	Store    *store.Store
	Rate     *limit.Rate
	Streams  *limit.Slots
	Metrics  *metrics.Metrics
	Now      func() time.Time
	Log      *slog.Logger
}

// API answers the routes.
type API struct {
	Config
	Deps
	models chat.Models
	bodies *limit.Slots    // of chat requests that are still being sent
	ending context.Context // ends streams that would outlive the server
	end    context.CancelFunc
}

// New returns the routes' handlers, or an error that names the part they lack.
func New(c Config, d Deps) (*API, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	if c.Silence <= 0 {
		c.Silence = 15 * time.Second
	}
	a := &API{Config: c, Deps: d, models: chat.NewModels(c.Model, d.Now()), bodies: limit.NewSlots(bodiesPerStream * d.Streams.Most())}
	a.ending, a.end = context.WithCancel(context.Background())
	return a, nil
}

func (d Deps) check() error {
	switch {
	case d.Callers == nil:
		return errors.New("route: no Callers")
	case d.Turns == nil:
		return errors.New("route: no Turns")
	case d.Actions == nil:
		return errors.New("route: no Actions")
	case d.Sessions == nil:
		return errors.New("route: no Sessions")
	case d.Cluster == nil:
		return errors.New("route: no Cluster")
	case d.Store == nil:
		return errors.New("route: no Store")
	case d.Rate == nil:
		return errors.New("route: no Rate")
	case d.Streams == nil:
		return errors.New("route: no Streams")
	case d.Metrics == nil:
		return errors.New("route: no Metrics")
	case d.Now == nil:
		return errors.New("route: no Now")
	case d.Log == nil:
		return errors.New("route: no Log")
	}
	return nil
}

// EndStreams ends the streams that are still waiting for frames a moment later, without their closing marker, so that
// their clients come again. Those of turns that have ended send what there is.
func (a *API) EndStreams() { a.end() }

// Mount adds the routes. Each passes, in this order: key, rate limit, handler; a refusal for want of a key or of rights is
// recorded.
func (a *API) Mount(e *echo.Echo) {
	for _, path := range []string{"/healthz", "/v1/healthz"} {
		service.Get(e, path, serveHealth)
	}
	chain := []echo.MiddlewareFunc{a.watch, a.Callers.Middleware, a.limited}
	e.POST(ChatPath, a.chat, chain...)
	e.GET("/v1/events/replay/:session_id", a.replay, chain...)
	service.Get(e, "/v1/models", a.listModels, chain...)
	service.Get(e, "/v1/models/:model", a.getModel, chain...)
	service.Get(e, "/v1/namespaces", a.namespaces, chain...)
	e.POST("/v1/auth/demo-keys", a.Callers.MintHandler(a.Store, a.Now), chain...)
	service.Get(e, "/v1/sessions", a.Sessions.ServeList, chain...)
	service.Get(e, "/v1/sessions/:session_id", a.Sessions.ServeOne, chain...)
	e.DELETE("/v1/sessions/:session_id", a.Sessions.ServeDelete, chain...)
	service.Get(e, "/v1/sessions/:session_id/actions", a.Actions.ServeList, chain...)
	service.Get(e, "/v1/sessions/:session_id/actions/:action_id", a.Actions.ServeOne, chain...)
	e.POST("/v1/sessions/:session_id/actions/:action_id", a.Actions.ServeDecision, chain...)
}

// Probe reports whether a route stays out of the request log.
func Probe(route string) bool {
	switch route {
	case "/livez", "/readyz", "/metrics", "/healthz", "/v1/healthz":
		return true
	}
	return false
}

func (a *API) listModels(c echo.Context) error {
	return c.JSONBlob(http.StatusOK, a.models.List())
}

func (a *API) getModel(c echo.Context) error {
	doc, err := a.models.Get(c.Param("model"))
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, doc)
}
