package fault

import (
	"errors"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
)

// ExplainStore answers 503 where the database cannot be reached, and leaves all else to next: handlers return the
// store's error unchanged, and the same request may succeed later.
func ExplainStore(next echo.HTTPErrorHandler) echo.HTTPErrorHandler {
	return func(err error, c echo.Context) {
		var p *problem.Error
		if !errors.As(err, &p) && postgres.Unavailable(err) {
			err = StoreUnavailable.New("The dashboard's database does not answer; try again later.").WithCause(err).After(5 * time.Second)
		}
		next(err, c)
	}
}
