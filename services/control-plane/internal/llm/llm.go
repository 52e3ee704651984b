// Package llm keeps where language models are hosted. It is a record for people
// and views: nothing is dispatched to these endpoints.
package llm

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
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

// List serves GET /llm/endpoints.
func (s *Service) List(c echo.Context) error {
	ctx := c.Request().Context()
	page, err := wire.PageOf[string](c)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	rows, err := s.Store.ListLLMEndpoints(ctx, store.ListLLMEndpointsParams{Tenant: p.Tenant, After: page.Start(), MaxRows: page.Fetch()})
	if err != nil {
		return err
	}
	rows, next := wire.CutPage(page, rows, func(r store.LlmEndpoint) string { return r.ModelID })
	out := api.LLMEndpointList{Items: make([]api.LLMEndpoint, 0, len(rows)), NextCursor: next}
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
	if err := wire.Decode(c, &body); err != nil {
		return err
	}
	row, err := body.row(c.Param("model"))
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	var after store.LlmEndpoint
	row.Tenant, row.Now, row.UpdatedBy = p.Tenant, s.Now(), p.Name
	if err := s.Store.InTx(ctx, func(tx store.Tx) (err error) {
		var details map[string]any
		if after, details, err = store.Replace(ctx, tx, store.Record[store.LlmEndpoint]{
			Key: key(p.Tenant, row.ModelID),
			Get: func() (store.LlmEndpoint, error) {
				return tx.GetLLMEndpoint(ctx, store.GetLLMEndpointParams{Tenant: p.Tenant, ModelID: row.ModelID})
			},
			Put:  func() (store.LlmEndpoint, error) { return tx.PutLLMEndpoint(ctx, row) },
			Told: func(r store.LlmEndpoint) any { return view(r) },
		}); err != nil {
			return err
		}
		return tx.Emit(ctx, event.Audit(p.Tenant, p.Name, "llm_endpoint.set", event.Model(row.ModelID), event.OK, details))
	}); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, view(after))
}

// key is what a tenant's record of a model is locked by.
func key(tenant, model string) string { return "llm:" + tenant + ":" + model }

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
		if !wire.Label(f.v) {
			bad(wire.LabelRule, "body", f.name)
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
	err := s.Store.InTx(ctx, func(tx store.Tx) error {
		if err := tx.LockKeys(ctx, []string{key(p.Tenant, id)}); err != nil {
			return err
		}
		before, err := tx.DeleteLLMEndpoint(ctx, store.DeleteLLMEndpointParams{Tenant: p.Tenant, ModelID: id})
		if err != nil {
			return err
		}
		return tx.Emit(ctx, event.Audit(p.Tenant, p.Name, "llm_endpoint.removed", event.Model(id), event.OK, map[string]any{"old": view(before)}))
	})
	switch {
	case store.None(err):
		return fault.EndpointNotFound.New("Your tenant has no endpoint of this model; GET /llm/endpoints lists them.")
	case err != nil:
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func view(r store.LlmEndpoint) api.LLMEndpoint {
	return api.LLMEndpoint{
		Tenant: r.Tenant, Model: r.ModelID, Engine: r.Engine, HostedModelId: r.HostedModelID, MaxModelLen: int(r.MaxModelLen),
		TensorParallel: int(r.TensorParallel), Dtype: r.Dtype, Enabled: r.Enabled, UpdatedAt: r.UpdatedAt.UTC(), UpdatedBy: r.UpdatedBy,
	}
}
