package governance

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// maxCardPage limits the text on one page of the list, in bytes; the first card is always on it.
const maxCardPage = 4 << 20

// Get serves GET /model-cards/{model}.
func (s *Cards) Get(c echo.Context) error {
	ctx := c.Request().Context()
	p, _ := auth.FromContext(ctx)
	id := registry.ID(c.Param("model"))
	row, err := s.store.GetModelCard(ctx, store.GetModelCardParams{Tenant: p.Tenant, ModelID: id})
	if err == nil {
		return c.JSON(http.StatusOK, viewWrittenCard(row))
	}
	if !store.None(err) {
		return err
	}
	if text, ok := s.Readme(ctx, id); ok {
		return c.JSON(http.StatusOK, viewReadmeCard(id, text))
	}
	if err := s.registry.RequireKnown(ctx, s.store.Queries, p.Tenant, id); err != nil {
		return err
	}
	return fault.CardNotFound.New(fmt.Sprintf("Model %s has neither a card nor a README of at most %d bytes; PUT /model-cards/%s writes a card.", id, MaxMarkdown, id))
}

// Put serves PUT /model-cards/{model}.
func (s *Cards) Put(c echo.Context) error {
	ctx := c.Request().Context()
	var body api.ModelCardInput
	if err := wire.Decode(c, &body); err != nil {
		return err
	}
	row, err := checkCardInput(registry.ID(c.Param("model")), body)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	if err := s.registry.RequireKnown(ctx, s.store.Queries, p.Tenant, row.ModelID); err != nil {
		return err
	}
	after, err := s.putCard(ctx, p, row)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, viewWrittenCard(after))
}

