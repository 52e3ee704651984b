package push

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/api"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// standardPage is how many events are listed unless more are asked for.
const standardPage = 20

// position is where a page of events ended.
type position struct {
	Before int64 `json:"before"`
}

// List serves GET /modelrepo/events.
func (s *Service) List(c echo.Context) error {
	limit, err := service.PageLimitUpTo(c, standardPage, service.MaxPageLimit)
	if err != nil {
		return err
	}
	q := store.ListPushesParams{MaxRows: int32(limit) + 1}
	var at position
	if given, err := service.Cursor(c, &at); err != nil {
		return err
	} else if given {
		q.Before = &at.Before
	}
	rows, err := s.Store.ListPushes(c.Request().Context(), q)
	if err != nil {
		return err
	}
	if len(rows) > limit {
		rows = rows[:limit]
		c.Response().Header().Set("X-Next-Cursor", service.EncodeCursor(position{rows[limit-1].ID}))
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
