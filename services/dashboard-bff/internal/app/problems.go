package app

import (
	"errors"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
)

// renameProblems gives errors of the shared libraries the codes that this API has for them.
func renameProblems(e *echo.Echo) {
	answer := fault.ExplainStore(e.HTTPErrorHandler)
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		var p *problem.Error
		if errors.As(err, &p) && p.Kind == problem.Validation {
			renamed := *p
			renamed.Kind = fault.ValidationFailed
			err = &renamed
		}
		answer(err, c)
	}
}
