// Package mlops holds the views of models: overview, registry, one model, its series and its promotion gate; and of the
// runs that train them.
package mlops

import (
	"log/slog"
	"time"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/compose"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// Parts are the dependencies of Views.
type Parts struct {
	Pool    *compose.Pool
	Clients *upstream.Clients
	Log     *slog.Logger
	// Now is the clock; default time.Now.
	Now func() time.Time `part:"optional"`
}

// Views serve the routes of models.
type Views struct {
	pool    *compose.Pool
	now     func() time.Time
	log     *slog.Logger
	sources sources
	serving servingWatch
}

// New refuses a missing part.
func New(p Parts) (*Views, error) {
	if err := service.RequireParts("mlops", p); err != nil {
		return nil, err
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	return &Views{pool: p.Pool, now: p.Now, log: p.Log, sources: newSources(p.Clients), serving: newServingWatch(p.Clients, p.Now)}, nil
}

// Overview serves GET /api/v1/overview.
func (v *Views) Overview(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	view := v.pool.Begin(c)
	traffic := compose.Ask(view, v.sources.traffic, compose.None{})
	drift := compose.Ask(view, v.sources.drift, compose.None{})
	audit := compose.Ask(view, v.sources.auditCount, compose.None{})

	out := api.Overview{Meta: api.Overview_Meta{Service: "dashboard-bff", Api: "v1"}}
	if rules, ok := traffic.Get(); ok {
		out.Traffic = &api.Overview_Traffic{ModelsWithRules: len(rules)}
	}
	if models, ok := drift.Get(); ok {
		out.Drift = &api.Overview_Drift{ModelsTracked: len(models)}
	}
	if n, ok := audit.Get(); ok {
		out.Audit = &api.Overview_Audit{TotalEvents: n}
	}
	return view.Answer(out)
}
