// Package audit shows a tenant's audit ledger, which the control plane keeps.
package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// Bounds of a request.
const (
	maxOffset = 10_000
	// timeout of the whole answer: an offset is reached page by page.
	timeout = 10 * time.Second
)

// Log serves GET /api/audit.
type Log struct{ clients *upstream.Clients }

// Config of New.
type Config struct{ Clients *upstream.Clients }

// New refuses a missing part.
func New(cfg Config) (*Log, error) {
	if err := service.RequireParts("audit", cfg); err != nil {
		return nil, err
	}
	return &Log{cfg.Clients}, nil
}

// position is where a page ends: the control plane's own cursor.
type position struct {
	Cursor string `json:"c"`
}

// query is a parsed request.
type query struct {
	params        controlplane.ListAuditEventsParams
	limit, offset int
}

func parseQuery(c echo.Context) (query, error) {
	if err := input.CheckQuery(c, "limit", "offset", "cursor", "model", "action", "source", "actor", "q", "since", "until"); err != nil {
		return query{}, err
	}
	limit, err := service.PageLimit(c)
	if err != nil {
		return query{}, err
	}
	q := query{limit: limit}
	for name, member := range map[string]**string{"model": &q.params.Model, "action": &q.params.Action, "source": &q.params.Source, "actor": &q.params.Actor, "q": &q.params.Q} {
		if v := c.QueryParam(name); v != "" {
			*member = &v
		}
	}
	var faults []problem.Field
	refuse := func(name, msg string) {
		faults = append(faults, problem.Field{Loc: []string{"query", name}, Msg: msg})
	}
	for i, member := range []**time.Time{&q.params.Since, &q.params.Until} {
		name := []string{"since", "until"}[i]
		v := c.QueryParam(name)
		if v == "" {
			continue
		}
		t, err := time.Parse(time.RFC3339, v)
		if err != nil {
			refuse(name, "must be a time of RFC 3339, such as 2026-01-02T03:04:05Z")
		}
		*member = &t
	}
	if v := c.QueryParam("offset"); v != "" {
		if q.offset, err = strconv.Atoi(v); err != nil || q.offset < 0 || q.offset > maxOffset {
			refuse("offset", fmt.Sprintf("must be a whole number from 0 to %d; a cursor leads further", maxOffset))
		}
	}
	var at position
	begins, err := service.Cursor(c, &at)
	if err != nil {
		return query{}, err
	}
	if begins {
		q.params.Cursor = &at.Cursor
		if q.offset > 0 {
			refuse("offset", "cannot be combined with cursor, which sets where the page begins")
		}
	}
	return q, input.InvalidFields(faults...)
}

// List serves GET /api/audit.
func (l *Log) List(c echo.Context) error {
	q, err := parseQuery(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), timeout)
	defer cancel()
	who := caller.From(c)
	page, err := l.read(ctx, who, q)
	if err != nil {
		return upstream.ExplainControlPlane(err, "the audit ledger")
	}
	out := api.AuditPage{Items: make([]api.AuditEntry, 0, len(page.Items)), Total: int(page.Count)}
	for _, e := range page.Items {
		if e.Tenant == who.Tenant { // whatever the control plane took the caller for
			out.Items = append(out.Items, viewEntry(e))
		}
	}
	if page.NextCursor != nil {
		next := service.EncodeCursor(c.Path(), position{*page.NextCursor})
		out.NextCursor = &next
	}
	return c.JSON(http.StatusOK, out)
}

// read skips the offset, which the control plane does not have, then reads the page.
func (l *Log) read(ctx context.Context, who caller.Caller, q query) (controlplane.AuditEventList, error) {
	client, err := l.clients.ControlPlane(who)
	if err != nil {
		return controlplane.AuditEventList{}, err
	}
	for skip := q.offset; ; {
		limit := q.limit
		if skip > 0 {
			limit = min(skip, service.MaxPageLimit)
		}
		q.params.Limit = &limit
		page, err := wire.Decode[controlplane.AuditEventList](client.ListAuditEvents(ctx, &q.params))
		if err != nil || skip == 0 {
			return page, err
		}
		if page.NextCursor == nil { // the ledger ends before the offset
			page.Items = nil
			return page, nil
		}
		skip -= len(page.Items)
		q.params.Cursor = page.NextCursor
	}
}

// viewEntry converts a ledger entry to the dashboard's form. Role and configuration key are in the details that
// services record.
func viewEntry(e controlplane.AuditEvent) api.AuditEntry {
	at, _ := time.Parse(time.RFC3339Nano, e.Ts) // the ledger hashes that form
	out := api.AuditEntry{
		Id: e.EventId.String(), Seq: e.Seq, RequestId: e.RequestId, At: at.UTC(), Actor: e.Actor, Action: e.Action, Target: e.Target, Source: e.Source, Outcome: string(e.Outcome),
		Details: map[string]any{}, Hash: e.Hash,
	}
	_ = json.Unmarshal(e.Details, &out.Details) // an object, by the ledger's rule
	if role, ok := out.Details["role"].(string); ok {
		out.Role = &role
	}
	if key, ok := out.Details["key"].(string); ok {
		out.Key = &key
	}
	return out
}
