package traffic

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
	"github.com/mlp-platform/platform/services/inference/internal/owner"
	"github.com/mlp-platform/platform/services/inference/internal/store"
)

// maxModel limits a model's name, in bytes.
const maxModel = 128

// Set is POST and PUT /traffic-rules/{model}.
func (t *Traffic) Set(c echo.Context) error {
	model, err := modelOf(c)
	if err != nil {
		return err
	}
	var body map[string]*json.RawMessage
	if err := service.DecodeJSON(c, &body, true); err != nil {
		return err
	}
	weights, err := parseWeights(body)
	if err != nil {
		return err
	}
	row, err := t.change(c.Request().Context(), model, weights)
	if err != nil {
		return storeFault(err)
	}
	return c.JSON(http.StatusOK, api.TrafficChange{
		Model: model, Rules: api.TrafficWeights(weights), Applied: true, UpdatedAt: row.UpdatedAt, UpdatedBy: row.UpdatedBy, Warnings: t.warnings(model, weights),
	})
}

// warnings lists the requests that the rules will not send to their intended alias.
func (t *Traffic) warnings(model string, w Weights) []string {
	out := []string{}
	e := t.cfg.Catalog.Table().Model(model)
	if t.cfg.Catalog.TrackerOf(model) == "" {
		return append(out, fmt.Sprintf("Model %s is not loaded here; the rules apply once it is. Check the name.", model))
	}
	for _, alias := range catalog.Aliases {
		switch {
		case w[alias] == 0 || e != nil && e.Aliases[alias] != nil || t.cfg.Catalog.Lazy(model, alias):
		case alias == catalog.Production:
			out = append(out, "No version is loaded under Production; requests that get it are answered with 404 until there is one.")
		default:
			out = append(out, fmt.Sprintf("No version is loaded under %s; its %d %% go to Production until there is one.", alias, w[alias]))
		}
	}
	return out
}

// List is GET /traffic-rules.
func (t *Traffic) List(c echo.Context) error {
	limit, after, err := pageOf(c)
	if err != nil {
		return err
	}
	rows, err := visibleRows(c, limit+1, after, func(after string, most int32) ([]store.TrafficRule, error) {
		return t.queries.TrafficRules(c.Request().Context(), store.TrafficRulesParams{AfterModel: after, Most: most})
	}, func(r store.TrafficRule) string { return r.Model })
	if err != nil {
		return storeFault(err)
	}
	out := api.TrafficRuleList{Items: []api.TrafficRule{}}
	if len(rows) > limit {
		rows = rows[:limit]
		next := service.EncodeCursor(c.Path(), rows[limit-1].Model)
		out.NextCursor = &next
	}
	for _, row := range rows {
		item, err := wireRule(row)
		if err != nil {
			return err
		}
		out.Items = append(out.Items, item)
	}
	return c.JSON(http.StatusOK, out)
}

// visibleRows reads rows by model until there are so many that the caller may see, or no more.
func visibleRows[T any](c echo.Context, want int, after string, read func(after string, most int32) ([]T, error), model func(T) string) ([]T, error) {
	var out []T
	for {
		rows, err := read(after, int32(want))
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if after = model(r); owner.Visible(c, after) {
				out = append(out, r)
			}
		}
		if len(rows) < want || len(out) >= want {
			return out[:min(len(out), want)], nil
		}
	}
}

// pageOf reads the requested page of a list: how many rows, after which model.
func pageOf(c echo.Context) (limit int, after string, err error) {
	for _, name := range slices.Sorted(maps.Keys(c.QueryParams())) {
		if name != "limit" && name != "cursor" {
			msg := "unknown parameter; this route has limit and cursor"
			return 0, "", problem.Validation.New("query." + problem.Shorten(name) + ": " + msg + ".").
				WithErrors(problem.Field{Loc: []string{"query", problem.Shorten(name)}, Msg: msg})
		}
	}
	limit, err = service.PageLimit(c)
	if err != nil {
		return 0, "", err
	}
	if _, err := service.Cursor(c, &after); err != nil {
		return 0, "", err
	}
	return limit, after, nil
}

// Get is GET /traffic-rules/{model}.
func (t *Traffic) Get(c echo.Context) error {
	model, err := modelOf(c)
	if err != nil {
		return err
	}
	row, err := t.queries.TrafficRule(c.Request().Context(), model)
	if errors.Is(err, pgx.ErrNoRows) {
		return noRules(model)
	}
	if err != nil {
		return storeFault(err)
	}
	item, err := wireRule(row)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, item)
}

// Delete is DELETE /traffic-rules/{model}.
func (t *Traffic) Delete(c echo.Context) error {
	model, err := modelOf(c)
	if err != nil {
		return err
	}
	switch _, err := t.change(c.Request().Context(), model, nil); {
	case errors.Is(err, errNoRules):
		return noRules(model)
	case err != nil:
		return storeFault(err)
	}
	return c.NoContent(http.StatusNoContent)
}

func wireRule(row store.TrafficRule) (api.TrafficRule, error) {
	w, err := decodeWeights(row.Rules)
	if err != nil {
		return api.TrafficRule{}, fmt.Errorf("traffic rules of %s: %w", row.Model, err)
	}
	return api.TrafficRule{Model: row.Model, Rules: api.TrafficWeights(w), UpdatedAt: row.UpdatedAt.UTC(), UpdatedBy: row.UpdatedBy}, nil
}

// modelOf is the model of the path. Rules may precede their model, so only impossible names are refused.
func modelOf(c echo.Context) (string, error) {
	name := c.Param("model_name")
	if name == "" || len(name) > maxModel || !utf8.ValidString(name) || strings.ContainsAny(name, "/:%") || strings.ContainsFunc(name, unicode.IsControl) {
		return "", fault.ModelNotLoaded.New("No model can have this name; check the path.")
	}
	return catalog.UpperName(name), nil
}

func noRules(model string) error {
	return fault.NoTrafficRules.New("Model " + problem.Shorten(model) + " has no traffic rules; requests that name no alias get Production.")
}

func storeFault(err error) error {
	if postgres.Unavailable(err) {
		return fault.StoreUnavailable.New("The database cannot be reached; the rules at work stay so, and cannot be read or changed now.").WithCause(err).After(time.Second)
	}
	return err
}
