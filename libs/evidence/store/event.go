package store

import (
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/tree"
)

// Event is one entry of the log: the fields that lists filter by, and the envelope as
// it goes over the wire and into the tree.
type Event struct {
	Sequence   int64
	ID         string
	Type       string
	OccurredAt string
	ProjectID  string
	WorkUnitID string
	RunID      string
	Envelope   []byte // form C1; 16 keys
}

// eventColumns are the columns that scan reads, in its order.
const eventColumns = `sequence, event_id, occurred_at, event_type, principal_json, authority_class, project_id,
	coalesce(work_unit_id, ''), run_id, attempt_id, source_revision, evidence_reference_json, payload_json, payload_digest`

// eventRow is a row of events.
type eventRow struct {
	sequence          int64
	id                string
	occurredAt        string
	kind              string
	principal         string
	authorityClass    string
	projectID         string
	workUnitID        string
	runID             string
	attemptID         sql.NullString
	sourceRevision    sql.NullString
	evidenceReference sql.NullString
	payload           string
	payloadDigest     string
}

func (e *eventRow) scan(rows *sql.Rows) error {
	return rows.Scan(e.targets()...)
}

func (e *eventRow) targets() []any {
	return []any{&e.sequence, &e.id, &e.occurredAt, &e.kind, &e.principal, &e.authorityClass, &e.projectID,
		&e.workUnitID, &e.runID, &e.attemptID, &e.sourceRevision, &e.evidenceReference, &e.payload, &e.payloadDigest}
}

// eventAgrees is true for an event e that matches its run's row, column by column. The
// row's document is searched as text: parsing it would cost more than the whole page.
const eventAgrees = `EXISTS (SELECT 1 FROM runs r WHERE r.run_id = e.run_id AND r.project_id = e.project_id AND r.work_unit_id = e.work_unit_id
	AND e.attempt_id IS NULL AND instr(r.metadata_json, '"source_revision":"' || e.source_revision || '"') > 0
	AND e.occurred_at = CASE e.event_type WHEN '` + spine.RunCreated + `' THEN r.created_at ELSE r.updated_at END
	AND (e.event_type <> '` + spine.RunCreated + `' OR instr(e.payload_json, r.request_digest) > 0)
	AND CASE WHEN e.event_type = '` + spine.RunCreated + `' AND r.row_kind = '` + spine.ImportedRow + `'
		THEN instr(r.metadata_json, '"evidence_report_digest":' || substr(e.evidence_reference_json, 11, 73) || ',') > 0
		ELSE e.evidence_reference_json IS NULL END)`

// localPrincipal is the principal of every event of this build: a local command, whose
// user is not authenticated.
const localPrincipal = `{"id":"local-cli","type":"unauthenticated_local"}`

// check returns what is wrong with the row in isolation. Whether it is the row that
// was written shows only in the tree.
func (e *eventRow) check() error {
	if e.id != spine.EventID(e.sequence) {
		return errors.New("the event id does not follow from the sequence")
	}
	if e.kind != spine.RunCreated && e.kind != spine.RunCancelled {
		return errors.New("the event type is unknown")
	}
	if !spine.IsTimestamp(e.occurredAt) {
		return errors.New("the time of the event is no UTC time")
	}
	if e.principal != localPrincipal || e.authorityClass != spine.LocalControl {
		return errors.New("the principal or authority class is not one that is written")
	}
	for _, id := range []string{e.projectID, e.workUnitID, e.runID} {
		if !spine.IsIdentifier(id) {
			return errors.New("project, work unit or run is named by something that is no identifier")
		}
	}
	if e.evidenceReference.Valid {
		if _, err := canonicalObject(e.evidenceReference.String); err != nil {
			return fmt.Errorf("evidence_reference: %w", err)
		}
	}
	if canon.DigestBytes([]byte(e.payload)) != e.payloadDigest {
		return errPayloadDigest
	}
	if !validPayload(e.kind, e.payload) {
		return errors.New("the payload is not one of its event type")
	}
	return nil
}

// validPayload compares a payload with the one spelling of its type; a page of events
// is checked without parsing each.
func validPayload(kind, payload string) bool {
	state := ""
	ok := false
	switch kind {
	case spine.RunCreated:
		payload, begun := strings.CutPrefix(payload, `{"request_digest":"`)
		digest, rest, found := strings.Cut(payload, `","state":"`)
		state, ok = strings.CutSuffix(rest, `"}`)
		ok = ok && begun && found && spine.IsDigest(digest)
	case spine.RunCancelled:
		payload, ok = strings.CutPrefix(payload, `{"previous_state":"`)
		if ok {
			state, ok = strings.CutSuffix(payload, `","state":"cancelled"}`)
		}
	}
	return ok && spine.State(state).Valid()
}

