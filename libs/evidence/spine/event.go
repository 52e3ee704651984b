package spine

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
)

// EventKind is the kind of an event envelope.
const EventKind = "svc-event"

// The types of event.
const (
	RunCreated   = "run.created"
	RunCancelled = "run.cancelled"
)

// EventTypes lists the types of event.
func EventTypes() []string { return []string{RunCancelled, RunCreated} }

// The classes of authority under which an event can have come about; the local
// commands write local_control alone.
const (
	LocalControl           = "local_control"
	WorkerObservation      = "worker_observation"
	VerifierRecommendation = "verifier_recommendation"
	HumanDecision          = "human_decision"
)

// MaxSequence is the largest event sequence: 18 digits.
const MaxSequence = 999_999_999_999_999_999

// Event is one envelope, with exactly these sixteen keys.
type Event struct {
	SchemaVersion     string        `json:"schema_version"`
	Kind              string        `json:"kind"`
	EventID           string        `json:"event_id"`
	Sequence          int64         `json:"sequence"`
	OccurredAt        string        `json:"occurred_at"`
	EventType         string        `json:"event_type"`
	Principal         Principal     `json:"principal"`
	AuthorityClass    string        `json:"authority_class"`
	ProjectID         string        `json:"project_id"`
	WorkUnitID        string        `json:"work_unit_id"`
	RunID             string        `json:"run_id"`
	AttemptID         *string       `json:"attempt_id"`
	SourceRevision    *string       `json:"source_revision"`
	EvidenceReference *EvidenceRef  `json:"evidence_reference"`
	Payload           *canon.Object `json:"payload"`
	PayloadDigest     string        `json:"payload_digest"`
}

// Principal is the author of an event. The local commands have no identity to show,
// which the principal states.
type Principal struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// LocalPrincipal is the principal of everything the local commands do.
var LocalPrincipal = Principal{Type: "unauthenticated_local", ID: "local-cli"}

// EvidenceRef names the evidence of an event.
type EvidenceRef struct {
	Kind   string `json:"kind"`
	Digest string `json:"digest"`
}

// EventID is the id of the event with this sequence.
func EventID(sequence int64) string { return fmt.Sprintf("evt-%012d", sequence) }

// CreatedEvent is the event of a run's first appearance, in the state it was stored
// in; evidence is nil unless its report was stored with it. requestDigest is its
// create_request_digest.
func CreatedEvent(sequence int64, at string, run Run, requestDigest string, evidence *EvidenceRef) Event {
	e := sealEnvelope(sequence, at, RunCreated, run, canon.NewObject(
		canon.Member{Key: "state", Value: string(run.State)},
		canon.Member{Key: "request_digest", Value: requestDigest},
	))
	e.EvidenceReference = evidence
	return e
}

// CancelledEvent is the event of a run's cancellation.
func CancelledEvent(sequence int64, at string, run Run, previous State) Event {
	return sealEnvelope(sequence, at, RunCancelled, run, canon.NewObject(
		canon.Member{Key: "previous_state", Value: string(previous)},
		canon.Member{Key: "state", Value: string(Cancelled)},
	))
}

func sealEnvelope(sequence int64, at, eventType string, run Run, payload *canon.Object) Event {
	revision := run.WorkUnit.SourceRevision
	return Event{
		SchemaVersion: SchemaVersion, Kind: EventKind, EventID: EventID(sequence), Sequence: sequence,
		OccurredAt: at, EventType: eventType, Principal: LocalPrincipal, AuthorityClass: LocalControl,
		ProjectID: run.ProjectID, WorkUnitID: run.WorkUnit.ID, RunID: run.RunID, SourceRevision: &revision,
		Payload: payload, PayloadDigest: canon.Digest(payload),
	}
}

// Value returns the envelope as a document.
func (e Event) Value() *canon.Object { return canon.MustFrom(e).(*canon.Object) }

// Frame is the event on a server-sent stream: id, event and data lines and the
// blank line that ends them.
func (e Event) Frame() []byte {
	data, err := canon.C1(e)
	if err != nil { // an envelope that ReadEvent or a constructor made always writes
		panic(err)
	}
	out := append([]byte("id: "), strconv.FormatInt(e.Sequence, 10)...)
	out = append(out, "\nevent: "...)
	out = append(out, e.EventType...)
	out = append(out, "\ndata: "...)
	out = append(out, data...)
	return append(out, "\n\n"...)
}

