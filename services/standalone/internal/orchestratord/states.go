package orchestratord

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/store"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/transition"
)

type stateDoc struct {
	ID        uuid.UUID       `json:"id"`
	Type      string          `json:"type"`
	Name      string          `json:"name"`
	Timestamp time.Time       `json:"timestamp"`
	Message   *string         `json:"message"`
	Data      json.RawMessage `json:"data"`
	Details   stateDetails    `json:"state_details"`
}

// stateDetails holds the members that this server sets; clients take the rest as absent.
type stateDetails struct {
	FlowRunID     *uuid.UUID `json:"flow_run_id"`
	ScheduledTime *time.Time `json:"scheduled_time"`
}

func stateOf(s store.FlowRunState) stateDoc {
	return stateDoc{
		s.ID, s.Type, s.Name, s.Timestamp.UTC(), s.Message, orRaw(s.Data, json.RawMessage("null")),
		stateDetails{&s.FlowRunID, toUTC(s.ScheduledTime)},
	}
}

// stateIn is a proposed state.
type stateIn struct {
	Type    orchestrator.StateType `json:"type"`
	Name    string                 `json:"name"`
	Message *string                `json:"message"`
	Data    json.RawMessage        `json:"data"`
	Details struct {
		ScheduledTime *moment `json:"scheduled_time"`
	} `json:"state_details"`
}

func (s *stateIn) UnmarshalJSON(b []byte) error {
	type plain stateIn
	if err := json.Unmarshal(b, (*plain)(s)); err != nil {
		return err
	}
	if !transition.Known(s.Type) {
		return invalidMember("state.type", "Input should be %s", stateTypeList())
	}
	if string(s.Data) == "null" {
		s.Data = nil
	}
	return nil
}

// record locks a run, applies the rules, and enters the resulting state.
func (s *Server) record(ctx context.Context, q *store.Queries, id uuid.UUID, in stateIn, force bool) (transition.Verdict, error) {
	row, err := q.LockRun(ctx, id)
	if err != nil {
		return transition.Verdict{}, absentAsNotFound(err, "Flow run")
	}
	before, err := q.StateByID(ctx, row.StateID)
	if err != nil {
		return transition.Verdict{}, err
	}
	run := transition.Run{
		Type: orchestrator.StateType(row.StateType), Name: row.StateName, Since: row.StateTime,
		HasResult: before.Data != nil, ScheduledTime: before.ScheduledTime, HasDeployment: row.DeploymentID != nil,
		Count: row.RunCount, ExpectedStart: row.ExpectedStartTime, Start: row.StartTime,
	}
	now := s.now()
	v := transition.Decide(run, transition.Proposal{
		Type: in.Type, Name: in.Name, HasResult: in.Data != nil, ScheduledTime: in.Details.ScheduledTime.time(), Force: force,
	}, now)
	if v.Record == nil {
		return v, nil
	}
	if v.Record.Type == orchestrator.Failed && run.Type == orchestrator.Running && !force {
		v = retry(row.EmpiricalPolicy, row.RunCount, v, now)
	}
	if v.Record.Type == orchestrator.Pending && !force {
		if v, err = s.limitRuns(ctx, q, row.DeploymentID, v, now); err != nil {
			return v, err
		}
	}
	if v.Replaced {
		in.Message, in.Data = nil, nil
	}
	state := newID()
	err = q.InsertState(ctx, store.InsertStateParams{
		ID: state, FlowRunID: id, Type: string(v.Record.Type), Name: v.Record.Name, Timestamp: now,
		Message: in.Message, Data: in.Data, ScheduledTime: v.Record.ScheduledTime,
	})
	if err != nil {
		return v, err
	}
	t := transition.Enter(run, *v.Record, now)
	return v, q.MoveRun(ctx, store.MoveRunParams{
		ID: id, Now: now, StateID: state, StateType: string(v.Record.Type), StateName: v.Record.Name,
		RunCount: t.Count, ExpectedStartTime: t.ExpectedStart, NextStartTime: t.NextStart,
		StartTime: t.Start, EndTime: t.End, Ran: t.Ran.Seconds(),
	})
}

// slotWait is how long a run waits that its deployment's concurrency limit keeps from starting.
const slotWait = 30 * time.Second

// limitRuns puts off a run whose deployment has as many in progress as its concurrency limit allows.
func (s *Server) limitRuns(ctx context.Context, q *store.Queries, deployment *uuid.UUID, v transition.Verdict, now time.Time) (transition.Verdict, error) {
	if deployment == nil {
		return v, nil
	}
	// Those who count a deployment's runs in progress do so one after the other.
	if err := q.LockSlots(ctx, *deployment); err != nil {
		return v, err
	}
	full, err := q.AtLimit(ctx, *deployment)
	if isNoRows(err) { // the deployment is gone
		return v, nil
	}
	if err != nil || !full {
		return v, err
	}
	return transition.Verdict{
		Status: orchestrator.Reject, Reason: "Deployment concurrency limit reached.", Replaced: true,
		Record: &transition.Proposal{Type: orchestrator.Scheduled, Name: "AwaitingConcurrencySlot", ScheduledTime: pointerTo(now.Add(slotWait))},
	}, nil
}

func (s *Server) setState(r *http.Request) (any, error) {
	id, err := pathID(r)
	if err != nil {
		return nil, err
	}
	var in struct {
		State *stateIn `json:"state"`
		Force bool     `json:"force"`
	}
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	if in.State == nil {
		return nil, invalidMember("state", "Field required")
	}
	var v transition.Verdict
	var run store.Run
	err = s.tx(r.Context(), func(q *store.Queries) error {
		if v, err = s.record(r.Context(), q, id, *in.State, in.Force); err != nil {
			return err
		}
		run, err = q.Run(r.Context(), id)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.entered(id, orchestrator.StateType(run.State.Type))

	type details struct {
		Type   string `json:"type"`
		Reason string `json:"reason,omitempty"`
		Delay  int    `json:"delay_seconds,omitempty"`
	}
	out := struct {
		State   stateDoc                    `json:"state"`
		Status  orchestrator.SetStateStatus `json:"status"`
		Details details                     `json:"details"`
	}{stateOf(run.State), v.Status, details{kinds[v.Status], v.Reason, v.Delay}}
	if v.Record != nil {
		return answer{http.StatusCreated, out}, nil
	}
	return out, nil
}

var kinds = map[orchestrator.SetStateStatus]string{
	orchestrator.Accept: "accept_details", orchestrator.Reject: "reject_details",
	orchestrator.Abort: "abort_details", orchestrator.Wait: "wait_details",
}

func (s *Server) listStates(r *http.Request) (any, error) {
	id, err := uuid.Parse(r.URL.Query().Get("flow_run_id"))
	if err != nil {
		return nil, &refusal{http.StatusUnprocessableEntity, problem{
			Message: "Invalid request received.",
			Faults:  []fault{{Type: "uuid_parsing", Loc: []string{"query", "flow_run_id"}, Msg: "Input should be a valid UUID"}},
		}}
	}
	states, err := s.q.States(r.Context(), id)
	if err != nil {
		return nil, err
	}
	out := make([]stateDoc, 0, len(states))
	for _, st := range states {
		out = append(out, stateOf(st))
	}
	return out, nil
}

func (s *Server) readState(r *http.Request) (any, error) {
	id, err := pathID(r)
	if err != nil {
		return nil, err
	}
	st, err := s.q.StateByID(r.Context(), id)
	if err != nil {
		return nil, absentAsNotFound(err, "Flow run state")
	}
	return stateOf(st), nil
}
