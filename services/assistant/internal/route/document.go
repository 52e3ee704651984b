package route

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/assistant"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
)

// serveHealth touches no dependency.
func serveHealth(c echo.Context) error {
	return c.JSON(http.StatusOK, api.Health{Status: "ok", Version: service.Version})
}

// namespaceTime leaves clients that wait 3 s time to read the answer.
const namespaceTime = 2500 * time.Millisecond

// namespaces lists what exists for callers, the protected ones too.
func (a *API) namespaces(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), namespaceTime)
	defer cancel()
	all, err := a.Cluster.Namespaces(ctx)
	if err != nil {
		return fault.ClusterUnavailable.New("The cluster does not tell its namespaces; try again later.").WithCause(err).After(5 * time.Second)
	}
	shown := slices.DeleteFunc(slices.Clone(all), func(ns string) bool { return !a.Policy.Visible(ns) })
	if len(shown) == 0 { // a cluster always has some, so this one has not told
		return fault.ClusterUnavailable.New("The cluster names no namespace that callers may see.").After(5 * time.Second)
	}
	slices.Sort(shown)
	return c.JSON(http.StatusOK, api.NamespaceList{Namespaces: slices.Compact(shown)})
}

// Errors writes errors as fault.Handler does, and answers 503 where the database cannot be reached.
func Errors(next echo.HTTPErrorHandler) echo.HTTPErrorHandler {
	return func(err error, c echo.Context) {
		var known *problem.Error
		if !errors.As(err, &known) && postgres.Unavailable(err) {
			err = fault.StoreUnavailable.New("The assistant's own store does not answer; try again later.").WithCause(err).After(5 * time.Second)
		}
		next(err, c)
	}
}
