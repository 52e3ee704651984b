package cost_test

import (
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
	"github.com/mlp-platform/platform/services/control-plane/internal/cost"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

var standard = cost.Rates{GPUHourUSD: 2.50, CPUHourUSD: 0.05, GPUWatts: 400, CoreWatts: 5, PUE: 1.5, GridGramsPerKWh: 300}

func TestRates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rates         cost.Rates
		scheduler     string
		gpu, cpu      float64
		usd, kwh, co2 float64
	}{
		{standard, "slurm", 6, 48, 15, 3.96, 1188},
		{standard, "flux", 6, 48, 17.4, 3.96, 1188},
		{standard, "mock", 20.74, 0, 51.85, 12.444, 3733.2},
		{standard, "slurm", 0, 0, 0, 0, 0},
		{standard, "flux", 0.1, 0.2, 0.26, 0.0615, 18.45},
		{standard, "slurm", 1.0 / 3, 0, 0.833333, 0.2, 60},
		{cost.Rates{}, "flux", 6, 48, 0, 0, 0},
		{cost.Rates{GPUHourUSD: 1, CPUHourUSD: 1, GPUWatts: 1000, PUE: 1, GridGramsPerKWh: 1}, "flux", 2, 3, 5, 2, 2},
	} {
		e := c.rates.Energy(c.gpu, c.cpu)
		if usd := c.rates.USD(c.scheduler, c.gpu, c.cpu); usd != c.usd || e.KWh != c.kwh || e.CO2eG != c.co2 {
			t.Errorf("%s %v %v: %v USD, %+v, want %v, %v, %v", c.scheduler, c.gpu, c.cpu, usd, e, c.usd, c.kwh, c.co2)
		}
	}
}

// The methodology names the values in force, and the parts that are not counted.
func TestMethodology(t *testing.T) {
	t.Parallel()
	m := cost.Rates{GPUWatts: 700.5, CoreWatts: 7, PUE: 1.12, GridGramsPerKWh: 41}.Methodology()
	for _, part := range []string{"700.5 W", "7 W", "PUE 1.12", "41 g/kWh", "estimate", "not a measurement", "allocated share", "Memory, network, idle power and manufacture", "not hourly", "30 %"} {
		if !strings.Contains(m, part) {
			t.Errorf("no %q in %s; want strings.Contains(m, part)", part, m)
		}
	}
}
