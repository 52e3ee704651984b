package app

import (
	"time"

	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/control-plane/internal/cost"
	"github.com/mlp-platform/platform/services/control-plane/internal/job"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// wireCosts makes the parts that account for what the facility runs.
func (p *parts) wireCosts(db *store.Store, track *tracker.Client) {
	p.costs = cost.NewService(db, p.registry, track, p.cfg.rates(), time.Now)
	p.budgets = cost.NewBudgets(db, time.Now)
	p.jobs = &job.Service{Store: db, Now: time.Now}
}

func (c *Config) rates() cost.Rates {
	return cost.Rates{
		GPUHourUSD: c.GPUCostPerHour, CPUHourUSD: c.CPUCostPerHour, GPUWatts: c.CarbonGPUWatts, CoreWatts: c.CarbonCoreWatts,
		PUE: c.CarbonPUE, GridGramsPerKWh: c.CarbonGridGramsPerKWh,
	}
}
