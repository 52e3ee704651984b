package action

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// State is the state of an action in its life cycle.
type State string

// The states.
const (
	Pending   State = "pending"
	Approved  State = "approved"
	Denied    State = "denied"
	Expired   State = "expired"
	Stale     State = "stale"
	Executing State = "executing"
	Succeeded State = "succeeded"
	Failed    State = "failed"
	Unknown   State = "unknown"
)

// Basis is the ground on which a decision was made.
type Basis string

// The bases.
const (
	Person         Basis = "person"
	AutoApprove    Basis = "auto_approve" // the request said so
	Standing       Basis = "standing"     // approved in advance for the rest of the session
	SessionDeleted Basis = "session_deleted"
)

// Action is one proposed write; its JSON is the action document.
type Action struct {
	ID            uuid.UUID      `json:"action_id"`
	Session       string         `json:"session_id"`
	Cluster       string         `json:"cluster,omitempty"` // empty: clusters are not configured by name
	Turn          int32          `json:"turn"`
	State         State          `json:"state"`
	Command       string         `json:"human_summary"`
	Risk          operation.Risk `json:"risk_level"`
	AlwaysConfirm bool           `json:"always_confirm"`
	Confirms      []string       `json:"always_confirm_reasons"`
	Notes         []string       `json:"notes"`
	Digest        string         `json:"digest"`
	Diff          string         `json:"diff"`
	Requester     string         `json:"requested_by"`
	ProposedAt    time.Time      `json:"requested_at"`
	ExpiresAt     time.Time      `json:"expires_at"`
	Basis         Basis          `json:"basis,omitempty"`
	Decider       string         `json:"decided_by,omitempty"`
	DeciderRole   guard.Role     `json:"decided_role,omitempty"`
	DecidedAt     *time.Time     `json:"decided_at,omitempty"`
	Reason        string         `json:"reason,omitempty"`
	ReplacedBy    *uuid.UUID     `json:"replaced_by,omitempty"`
	StartedAt     *time.Time     `json:"started_at,omitempty"`
	FinishedAt    *time.Time     `json:"finished_at,omitempty"`
	Result        string         `json:"result,omitempty"`
	Verification  string         `json:"verification,omitempty"`

	// Operations are the operations that were shown. They may contain secret values, so no
	// document includes them, and once the action has ended they are read from the store
	// without values.
	Operations []operation.Expanded `json:"-"`
	// Observed are the same operations with the uids and resource versions that the call is
	// bound to.
	Observed []operation.Expanded `json:"-"`

	row store.Action
}

// Decided reports whether the action is past its decision.
func (a Action) Decided() bool { return a.State != Pending }

// Ops returns the operations as requested, without what they resolved to.
func (a Action) Ops() []operation.Operation {
	ops := make([]operation.Operation, len(a.Operations))
	for i, e := range a.Operations {
		ops[i] = e.Operation
	}
	return ops
}

// requester is the person who asked, used for plans and events in their name.
func (a Action) requester() event.Who {
	return event.Who{Principal: a.Requester, Role: guard.Role(a.row.RequesterRole), User: a.row.RequesterUser, RequestID: a.row.RequestID}
}

func fromRow(r store.Action) (Action, error) {
	a := Action{
		ID: r.ID, Session: r.SessionID, Cluster: r.Cluster, Turn: r.Turn, State: State(r.State), Command: r.Command, Risk: operation.Risk(r.Risk),
		AlwaysConfirm: r.AlwaysConfirm, Confirms: r.Confirms, Notes: r.Notes, Digest: r.Digest, Diff: r.Diff,
		Requester: r.Requester, ProposedAt: r.ProposedAt, ExpiresAt: r.ExpiresAt,
		Basis: Basis(stringOrEmpty(r.Basis)), Decider: stringOrEmpty(r.Decider), DeciderRole: guard.Role(stringOrEmpty(r.DeciderRole)), DecidedAt: r.DecidedAt,
		Reason: stringOrEmpty(r.Reason), ReplacedBy: r.ReplacedBy, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
		Result: stringOrEmpty(r.Result), Verification: stringOrEmpty(r.Verification), row: r,
	}
	if err := json.Unmarshal(r.Operations, &a.Operations); err != nil {
		return a, fmt.Errorf("action %s: operations: %w", r.ID, err)
	}
	if r.Observed != nil {
		if err := json.Unmarshal(r.Observed, &a.Observed); err != nil {
			return a, fmt.Errorf("action %s: observed operations: %w", r.ID, err)
		}
	}
	return a, nil
}

func stringOrEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// actionEvents returns the event and the audit fact of something done with action a. name is
// the name of the event, act that of the audit fact.
func actionEvents(w event.Who, now time.Time, name, act, outcome string, a Action) []outbox.Event {
	payload := event.Action{
		ID: a.ID, Session: a.Session, Cluster: a.Cluster, State: string(a.State), Digest: a.Digest, Command: a.Command, Risk: string(a.Risk),
		AlwaysConfirm: a.AlwaysConfirm, Requester: a.Requester, Decider: a.Decider, Basis: string(a.Basis), Reason: a.Reason, Result: a.Result,
	}
	details := map[string]any{
		"action_id": a.ID, "session": a.Session, "state": a.State, "digest": a.Digest, "command": a.Command, "risk": a.Risk,
		"always_confirm": a.AlwaysConfirm, "requester": a.Requester,
	}
	for k, v := range map[string]string{"cluster": a.Cluster, "decider": a.Decider, "basis": string(a.Basis), "reason": a.Reason, "result": a.Result} {
		if v != "" {
			details[k] = v
		}
	}
	return event.Facts(w, now, name, act, a.ID.String(), "action:"+a.ID.String(), outcome, payload, details)
}

// The names of events and of audit facts.
const (
	proposedEvent, proposedAct = "action_proposed", "action.proposed"
	decidedEvent, decidedAct   = "action_decided", "action.decided"
	executedEvent, executedAct = "action_executed", "action.executed"
	refusedEvent, refusedAct   = "action_refused", "action.refused"
)

// systemActor identifies a part of the system as the actor where no person acts.
func systemActor(part string) event.Who { return event.Who{Principal: "system:" + part} }
