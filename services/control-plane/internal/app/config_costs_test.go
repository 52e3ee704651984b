package app

import (
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/cost"
)

// Rates have defaults, may be 0, and are refused where no sum could be computed from them.
func TestRates(t *testing.T) {
	t.Parallel()
	base := []string{"PLATFORM_DATABASE_URL=postgres://u@localhost/p"}
	c, err := LoadConfig(base)
	if want := (cost.Rates{GPUHourUSD: 2.5, CPUHourUSD: 0.05, GPUWatts: 400, CoreWatts: 5, PUE: 1.5, GridGramsPerKWh: 300}); err != nil || c.rates() != want {
		t.Errorf("%+v, %v; want c.rates() == want", c.rates(), err)
	}
	names := []string{"GPU_COST_PER_HOUR", "CPU_COST_PER_HOUR", "CARBON_GPU_WATTS", "CARBON_CORE_WATTS", "CARBON_PUE", "CARBON_GRID_G_PER_KWH"}
	for _, bad := range []string{"-0.01", "NaN", "Inf", "1e9", "much"} {
		env := base
		for _, name := range names {
			env = append(env, name+"="+bad)
		}
		_, err := LoadConfig(env)
		for _, name := range names {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s=%s: %v; want an error && strings.Contains(err.Error(), name)", name, bad, err)
			}
		}
	}
	env := base
	for _, name := range names {
		env = append(env, name+"=0")
	}
	if c, err := LoadConfig(env); err != nil || c.rates() != (cost.Rates{}) {
		t.Errorf("zero: %+v, %v; want c.rates() == (cost.Rates{})", c.rates(), err)
	}
}
