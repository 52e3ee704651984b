package traffic

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
	"github.com/mlp-platform/platform/services/inference/internal/store"
)

// SetShadow is PUT /shadow-rules/{model}.
func (t *Traffic) SetShadow(c echo.Context) error {
	model, err := modelOf(c)
	if err != nil {
		return err
	}
	var body map[string]*json.RawMessage
	if err := service.DecodeJSON(c, &body, true); err != nil {
		return err
	}
	rule, err := parseShadow(body)
	if err != nil {
		return err
	}
	row, err := t.changeShadow(c.Request().Context(), model, rule)
	if err != nil {
		return storeFault(err)
	}
	warnings := []string{}
	switch e := t.cfg.Catalog.Table().Model(model); {
	case e == nil:
		warnings = append(warnings, fmt.Sprintf("Model %s is not loaded here; the rule applies once it is. Check the name.", model))
	case e.Aliases[rule.Alias] == nil:
		warnings = append(warnings, fmt.Sprintf("No version is loaded under %s; nothing is scored until there is one.", rule.Alias))
	}
	return c.JSON(http.StatusOK, api.ShadowChange{
		Model: model, Alias: row.Alias, Percent: int(row.Percent), Applied: true, UpdatedAt: row.UpdatedAt, UpdatedBy: row.UpdatedBy, Warnings: warnings,
	})
}

// ListShadows is GET /shadow-rules.
func (t *Traffic) ListShadows(c echo.Context) error {
	limit, after, err := pageOf(c)
	if err != nil {
		return err
	}
	rows, err := visibleRows(c, limit+1, after, func(after string, most int32) ([]store.ShadowRule, error) {
		return t.queries.ShadowRules(c.Request().Context(), store.ShadowRulesParams{AfterModel: after, Most: most})
	}, func(r store.ShadowRule) string { return r.Model })
	if err != nil {
		return storeFault(err)
	}
	out := api.ShadowRuleList{Items: []api.ShadowRule{}}
	if len(rows) > limit {
		rows = rows[:limit]
		next := service.EncodeCursor(c.Path(), rows[limit-1].Model)
		out.NextCursor = &next
	}
	for _, row := range rows {
		out.Items = append(out.Items, wireShadow(row))
	}
	return c.JSON(http.StatusOK, out)
}

// GetShadow is GET /shadow-rules/{model}.
func (t *Traffic) GetShadow(c echo.Context) error {
	model, err := modelOf(c)
	if err != nil {
		return err
	}
	row, err := t.queries.ShadowRule(c.Request().Context(), model)
	if errors.Is(err, pgx.ErrNoRows) {
		return noShadow(model)
	}
	if err != nil {
		return storeFault(err)
	}
	return c.JSON(http.StatusOK, wireShadow(row))
}

// DeleteShadow is DELETE /shadow-rules/{model}.
func (t *Traffic) DeleteShadow(c echo.Context) error {
	model, err := modelOf(c)
	if err != nil {
		return err
	}
	switch _, err := t.changeShadow(c.Request().Context(), model, nil); {
	case errors.Is(err, errNoShadow):
		return noShadow(model)
	case err != nil:
		return storeFault(err)
	}
	return c.NoContent(http.StatusNoContent)
}

func wireShadow(row store.ShadowRule) api.ShadowRule {
	return api.ShadowRule{Model: row.Model, Alias: row.Alias, Percent: int(row.Percent), UpdatedAt: row.UpdatedAt.UTC(), UpdatedBy: row.UpdatedBy}
}

func noShadow(model string) error {
	return fault.NoShadowRule.New("Model " + problem.Shorten(model) + " has no shadow rule; its requests are answered and nothing else scores them.")
}
