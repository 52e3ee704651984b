package cluster

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/assistant"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/assistant/internal/clustername"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
)

// NamespaceLister lists the namespaces of a cluster. It returns soon after ctx ends.
type NamespaceLister interface {
	Namespaces(ctx context.Context) ([]string, error)
}

// namespaceTime leaves clients with a 3 s timeout the time to read the response.
const namespaceTime = 2500 * time.Millisecond

// NamespacesHandler answers GET /v1/namespaces with every namespace that is visible to callers, protected ones included. from
// are in the order of the names; a header chooses among them, and then the answer names them all.
func NamespacesHandler(names clustername.Names, from []NamespaceLister, visible func(namespace string) bool) echo.HandlerFunc {
	return func(c echo.Context) error {
		name, err := names.FromHeader(c.Request().Header)
		if err != nil {
			return err
		}
		name = names.Stored(name)
		i, err := names.Index(name)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(c.Request().Context(), namespaceTime)
		defer cancel()
		answer := api.NamespaceList{}
		unavailable := func(detail string) *problem.Error {
			return fault.ClusterUnavailable.New(detail).After(5 * time.Second)
		}
		if all := names.List(); all != nil {
			answer.Cluster, answer.Clusters = &name, &all
			unavailable = func(detail string) *problem.Error {
				return fault.ClusterUnavailable.New(name + ": " + detail).After(5 * time.Second).With(map[string]any{"cluster": name, "clusters": all})
			}
		}
		all, err := from[i].Namespaces(ctx)
		if err != nil {
			return unavailable("The cluster does not tell its namespaces; try again later.").WithCause(err)
		}
		shown := slices.DeleteFunc(slices.Clone(all), func(ns string) bool { return !visible(ns) })
		if len(shown) == 0 { // every cluster has some, so the list is incomplete
			return unavailable("The cluster names no namespace that callers may see.")
		}
		slices.Sort(shown)
		answer.Namespaces = slices.Compact(shown)
		return c.JSON(http.StatusOK, answer)
	}
}
