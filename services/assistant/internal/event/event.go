// Package event builds the assistant's outbox events, each with its fact for the audit ledger. Neither contains a
// question, an answer or a log line.
package event

import (
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
)

// Source names this service in the audit ledger.
const Source = "assistant"

// Namespace is the namespace of the service's events.
const Namespace = "assistant"

// Outcomes of an audit fact.
const (
	OK     = "ok"
	Denied = "denied"
	Failed = "failed"
)

// Person is the person on whose behalf a service calls with its own key, according to that service's delegation. The
// zero value means none: the principal acts for itself.
type Person struct{ Name, Tenant, Via string }

// Who identifies the caller and how it authenticated.
type Who struct {
	Principal string
	Behind    Person // named by the facts in addition to the principal
	Role      guard.Role
	User      string // the user that the request names; not verified
	RequestID string
	Address   string
	Method    string
	Path      string
}

// Turn is the data of assistant.turn_finished.
type Turn struct {
	Session    string    `json:"session"`
	Cluster    string    `json:"cluster,omitempty"`
	Turn       int32     `json:"turn"`
	ID         uuid.UUID `json:"id"`
	Role       string    `json:"role"`
	Outcome    string    `json:"outcome"`
	Reason     string    `json:"reason,omitempty"`
	DurationMS int64     `json:"duration_ms"`
}

// Action is the data of the events about a write.
type Action struct {
	ID            uuid.UUID `json:"id"`
	Session       string    `json:"session"`
	Cluster       string    `json:"cluster,omitempty"`
	State         string    `json:"state"`
	Digest        string    `json:"digest"`
	Command       string    `json:"command"`
	Risk          string    `json:"risk"`
	AlwaysConfirm bool      `json:"always_confirm"`
	Requester     string    `json:"requester"`
	Decider       string    `json:"decider,omitempty"`
	Basis         string    `json:"basis,omitempty"`
	Reason        string    `json:"reason,omitempty"`
	Result        string    `json:"result,omitempty"`
}

// ToolCall is the data of assistant.tool_called.
type ToolCall struct {
	Tool string `json:"tool"`
	// Server is the other server that the assistant called; empty: a program called a tool of the assistant.
	Server string `json:"server,omitempty"`
	// Session is the session whose answer called it.
	Session string `json:"session,omitempty"`
	// Cluster is the cluster that was read or is to be changed, where clusters are configured by name.
	Cluster    string `json:"cluster,omitempty"`
	Role       string `json:"role"`
	Outcome    string `json:"outcome"`
	DurationMS int64  `json:"duration_ms"`
}

// Alert is the data of assistant.alert_received. Neither it nor its fact contains text of the alert.
type Alert struct {
	Session string `json:"session"`
	Status  string `json:"status"`
	// Outcome is new, changed, resolved, or repeated, which starts no turn.
	Outcome  string `json:"outcome"`
	Firing   int    `json:"firing"`
	Resolved int    `json:"resolved"`
}

// Access is the data of assistant.access_denied.
type Access struct {
	Method  string `json:"method"`
	Path    string `json:"path"`
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Address string `json:"address"`
}

// DemoKey is the data of assistant.demo_key_minted.
type DemoKey struct {
	KeyID     string    `json:"key_id"` // the principal of the key's user
	Email     string    `json:"email"`  // the person it was created for
	ExpiresAt time.Time `json:"expires_at"`
}

// Facts returns an event about a subject and its audit fact. action is the name of the act in the ledger, such as
// action.decided.
func Facts(w Who, now time.Time, name, action, subject, target, outcome string, payload any, details map[string]any) []outbox.Event {
	if details == nil {
		details = map[string]any{}
	}
	for k, v := range map[string]string{"role": string(w.Role), "user": w.User, "on_behalf_of": w.Behind.Name, "via": w.Behind.Via, "address": w.Address, "method": w.Method, "path": w.Path} {
		if v != "" {
			details[k] = v
		}
	}
	return []outbox.Event{
		{Namespace: Namespace, Name: name, SubjectID: subject, Actor: w.Principal, RequestID: w.RequestID, Payload: payload},
		outbox.Audit(outbox.AuditFact{
			Actor: w.Principal, Action: Namespace + "." + action, Target: target, Outcome: outcome, Source: Source,
			Details: details, RequestID: w.RequestID, Time: now,
		}),
	}
}
