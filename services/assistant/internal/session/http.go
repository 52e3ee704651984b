package session

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/caller"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// page is one page of the list of sessions.
type page struct {
	Items []Head  `json:"items"`
	Next  *string `json:"next_cursor"` // null: this is the last page
}

// ServeList answers with the sessions that the caller may read.
func (s *Service) ServeList(c echo.Context) error {
	most, err := service.PageLimit(c)
	if err != nil {
		return err
	}
	var at After
	from := &at
	if ok, err := service.Cursor(c, &at); err != nil {
		return err
	} else if !ok {
		from = nil
	}
	rows, err := s.List(c.Request().Context(), caller.Who(c), from, int32(most)+1)
	if err != nil {
		return err
	}
	p := page{Items: rows}
	if len(rows) > most {
		p.Items = rows[:most]
		last := p.Items[most-1]
		next := service.EncodeCursor(c.Path(), After{UsedAt: last.UsedAt, ID: last.ID})
		p.Next = &next
	}
	return c.JSON(http.StatusOK, p)
}

// ServeOne answers with one session.
func (s *Service) ServeOne(c echo.Context) error {
	d, err := s.Get(c.Request().Context(), caller.Who(c), store.Text(c.Param("session_id")))
	if err != nil {
		return err
	}
	if d.Messages == nil {
		d.Messages = []Message{}
	}
	if d.Pending == nil {
		d.Pending = []action.Action{}
	}
	return c.JSON(http.StatusOK, d)
}

// ServeDelete deletes a session of the caller.
func (s *Service) ServeDelete(c echo.Context) error {
	if err := s.Delete(c.Request().Context(), caller.Who(c), store.Text(c.Param("session_id"))); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