// The faults of an envelope that a projection does not have.
const (
	InvalidEventID        = "invalid_event_id"
	InvalidTimestamp      = "invalid_timestamp"
	InvalidEventType      = "invalid_event_type"
	PayloadDigestMismatch = "payload_digest_mismatch"
)

// ReadEvent reads an envelope as a store keeps it or a stream brings it and checks
// every field, the payload's digest too. A fault is a *Fault.
func ReadEvent(v canon.Value) (Event, error) {
	rd := closed.NewReader(projectionCodes)
	o := rd.Root(v, "schema_version", "kind", "event_id", "sequence", "occurred_at", "event_type", "principal",
		"authority_class", "project_id", "work_unit_id", "run_id", "attempt_id", "source_revision",
		"evidence_reference", "payload", "payload_digest")
	e := Event{
		SchemaVersion: o.OneOf("schema_version", UnsupportedVersion, SchemaVersion),
		Kind:          o.OneOf("kind", InvalidKind, EventKind),
		EventID:       o.String("event_id"),
		Sequence:      o.Int("sequence", 1),
		OccurredAt:    o.Match("occurred_at", InvalidTimestamp, "a UTC time with Z", IsTimestamp),
		EventType:     o.OneOf("event_type", InvalidEventType, EventTypes()...),
	}
	p := o.Object("principal", "type", "id")
	e.Principal = Principal{Type: p.Text("type"), ID: p.Text("id")}
	e.AuthorityClass = o.OneOf("authority_class", InvalidValue, LocalControl, WorkerObservation, VerifierRecommendation, HumanDecision)
	e.ProjectID, e.WorkUnitID, e.RunID = readIdentifier(o, "project_id"), readIdentifier(o, "work_unit_id"), readIdentifier(o, "run_id")
	e.AttemptID = o.MatchOrNull("attempt_id", InvalidIdentifier, "null or an identifier", IsIdentifier)
	e.SourceRevision = o.MatchOrNull("source_revision", InvalidSourceRevision, "null or a revision", IsRevision)
	if rd.OK() && !o.Null("evidence_reference") {
		ref := o.Object("evidence_reference", "kind", "digest")
		e.EvidenceReference = &EvidenceRef{Kind: ref.Text("kind"), Digest: readDigest(ref, "digest")}
	}
	payload, ok := o.Value("payload").(*canon.Object)
	if !ok {
		o.Fail(InvalidShape, "payload", "expected an object")
	}
	e.Payload, e.PayloadDigest = payload, readDigest(o, "payload_digest")
	if rd.OK() {
		checkEvent(o, rd, e)
	}
	if f := rd.Fault(); f != nil {
		return Event{}, f
	}
	return e, nil
}

// payloadKeys lists the payload keys of each event type.
var payloadKeys = map[string][]string{
	RunCreated:   {"state", "request_digest"},
	RunCancelled: {"previous_state", "state"},
}

func checkEvent(o closed.Object, rd *closed.Reader, e Event) {
	if e.Sequence > MaxSequence {
		o.Fail(InvalidValue, "sequence", "a sequence has at most 18 digits")
	}
	if e.EventID != EventID(e.Sequence) {
		o.Fail(InvalidEventID, "event_id", "the id of event %d is %s", e.Sequence, EventID(e.Sequence))
	}
	p := rd.Object(e.Payload, "/payload", payloadKeys[e.EventType]...)
	for _, k := range payloadKeys[e.EventType] {
		if k == "request_digest" {
			readDigest(p, k)
			continue
		}
		s := p.Match(k, InvalidState, "a state of a run", func(s string) bool { return State(s).Valid() })
		if e.EventType == RunCancelled && rd.OK() {
			cancels := k == "state" && State(s) == Cancelled || k == "previous_state" && slices.Contains(moves[State(s)], Cancelled)
			if !cancels {
				p.Fail(InvalidState, k, "no cancellation has this state here")
			}
		}
	}
	if rd.OK() && canon.Digest(e.Payload) != e.PayloadDigest {
		o.Fail(PayloadDigestMismatch, "payload_digest", "the payload has another digest")
	}
}
