package modelrepo

import (
	"math"
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	m := &Model{
		Type: Regression,
		Baseline: Baseline{Margins: []Margin{
			{Metric: "male", Relative: 0.05}, {Metric: "mae"},
		}},
		Lifecycle: []Rung{
			{Name: "Staging", Metric: "male", Threshold: 1, Direction: Lower},
			{Name: "Canary", Metric: "male", Threshold: 0.9, Direction: Lower, BeatsBaseline: true},
			{Name: "Production", Metric: "r2", Threshold: 0.5, Direction: Higher},
		},
	}
	good := func(over map[string]float64) map[string]float64 {
		all := map[string]float64{"male": 0.8, "mae": 9, "r2": 0.5, "baseline_male": 0.9, "baseline_mae": 10, "baseline_running_male": 0.85, "baseline_running_mae": 10}
		for k, v := range over {
			if all[k] = v; v == -99 {
				delete(all, k)
			}
		}
		return all
	}
	for name, c := range map[string]struct {
		over   map[string]float64
		passed int
		reason string
	}{
		"all":                    {nil, 3, ""},
		"threshold":              {map[string]float64{"male": 1.2}, 0, "want at most 1"},
		"threshold met exactly":  {map[string]float64{"male": 0.9, "baseline_male": 1, "baseline_running_male": 1}, 3, ""},
		"margin missed":          {map[string]float64{"baseline_running_male": 0.81}, 1, "running baseline"},
		"second margin missed":   {map[string]float64{"mae": 10}, 1, "mae 10 does not beat the fixed"},
		"no running baseline":    {map[string]float64{"baseline_running_male": -99, "baseline_running_mae": -99}, 3, ""},
		"no baseline":            {map[string]float64{"baseline_male": -99}, 1, "baseline_male is absent"},
		"NaN":                    {map[string]float64{"male": math.NaN()}, 0, "not finite"},
		"infinite baseline":      {map[string]float64{"baseline_running_mae": math.Inf(1)}, 1, "not finite"},
		"clamped infinity":       {map[string]float64{"r2": math.MaxFloat64}, 2, "not finite"},
		"clamped baseline":       {map[string]float64{"baseline_mae": -math.MaxFloat64}, 1, "not finite"},
		"higher is better fails": {map[string]float64{"r2": 0.4}, 2, "want at least 0.5"},
		"absent":                 {map[string]float64{"r2": -99}, 2, "r2 is absent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := m.Judge(good(c.over))
			passed, reason := 0, ""
			for _, v := range got {
				if v.Pass {
					passed++
				} else if reason == "" {
					reason = v.Reason
				}
			}
			if passed != c.passed || !strings.Contains(reason, c.reason) {
				t.Errorf("%d rungs, %q; want %d, %q", passed, reason, c.passed, c.reason)
			}
			for i := passed + 1; i < len(got); i++ {
				if !strings.Contains(got[i].Reason, "was not reached") {
					t.Errorf(`rung above: %+v; want strings.Contains(got[i].Reason, "was not reached")`, got[i])
				}
			}
		})
	}
	if v := CapDummy(m.Judge(good(nil))); !v[0].Pass || v[1].Pass || v[2].Pass {
		t.Errorf("dummy: %+v; want v[0].Pass && !v[1].Pass && !v[2].Pass", v)
	}
}
