package orchestratord

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/store"
)

// Deployment is one that this process itself offers. It has no work pool, so the [Runner] carries out its runs.
type Deployment struct {
	Flow, Name  string
	Description string
	// ParameterSchema is the JSON schema that parameters must follow.
	ParameterSchema json.RawMessage
}

// EnsureDeployment creates the deployment, or updates the description and schema of the present one; other changes by
// users stay.
func (s *Server) EnsureDeployment(ctx context.Context, d Deployment) error {
	in := deploymentIn{
		Name: d.Name, Description: &d.Description, EnforceParameterSchema: true, ParameterSchema: object{d.ParameterSchema},
	}
	if err := in.check(); err != nil {
		return fmt.Errorf("deployment %s/%s: %w", d.Flow, d.Name, err)
	}
	err := s.tx(ctx, func(q *store.Queries) error {
		empty := json.RawMessage("{}")
		if _, err := q.InsertFlow(ctx, store.InsertFlowParams{ID: newID(), Now: s.now(), Name: d.Flow, Tags: []string{}, Labels: empty}); err != nil {
			return err
		}
		flow, err := q.FlowByName(ctx, d.Flow)
		if err != nil {
			return err
		}
		return q.EnsureDeployment(ctx, store.EnsureDeploymentParams{
			ID: newID(), Now: s.now(), Name: d.Name, FlowID: flow.ID, Description: &d.Description,
			ParameterOpenapiSchema: in.ParameterSchema.json(),
		})
	})
	if err != nil {
		return fmt.Errorf("deployment %s/%s: %w", d.Flow, d.Name, err)
	}
	return nil
}
