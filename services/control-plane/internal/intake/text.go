package intake

import (
	"maps"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/text"
)

// Text keeps what Postgres cannot store, U+0000 and bytes that are no UTF-8, out
// of queries and path parameters. A query that holds such is refused, and so is
// one that names a parameter twice: which was meant cannot be known. In a
// parameter it becomes U+FFFD, which no name and no id holds, so that each route
// answers its own 404.
func Text(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		query := c.QueryParams()
		for _, name := range slices.Sorted(maps.Keys(query)) {
			if !text.Storable(name) {
				return fault.Invalid(textRule, "query")
			}
			if len(query[name]) > 1 {
				return fault.Invalid("is given more than once", "query", name)
			}
			for _, v := range query[name] {
				if !text.Storable(v) {
					return fault.Invalid(textRule, "query", name)
				}
			}
		}
		values := slices.Clone(c.ParamValues())
		for i, v := range values {
			if !text.Storable(v) {
				values[i] = text.Clean(v)
			}
		}
		c.SetParamValues(values...)
		return next(c)
	}
}

const textRule = "must be UTF-8 without the character U+0000"
