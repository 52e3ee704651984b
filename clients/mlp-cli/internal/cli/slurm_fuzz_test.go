package cli

import (
	"math"
	"testing"

	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
)

// FuzzParseSacct: whatever accounting prints, hours are finite and not negative, as the record of costs needs them.
func FuzzParseSacct(f *testing.F) {
	for _, text := range []string{
		"COMPLETED|3600|28800|billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=32G,node=1\n", "CANCELLED by 1000|900|3600|cpu=4,gres/gpu=2",
		"COMPLETED|NaN|Inf|gres/gpu=-1", "COMPLETED|1e308|1|gres/gpu=1e308", "COMPLETED|-1|0x1p-2|", "RUNNING|10|40|cpu=4", "", "|||", "a|1|1|\x1b[2J",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, out string) {
		hostiletest.CheckAllocation(t, uint64(1<<20+64*len(out)), func() {
			gpu, cpu, err := parseSacct(out)
			if err != nil {
				if text := fault.From(err).Message; len(text) > 1<<10 {
					t.Errorf("the refusal has %d bytes: %.200q; want at most 1 KiB", len(text), text)
				}
				return
			}
			for _, hours := range []float64{gpu, cpu} {
				if math.IsNaN(hours) || math.IsInf(hours, 0) || hours < 0 {
					t.Errorf("%.200q: got %v and %v hours; want finite numbers that are not negative", out, gpu, cpu)
				}
			}
		})
	})
}