var errPayloadDigest = errors.New("the payload does not have the digest recorded with it")

// envelope writes the row in form C1. The JSON columns hold that form already, so an
// edited row has other bytes, and another leaf.
func (e *eventRow) envelope() []byte {
	b := make([]byte, 0, 768)
	b = appendNullable(append(b, `{"attempt_id":`...), e.attemptID)
	b = appendString(append(b, `,"authority_class":`...), e.authorityClass)
	b = appendString(append(b, `,"event_id":`...), e.id)
	b = appendString(append(b, `,"event_type":`...), e.kind)
	b = append(b, `,"evidence_reference":`...)
	if e.evidenceReference.Valid {
		b = append(b, e.evidenceReference.String...)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"kind":"svc-event"`...)
	b = appendString(append(b, `,"occurred_at":`...), e.occurredAt)
	b = append(append(b, `,"payload":`...), e.payload...)
	b = appendString(append(b, `,"payload_digest":`...), e.payloadDigest)
	b = append(append(b, `,"principal":`...), e.principal...)
	b = appendString(append(b, `,"project_id":`...), e.projectID)
	b = appendString(append(b, `,"run_id":`...), e.runID)
	b = append(b, `,"schema_version":"0.1","sequence":`...)
	b = strconv.AppendInt(b, e.sequence, 10)
	b = appendNullable(append(b, `,"source_revision":`...), e.sourceRevision)
	b = appendString(append(b, `,"work_unit_id":`...), e.workUnitID)
	return append(b, '}')
}

func (e *eventRow) leaf() tree.Hash { return tree.Leaf(e.envelope()) }

func (e *eventRow) event() (Event, error) {
	if err := e.check(); err != nil {
		return Event{}, brokenFault(err, "The stored event %d is inconsistent.", e.sequence)
	}
	return Event{Sequence: e.sequence, ID: e.id, Type: e.kind, OccurredAt: e.occurredAt,
		ProjectID: e.projectID, WorkUnitID: e.workUnitID, RunID: e.runID, Envelope: e.envelope()}, nil
}

func appendNullable(b []byte, s sql.NullString) []byte {
	if !s.Valid {
		return append(b, "null"...)
	}
	return appendString(b, s.String)
}

// appendString writes s as a JSON string. Nearly all are identifiers, which need
// no escape.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			text, err := canon.C1(s)
			if err != nil { // bytes that are no UTF-8, which this build never writes
				text = strconv.AppendQuoteToASCII(nil, s)
			}
			return append(b, text...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// rowOf writes an event into its columns.
func rowOf(e spine.Event) (*eventRow, error) {
	principal, err := canon.C1(e.Principal)
	if err != nil {
		return nil, err
	}
	payload, err := canon.C1(e.Payload)
	if err != nil {
		return nil, err
	}
	row := &eventRow{sequence: e.Sequence, id: e.EventID, occurredAt: e.OccurredAt, kind: e.EventType,
		principal: string(principal), authorityClass: e.AuthorityClass,
		projectID: e.ProjectID, workUnitID: e.WorkUnitID, runID: e.RunID,
		attemptID: nullableString(e.AttemptID), sourceRevision: nullableString(e.SourceRevision),
		payload: string(payload), payloadDigest: e.PayloadDigest}
	if e.EvidenceReference != nil {
		reference, err := canon.C1(*e.EvidenceReference)
		if err != nil {
			return nil, err
		}
		row.evidenceReference = sql.NullString{String: string(reference), Valid: true}
	}
	return row, nil
}

func nullableString(s *string) sql.NullString {
	if s == nil {
		return sql.NullString{}
	}
	return sql.NullString{String: *s, Valid: true}
}

// parseEventID reads the sequence out of an event's id.
func parseEventID(id string) (int64, bool) {
	digits, ok := strings.CutPrefix(id, "evt-")
	if !ok {
		return 0, false
	}
	sequence, err := strconv.ParseInt(digits, 10, 64)
	return sequence, err == nil && sequence > 0 && spine.EventID(sequence) == id
}
