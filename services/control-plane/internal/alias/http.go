package alias

import (
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// API serves the history.
type API struct{ Store *store.Store }

// List serves GET /alias-history.
func (a API) List(c echo.Context) error {
	ctx := c.Request().Context()
	page, err := wire.PageOf[uuid.UUID](c)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	tenant := p.Tenant
	q := store.ListHoldersParams{Tenant: tenant, Before: page.After, MaxRows: page.Fetch()}
	if v := c.QueryParam("model"); v != "" {
		q.ModelID = wire.OptionalText(registry.ID(v))
	}
	if v := c.QueryParam("alias"); v != "" {
		name, ok := Canonical(v)
		if !ok {
			return fault.Invalid("must be Staging, Canary or Production", "query", "alias")
		}
		q.Alias = &name
	}
	if v := c.QueryParam("holding"); v != "" {
		if q.Holding, err = strconv.ParseBool(v); err != nil {
			return fault.Invalid("must be true or false", "query", "holding")
		}
	}
	if v := c.QueryParam("at"); v != "" {
		at, err := time.Parse(time.RFC3339, v)
		switch {
		case err != nil:
			return fault.Invalid("must be a time of RFC 3339, such as 2026-01-02T03:04:05Z", "query", "at")
		case q.ModelID == nil || q.Alias == nil:
			return fault.Invalid("needs model and alias as well", "query", "at")
		}
		out := api.AliasHistory{Items: []api.AliasHolder{}}
		row, err := a.Store.HolderAt(ctx, store.HolderAtParams{Tenant: tenant, ModelID: *q.ModelID, Alias: *q.Alias, At: at})
		switch {
		case store.None(err):
		case err != nil:
			return err
		case row.Version != nil: // otherwise the alias was removed: it had no holder
			out.Items = append(out.Items, toAliasHolder(row))
		}
		return c.JSON(http.StatusOK, out)
	}
	rows, err := a.Store.ListHolders(ctx, q)
	if err != nil {
		return err
	}
	rows, next := wire.CutPage(page, rows, func(r store.AliasHistory) uuid.UUID { return r.ID })
	out := api.AliasHistory{Items: make([]api.AliasHolder, 0, len(rows)), NextCursor: next}
	for _, r := range rows {
		out.Items = append(out.Items, toAliasHolder(r))
	}
	return c.JSON(http.StatusOK, out)
}

func toAliasHolder(r store.AliasHistory) api.AliasHolder {
	return api.AliasHolder{
		Model: r.ModelID, Alias: r.Alias, Version: r.Version, PreviousVersion: r.PreviousVersion, From: r.FromAt.UTC(),
		To: wire.UTC(r.UntilAt), Actor: r.Actor, Via: api.AliasHolderVia(r.Via), PromotionId: r.PromotionID,
		Digest: r.Digest,
	}
}
