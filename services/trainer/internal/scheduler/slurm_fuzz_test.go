package scheduler

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
)

// printed is a cluster whose commands all print one text.
type printed string

func (p printed) Run(context.Context, string, ...string) (string, error) { return string(p), nil }

// FuzzSlurm: for any output of the cluster's commands, an id is a number, a state is one of ours, and usage is an
// amount that can be added and shown.
func FuzzSlurm(f *testing.F) {
	for _, text := range []string{
		"4711\n", "4711;cluster\n", "RUNNING\n", "CANCELLED by 1000\n", "COMPLETED|0:0|60|240|billing=4,cpu=4,gres/gpu=1|train\n",
		"REQUEUED|0:0|10|40|gres/gpu=2|train\nCOMPLETED|0:0|60|240|gres/gpu=2|train\n", "COMPLETED|0:0|NaN|Inf|gres/gpu=-1|x", "FAILED|1:9|1e308|1e308|gres/gpu=1e308|x",
		"|||||", "4711\n4712 x; rm -rf /\n", strings.Repeat("COMPLETED|0:0|1|1||x\n", 100), "\x00", "",
	} {
		f.Add(text, 1)
	}
	f.Fuzz(func(t *testing.T, text string, gpus int) {
		s, ctx := Slurm{Runner: printed(text)}, context.Background()
		hostiletest.CheckAllocation(t, uint64(1<<20+64*len(text)), func() {
			if id, err := s.Submit(ctx, Spec{Name: "n", Command: []string{"true"}}); err == nil && !jobID.MatchString(id) {
				t.Errorf("the id is %q; want a number", id)
			}
			ids, err := s.Find(ctx, "n")
			for _, id := range ids {
				if err != nil || !jobID.MatchString(id) {
					t.Errorf("found %q, %v; want numbers", id, err)
				}
			}
			switch state, err := s.State(ctx, "1"); state {
			case Pending, Running, Completed, Failed, Cancelled, TimedOut, Unknown:
			default:
				t.Errorf("the state is %q, %v; want one that there is", state, err)
			}
			u, err := s.Usage(ctx, "1", gpus)
			for _, hours := range []float64{u.GPUHours, u.CPUHours} {
				if hours < 0 || math.IsNaN(hours) || math.IsInf(hours, 0) || err != nil && hours != 0 {
					t.Errorf("got %+v, %v; want amounts, and none with an error", u, err)
				}
			}
		})
	})
}
