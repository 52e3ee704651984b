package search

import (
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
)

// Limits of a search.
const (
	maxQuery     = 200 // characters
	defaultLimit = 20
	maxLimit     = 100
)

// FindEntries serves GET /api/v1/search. A blank query asks no source.
func (s *Search) FindEntries(c echo.Context) error {
	if err := input.CheckQuery(c, "q", "limit"); err != nil {
		return err
	}
	text := c.QueryParam("q")
	if utf8.RuneCountInString(text) > maxQuery {
		return input.Invalid("must have at most 200 characters", "query", "q")
	}
	limit, err := service.PageLimitUpTo(c, defaultLimit, maxLimit)
	if err != nil {
		return err
	}
	v := s.Pool.Begin(c)
	folded := foldText(strings.TrimSpace(text))
	if folded == "" {
		return v.Answer(newDocument(text, nil))
	}
	return v.Answer(newDocument(text, rank(s.gather(v), folded, limit)))
}
