package registry

import (
	"context"

	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// RequireKnown returns 404 for an unknown model. It is for records of models that need not be in the repository: a
// model that is hosted for the tenant, or that once held an alias, is known too.
func (r *Registry) RequireKnown(ctx context.Context, q *store.Queries, tenant, id string) error {
	if _, ok := r.LookUpTracked(ctx, id); ok {
		return nil
	}
	known, err := q.ModelKnown(ctx, store.ModelKnownParams{Tenant: tenant, ModelID: id})
	if err == nil && !known {
		err = fault.ModelNotFound.New("There is no such model; GET /models lists those of the repository, GET /llm/endpoints the hosted ones.")
	}
	return err
}
