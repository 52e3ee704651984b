package job

import (
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func afterNoon(seconds int) *time.Time {
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
		{"RUNNING", afterNoon(40), nil, num(40), num(60)},
		{"COMPLETED", afterNoon(40), afterNoon(90), num(40), num(50)},
		{"TIMEOUT", afterNoon(0), afterNoon(0), num(0), num(0)},
		{"CANCELLED", nil, afterNoon(30), num(30), nil}, // never ran
		{"UNKNOWN", nil, nil, nil, nil},
		{"UNKNOWN", afterNoon(40), nil, num(40), nil},
		{"RUNNING", afterNoon(200), nil, num(200), num(0)}, // the scheduler's clock is ahead
	} {
		v := toJob(store.Job{State: c.state, SubmitAt: noon, StartAt: c.start, EndAt: c.end}, *afterNoon(100)).Timing
		if !equalPointers(v.QueueSeconds, c.queue) || !equalPointers(v.RunSeconds, c.run) {
			t.Errorf("%s %v %v: %v %v; want equalPointers(v.QueueSeconds, c.queue) && equalPointers(v.RunSeconds, c.run)", c.state, c.start, c.end, v.QueueSeconds, v.RunSeconds)
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
		"starts":              {store.Job{State: "PENDING"}, report{state: "RUNNING"}, "RUNNING", afterNoon(100), nil},
		"starts as told":      {store.Job{State: "PENDING"}, report{state: "RUNNING", start: afterNoon(7)}, "RUNNING", afterNoon(7), nil},
		"runs on":             {store.Job{State: "RUNNING", StartAt: afterNoon(7)}, report{state: "RUNNING"}, "RUNNING", afterNoon(7), nil},
		"is requeued":         {store.Job{State: "RUNNING", StartAt: afterNoon(7)}, report{state: "PENDING"}, "PENDING", nil, nil},
		"ends":                {store.Job{State: "RUNNING", StartAt: afterNoon(7)}, report{state: "FAILED"}, "FAILED", afterNoon(7), afterNoon(100)},
		"ends unseen":         {store.Job{State: "PENDING"}, report{state: "COMPLETED", start: afterNoon(7), end: afterNoon(9)}, "COMPLETED", afterNoon(7), afterNoon(9)},
		"never ran":           {store.Job{State: "PENDING"}, report{state: "CANCELLED"}, "CANCELLED", nil, afterNoon(100)},
		"is lost":             {store.Job{State: "RUNNING", StartAt: afterNoon(7)}, report{state: "UNKNOWN"}, "UNKNOWN", afterNoon(7), nil},
		"is found":            {store.Job{State: "UNKNOWN", StartAt: afterNoon(7)}, report{state: "RUNNING"}, "RUNNING", afterNoon(7), nil},
		"stays ended":         {store.Job{State: "FAILED", StartAt: afterNoon(7), EndAt: afterNoon(8)}, report{state: "RUNNING", start: afterNoon(9)}, "FAILED", afterNoon(7), afterNoon(8)},
		"stays as it ended":   {store.Job{State: "CANCELLED", EndAt: afterNoon(8)}, report{state: "COMPLETED", end: afterNoon(9)}, "CANCELLED", nil, afterNoon(8)},
		"end is corrected":    {store.Job{State: "FAILED", StartAt: afterNoon(7), EndAt: afterNoon(8)}, report{state: "FAILED", end: afterNoon(9)}, "FAILED", afterNoon(7), afterNoon(9)},
		"clock of the job":    {store.Job{State: "RUNNING", StartAt: afterNoon(150)}, report{state: "COMPLETED"}, "COMPLETED", afterNoon(150), afterNoon(150)},
		"starts when it will": {store.Job{State: "PENDING"}, report{state: "RUNNING", submit: afterNoon(150)}, "RUNNING", afterNoon(150), nil},
	} {
		c.old.SubmitAt = noon
		got := c.report.apply(c.old, *afterNoon(100))
		if got.State != c.state || !equalTime(got.StartAt, c.start) || !equalTime(got.EndAt, c.end) {
			t.Errorf("%s: %s %v %v; want got.State == c.state && equalTime(got.StartAt, c.start) && equalTime(got.EndAt, c.end)", name, got.State, got.StartAt, got.EndAt)
		}
		if err := checkTimeOrder(got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
