package transition

import (
	"testing"
	"time"

	o "github.com/mlp-platform/platform/libs/orchestrator"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// TestMatrix fixes the verdict on every pair of types, without results, for a run that is due: a accept, j reject, b
// abort.
func TestMatrix(t *testing.T) {
	t.Parallel()
	to := []o.StateType{o.Scheduled, o.Pending, o.Running, o.Paused, o.Cancelling, o.Completed, o.Failed, o.Cancelled, o.Crashed}
	for from, row := range map[o.StateType]string{
		//           S P R p c C F X K
		o.Scheduled:  "aaabjaaaa",
		o.Pending:    "ababaaaaa",
		o.Running:    "ababaaaaa",
		o.Cancelling: "jjjbjjjaj",
		o.Completed:  "aaabbaaab",
		o.Failed:     "aaabbaaab",
		o.Cancelled:  "ababbaaab",
		o.Crashed:    "aaabbaaab",
	} {
		for i, want := range row {
			v := Decide(Run{Type: from, Name: DefaultName(from), HasDeployment: true, ScheduledTime: &now}, Proposal{Type: to[i]}, now)
			got := map[o.SetStateStatus]rune{o.Accept: 'a', o.Reject: 'j', o.Abort: 'b', o.Wait: 'w'}[v.Status]
			if got != want {
				t.Errorf("%s → %s: %s (%s), want %c", from, to[i], v.Status, v.Reason, want)
			}
			if (v.Status == o.Accept) != (v.Record != nil && !v.Replaced) {
				t.Errorf("%s → %s: %s records %+v; want (v.Status == o.Accept) == (v.Record != nil && !v.Replaced)", from, to[i], v.Status, v.Record)
			}
			if v.Status != o.Accept && v.Reason == "" {
				t.Errorf(`%s → %s: no reason; want (v.Status == o.Accept || v.Reason != "")`, from, to[i])
			}
		}
	}
}

func TestSpecialCases(t *testing.T) {
	t.Parallel()
	later := now.Add(90 * time.Second)
	for name, tc := range map[string]struct {
		run    Run
		p      Proposal
		status o.SetStateStatus
		record o.StateType
	}{
		"cancel before the start":         {Run{Type: o.Scheduled}, Proposal{Type: o.Cancelling}, o.Reject, o.Cancelled},
		"so also by force":                {Run{Type: o.Scheduled}, Proposal{Type: o.Cancelling, Force: true}, o.Reject, o.Cancelled},
		"force out of a terminal state":   {Run{Type: o.Cancelled}, Proposal{Type: o.Crashed, Force: true}, o.Accept, o.Crashed},
		"result is kept from a rerun":     {Run{Type: o.Completed, HasResult: true}, Proposal{Type: o.Running}, o.Reject, ""},
		"result is kept from none":        {Run{Type: o.Completed, HasResult: true}, Proposal{Type: o.Completed}, o.Reject, ""},
		"result gives way to another":     {Run{Type: o.Completed, HasResult: true}, Proposal{Type: o.Completed, HasResult: true}, o.Accept, o.Completed},
		"again without its deployment":    {Run{Type: o.Failed}, Proposal{Type: o.Scheduled}, o.Abort, ""},
		"early":                           {Run{Type: o.Pending, ScheduledTime: &later}, Proposal{Type: o.Running}, o.Wait, ""},
		"a step within pending":           {Run{Type: o.Pending, Name: "Pending"}, Proposal{Type: o.Pending, Name: "Submitting"}, o.Accept, o.Pending},
		"no second step of the same name": {Run{Type: o.Pending, Name: "Submitting"}, Proposal{Type: o.Pending, Name: "Submitting"}, o.Abort, ""},
	} {
		v := Decide(tc.run, tc.p, now)
		var record o.StateType
		if v.Record != nil {
			record = v.Record.Type
		}
		if v.Status != tc.status || record != tc.record {
			t.Errorf("%s: %s records %q, want %s and %q", name, v.Status, record, tc.status, tc.record)
		}
		if v.Status == o.Wait && v.Delay != 90 {
			t.Errorf("%s: delay %d, want 90", name, v.Delay)
		}
	}
	if v := Decide(Run{Type: o.Failed, HasDeployment: true}, Proposal{Type: o.Scheduled}, now); !v.Record.ScheduledTime.Equal(now) {
		t.Errorf("scheduled without a time: %v, want now", v.Record.ScheduledTime)
	}
	if v := Decide(Run{Type: o.Scheduled, ScheduledTime: &now}, Proposal{Type: o.Pending}, now); v.Record.ScheduledTime != &now {
		t.Error("PENDING does not carry the scheduled time on")
	}
}

func TestEnter(t *testing.T) {
	t.Parallel()
	earlier, later := now.Add(-time.Minute), now.Add(time.Hour)
	got := Enter(Run{Type: o.Pending}, Proposal{Type: o.Running}, now)
	if got.Count != 1 || !got.Start.Equal(now) || got.End != nil || got.Ran != 0 {
		t.Errorf("first start %+v; want got.Count == 1 && got.Start.Equal(now) && got.End == nil && got.Ran == 0", got)
	}
	got = Enter(Run{Type: o.Running, Since: earlier, Count: 1, Start: &earlier}, Proposal{Type: o.Failed}, now)
	if got.Ran != time.Minute || !got.End.Equal(now) || !got.Start.Equal(earlier) || got.NextStart != nil {
		t.Errorf("end %+v; want got.Ran == time.Minute && got.End.Equal(now) && got.Start.Equal(earlier) && got.NextStart == nil", got)
	}
	got = Enter(Run{Type: o.Failed, Count: 1, Start: &earlier, ExpectedStart: &earlier}, Proposal{Type: o.Scheduled, ScheduledTime: &later}, now)
	if got.End != nil || !got.NextStart.Equal(later) || !got.ExpectedStart.Equal(earlier) {
		t.Errorf("again %+v; want got.End == nil && got.NextStart.Equal(later) && got.ExpectedStart.Equal(earlier)", got)
	}
	got = Enter(Run{Type: o.Running, Since: later}, Proposal{Type: o.Completed}, now) // the clock went back
	if got.Ran != 0 {
		t.Errorf("ran %v; want 0", got.Ran)
	}
}
