package registry

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// RecordOwners stores the tenants of the models in force, so that queries can filter lists by them and a model that
// leaves the repository keeps its owner.
func (r *Registry) RecordOwners(ctx context.Context, q *store.Queries, now time.Time) error {
	var models, tenants []string
	for _, m := range r.Models() {
		models, tenants = append(models, m.ID()), append(tenants, m.Owner())
	}
	return q.PutOwners(ctx, store.PutOwnersParams{Models: models, Tenants: tenants, Now: now})
}

// Owner returns the tenant of a model; a model without a definition, such as an external one, belongs to the tenant
// default.
func (r *Registry) Owner(ctx context.Context, q *store.Queries, id string) (string, error) {
	if m, ok := r.Find(id); ok {
		return m.Owner(), nil
	}
	return q.OwnerOf(ctx, ID(id))
}

// RequireOwned returns 404 for a model of another tenant, as for an unknown one.
func (r *Registry) RequireOwned(ctx context.Context, q *store.Queries, tenant, id string) error {
	owner, err := r.Owner(ctx, q, id)
	if err == nil && owner != tenant && tenant != event.PlatformTenant {
		err = fault.ModelNotFound.New("There is no such model; GET /models lists them.")
	}
	return err
}

// ListOwners serves GET /model-owners.
func ListOwners(q *store.Queries) echo.HandlerFunc {
	return func(c echo.Context) error {
		page, err := wire.PageOf[string](c)
		if err != nil {
			return err
		}
		rows, err := q.ListOwners(c.Request().Context(), store.ListOwnersParams{Tenant: wire.CallerTenant(c), After: page.Start(), MaxRows: page.Fetch()})
		if err != nil {
			return err
		}
		rows, next := wire.CutPage(page, rows, func(r store.ListOwnersRow) string { return r.ModelID })
		out := api.ModelOwnerList{Items: make([]api.ModelOwner, 0, len(rows)), NextCursor: next}
		for _, r := range rows {
			out.Items = append(out.Items, api.ModelOwner{Model: r.ModelID, Tenant: r.Tenant})
		}
		return c.JSON(http.StatusOK, out)
	}
}

// OwnedOnly is RequireOwned for every route whose path names a model.
func (r *Registry) OwnedOnly(q *store.Queries) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			p, _ := auth.FromContext(c.Request().Context())
			if err := r.RequireOwned(c.Request().Context(), q, p.Tenant, c.Param("model")); err != nil {
				return err
			}
			return next(c)
		}
	}
}

// RepositoryOnly restricts the repository's settings to its tenant.
func RepositoryOnly(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if p, _ := auth.FromContext(c.Request().Context()); p.Tenant != auth.LegacyTenant && p.Tenant != event.PlatformTenant {
			return fault.RepositoryNotFound.New("The model repository belongs to the tenant " + auth.LegacyTenant + ".")
		}
		return next(c)
	}
}
