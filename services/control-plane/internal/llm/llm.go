// Package llm keeps where language models are hosted. It is a record for people
// and views: nothing is dispatched to these endpoints.
package llm

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/api"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/intake"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// What an endpoint may say of itself.
const (
	maxModelLen       = 1_000_000_000 // tokens
	maxTensorParallel = 4096
	defaultDtype      = "auto"
)

// Service keeps the endpoints. They belong to the tenant that wrote them; those
// of tenant platform are everybody's, where they have none of their own.
type Service struct {
	Store *store.Store
	Now   func() time.Time
}

type position struct {
	After string `json:"after"`
}

// List serves GET /llm/endpoints.
func (s *Service) List(c echo.Context) error {
	ctx := c.Request().Context()
	limit, err := service.PageLimit(c)
	if err != nil {
		return err
	}
	var at position
	if _, err := service.Cursor(c, &at); err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	rows, err := s.Store.ListLLMEndpoints(ctx, store.ListLLMEndpointsParams{Tenant: p.Tenant, After: at.After, MaxRows: int32(limit) + 1})
	if err != nil {
		return err
	}
	out := api.LLMEndpointList{Items: make([]api.LLMEndpoint, 0, len(rows))}
	if len(rows) > limit {
		rows = rows[:limit]
		next := service.EncodeCursor(position{rows[limit-1].ModelID})
		out.NextCursor = &next
	}
	for _, r := range rows {
		out.Items = append(out.Items, view(r))
	}
	return c.JSON(http.StatusOK, out)
}

// input is api.LLMEndpointInput that tells 0 from none.
type input struct {
	Model          *string `json:"model"`
	Engine         string  `json:"engine"`
	HostedModelID  string  `json:"hostedModelId"`
	MaxModelLen    *int    `json:"maxModelLen"`
	TensorParallel *int    `json:"tensorParallel"`
	Dtype          *string `json:"dtype"`
	Enabled        *bool   `json:"enabled"`
}

// Put serves PUT /llm/endpoints/{model}. The model need not be in the
// repository: what is hosted was often trained elsewhere.
func (s *Service) Put(c echo.Context) error {
	ctx := c.Request().Context()
	var body input
	if err := intake.Decode(c, &body); err != nil {
		return err
	}
	row, err := body.row(c.Param("model"))
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	var after store.LlmEndpoint
	if err := s.Store.InTx(ctx, func(tx store.Tx) error {
		details := map[string]any{}
		before, found, err := own(c, tx, p.Tenant, row.ModelID)
		if err != nil {
			return err
		}
		if found {
			details["old"] = view(before)
		}
		row.Tenant, row.Now, row.UpdatedBy = p.Tenant, s.Now(), p.Name
		if after, err = tx.PutLLMEndpoint(ctx, row); err != nil {
			return err
		}
		details["new"] = view(after)
		return tx.Emit(ctx, event.Audit(p.Tenant, p.Name, "llm_endpoint.set", event.Model(row.ModelID), event.OK, details))
	}); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, view(after))
}

// own locks the tenant's record of the model, also one that is not there yet,
// and reads it.
func own(c echo.Context, tx store.Tx, tenant, model string) (store.LlmEndpoint, bool, error) {
	ctx := c.Request().Context()
	if err := tx.LockModels(ctx, []string{"llm:" + tenant + ":" + model}); err != nil {
		return store.LlmEndpoint{}, false, err
	}
	row, err := tx.GetLLMEndpoint(ctx, store.GetLLMEndpointParams{Tenant: tenant, ModelID: model})
	if store.None(err) {
		return row, false, nil
	}
	return row, err == nil, err
}

func (b input) row(model string) (store.PutLLMEndpointParams, error) {
	var faults []problem.Field
	bad := func(msg string, loc ...string) { faults = append(faults, problem.Field{Loc: loc, Msg: msg}) }
	out := store.PutLLMEndpointParams{
		ModelID: registry.ID(model), Engine: b.Engine, HostedModelID: b.HostedModelID, TensorParallel: 1, Dtype: defaultDtype, Enabled: true,
	}
	if !registry.ValidName(model) {
		bad(registry.NameRule, "path", "model")
	}
	if b.Model != nil && registry.ID(*b.Model) != out.ModelID {
		bad("is not the model of the path", "body", "model")
	}
	if b.Dtype != nil {
		out.Dtype = *b.Dtype
	}
	if b.Enabled != nil {
		out.Enabled = *b.Enabled
	}
	for _, f := range []struct{ name, v string }{{"engine", b.Engine}, {"hostedModelId", b.HostedModelID}, {"dtype", out.Dtype}} {
		if !intake.Label(f.v) {
			bad(intake.LabelRule, "body", f.name)
		}
	}
	if b.MaxModelLen == nil || *b.MaxModelLen < 1 || *b.MaxModelLen > maxModelLen {
		bad("must be a whole number from 1 to 1000000000", "body", "maxModelLen")
	} else {
		out.MaxModelLen = int32(*b.MaxModelLen)
	}
	if n := b.TensorParallel; n != nil {
		if *n < 1 || *n > maxTensorParallel {
			bad("must be a whole number from 1 to 4096", "body", "tensorParallel")
		} else {
			out.TensorParallel = int32(*n)
		}
	}
	return out, fault.InvalidAll(faults)
}

// Delete serves DELETE /llm/endpoints/{model}: the tenant's own record.
func (s *Service) Delete(c echo.Context) error {
	ctx := c.Request().Context()
	id := registry.ID(c.Param("model"))
	p, _ := auth.FromContext(ctx)
	found := false
	err := s.Store.InTx(ctx, func(tx store.Tx) error {
		before, ok, err := own(c, tx, p.Tenant, id)
		if found = ok; err != nil || !ok {
			return err
		}
		if err := tx.DeleteLLMEndpoint(ctx, store.DeleteLLMEndpointParams{Tenant: p.Tenant, ModelID: id}); err != nil {
			return err
		}
		return tx.Emit(ctx, event.Audit(p.Tenant, p.Name, "llm_endpoint.removed", event.Model(id), event.OK, map[string]any{"old": view(before)}))
	})
	switch {
	case err != nil:
		return err
	case !found:
		return fault.EndpointNotFound.New("Your tenant has no endpoint of this model; GET /llm/endpoints lists them.")
	}
	return c.NoContent(http.StatusNoContent)
}

func view(r store.LlmEndpoint) api.LLMEndpoint {
	return api.LLMEndpoint{
		Tenant: r.Tenant, Model: r.ModelID, Engine: r.Engine, HostedModelId: r.HostedModelID, MaxModelLen: int(r.MaxModelLen),
		TensorParallel: int(r.TensorParallel), Dtype: r.Dtype, Enabled: r.Enabled, UpdatedAt: r.UpdatedAt.UTC(), UpdatedBy: r.UpdatedBy,
	}
}
