package job

import (
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(seconds int) *time.Time {
	t := noon.Add(time.Duration(seconds) * time.Second)
	return &t
}

// Queue and run time in each state, at noon + 100 s.
func TestSeconds(t *testing.T) {
	t.Parallel()
	num := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		state      string
		start, end *time.Time
		queue, run *int64
	}{
		{"SUBMITTED", nil, nil, num(100), nil},
		{"PENDING", nil, nil, num(100), nil},
		{"RUNNING", at(40), nil, num(40), num(60)},
		{"COMPLETED", at(40), at(90), num(40), num(50)},
		{"TIMEOUT", at(0), at(0), num(0), num(0)},
		{"CANCELLED", nil, at(30), num(30), nil}, // never ran
		{"UNKNOWN", nil, nil, nil, nil},
		{"UNKNOWN", at(40), nil, num(40), nil},
		{"RUNNING", at(200), nil, num(200), num(0)}, // the scheduler's clock is ahead
	} {
		v := view(store.Job{State: c.state, SubmitAt: noon, StartAt: c.start, EndAt: c.end}, *at(100)).Timing
		if !equal(v.QueueSeconds, c.queue) || !equal(v.RunSeconds, c.run) {
			t.Errorf("%s %v %v: %v %v", c.state, c.start, c.end, v.QueueSeconds, v.RunSeconds)
		}
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old        store.Job
		report     report
		state      string
		start, end *time.Time
	}{
		"starts":              {store.Job{State: "PENDING"}, report{state: "RUNNING"}, "RUNNING", at(100), nil},
		"starts as told":      {store.Job{State: "PENDING"}, report{state: "RUNNING", start: at(7)}, "RUNNING", at(7), nil},
		"runs on":             {store.Job{State: "RUNNING", StartAt: at(7)}, report{state: "RUNNING"}, "RUNNING", at(7), nil},
		"is requeued":         {store.Job{State: "RUNNING", StartAt: at(7)}, report{state: "PENDING"}, "PENDING", nil, nil},
		"ends":                {store.Job{State: "RUNNING", StartAt: at(7)}, report{state: "FAILED"}, "FAILED", at(7), at(100)},
		"ends unseen":         {store.Job{State: "PENDING"}, report{state: "COMPLETED", start: at(7), end: at(9)}, "COMPLETED", at(7), at(9)},
		"never ran":           {store.Job{State: "PENDING"}, report{state: "CANCELLED"}, "CANCELLED", nil, at(100)},
		"is lost":             {store.Job{State: "RUNNING", StartAt: at(7)}, report{state: "UNKNOWN"}, "UNKNOWN", at(7), nil},
		"is found":            {store.Job{State: "UNKNOWN", StartAt: at(7)}, report{state: "RUNNING"}, "RUNNING", at(7), nil},
		"stays ended":         {store.Job{State: "FAILED", StartAt: at(7), EndAt: at(8)}, report{state: "RUNNING", start: at(9)}, "FAILED", at(7), at(8)},
		"stays as it ended":   {store.Job{State: "CANCELLED", EndAt: at(8)}, report{state: "COMPLETED", end: at(9)}, "CANCELLED", nil, at(8)},
		"end is corrected":    {store.Job{State: "FAILED", StartAt: at(7), EndAt: at(8)}, report{state: "FAILED", end: at(9)}, "FAILED", at(7), at(9)},
		"clock of the job":    {store.Job{State: "RUNNING", StartAt: at(150)}, report{state: "COMPLETED"}, "COMPLETED", at(150), at(150)},
		"starts when it will": {store.Job{State: "PENDING"}, report{state: "RUNNING", submit: at(150)}, "RUNNING", at(150), nil},
	} {
		c.old.SubmitAt = noon
		got := c.report.apply(c.old, *at(100))
		if got.State != c.state || !equalTime(got.StartAt, c.start) || !equalTime(got.EndAt, c.end) {
			t.Errorf("%s: %s %v %v", name, got.State, got.StartAt, got.EndAt)
		}
		if err := ordered(got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
