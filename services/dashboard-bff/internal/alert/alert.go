// Package alert is the inbox: the alerts that fire at the control plane, and how people of a tenant have handled them.
//
// The control plane knows alerts that fire and no others. Per tenant and firing, which is an id with the time since
// when it fires, this package keeps
//
//	(none) ──► firing ──► acknowledged       acknowledged by a user
//	             ▲  └─────────┤ └─► resolved  the control plane reports it no more; kept for 24 hours
//	             └── higher severity ┘
//
// A new time is a new firing. While the control plane gives no answer nothing is resolved: the last known state is
// shown and marked stale.
package alert

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/announce"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/compose"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// States of a firing.
const (
	firing       = "firing"
	acknowledged = "acknowledged"
	resolved     = "resolved"
)

// severities, most severe first.
var severities = []string{"critical", "error", "warn"}

func rank(severity string) int { return slices.Index(severities, severity) }

// Config of New.
type Config struct {
	Pool    *pgxpool.Pool
	Clients *upstream.Clients
	Views   *compose.Pool
}

// Inbox serves the routes under /api/v1/alerts.
type Inbox struct{ cfg Config }

// New refuses missing parts.
func New(cfg Config) (*Inbox, error) {
	if err := service.RequireParts("alert", cfg); err != nil {
		return nil, err
	}
	return &Inbox{cfg}, nil
}

// source reads the control plane and updates the tenant's states. Its readings are shared, so pages that poll cause at
// most one reading every two seconds.
func (i *Inbox) source() compose.Source[compose.None, struct{}] {
	return compose.Source[compose.None, struct{}]{
		Name: "alerts", Service: upstream.ControlPlane, Call: "list alerts and keep their states",
		Fetch: func(ctx context.Context, who caller.Caller, _ compose.None) (struct{}, error) {
			return struct{}{}, i.refresh(ctx, who)
		},
	}
}

// refresh reads what fires and reconciles.
func (i *Inbox) refresh(ctx context.Context, who caller.Caller) error {
	// Read before the call: of two answers, the one requested later is newer.
	at, err := store.New(i.cfg.Pool).ReadClock(ctx)
	if err != nil {
		return err
	}
	alerts, err := i.readFiring(ctx, who)
	if err != nil {
		return err
	}
	return i.reconcile(ctx, who.Tenant, at, alerts)
}

// maxPages limits one reading: 10,000 alerts.
const maxPages = 20

// errTooMany means that the list never ended; half a list would resolve the other half.
var errTooMany = errors.New("the control plane lists more than 10,000 alerts")

// readFiring lists all that fires for the caller's tenant and for the platform.
func (i *Inbox) readFiring(ctx context.Context, who caller.Caller) ([]controlplane.Alert, error) {
	client, err := i.cfg.Clients.ControlPlane(who)
	if err != nil {
		return nil, err
	}
	limit := service.MaxPageLimit
	params := &controlplane.ListAlertsParams{Limit: &limit}
	var all []controlplane.Alert
	for range maxPages {
		page, err := wire.Decode[controlplane.AlertList](client.ListAlerts(ctx, params))
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.NextCursor == nil {
			return all, nil
		}
		params.Cursor = page.NextCursor
	}
	return nil, errTooMany
}

// firingKey identifies one firing of a tenant.
type firingKey struct {
	id    string
	since time.Time
}

// keyOf truncates the time to microseconds, as Postgres does.
func keyOf(id string, since time.Time) firingKey {
	return firingKey{id, since.UTC().Truncate(time.Microsecond)}
}

// reconcile updates the states to what fired at a moment. A reading older than one already applied, by this replica or
// another, changes nothing.
func (i *Inbox) reconcile(ctx context.Context, tenant string, at time.Time, alerts []controlplane.Alert) error {
	return postgres.InTx(ctx, i.cfg.Pool, func(tx pgx.Tx) error {
		q := store.New(tx)
		claimed, err := q.ClaimAlertReading(ctx, store.ClaimAlertReadingParams{Tenant: tenant, ReadAt: at})
		if err != nil || claimed == 0 {
			return err
		}
		rows, err := q.LockTenantAlertStates(ctx, tenant)
		if err != nil {
			return err
		}
		known := make(map[firingKey]store.AlertState, len(rows))
		for _, r := range rows {
			known[keyOf(r.AlertID, r.Since)] = r
		}
		for _, a := range alerts {
			key := keyOf(a.Id, a.Since)
			row, ok := known[key]
			delete(known, key)
			if err := putFiring(ctx, q, tenant, a, row, ok); err != nil {
				return err
			}
		}
		for key, r := range known { // those that no longer fire
			if r.State == resolved {
				continue
			}
			if err := q.ResolveAlertState(ctx, store.ResolveAlertStateParams{Tenant: tenant, AlertID: key.id, Since: r.Since}); err != nil {
				return err
			}
		}
		return q.ForgetAlertStates(ctx, tenant)
	})
}

