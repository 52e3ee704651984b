package alert

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/compose"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
)

// List serves GET /api/v1/alerts.
func (i *Inbox) List(c echo.Context) error {
	if err := input.CheckQuery(c, "state"); err != nil {
		return err
	}
	shown := []string{firing, acknowledged}
	switch c.QueryParam("state") {
	case "":
	case resolved:
		shown = []string{resolved}
	case "all":
		shown = append(shown, resolved)
	default:
		return input.Invalid("must be resolved or all; without it the inbox holds what fires and what was acknowledged", "query", "state")
	}
	v := i.cfg.Views.Begin(c)
	_, current := compose.Ask(v, i.source(), compose.None{}).Get()
	rows, err := store.New(i.cfg.Pool).ListAlertStates(c.Request().Context(), v.Who().Tenant)
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(r store.AlertState) bool { return !slices.Contains(shown, r.State) })
	slices.SortFunc(rows, compareStates)
	out := api.AlertView{Inbox: viewInbox(rows)}
	if !current {
		stale := true
		out.Inbox.Stale = &stale
	}
	return v.Answer(out)
}

func viewInbox(rows []store.AlertState) api.AlertInbox {
	out := api.AlertInbox{Count: len(rows), Alerts: make([]api.Alert, 0, len(rows))}
	unacknowledged := 0
	for _, r := range rows {
		out.Alerts = append(out.Alerts, viewAlert(r))
		switch r.Severity {
		case severities[0]:
			out.Counts.Critical++
		case severities[1]:
			out.Counts.Error++
		default:
			out.Counts.Warn++
		}
		if r.State == firing {
			unacknowledged++
		}
	}
	out.Unacknowledged = &unacknowledged
	return out
}

func viewAlert(r store.AlertState) api.Alert {
	since := r.Since.UTC()
	a := api.Alert{
		Id: r.AlertID, Source: r.Source, Severity: api.AlertSeverity(r.Severity), State: api.AlertState(r.State), Title: r.Title,
		Labels: map[string]string{}, Since: &since, AckedBy: r.AckedBy,
	}
	_ = json.Unmarshal(r.Labels, &a.Labels) // written by putFiring
	if r.AckedAt != nil {
		at := r.AckedAt.UTC()
		a.AckedAt = &at
	}
	if r.ResolvedAt != nil {
		at := r.ResolvedAt.UTC()
		a.ResolvedAt = &at
	}
	return a
}

// Ack serves POST /api/v1/alerts/:alert_id/ack. It queries the control plane first, so that an alert which has not
// been listed yet can be acknowledged; if the control plane does not answer, the last known state decides.
func (i *Inbox) Ack(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	id, err := input.PathParam(c, "alert_id")
	if err != nil {
		return err
	}
	compose.Ask(i.cfg.Views.Begin(c), i.source(), compose.None{}).Get()
	row, err := i.acknowledge(c.Request().Context(), caller.From(c), id)
	if err != nil {
		return err
	}
	at := row.AckedAt.UTC()
	return c.JSON(http.StatusOK, api.Ack{Acked: true, Audited: true, AckedBy: row.AckedBy, AckedAt: &at})
}
