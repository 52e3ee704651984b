// Package admin serves the routes with which operators inspect and repair a service's
// outbox: list poison events, replay them, drop them.
//
// A row belongs to a tenant. Callers see the rows of their own tenant and of
// [outbox.PlatformTenant], and change those of their own tenant only. The legacy credential, and
// any caller of a service that is open on loopback, operates all tenants. A row that the caller
// may not see or change looks like one that does not exist. The audit record of a change is in
// the chain of the row's tenant, where that tenant's readers look for it.
package admin

import (
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
)

// The problems that this package returns.
var (
	EventNotFound    = problem.Kind{Code: "event_not_found", Status: http.StatusNotFound, Title: "No such event"}
	EventNotPoison   = problem.Kind{Code: "event_not_poison", Status: http.StatusConflict, Title: "Event not poison"}
	StoreUnavailable = problem.Kind{Code: "store_unavailable", Status: http.StatusServiceUnavailable, Title: "State store unavailable"}
)

// Handlers serve one outbox.
type Handlers struct {
	// Pool is bound to the schema of the outbox.
	Pool *pgxpool.Pool
	// Source names the service in the audit ledger.
	Source string
}

// caller is the acting principal and the tenants whose rows it may read and write; nil means all.
type caller struct {
	name, tenant       string
	readable, writable []string
}

func callerOf(c echo.Context) caller {
	p, known := auth.FromContext(c.Request().Context())
	switch {
	case !known: // no credentials are configured, so the service listens on loopback alone
		return caller{name: "anonymous", tenant: auth.LegacyTenant}
	case p.Legacy:
		return caller{name: p.Name, tenant: p.Tenant}
	}
	return caller{name: p.Name, tenant: p.Tenant, readable: []string{p.Tenant, outbox.PlatformTenant}, writable: []string{p.Tenant}}
}

func (h Handlers) audit(tenant string, who caller, action, target, outcome string, details map[string]any) outbox.Event {
	if tenant != who.tenant {
		details["actor_tenant"] = who.tenant
	}
	return outbox.Audit(outbox.AuditFact{
		Tenant: tenant, Actor: who.name, Action: action, Target: target, Outcome: outcome, Source: h.Source, Details: details,
	})
}

// auditDetails identifies a row in the ledger, without its payload.
func auditDetails(r outbox.Row) map[string]any {
	return map[string]any{
		"event": r.Namespace + "." + r.Name, "event_tenant": r.Tenant, "state": r.State, "refusals": r.Refusals,
		"last_error": r.LastError, "created_at": r.CreatedAt.UTC(), "payload_bytes": r.PayloadBytes, "digest": r.Digest,
	}
}

type position struct {
	After uuid.UUID `json:"after"`
}

type page struct {
	Items      []outbox.Row `json:"items"`
	NextCursor *string      `json:"next_cursor"`
}

// List serves GET /outbox.
func (h Handlers) List(c echo.Context) error {
	state := outbox.State(c.QueryParam("state"))
	switch state {
	case "":
		state = outbox.Poison
	case outbox.Poison, outbox.Pending, outbox.Published:
	default:
		return invalidField("must be poison, pending or published", "query", "state")
	}
	limit, err := service.PageLimit(c)
	if err != nil {
		return err
	}
	var at position
	if _, err := service.Cursor(c, &at); err != nil {
		return err
	}
	rows, err := outbox.List(c.Request().Context(), h.Pool, state, callerOf(c).readable, at.After, limit+1)
	if err != nil {
		return toProblem(err)
	}
	out := page{Items: rows}
	if len(rows) > limit {
		out.Items = rows[:limit]
		next := service.EncodeCursor(c.Path(), position{rows[limit-1].ID})
		out.NextCursor = &next
	}
	for i := range out.Items {
		convertToUTC(&out.Items[i])
	}
	if out.Items == nil {
		out.Items = []outbox.Row{}
	}
	return c.JSON(http.StatusOK, out)
}

// Replay serves POST /outbox/{id}/replay.
func (h Handlers) Replay(c echo.Context) error {
	ctx := c.Request().Context()
	id, err := idOf(c)
	if err != nil {
		return err
	}
	who := callerOf(c)
	var after outbox.Row
	err = postgres.InTx(ctx, h.Pool, func(tx pgx.Tx) error {
		before, err := outbox.Lock(ctx, tx, who.writable, id)
		if err != nil {
			return err
		}
		if after, err = outbox.Replay(ctx, tx, id); err != nil {
			return err
		}
		return outbox.Insert(ctx, tx, h.audit(before.Tenant, who, "outbox.replayed", "event:"+id.String(), "ok", auditDetails(before)))
	})
	if err != nil {
		return toProblem(err)
	}
	convertToUTC(&after)
	return c.JSON(http.StatusOK, after)
}

