// Package transition holds the rules by which a flow run moves from state to
// state, as a Prefect 3 server applies them to runs of deployments:
//
//	SCHEDULED ─► PENDING ─► RUNNING ─► COMPLETED | FAILED | CANCELLED | CRASHED
//	    │           │          │
//	    └─CANCELLED └──────────┴─► CANCELLING ─► CANCELLED
//
// A finished run may be proposed again (SCHEDULED or RUNNING), except one that
// completed with a result. Pausing is not offered.
package transition

import (
	"fmt"
	"math"
	"time"

	"github.com/mlp-platform/platform/libs/orchestrator"
)

// Run holds the facts about a run and its present state that the rules need.
type Run struct {
	Type          orchestrator.StateType
	Name          string
	Since         time.Time // when the present state was entered
	HasResult     bool      // the present state carries data
	ScheduledTime *time.Time
	HasDeployment bool
	Count         int32 // how often it has entered RUNNING
	ExpectedStart *time.Time
	Start         *time.Time
}

// Proposal is a state proposed for the run.
type Proposal struct {
	Type          orchestrator.StateType
	Name          string
	HasResult     bool
	ScheduledTime *time.Time
	Force         bool // skip the rules
}

// Verdict is the answer. Record is the state to enter: the proposed one, or
// the one that a rule put in its place; nil if the run stays where it is.
type Verdict struct {
	Status orchestrator.SetStateStatus
	Reason string
	Delay  int // seconds to wait, with WAIT
	Record *Proposal
	// Replaced is set if Record differs from the proposal.
	Replaced bool
}

var names = map[orchestrator.StateType]string{
	orchestrator.Scheduled: "Scheduled", orchestrator.Pending: "Pending", orchestrator.Running: "Running",
	orchestrator.Paused: "Paused", orchestrator.Cancelling: "Cancelling", orchestrator.Completed: "Completed",
	orchestrator.Failed: "Failed", orchestrator.Cancelled: "Cancelled", orchestrator.Crashed: "Crashed",
}

// Known reports whether the type exists.
func Known(t orchestrator.StateType) bool { return names[t] != "" }

// DefaultName is the name of a state that was given none.
func DefaultName(t orchestrator.StateType) string { return names[t] }

// Decide applies the rules to a proposal.
func Decide(r Run, p Proposal, now time.Time) Verdict {
	if p.Name == "" {
		p.Name = DefaultName(p.Type)
	}
	// Also when forced: nothing runs that would have to wind down.
	if r.Type == orchestrator.Scheduled && p.Type == orchestrator.Cancelling {
		return Verdict{
			Status: orchestrator.Reject, Reason: "Scheduled flow run has no infrastructure to terminate.",
			Record: &Proposal{Type: orchestrator.Cancelled, Name: DefaultName(orchestrator.Cancelled)}, Replaced: true,
		}
	}
	if !p.Force {
		if v, stop := applyRules(r, p, now); stop {
			return v
		}
	}
	if p.Type == orchestrator.Scheduled && p.ScheduledTime == nil {
		p.ScheduledTime = &now
	}
	if p.Type == orchestrator.Pending && p.ScheduledTime == nil {
		p.ScheduledTime = r.ScheduledTime
	}
	return Verdict{Status: orchestrator.Accept, Record: &p}
}

func applyRules(r Run, p Proposal, now time.Time) (v Verdict, stop bool) {
	abort := func(format string, a ...any) (Verdict, bool) {
		return Verdict{Status: orchestrator.Abort, Reason: fmt.Sprintf(format, a...)}, true
	}
	reject := func(reason string) (Verdict, bool) {
		return Verdict{Status: orchestrator.Reject, Reason: reason}, true
	}
	switch {
	case p.Type == orchestrator.Paused:
		return abort("This server does not pause runs.")
	case r.Type.Terminal() && (p.Type == orchestrator.Cancelling || p.Type == orchestrator.Crashed):
		return abort("Run is already in terminal state %s.", r.Type)
	case r.Type == orchestrator.Completed && r.HasResult && !p.Type.Terminal():
		return reject("Run is already COMPLETED.")
	case r.Type == orchestrator.Completed && r.HasResult && p.Type == orchestrator.Completed && !p.HasResult:
		return reject("Cannot overwrite a COMPLETED state that carries a result with one that does not.")
	case r.Type.Terminal() && p.Type == orchestrator.Scheduled && !r.HasDeployment:
		return abort("Cannot reschedule a run without an associated deployment.")
	case r.Type == orchestrator.Cancelling && p.Type != orchestrator.Cancelled:
		return reject("Cannot transition flows that are cancelling to a state other than Cancelled.")
	case p.Type == orchestrator.Pending && refusesPending(r, p):
		return abort("This run is in a %s state and cannot transition to a PENDING state.", r.Type)
	case p.Type == orchestrator.Running && r.ScheduledTime != nil && r.ScheduledTime.After(now) &&
		(r.Type == orchestrator.Scheduled || r.Type == orchestrator.Pending):
		return Verdict{
			Status: orchestrator.Wait, Reason: "Scheduled time is in the future",
			Delay: int(math.Ceil(r.ScheduledTime.Sub(now).Seconds())),
		}, true
	}
	return Verdict{}, false
}

// refusesPending keeps two workers from submitting one run: the second finds it
// PENDING or later. Named steps within PENDING are let through.
func refusesPending(r Run, p Proposal) bool {
	switch r.Type {
	case orchestrator.Pending:
		return p.Name == DefaultName(orchestrator.Pending) || p.Name == r.Name
	case orchestrator.Running, orchestrator.Cancelling, orchestrator.Cancelled:
		return true
	}
	return false
}

// Times are the columns of a run that follow from its states.
type Times struct {
	Count         int32
	ExpectedStart *time.Time
	NextStart     *time.Time
	Start, End    *time.Time
	Ran           time.Duration // to be added to the time spent RUNNING
}

// Enter returns the run's times after it enters state p at now.
func Enter(r Run, p Proposal, now time.Time) Times {
	t := Times{Count: r.Count, ExpectedStart: r.ExpectedStart, Start: r.Start}
	if r.Type == orchestrator.Running {
		t.Ran = max(0, now.Sub(r.Since))
	}
	switch {
	case p.Type == orchestrator.Scheduled:
		t.NextStart = p.ScheduledTime
		if r.Count == 0 {
			t.ExpectedStart = p.ScheduledTime
		}
	case p.Type == orchestrator.Running:
		t.Count++
		if t.Start == nil {
			t.Start = &now
		}
	case p.Type.Terminal():
		t.End = &now
	}
	return t
}
