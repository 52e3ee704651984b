package alert

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// API serves the firing alerts.
type API struct{ Store *store.Store }

// place is the position of an alert in the list.
type place struct {
	Rank   int32     `json:"r"`
	Since  time.Time `json:"t"`
	Source string    `json:"s"`
	Key    string    `json:"k"`
	Tenant string    `json:"n"`
}

// List serves GET /alerts: the alerts of the caller's tenant and of the platform.
func (a API) List(c echo.Context) error {
	page, err := wire.PageOf[place](c)
	if err != nil {
		return err
	}
	at := page.Start()
	ctx := c.Request().Context()
	p, _ := auth.FromContext(ctx)
	rows, err := a.Store.ListAlerts(ctx, store.ListAlertsParams{
		Tenant: p.Tenant, Later: page.After != nil, AfterRank: at.Rank, AfterSince: at.Since, AfterSource: at.Source, AfterKey: at.Key,
		AfterTenant: at.Tenant, MaxRows: page.Fetch(),
	})
	if err != nil {
		return err
	}
	rows, next := wire.CutPage(page, rows, func(r store.ListAlertsRow) place { return place{r.Rank, r.Since, r.Source, r.Key, r.Tenant} })
	out := api.AlertList{Items: make([]api.Alert, 0, len(rows)), NextCursor: next}
	for _, r := range rows {
		x := alertFromRow(store.Alert{Source: r.Source, Key: r.Key, Severity: r.Severity, Title: r.Title, Tenant: r.Tenant, Labels: r.Labels})
		out.Items = append(out.Items, api.Alert{
			Id: x.ID(), Source: x.Source, Severity: api.AlertSeverity(x.Severity), State: api.AlertState("firing"), Title: x.Title,
			Labels: x.Payload().Labels, Since: r.Since.UTC(),
		})
	}
	return c.JSON(http.StatusOK, out)
}