// List serves GET /model-cards.
func (s *Cards) List(c echo.Context) error {
	ctx := c.Request().Context()
	page, err := wire.PageOf[string](c)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	cards, out, err := s.indexCards(ctx, p.Tenant)
	if err != nil {
		return err
	}
	ids := slices.Sorted(maps.Keys(cards))
	from, found := slices.BinarySearch(ids, page.Start())
	if found {
		from++
	}
	ids = ids[from:]
	n, size := 0, 0
	for n < len(ids) && n < page.Limit() && (n == 0 || size+cards[ids[n]].size <= maxCardPage) {
		size += cards[ids[n]].size
		n++
	}
	if n < len(ids) {
		out.NextCursor = page.Next(ids[n-1])
	}
	if out.Items, err = s.readCards(ctx, p.Tenant, ids[:n], cards); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// Post serves POST /evals.
func (s *Evals) Post(c echo.Context) error {
	ctx := c.Request().Context()
	var body evalInput
	if err := wire.Decode(c, &body); err != nil {
		return err
	}
	r, err := body.run()
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	row, err := s.Record(ctx, p, r)
	if err != nil {
		return err
	}
	out, err := viewEval(row)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// List serves GET /evals.
func (s *Evals) List(c echo.Context) error {
	ctx := c.Request().Context()
	page, err := wire.PageOf[uuid.UUID](c)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	q := store.ListEvalsParams{
		Tenant: p.Tenant, ModelID: wire.OptionalText(registry.ID(c.QueryParam("model"))), Before: page.After, MaxRows: page.Fetch(),
	}
	latest, err := wire.Flag(c, "latest")
	if err != nil {
		return err
	}
	var rows []store.Eval
	if latest {
		rows, err = s.store.ListLatestEvals(ctx, store.ListLatestEvalsParams{Tenant: q.Tenant, ModelID: q.ModelID, Before: q.Before, MaxRows: q.MaxRows})
	} else {
		rows, err = s.store.ListEvals(ctx, q)
	}
	if err != nil {
		return err
	}
	rows, next := wire.CutPage(page, rows, func(r store.Eval) uuid.UUID { return r.ID })
	out := api.EvalList{Items: make([]api.Eval, 0, len(rows)), NextCursor: next}
	for _, r := range rows {
		v, err := viewEval(r)
		if err != nil {
			return err
		}
		out.Items = append(out.Items, v)
	}
	return c.JSON(http.StatusOK, out)
}

// List serves GET /llm/endpoints.
func (s *Endpoints) List(c echo.Context) error {
	ctx := c.Request().Context()
	page, err := wire.PageOf[string](c)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	rows, err := s.store.ListLLMEndpoints(ctx, store.ListLLMEndpointsParams{Tenant: p.Tenant, After: page.Start(), MaxRows: page.Fetch()})
	if err != nil {
		return err
	}
	rows, next := wire.CutPage(page, rows, func(r store.LlmEndpoint) string { return r.ModelID })
	out := api.LLMEndpointList{Items: make([]api.LLMEndpoint, 0, len(rows)), NextCursor: next}
	for _, r := range rows {
		out.Items = append(out.Items, viewEndpoint(r))
	}
	return c.JSON(http.StatusOK, out)
}

// Put serves PUT /llm/endpoints/{model}. The model need not be in the repository: hosted models were often trained
// elsewhere.
func (s *Endpoints) Put(c echo.Context) error {
	ctx := c.Request().Context()
	var body endpointInput
	if err := wire.Decode(c, &body); err != nil {
		return err
	}
	row, err := body.row(c.Param("model"))
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	var after store.LlmEndpoint
	row.Tenant, row.Now, row.UpdatedBy = p.Tenant, s.now(), p.Name
	if err := s.store.InTx(ctx, func(tx store.Tx) (err error) {
		var details map[string]any
		if after, details, err = store.Replace(ctx, tx, store.Record[store.LlmEndpoint]{
			Key: endpointKey(p.Tenant, row.ModelID),
			Get: func() (store.LlmEndpoint, error) {
				return tx.GetLLMEndpoint(ctx, store.GetLLMEndpointParams{Tenant: p.Tenant, ModelID: row.ModelID})
			},
			Put:  func() (store.LlmEndpoint, error) { return tx.PutLLMEndpoint(ctx, row) },
			Told: func(r store.LlmEndpoint) any { return viewEndpoint(r) },
		}); err != nil {
			return err
		}
		return tx.Emit(ctx, event.Audit(p.Tenant, p.Name, "llm_endpoint.set", event.Model(row.ModelID), event.OK, details))
	}); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, viewEndpoint(after))
}

// Delete serves DELETE /llm/endpoints/{model}: the tenant's own record.
func (s *Endpoints) Delete(c echo.Context) error {
	ctx := c.Request().Context()
	id := registry.ID(c.Param("model"))
	p, _ := auth.FromContext(ctx)
	err := s.store.InTx(ctx, func(tx store.Tx) error {
		if err := tx.LockKeys(ctx, []string{endpointKey(p.Tenant, id)}); err != nil {
			return err
		}
		before, err := tx.DeleteLLMEndpoint(ctx, store.DeleteLLMEndpointParams{Tenant: p.Tenant, ModelID: id})
		if err != nil {
			return err
		}
		return tx.Emit(ctx, event.Audit(p.Tenant, p.Name, "llm_endpoint.removed", event.Model(id), event.OK, map[string]any{"old": viewEndpoint(before)}))
	})
	switch {
	case store.None(err):
		return fault.EndpointNotFound.New("Your tenant has no endpoint of this model; GET /llm/endpoints lists them.")
	case err != nil:
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// List serves GET /compliance.
func (s *Classifications) List(c echo.Context) error {
	ctx := c.Request().Context()
	page, err := wire.PageOf[complianceKey](c)
	if err != nil {
		return err
	}
	from := page.Start()
	p, _ := auth.FromContext(ctx)
	rows, err := s.store.ListCompliance(ctx, store.ListComplianceParams{
		Tenant: p.Tenant, ModelID: wire.OptionalText(registry.ID(c.QueryParam("model"))), AfterModel: from.Model, AfterVersion: from.Version, MaxRows: page.Fetch(),
	})
	if err != nil {
		return err
	}
	rows, next := wire.CutPage(page, rows, func(r store.Compliance) complianceKey { return complianceKey{r.ModelID, r.Version} })
	out := api.ComplianceList{Items: make([]api.Compliance, 0, len(rows)), NextCursor: next}
	for _, r := range rows {
		out.Items = append(out.Items, viewCompliance(r))
	}
	return c.JSON(http.StatusOK, out)
}

// Put serves PUT /compliance/{model}/{version}.
func (s *Classifications) Put(c echo.Context) error {
	ctx := c.Request().Context()
	var body api.ComplianceInput
	if err := wire.Decode(c, &body); err != nil {
		return err
	}
	row, err := checkComplianceInput(c.Param("version"), body)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	row.ModelID = registry.ID(c.Param("model"))
	if err := s.registry.RequireKnown(ctx, s.store.Queries, p.Tenant, row.ModelID); err != nil {
		return err
	}
	var after store.Compliance
	row.Tenant, row.Now, row.UpdatedBy = p.Tenant, s.now(), p.Name
	if err := s.store.InTx(ctx, func(tx store.Tx) (err error) {
		var details map[string]any
		if after, details, err = store.Replace(ctx, tx, store.Record[store.Compliance]{
			Key: "compliance:" + p.Tenant + ":" + row.ModelID,
			Get: func() (store.Compliance, error) {
				return tx.GetCompliance(ctx, store.GetComplianceParams{Tenant: p.Tenant, ModelID: row.ModelID, Version: row.Version})
			},
			Put:  func() (store.Compliance, error) { return tx.PutCompliance(ctx, row) },
			Told: func(r store.Compliance) any { return viewCompliance(r) },
		}); err != nil {
			return err
		}
		return tx.Emit(ctx, event.Audit(p.Tenant, p.Name, "compliance.set", event.Model(row.ModelID), event.OK, details))
	}); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, viewCompliance(after))
}

// Get serves GET /governance/posture.
func (s *Posture) Get(c echo.Context) error {
	ctx := c.Request().Context()
	p, _ := auth.FromContext(ctx)
	chains, err := s.chains(ctx, p.Tenant)
	if err != nil {
		return err
	}
	classified, carded, err := s.served(ctx, p.Tenant)
	if err != nil {
		return err
	}
	runs, err := s.runs(ctx, p.Tenant)
	if err != nil {
		return err
	}
	out := api.Posture{Controls: []api.Control{
		chains.control("GOVERN-1.1", api.GOVERN, "The audit ledger verifies"),
		classified.control("MAP-1.1", api.MAP, "Served models are classified by risk"),
		carded.control("MEASURE-2.1", api.MEASURE, "Served models have cards"),
		runs.control("MANAGE-4.1", api.MANAGE, "Training runs are approved or rest on a standing authorisation"),
	}}
	for _, control := range out.Controls {
		if control.Status == api.Satisfied {
			out.Satisfied++
		}
	}
	out.Total = len(out.Controls)
	return c.JSON(http.StatusOK, out)
}
