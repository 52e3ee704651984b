package wire

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
)

// RequireStorableText keeps text that Postgres cannot store, U+0000 and invalid
// UTF-8, out of queries and path parameters. A query with such text is refused, and
// so is one that cannot be parsed, which would drop a filter, or that gives a
// parameter twice, which leaves open what was meant. In a path parameter it becomes
// U+FFFD, which no name or id contains, so that each route returns its own 404.
//
// Path parameters are unescaped here: the router passes those of a path with
// unusual escapes, such as %2F, as they were sent.
func RequireStorableText(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		query, err := url.ParseQuery(c.Request().URL.RawQuery)
		if err != nil {
			return fault.Invalid(queryRule, "query")
		}
		for _, name := range slices.Sorted(maps.Keys(query)) {
			if !Storable(name) {
				return fault.Invalid(textRule, "query")
			}
			if len(query[name]) > 1 {
				return fault.Invalid("is given more than once", "query", name)
			}
			for _, v := range query[name] {
				if !Storable(v) {
					return fault.Invalid(textRule, "query", name)
				}
			}
		}
		values := slices.Clone(c.ParamValues())
		for i, v := range values {
			if c.Request().URL.RawPath != "" {
				if v, err = url.PathUnescape(v); err != nil {
					return problem.BadRequest.New("The path contains an invalid escape.").WithCause(err)
				}
				values[i] = v
			}
			if !Storable(v) {
				values[i] = CleanText(v)
			}
		}
		c.SetParamValues(values...)
		return next(c)
	}
}

const queryRule = "must be pairs name=value joined by &, with % and ; escaped"

const textRule = "must be UTF-8 without the character U+0000"

// Parameters refuses query parameters that a route does not have: a misspelt filter would otherwise be ignored, and the
// whole list be taken for the filtered one.
func Parameters(known []string) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if c.Request().URL.RawQuery == "" {
				return next(c)
			}
			var faults []problem.Field
			for _, name := range slices.Sorted(maps.Keys(c.QueryParams())) {
				if !slices.Contains(known, name) {
					faults = append(faults, problem.Field{Loc: []string{"query", name}, Msg: parametersRule(known)})
				}
			}
			if err := fault.InvalidAll(faults); err != nil {
				return err
			}
			return next(c)
		}
	}
}

func parametersRule(known []string) string {
	if len(known) == 0 {
		return "unknown parameter; this route has none"
	}
	return "unknown parameter; this route has " + strings.Join(known, ", ")
}

// Flag reads a query parameter that is true or, by default, false; the error is a 422.
func Flag(c echo.Context, name string) (bool, error) {
	switch c.QueryParam(name) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, fault.Invalid("must be true or false", "query", name)
}
