package orchestrator

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// StateType is the machine-readable state of a run. A state's name is for
// people: type SCHEDULED may be named "Scheduled", "Late", "AwaitingRetry"; all
// else about a run follows from the type.
type StateType string

// The state types of Prefect 3.
const (
	Scheduled  StateType = "SCHEDULED"
	Pending    StateType = "PENDING"
	Running    StateType = "RUNNING"
	Paused     StateType = "PAUSED"
	Cancelling StateType = "CANCELLING"
	Completed  StateType = "COMPLETED"
	Failed     StateType = "FAILED"
	Cancelled  StateType = "CANCELLED"
	Crashed    StateType = "CRASHED"
)

// StateTypes holds every type, in the order a run may pass through them.
var StateTypes = []StateType{Scheduled, Pending, Running, Paused, Cancelling, Completed, Failed, Cancelled, Crashed}

// Terminal reports whether a run in this state has ended.
func (t StateType) Terminal() bool {
	return t == Completed || t == Failed || t == Cancelled || t == Crashed
}

// State is one state of a flow run.
type State struct {
	ID        uuid.UUID       `json:"id"`
	Type      StateType       `json:"type"`
	Name      string          `json:"name"`
	Timestamp time.Time       `json:"timestamp"`
	Message   string          `json:"message"`
	Data      json.RawMessage `json:"data,omitempty"`
	Details   StateDetails    `json:"state_details"`
}

// StateDetails is the part of a state's details the platform reads.
type StateDetails struct {
	FlowRunID     *uuid.UUID `json:"flow_run_id,omitempty"`
	ScheduledTime *time.Time `json:"scheduled_time,omitempty"`
}

// SetStateStatus is the orchestrator's verdict on a proposed state.
type SetStateStatus string

// The verdicts: taken; replaced by another state; to be proposed again later;
// to be given up.
const (
	Accept SetStateStatus = "ACCEPT"
	Reject SetStateStatus = "REJECT"
	Wait   SetStateStatus = "WAIT"
	Abort  SetStateStatus = "ABORT"
)

// SetStateResult answers a proposed state. State is the run's state now, if the
// orchestrator returns it (ACCEPT, REJECT).
type SetStateResult struct {
	Status  SetStateStatus `json:"status"`
	State   *State         `json:"state"`
	Details struct {
		Reason string `json:"reason"`
		// DelaySeconds is the wait before proposing again (WAIT).
		DelaySeconds int `json:"delay_seconds"`
	} `json:"details"`
}

type newState struct {
	Type    StateType       `json:"type"`
	Name    string          `json:"name,omitempty"`
	Message string          `json:"message,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	Details *StateDetails   `json:"state_details,omitempty"`
}

// SetState proposes a state for a run; of it Type, Name, Message, Data and
// Details are sent. force skips the orchestrator's rules. A refused transition
// is no error: read Status of the result.
func (c *Client) SetState(ctx context.Context, flowRun uuid.UUID, s State, force bool) (SetStateResult, error) {
	in := struct {
		State newState `json:"state"`
		Force bool     `json:"force"`
	}{newState{Type: s.Type, Name: s.Name, Message: s.Message, Data: s.Data}, force}
	if s.Details != (StateDetails{}) {
		in.State.Details = &s.Details
	}
	var out SetStateResult
	_, err := c.call(ctx, http.MethodPost, "/flow_runs/"+flowRun.String()+"/set_state", in, &out)
	return out, err
}

// States lists the states a run has been in, oldest first.
func (c *Client) States(ctx context.Context, flowRun uuid.UUID) ([]State, error) {
	var out []State
	_, err := c.call(ctx, http.MethodGet, "/flow_run_states/?flow_run_id="+flowRun.String(), nil, &out)
	return out, err
}
