package inbox

import (
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
)

// place is a notice's in the list.
type place struct {
	At time.Time `json:"t"`
	ID uuid.UUID `json:"i"`
}

// List serves GET /api/v1/inbox.
func (i *Inbox) List(c echo.Context) error {
	if err := input.CheckQuery(c, "unread", "limit", "cursor"); err != nil {
		return err
	}
	unread := c.QueryParam("unread")
	if unread != "" && unread != "true" && unread != "false" {
		return input.Invalid("must be true or false", "query", "unread")
	}
	limit, err := service.PageLimit(c)
	if err != nil {
		return err
	}
	ctx, who, q := c.Request().Context(), caller.From(c), store.New(i.cfg.Pool)
	decides := who.Role.Covers(caller.Admin)
	params := store.ListNoticesParams{
		Tenant: who.Tenant, Person: who.Subject, Names: namesOf(who), Decides: decides, UnreadOnly: unread == "true", MaxRows: int32(limit) + 1,
	}
	var before place
	if ok, err := service.Cursor(c, &before); err != nil {
		return err
	} else if ok {
		params.BeforeAt, params.BeforeID = &before.At, before.ID
	}
	rows, err := q.ListNotices(ctx, params)
	if err != nil {
		return err
	}
	count, err := q.CountUnreadNotices(ctx, store.CountUnreadNoticesParams{Tenant: who.Tenant, Person: who.Subject, Names: params.Names, Decides: decides})
	if err != nil {
		return err
	}
	out := api.Inbox{Unread: int(count), Items: make([]api.Notice, 0, len(rows))}
	if len(rows) > limit {
		rows = rows[:limit]
		next := service.EncodeCursor(c.Path(), place{rows[limit-1].HappenedAt, rows[limit-1].ID})
		out.NextCursor = &next
	}
	for _, r := range rows {
		out.Items = append(out.Items, viewNotice(r))
	}
	return c.JSON(http.StatusOK, out)
}

func viewNotice(r store.ListNoticesRow) api.Notice {
	n := api.Notice{
		Id: r.ID, Kind: api.NoticeKind(r.Kind), Title: r.Title, Path: r.Path, At: r.HappenedAt.UTC(),
		Unread: r.ReadAt == nil && r.Outcome == "",
	}
	if r.Author != "" {
		n.Author = &r.Author
	}
	if r.Outcome != "" {
		n.Outcome = &r.Outcome
	}
	return n
}

// Read serves POST /api/v1/inbox/:id/read.
func (i *Inbox) Read(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return noticeNotFound()
	}
	n, err := i.mark(c, &id, nil)
	if err != nil {
		return err
	}
	if n == 0 {
		return noticeNotFound()
	}
	return c.NoContent(http.StatusNoContent)
}

func noticeNotFound() error {
	return fault.NotFound.New("There is no such notice for you; GET /api/v1/inbox lists those that there are.")
}

// ReadAll serves POST /api/v1/inbox/read-all.
func (i *Inbox) ReadAll(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	var body struct {
		Until *time.Time `json:"until"`
	}
	if err := service.DecodeJSON(c, &body, true); err != nil {
		return err
	}
	if body.Until == nil {
		return input.Invalid("must be the time of the newest notice that the person has seen; later ones stay unread", "body", "until")
	}
	if _, err := i.mark(c, nil, body.Until); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// mark marks one notice of the caller as read, or all until a time.
func (i *Inbox) mark(c echo.Context, id *uuid.UUID, until *time.Time) (int64, error) {
	who := caller.From(c)
	return store.New(i.cfg.Pool).ReadNotices(c.Request().Context(), store.ReadNoticesParams{
		Tenant: who.Tenant, Person: who.Subject, Names: namesOf(who), Decides: who.Role.Covers(caller.Admin), ID: id, Until: until,
	})
}
