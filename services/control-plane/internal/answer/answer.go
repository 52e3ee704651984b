// Package answer holds what the control plane's responses have in common: times
// in UTC, and pages of records ordered by their UUIDv7.
package answer

import (
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/service"
)

// UTC is t in UTC; the driver gives the machine's zone.
func UTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// Text is s, or nil when it is empty.
func Text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Page is one page of a list that is ordered by falling id.
type Page struct {
	limit  int
	Before *uuid.UUID // nil for the first page
}

type position struct {
	Before uuid.UUID `json:"before"`
}

// PageOf reads limit and cursor; the error is a 422.
func PageOf(c echo.Context) (Page, error) {
	limit, err := service.PageLimit(c)
	if err != nil {
		return Page{}, err
	}
	p := Page{limit: limit}
	var at position
	if ok, err := service.Cursor(c, &at); err != nil {
		return Page{}, err
	} else if ok {
		p.Before = &at.Before
	}
	return p, nil
}

// Fetch is how many rows to ask for: one more than the page, to know whether another follows.
func (p Page) Fetch() int32 { return int32(p.limit) + 1 }

// Cut gives the rows of the page, and the cursor of the next one or nil.
func Cut[T any](p Page, rows []T, id func(T) uuid.UUID) ([]T, *string) {
	if len(rows) <= p.limit {
		return rows, nil
	}
	rows = rows[:p.limit]
	next := service.EncodeCursor(position{id(rows[len(rows)-1])})
	return rows, &next
}
