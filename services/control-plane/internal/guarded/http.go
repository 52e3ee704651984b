package guarded

import (
	"encoding/json"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// List serves GET /governance/changes.
func (s *Service) List(c echo.Context) error {
	page, err := wire.PageOf[uuid.UUID](c)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(c.Request().Context())
	q := store.ListGuardedChangesParams{Tenant: p.Tenant, Before: page.After, MaxRows: page.Fetch()}
	if v := c.QueryParam("state"); v != "" {
		if !api.GuardedChangeState(v).Valid() {
			return fault.Invalid("must be pending, applied, rejected, expired or superseded", "query", "state")
		}
		q.State = &v
	}
	rows, err := s.Store.ListGuardedChanges(c.Request().Context(), q)
	if err != nil {
		return err
	}
	rows, next := wire.CutPage(page, rows, func(r store.GuardedChange) uuid.UUID { return r.ID })
	out := api.GuardedChangeList{Items: make([]api.GuardedChange, 0, len(rows)), NextCursor: next}
	for _, r := range rows {
		v, err := View(r)
		if err != nil {
			return err
		}
		out.Items = append(out.Items, v)
	}
	return c.JSON(http.StatusOK, out)
}

// Approve serves POST /governance/changes/{id}/approve.
func (s *Service) Approve(c echo.Context) error { return s.decide(c, true) }

// Reject serves POST /governance/changes/{id}/reject.
func (s *Service) Reject(c echo.Context) error { return s.decide(c, false) }

func (s *Service) decide(c echo.Context, approve bool) error {
	ctx := c.Request().Context()
	reason, err := wire.Reason(c)
	if err != nil {
		return err
	}
	id, err := wire.PathID(c, fault.ChangeNotFound)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	row, err := s.Decide(ctx, p, id, approve, reason)
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, row)
}

// Accepted answers a request whose change waits for a second person.
func Accepted(c echo.Context, row store.GuardedChange) error {
	return answer(c, http.StatusAccepted, row)
}

func answer(c echo.Context, status int, row store.GuardedChange) error {
	v, err := View(row)
	if err != nil {
		return err
	}
	return c.JSON(status, v)
}

// View returns the wire format of a change.
func View(r store.GuardedChange) (api.GuardedChange, error) {
	out := api.GuardedChange{
		Id: r.ID, Kind: api.GuardedChangeKind(r.Kind), Target: r.Target, State: api.GuardedChangeState(r.State), RequestedBy: r.RequestedBy,
		RequestedAt: r.RequestedAt.UTC(), PersonUnknown: r.PersonUnknown, FirstApprover: r.FirstApprover, DecidedBy: r.DecidedBy,
		DecidedAt: wire.UTC(r.DecidedAt), Reason: r.Reason, ExpiresAt: wire.UTC(r.ExpiresAt),
	}
	for raw, into := range map[*json.RawMessage]*any{&r.Old: &out.Old, &r.New: &out.New} {
		if len(*raw) > 0 {
			if err := json.Unmarshal(*raw, into); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}
