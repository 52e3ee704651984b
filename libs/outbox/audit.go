package outbox

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// AuditFact is an entry of the audit ledger before it has a place in it.
type AuditFact struct {
	Tenant    string
	Actor     string // the real principal, never just a role
	Action    string // such as approval.approved
	Target    string // such as model:JPCP
	Outcome   string // ok, denied or failed
	Source    string // the service
	Details   map[string]any
	RequestID string    // the context's of Insert when empty
	Time      time.Time // of the act; now when zero
}

// auditRecord is the member data of audit.recorded.
type auditRecord struct {
	Tenant    string          `json:"tenant"`
	EventID   uuid.UUID       `json:"event_id"`
	TS        string          `json:"ts"`
	Source    string          `json:"source"`
	Actor     string          `json:"actor"`
	Action    string          `json:"action"`
	Target    string          `json:"target"`
	Outcome   string          `json:"outcome"`
	RequestID *string         `json:"request_id"`
	Details   json.RawMessage `json:"details"`
}

// Audit is the event audit.recorded, to insert in the transaction of the act.
func Audit(a AuditFact) Event {
	if a.Tenant == "" {
		a.Tenant = PlatformTenant
	}
	if a.Time.IsZero() {
		a.Time = time.Now()
	}
	id := uuid.Must(uuid.NewV7()) // fails only without a source of randomness, as the runtime would
	rec := auditRecord{
		Tenant: a.Tenant, EventID: id, TS: a.Time.UTC().Format("2006-01-02T15:04:05.000000Z"), Source: a.Source,
		Actor: a.Actor, Action: a.Action, Target: a.Target, Outcome: a.Outcome, Details: exactNumbers(a.Details),
	}
	if a.RequestID != "" {
		rec.RequestID = &a.RequestID
	}
	return Event{
		ID: id, Tenant: a.Tenant, Namespace: "audit", Name: "recorded", SubjectID: a.Target,
		Payload: rec, Actor: a.Actor, RequestID: a.RequestID,
	}
}

// exactNumbers encodes details with integers beyond 2^53 as strings: the ledger
// hashes the form of RFC 8785, whose numbers are doubles. A value that JSON
// cannot express becomes a note, since an act must not go unrecorded for it.
func exactNumbers(details map[string]any) json.RawMessage {
	if details == nil {
		return json.RawMessage("{}")
	}
	b, err := json.Marshal(details)
	if err != nil {
		b, _ = json.Marshal(map[string]string{"unencodable": err.Error()})
		return b
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return b // just encoded, so it decodes
	}
	if b, err = json.Marshal(stringify(v)); err != nil {
		return json.RawMessage("{}")
	}
	return b
}

const maxExact = 1 << 53

func stringify(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = stringify(e)
		}
	case []any:
		for i, e := range v {
			v[i] = stringify(e)
		}
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			if n > maxExact || n < -maxExact {
				return v.String()
			}
		} else if _, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
			return v.String()
		}
	}
	return v
}
