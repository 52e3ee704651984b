package wire

import (
	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/service"
)

// Page is one page of a list whose rows are ordered by the unique key K.
type Page[K any] struct {
	route string // of the list
	limit int
	After *K // the key of the last row before the page; nil for the first
}

type position[K any] struct {
	After K `json:"after"`
}

// PageOf reads limit and cursor; the error is a 422.
func PageOf[K any](c echo.Context) (Page[K], error) {
	return PageUpTo[K](c, service.DefaultPageLimit, service.MaxPageLimit)
}

// PageUpTo is PageOf for lists with their own limits.
func PageUpTo[K any](c echo.Context, standard, most int) (Page[K], error) {
	limit, err := service.PageLimitUpTo(c, standard, most)
	if err != nil {
		return Page[K]{}, err
	}
	p := Page[K]{route: c.Path(), limit: limit}
	var at position[K]
	if ok, err := service.Cursor(c, &at); err != nil {
		return Page[K]{}, err
	} else if ok {
		p.After = &at.After
	}
	return p, nil
}

// Start returns After, or for the first page the zero key, for lists in which every key is greater.
func (p Page[K]) Start() K { return Deref(p.After) }

// Limit returns the maximum number of rows on the page.
func (p Page[K]) Limit() int { return p.limit }

// Fetch returns how many rows to query: one more than the page, to see whether another follows.
func (p Page[K]) Fetch() int32 { return int32(p.limit) + 1 }

// CutPage returns the rows of the page, and the cursor of the next one or nil.
func CutPage[K, T any](p Page[K], rows []T, key func(T) K) ([]T, *string) {
	if len(rows) <= p.limit {
		return rows, nil
	}
	rows = rows[:p.limit]
	return rows, p.Next(key(rows[len(rows)-1]))
}

// Next returns the cursor of the page after the row with that key.
func (p Page[K]) Next(key K) *string {
	next := service.EncodeCursor(p.route, position[K]{key})
	return &next
}
