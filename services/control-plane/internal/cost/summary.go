package cost

import (
	"net/http"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Synthetic reads the query parameter include_synthetic; the error is a 422.
func Synthetic(c echo.Context) (bool, error) { return wire.Flag(c, "include_synthetic") }

// groups is a page of sums: one is enough for what people can look at.
func groups[K any](c echo.Context) (wire.Page[K], error) {
	return wire.PageUpTo[K](c, service.MaxPageLimit, service.MaxPageLimit)
}

// The dimensions of a summary.
const (
	model   = "model"
	project = "project"
)

type dearest struct {
	Cost float64 `json:"cost"`
	Key  string  `json:"key"`
}

// Summary serves GET /costs/summary.
func (s *Service) Summary(c echo.Context) error {
	ctx := c.Request().Context()
	page, err := groups[dearest](c)
	if err != nil {
		return err
	}
	by := api.CostDimension(model)
	if v := c.QueryParam("by"); v != "" {
		if by = api.CostDimension(v); !by.Valid() {
			return fault.Invalid("must be model or project", "query", "by")
		}
	}
	p, _ := auth.FromContext(ctx)
	q := store.SumCostsParams{
		Tenant: p.Tenant, ByProject: by == project, MaxRows: page.Fetch(),
		ModelID: wire.OptionalText(registry.ID(c.QueryParam("model"))), Project: wire.OptionalText(c.QueryParam("project")),
	}
	if q.IncludeSynthetic, err = Synthetic(c); err != nil {
		return err
	}
	if at := page.After; at != nil {
		q.AfterKey, q.AfterCost = &at.Key, &at.Cost
	}
	rows, err := s.Store.SumCosts(ctx, q)
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
	rows, out.NextCursor = wire.CutPage(page, rows, func(r store.SumCostsRow) dearest { return dearest{r.CostUsd, r.Key} })
	for _, r := range rows {
		out.Cost.Rows = append(out.Cost.Rows, api.CostRow{Dimension: by, Key: r.Key, GpuHours: r.GpuHours, CostUsd: r.CostUsd, Runs: r.Runs})
	}
	return c.JSON(http.StatusOK, out)
}

// Carbon serves GET /carbon.
func (s *Service) Carbon(c echo.Context) error {
	ctx := c.Request().Context()
	page, err := groups[string](c)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	q := store.SumHoursParams{Tenant: p.Tenant, After: page.Start(), MaxRows: page.Fetch()}
	if q.IncludeSynthetic, err = Synthetic(c); err != nil {
		return err
	}
	rows, err := s.Store.SumHours(ctx, q)
	if err != nil {
		return err
	}
	out := api.Carbon{Uncertainty: uncertainty, Methodology: s.Rates.Methodology(), Scope: scope, ByModel: make([]api.CarbonRow, 0, len(rows))}
	if len(rows) > 0 {
		total := s.Rates.Energy(rows[0].TotalGpuHours, rows[0].TotalCpuHours)
		out.Totals = api.CarbonTotals{Kwh: total.KWh, Co2eG: total.CO2eG}
		out.Co2eKg = Round(total.CO2eG / 1000)
	}
	rows, out.NextCursor = wire.CutPage(page, rows, func(r store.SumHoursRow) string { return r.ModelID })
	for _, r := range rows {
		e := s.Rates.Energy(r.GpuHours, r.CpuHours)
		out.ByModel = append(out.ByModel, api.CarbonRow{Model: r.ModelID, Kwh: e.KWh, Co2eG: e.CO2eG})
	}
	return c.JSON(http.StatusOK, out)
}