// putFiring stores the control plane's data of a known or new firing.
func putFiring(ctx context.Context, q *store.Queries, tenant string, a controlplane.Alert, row store.AlertState, known bool) error {
	labels := a.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	raw, err := json.Marshal(labels)
	if err != nil {
		return fmt.Errorf("encode labels: %w", err)
	}
	next := store.PutAlertStateParams{
		Tenant: tenant, AlertID: a.Id, Since: a.Since, Source: a.Source, Severity: string(a.Severity), State: firing, Title: a.Title, Labels: raw,
	}
	// An acknowledgement covers this firing, even if one reading missed it, until its severity rises.
	if known && row.AckedBy != nil && rank(next.Severity) >= rank(row.Severity) {
		next.State, next.AckedBy, next.AckedAt = acknowledged, row.AckedBy, row.AckedAt
	}
	if known && row.State == next.State && row.Severity == next.Severity && row.Title == next.Title && row.Source == next.Source && sameLabels(row.Labels, labels) {
		return nil
	}
	return q.PutAlertState(ctx, next)
}

func sameLabels(raw json.RawMessage, labels map[string]string) bool {
	var old map[string]string
	if json.Unmarshal(raw, &old) != nil || len(old) != len(labels) {
		return false
	}
	for k, v := range labels {
		if was, ok := old[k]; !ok || was != v {
			return false
		}
	}
	return true
}

// acknowledge acknowledges an alert for who; if it is already acknowledged, the first person stays. The state, the
// audit fact and the event are one transaction.
func (i *Inbox) acknowledge(ctx context.Context, who caller.Caller, id string) (store.AlertState, error) {
	var out store.AlertState
	err := postgres.InTx(ctx, i.cfg.Pool, func(tx pgx.Tx) error {
		q := store.New(tx)
		rows, err := q.LockAlertStates(ctx, store.LockAlertStatesParams{Tenant: who.Tenant, AlertID: id})
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return fault.AlertNotFound.New("There is no such alert; GET /api/v1/alerts lists those that fire.")
		}
		open := slices.DeleteFunc(slices.Clone(rows), func(r store.AlertState) bool { return r.State == resolved })
		if len(open) == 0 {
			return fault.AlertResolved.New("The alert no longer fires; there is nothing left to acknowledge.")
		}
		out = open[len(open)-1]
		for _, r := range open { // more than one if the platform has an alert of the same id
			if r.State == acknowledged {
				continue
			}
			at, err := q.AckAlertState(ctx, store.AckAlertStateParams{Tenant: who.Tenant, AlertID: id, Since: r.Since, AckedBy: &who.Subject})
			if err != nil {
				return err
			}
			r.AckedBy, r.AckedAt = &who.Subject, &at
			out = r
			if err := announce.Insert(ctx, tx,
				announce.Audit(ctx, who, "alert.ack", "alert:"+id, announce.OK, map[string]any{"severity": r.Severity, "since": r.Since.UTC().Format(time.RFC3339Nano)}),
				outbox.Event{Tenant: who.Tenant, Namespace: "alert", Name: "acked", SubjectID: id, Actor: who.Subject, Payload: announce.Acked{ID: id, Actor: who.Subject}},
			); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// compareStates puts the most severe first, then the longest firing.
func compareStates(a, b store.AlertState) int {
	return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), a.Since.Compare(b.Since), cmp.Compare(a.AlertID, b.AlertID))
}

// ListOpen lists a caller's firing and acknowledged alerts, worst first. When the control plane gives no answer, it
// fails rather than return the last known state: search then names its source.
func (i *Inbox) ListOpen(ctx context.Context, who caller.Caller) ([]api.Alert, error) {
	if err := i.refresh(ctx, who); err != nil {
		return nil, err
	}
	rows, err := store.New(i.cfg.Pool).ListAlertStates(ctx, who.Tenant)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(r store.AlertState) bool { return r.State == resolved })
	slices.SortFunc(rows, compareStates)
	return viewInbox(rows).Alerts, nil
}