// Drop serves DELETE /outbox/{id}.
func (h Handlers) Drop(c echo.Context) error {
	ctx := c.Request().Context()
	id, err := idOf(c)
	if err != nil {
		return err
	}
	who := callerOf(c)
	refused := false
	err = postgres.InTx(ctx, h.Pool, func(tx pgx.Tx) error {
		row, err := outbox.Lock(ctx, tx, who.writable, id)
		if err != nil {
			return err
		}
		action, outcome := "outbox.dropped", "ok"
		if refused = row.State != outbox.Poison; refused {
			action, outcome = "outbox.drop", "denied"
		} else if _, err := outbox.Drop(ctx, tx, id); err != nil {
			return err
		}
		return outbox.Insert(ctx, tx, h.audit(row.Tenant, who, action, "event:"+id.String(), outcome, auditDetails(row)))
	})
	switch {
	case err != nil:
		return toProblem(err)
	case refused:
		return toProblem(outbox.ErrNotPoison)
	}
	return c.NoContent(http.StatusNoContent)
}

// window is a span of creation times. They are strings, so that the error names the
// one that does not parse.
type window struct {
	From string `json:"from"`
	To   string `json:"to"`
}

func parseInstant(name, text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, invalidField("must be an RFC 3339 time, such as 2026-01-02T15:04:05Z", "body", name)
	}
	return t.UTC(), nil
}

// Republish serves POST /outbox/republish.
func (h Handlers) Republish(c echo.Context) error {
	ctx := c.Request().Context()
	var body window
	if err := service.DecodeJSON(c, &body, true); err != nil {
		return err
	}
	from, err := parseInstant("from", body.From)
	if err != nil {
		return err
	}
	to, err := parseInstant("to", body.To)
	if err != nil {
		return err
	}
	if !to.After(from) {
		return invalidField("must be after from", "body", "to")
	}
	who := callerOf(c)
	of := who.tenant
	if who.writable == nil { // rows of all tenants
		of = outbox.PlatformTenant
	}
	var n int64
	err = postgres.InTx(ctx, h.Pool, func(tx pgx.Tx) error {
		var err error
		if n, err = outbox.Republish(ctx, tx, who.writable, from, to); err != nil {
			return err
		}
		return outbox.Insert(ctx, tx, h.audit(of, who, "outbox.republished", "event:*", "ok", map[string]any{"from": from, "to": to, "events": n}))
	})
	if err != nil {
		return toProblem(err)
	}
	return c.JSON(http.StatusOK, map[string]any{"republished": n, "from": from, "to": to})
}

func idOf(c echo.Context) (uuid.UUID, error) {
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return uuid.Nil, toProblem(outbox.ErrNoRow)
	}
	return id, nil
}

func convertToUTC(r *outbox.Row) {
	r.CreatedAt, r.NextAttemptAt = r.CreatedAt.UTC(), r.NextAttemptAt.UTC()
	for _, t := range []*time.Time{r.PublishedAt, r.PoisonAt} {
		if t != nil {
			*t = t.UTC()
		}
	}
}

func invalidField(msg string, loc ...string) error {
	return problem.Validation.New(loc[len(loc)-1] + " " + msg + ".").WithErrors(problem.Field{Loc: loc, Msg: msg})
}

// toProblem converts an error of the outbox to a problem.
func toProblem(err error) error {
	switch {
	case errors.Is(err, outbox.ErrNoRow):
		return EventNotFound.New("The outbox has no event with this id, or none that your tenant may see or move; GET /outbox lists those there are.")
	case errors.Is(err, outbox.ErrNotPoison):
		return EventNotPoison.New("Only a poison event can be dropped; this one is still to be published, or was.")
	case errors.Is(err, outbox.ErrTooMany):
		return problem.Validation.Errorf("The window holds more than %d published events; choose a shorter one.", outbox.MaxRepublish).
			WithErrors(problem.Field{Loc: []string{"body", "to"}, Msg: "holds too many events"})
	case postgres.Unavailable(err):
		return StoreUnavailable.New("The database does not answer; try again later.").WithCause(err).After(5 * time.Second)
	}
	return err
}
