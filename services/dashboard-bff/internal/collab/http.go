package collab

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

// place is a comment's in the list of its entity.
type place struct {
	At time.Time `json:"t"`
	ID uuid.UUID `json:"i"`
}

// ListComments serves GET /api/v1/collab/:type/:id/comments.
func (s *Collab) ListComments(c echo.Context) error {
	if err := input.CheckQuery(c, "limit", "cursor"); err != nil {
		return err
	}
	e, err := readEntity(c)
	if err != nil {
		return err
	}
	limit, err := service.PageLimit(c)
	if err != nil {
		return err
	}
	query := store.ListCommentsParams{Tenant: caller.From(c).Tenant, EntityType: e.kind, EntityID: e.id, MaxRows: int32(limit) + 1}
	var after place
	if ok, err := service.Cursor(c, &after); err != nil {
		return err
	} else if ok {
		query.AfterAt, query.AfterID = &after.At, after.ID
	}
	rows, err := store.New(s.cfg.Pool).ListComments(c.Request().Context(), query)
	if err != nil {
		return err
	}
	out := api.Comments{Comments: make([]api.Comment, 0, len(rows))}
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1]
		next := service.EncodeCursor(c.Path(), place{last.CreatedAt, last.ID})
		out.NextCursor = &next
	}
	for _, r := range rows {
		out.Comments = append(out.Comments, viewComment(r))
	}
	return c.JSON(http.StatusOK, out)
}

// AddComment serves POST /api/v1/collab/:type/:id/comments.
func (s *Collab) AddComment(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	e, err := readEntity(c)
	if err != nil {
		return err
	}
	var body struct {
		Body *string `json:"body"`
	}
	if err := service.DecodeJSON(c, &body, true); err != nil {
		return err
	}
	if body.Body == nil {
		return input.Invalid("must be the text of the comment", "body", "body")
	}
	n, err := parseComment(*body.Body)
	if err != nil {
		return err
	}
	out, err := s.add(c.Request().Context(), caller.From(c), e, n)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// DeleteComment serves DELETE /api/v1/collab/:type/:id/comments/:comment_id.
func (s *Collab) DeleteComment(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	e, err := readEntity(c)
	if err != nil {
		return err
	}
	id, err := uuid.Parse(c.Param("comment_id"))
	if err != nil {
		return fault.NotFound.New("There is no such comment on " + e.path() + ".")
	}
	if err := s.bury(c.Request().Context(), caller.From(c), e, id); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
