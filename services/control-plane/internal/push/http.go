package push

import (
	"net/http"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// standardPage is the default page size.
const standardPage = 20

// List serves GET /modelrepo/events.
func (s *Service) List(c echo.Context) error {
	page, err := wire.PageUpTo[int64](c, standardPage, service.MaxPageLimit)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(c.Request().Context())
	rows, err := s.Store.ListPushes(c.Request().Context(), store.ListPushesParams{Tenant: p.Tenant, Before: page.After, MaxRows: page.Fetch()})
	if err != nil {
		return err
	}
	rows, next := wire.CutPage(page, rows, func(r store.Push) int64 { return r.ID })
	if next != nil {
		c.Response().Header().Set("X-Next-Cursor", *next)
	}
	out := make([]api.PushEvent, 0, len(rows))
	for _, r := range rows {
		out = append(out, api.PushEvent{
			Id: r.ID, CommitSha: r.CommitSha, Branch: r.Branch, PushedBy: r.PushedBy, Timestamp: r.ReceivedAt.UTC(),
			Source: api.PushEventSource(r.Source), DeliveryId: r.DeliveryID,
		})
	}
	return c.JSON(http.StatusOK, out)
}
