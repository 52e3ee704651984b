package wire

import (
	"maps"
	"net/url"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
)

// RequireStorableText keeps what Postgres cannot store, U+0000 and bytes that are no UTF-8, out
// of queries and path parameters. A query that holds such is refused, and so is
// one that cannot be read, which would leave a filter out, or that names a
// parameter twice: which was meant cannot be known. In a path parameter it becomes
// U+FFFD, which no name and no id holds, so that each route answers its own 404.
//
// Path parameters are unescaped here: of a path with escapes that it would not
// itself write, such as %2F, the router gives them as they were sent.
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
					return problem.BadRequest.New("The path holds an escape that is none.").WithCause(err)
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
