package cluster

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/assistant"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
)

// NamespaceLister lists the namespaces of a cluster. It returns soon after ctx ends.
type NamespaceLister interface {
	Namespaces(ctx context.Context) ([]string, error)
}

// namespaceTime leaves clients with a 3 s timeout the time to read the response.
const namespaceTime = 2500 * time.Millisecond

// NamespacesHandler answers GET /v1/namespaces with every namespace that is visible to callers, protected ones included.
func NamespacesHandler(from NamespaceLister, visible func(namespace string) bool) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx, cancel := context.WithTimeout(c.Request().Context(), namespaceTime)
		defer cancel()
		all, err := from.Namespaces(ctx)
		if err != nil {
			return fault.ClusterUnavailable.New("The cluster does not tell its namespaces; try again later.").WithCause(err).After(5 * time.Second)
		}
		shown := slices.DeleteFunc(slices.Clone(all), func(ns string) bool { return !visible(ns) })
		if len(shown) == 0 { // every cluster has some, so the list is incomplete
			return fault.ClusterUnavailable.New("The cluster names no namespace that callers may see.").After(5 * time.Second)
		}
		slices.Sort(shown)
		return c.JSON(http.StatusOK, api.NamespaceList{Namespaces: slices.Compact(shown)})
	}
}
