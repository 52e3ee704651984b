package cost

import (
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Synthetic reads the query parameter include_synthetic; the error is a 422.
func Synthetic(c echo.Context) (bool, error) { return wire.Flag(c, "include_synthetic") }

// parseSummaryPage parses the page of a summary: one page is enough for a person.
func parseSummaryPage[K any](c echo.Context) (wire.Page[K], error) {
	return wire.PageUpTo[K](c, service.MaxPageLimit, service.MaxPageLimit)
}

// The dimensions of a summary.
const (
	dimensionModel   = "model"
	dimensionProject = "project"
)

type costPosition struct {
	Cost float64 `json:"cost"`
	Key  string  `json:"key"`
}

// Summary serves GET /costs/summary.
func (s *Service) Summary(c echo.Context) error {
	ctx := c.Request().Context()
	page, err := parseSummaryPage[costPosition](c)
	if err != nil {
		return err
	}
	by := api.CostDimension(dimensionModel)
	if v := c.QueryParam("by"); v != "" {
		if by = api.CostDimension(v); !by.Valid() {
			return fault.Invalid("must be model or project", "query", "by")
		}
	}
	p, _ := auth.FromContext(ctx)
	q := store.SumCostsParams{
		Tenant: p.Tenant, ByProject: by == dimensionProject, MaxRows: page.Fetch(),
		ModelID: wire.OptionalText(registry.ID(c.QueryParam("model"))), Project: wire.OptionalText(c.QueryParam("project")),
	}
	if q.IncludeSynthetic, err = Synthetic(c); err != nil {
		return err
	}
	if at := page.After; at != nil {
		q.AfterKey, q.AfterCost = &at.Key, &at.Cost
	}
	rows, err := s.store.SumCosts(ctx, q)
	if err != nil {
		return err
	}
	out := api.CostSummary{Cost: api.CostTotals{Rows: make([]api.CostRow, 0, len(rows))}}
	if len(rows) > 0 {
		t := rows[0]
		out.Cost.TotalGpuHours, out.Cost.TotalCostUsd = t.TotalGpuHours, t.TotalCostUsd
		perRun := Round(t.TotalCostUsd / float64(t.TotalRuns))
		out.UnitEconomics.CostPerTrainingRun = &perRun
	}
	rows, out.NextCursor = wire.CutPage(page, rows, func(r store.SumCostsRow) costPosition { return costPosition{r.CostUsd, r.Key} })
	for _, r := range rows {
		out.Cost.Rows = append(out.Cost.Rows, api.CostRow{Dimension: by, Key: r.Key, GpuHours: r.GpuHours, CostUsd: r.CostUsd, Runs: r.Runs})
	}
	return c.JSON(http.StatusOK, out)
}

// Carbon serves GET /carbon.
func (s *Service) Carbon(c echo.Context) error {
	ctx := c.Request().Context()
	page, err := parseSummaryPage[string](c)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	q := store.SumHoursParams{Tenant: p.Tenant, After: page.Start(), MaxRows: page.Fetch()}
	if q.IncludeSynthetic, err = Synthetic(c); err != nil {
		return err
	}
	rows, err := s.store.SumHours(ctx, q)
	if err != nil {
		return err
	}
	out := api.Carbon{Uncertainty: uncertainty, Methodology: s.rates.Methodology(), Scope: scope, ByModel: make([]api.CarbonRow, 0, len(rows))}
	if len(rows) > 0 {
		total := s.rates.Energy(rows[0].TotalGpuHours, rows[0].TotalCpuHours)
		out.Totals = api.CarbonTotals{Kwh: total.KWh, Co2eG: total.CO2eG}
		out.Co2eKg = Round(total.CO2eG / 1000)
	}
	rows, out.NextCursor = wire.CutPage(page, rows, func(r store.SumHoursRow) string { return r.ModelID })
	for _, r := range rows {
		e := s.rates.Energy(r.GpuHours, r.CpuHours)
		out.ByModel = append(out.ByModel, api.CarbonRow{Model: r.ModelID, Kwh: e.KWh, Co2eG: e.CO2eG})
	}
	return c.JSON(http.StatusOK, out)
}

// Post serves POST /costs. A model removed from the repository can still be billed.
func (s *Service) Post(c echo.Context) error {
	ctx := c.Request().Context()
	var body api.CostInput
	if err := wire.Decode(c, &body); err != nil {
		return err
	}
	in, err := s.input(body)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	if err := s.requireModel(ctx, p.Tenant, in.ModelID); err != nil {
		return err
	}
	in.Tenant, in.UpdatedBy = p.Tenant, p.Name
	var row store.Cost
	var recorded bool
	if err := s.store.InTx(ctx, func(tx store.Tx) error {
		var err error
		row, recorded, err = s.put(ctx, tx, in, body.Project)
		return err
	}); err != nil {
		return err
	}
	v := s.view(row)
	return c.JSON(http.StatusOK, api.CostRecorded{
		Recorded: recorded, GpuHours: v.GpuHours, CpuHours: v.CpuHours, CostUsd: v.CostUsd, Kwh: v.Kwh, Co2eG: v.Co2eG, Synthetic: v.Synthetic,
	})
}

// List serves GET /costs.
func (s *Service) List(c echo.Context) error {
	ctx := c.Request().Context()
	page, err := wire.PageOf[uuid.UUID](c)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	rows, err := s.store.ListCosts(ctx, store.ListCostsParams{
		Tenant: p.Tenant, ModelID: wire.OptionalText(registry.ID(c.QueryParam("model"))), Project: wire.OptionalText(c.QueryParam("project")),
		Version: wire.OptionalText(c.QueryParam("version")), Before: page.After, MaxRows: page.Fetch(),
	})
	if err != nil {
		return err
	}
	rows, next := wire.CutPage(page, rows, func(r store.Cost) uuid.UUID { return r.ID })
	out := api.CostList{Items: make([]api.Cost, 0, len(rows)), NextCursor: next}
	for _, r := range rows {
		out.Items = append(out.Items, s.view(r))
	}
	return c.JSON(http.StatusOK, out)
}

// List serves GET /budgets.
func (s *Budgets) List(c echo.Context) error {
	ctx := c.Request().Context()
	page, err := wire.PageOf[string](c)
	if err != nil {
		return err
	}
	synthetic, err := Synthetic(c)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	since, until := monthBounds(s.now())
	rows, err := s.store.ListBudgets(ctx, store.ListBudgetsParams{
		Tenant: p.Tenant, After: page.Start(), Since: since, Until: until, IncludeSynthetic: synthetic, MaxRows: page.Fetch(),
	})
	if err != nil {
		return err
	}
	rows, next := wire.CutPage(page, rows, func(r store.ListBudgetsRow) string { return r.Budget.Project })
	out := api.BudgetList{Items: make([]api.Budget, 0, len(rows)), NextCursor: next}
	if out.ConsumedCostUsd, err = s.store.SpendOf(ctx, store.SpendOfParams{
		Tenant: p.Tenant, Since: since, Until: until, IncludeSynthetic: synthetic,
	}); err != nil {
		return err
	}
	for _, r := range rows {
		out.Items = append(out.Items, viewBudget(r.Budget, r.SpentUsd, r.SpentGpuHours))
	}
	return c.JSON(http.StatusOK, out)
}

// Put serves PUT /budgets/{project}: members missing from the body set no limit.
func (s *Budgets) Put(c echo.Context) error {
	ctx := c.Request().Context()
	var body api.BudgetInput
	if err := wire.Decode(c, &body); err != nil {
		return err
	}
	project := c.Param("project")
	if err := checkBudgetInput(project, body); err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	since, until := monthBounds(s.now())
	var out api.Budget
	row := store.PutBudgetParams{
		Tenant: p.Tenant, Project: project, CostBudget: body.CostBudget, GpuHoursBudget: body.GpuHoursBudget, Now: s.now(), UpdatedBy: p.Name,
	}
	if err := s.store.InTx(ctx, func(tx store.Tx) error {
		_, details, err := store.Replace(ctx, tx, store.Record[store.Budget]{
			Key: budgetKey(p.Tenant, project),
			Get: func() (store.Budget, error) {
				return tx.GetBudget(ctx, store.GetBudgetParams{Tenant: p.Tenant, Project: project})
			},
			Put:  func() (store.Budget, error) { return tx.PutBudget(ctx, row) },
			Told: auditBudgetFacts,
		})
		if err != nil {
			return err
		}
		rows, err := tx.ListBudgets(ctx, store.ListBudgetsParams{Tenant: p.Tenant, Project: &project, Since: since, Until: until, MaxRows: 1})
		if err != nil {
			return err
		}
		out = viewBudget(rows[0].Budget, rows[0].SpentUsd, rows[0].SpentGpuHours)
		return tx.Emit(ctx, event.Audit(p.Tenant, p.Name, "budget.set", auditTarget(project), event.OK, details))
	}); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// Delete serves DELETE /budgets/{project}.
func (s *Budgets) Delete(c echo.Context) error {
	ctx := c.Request().Context()
	p, _ := auth.FromContext(ctx)
	project := c.Param("project")
	err := s.store.InTx(ctx, func(tx store.Tx) error {
		if err := tx.LockKeys(ctx, []string{budgetKey(p.Tenant, project)}); err != nil {
			return err
		}
		old, err := tx.DeleteBudget(ctx, store.DeleteBudgetParams{Tenant: p.Tenant, Project: project})
		if err != nil {
			return err
		}
		return tx.Emit(ctx, event.Audit(p.Tenant, p.Name, "budget.removed", auditTarget(project), event.OK, map[string]any{"old": auditBudgetFacts(old)}))
	})
	switch {
	case store.None(err):
		return fault.BudgetNotFound.New("Your tenant has no budget for this project; GET /budgets lists its budgets.")
	case err != nil:
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
