package alert

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/api"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// API serves what fires.
type API struct{ Store *store.Store }

// position is the last alert of a page.
type position struct {
	Rank   int32     `json:"r"`
	Since  time.Time `json:"t"`
	Source string    `json:"s"`
	Key    string    `json:"k"`
	Tenant string    `json:"n"`
}

// List serves GET /alerts: those of the caller's tenant and of the platform.
func (a API) List(c echo.Context) error {
	limit, err := service.PageLimit(c)
	if err != nil {
		return err
	}
	var at position
	later, err := service.Cursor(c, &at)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	p, _ := auth.FromContext(ctx)
	rows, err := a.Store.ListAlerts(ctx, store.ListAlertsParams{
		Tenant: p.Tenant, Later: later, AfterRank: at.Rank, AfterSince: at.Since, AfterSource: at.Source, AfterKey: at.Key,
		AfterTenant: at.Tenant, MaxRows: int32(limit) + 1,
	})
	if err != nil {
		return err
	}
	out := api.AlertList{Items: []api.Alert{}}
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1]
		next := service.EncodeCursor(position{last.Rank, last.Since, last.Source, last.Key, last.Tenant})
		out.NextCursor = &next
	}
	for _, r := range rows {
		x := of(store.Alert{Source: r.Source, Key: r.Key, Severity: r.Severity, Title: r.Title, Tenant: r.Tenant, Labels: r.Labels})
		out.Items = append(out.Items, api.Alert{
			Id: x.ID(), Source: x.Source, Severity: api.AlertSeverity(x.Severity), State: api.AlertState("firing"), Title: x.Title,
			Labels: x.Payload().Labels, Since: r.Since.UTC(),
		})
	}
	return c.JSON(http.StatusOK, out)
}
