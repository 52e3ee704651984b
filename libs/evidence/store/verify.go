package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/note"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/tree"
)

// The findings of a verification.
const (
	FindingSQLite        = "sqlite_integrity"   // SQLite's own check, or a damaged page
	FindingForeignKey    = "foreign_key"        // a row refers to a row that is not there
	FindingVersion       = "store_version"      // user_version is not this build's
	FindingSchema        = "store_schema"       // a column is missing, or something was added
	FindingTrigger       = "trigger_missing"    // nothing refuses a change of this table
	FindingMeta          = "store_meta_invalid" // store_id, cursor_key, events_since or the frontier
	FindingRun           = "persisted_state_corrupt"
	FindingEvidence      = "evidence_integrity_error"
	FindingConnection    = "connection_record_invalid"
	FindingIdempotency   = "idempotency_orphan"      // a key that leads to no run of its own
	FindingSequence      = "event_sequence"          // sequences are not 1 to n
	FindingEvent         = "event_invalid"           // an envelope that fails its checks
	FindingPayload       = "event_payload_digest"    // a payload with another digest
	FindingEventMissing  = "event_missing"           // a run without the event of its state
	FindingEventMismatch = "event_run_mismatch"      // an event that its run does not bear out
	FindingTree          = "tree_root_mismatch"      // the events are not those of a checkpoint
	FindingCheckpoint    = "checkpoint_invalid"      // a checkpoint that cannot be of this log
	FindingSignature     = "checkpoint_signature"    // a note that the key did not sign
	FindingUnsigned      = "checkpoint_unsigned"     // a key was given and no checkpoint is signed
	FindingInconsistent  = "checkpoint_inconsistent" // the log does not continue an older checkpoint
	FindingTruncated     = "findings_truncated"      // there are more than are listed
)

// maxFindings bounds a report on a store in which everything is wrong.
const maxFindings = 1000

// Verification is the outcome of [Verify].
type Verification struct {
	Kind          string    `json:"kind"`
	SchemaVersion string    `json:"schema_version"`
	OK            bool      `json:"ok"`
	Checked       Checked   `json:"checked"`
	Findings      []Finding `json:"findings"`

	// OldestSigned is the size of the oldest checkpoint with a good signature, 0 if
	// there is none. A log cut off and grown anew before it leaves no trace.
	OldestSigned int64 `json:"-"`
}

// Checked counts what was looked at.
type Checked struct {
	Runs              int64 `json:"runs"`
	ForeignRows       int64 `json:"foreign_rows"`
	EvidenceReports   int64 `json:"evidence_reports"`
	IdempotencyKeys   int64 `json:"idempotency_keys"`
	Connections       int64 `json:"connections"`
	Events            int64 `json:"events"`
	Checkpoints       int64 `json:"checkpoints"`
	SignedCheckpoints int64 `json:"signed_checkpoints"` // with a good signature; 0 without a key
}

// Finding is one thing that is wrong.
type Finding struct {
	Code    string `json:"code"`
	Subject string `json:"subject"` // the row or part of the store
	Detail  string `json:"detail"`
}

// VerifyOptions are what a store is held against besides itself.
type VerifyOptions struct {
	PublicKey  note.Verifier // nil: signatures are not checked
	Checkpoint []byte        // an older checkpoint: a note, or an svc-event-log-checkpoint document
	Wait       time.Duration // for locks; 0: CommandWait
	Progress   func(Checked) // nil, or called every thousand rows with what was looked at so far
}

// progressRows is how many rows lie between two reports of progress.
const progressRows = 1000

// Verify checks all of a store and changes nothing in it. What it finds is no
// error; an error means that the store, or the checkpoint, could not be read.
//
// What no check can show: a connector replaced by another valid one, a new
// cursor key, a new store id while no checkpoint is signed.
func Verify(ctx context.Context, path string, o VerifyOptions) (Verification, error) {
	if o.Wait == 0 {
		o.Wait = CommandWait
	}
	v := &verifier{options: o}
	var err error
	if o.Checkpoint != nil {
		if v.older, v.olderNote, err = parseCheckpoint(o.Checkpoint); err != nil {
			return Verification{}, broken(err, "The older checkpoint cannot be read.")
		}
	}
	s := &source{path: path, wait: o.Wait}
	defer func() { _ = s.close() }()
	err = s.on(ctx, func(h *handle) error {
		return inTx(ctx, h.db, "BEGIN", func(t tx) error {
			v.begin()
			err := v.all(t)
			if code := primary(err); (code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_ERROR) && v.opened {
				v.find(FindingSQLite, "store", "%v", err)
				err = nil
			}
			return err
		})
	})
	if err != nil {
		return Verification{}, err
	}
	v.out.OK = len(v.out.Findings) == 0
	return v.out, nil
}

type verifier struct {
	options   VerifyOptions
	rows      int64 // looked at, of all kinds
	older     statement
	olderNote string // the signed note that older came in, or ""
	out       Verification
	opened    bool // the file is a database whose first page can be read
	storeID   string
	since     time.Time
}

// row counts a row that was looked at.
func (v *verifier) row() {
	if v.rows++; v.options.Progress != nil && v.rows%progressRows == 0 {
		v.options.Progress(v.out.Checked)
	}
}

func (v *verifier) begin() {
	v.out = Verification{Kind: "svc-store-verification", SchemaVersion: spine.SchemaVersion, Findings: []Finding{}}
}

func (v *verifier) find(code, subject, format string, args ...any) {
	if len(v.out.Findings) == maxFindings {
		v.out.Findings = append(v.out.Findings, Finding{FindingTruncated, "store",
			fmt.Sprintf("Only the first %d findings are listed.", maxFindings)})
	}
	if len(v.out.Findings) < maxFindings {
		v.out.Findings = append(v.out.Findings, Finding{code, subject, fmt.Sprintf(format, args...)})
	}
}

// fault turns the fault of a row into a finding; other errors go on.
func (v *verifier) fault(subject string, err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Code == StoreError {
		return err
	}
	reason := e.Reason
	if reason == "" {
		reason = e.Message
	}
	v.find(string(e.Code), subject, "%s", reason)
	return nil
}

func (v *verifier) all(t tx) error {
	version, err := t.version()
	if err != nil {
		return err
	}
	v.opened = true
	if err := v.sqlite(t); err != nil {
		return err
	}
	if version != Version {
		v.find(FindingVersion, "user_version", "The store has version %d; this build verifies %d.", version, Version)
		return nil
	}
	if usable, err := v.schema(t); err != nil || !usable {
		return err
	}
	for _, part := range []func(tx) error{v.meta, v.runs, v.keys, v.connections, v.events} {
		if err := part(t); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) sqlite(t tx) error {
	err := t.each("PRAGMA integrity_check(100)", nil, func(rows *sql.Rows) error {
		var line string
		if err := rows.Scan(&line); err != nil {
			return err
		}
		if line != "ok" {
			v.find(FindingSQLite, "store", "%s", line)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return t.each("PRAGMA foreign_key_check", nil, func(rows *sql.Rows) error {
		var table, parent string
		var row, key sql.NullInt64
		if err := rows.Scan(&table, &row, &parent, &key); err != nil {
			return err
		}
		v.find(FindingForeignKey, fmt.Sprintf("%s row %d", table, row.Int64), "It refers to a row that %s does not have.", parent)
		return nil
	})
}

// columns is what each table must have.
var columns = map[string][]string{
	"connections": {"connection_id", "metadata_json", "updated_at"},
	"runs": {"run_id", "idempotency_key", "request_digest", "state", "metadata_json", "created_at", "updated_at",
		"row_kind", "project_id", "work_unit_id"},
	"idempotency": {"idempotency_key", "request_digest", "run_id", "created_at"},
	"events": {"sequence", "event_id", "occurred_at", "event_type", "principal_json", "authority_class", "project_id",
		"work_unit_id", "run_id", "attempt_id", "source_revision", "evidence_reference_json", "payload_json", "payload_digest"},
	"store_meta":  {"key", "value"},
	"checkpoints": {"tree_size", "root_hash", "note", "created_at"},
}

// guard is a trigger that refuses every update or every delete of a table.
var guard = regexp.MustCompile(`(?i)\ACREATE TRIGGER \S+ BEFORE (UPDATE|DELETE) ON "?(events|checkpoints)"?(?: FOR EACH ROW)? BEGIN SELECT RAISE ?\( ?ABORT ?, ?'[^']*' ?\) ?; END\z`)

// schema reports whether the tables have the columns that the other checks read.
func (v *verifier) schema(t tx) (usable bool, err error) {
	guarded := map[string]bool{}
	tables := map[string]bool{}
	err = t.each("SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name", nil, func(rows *sql.Rows) error {
		var kind, name, text string
		if err := rows.Scan(&kind, &name, &text); err != nil {
			return err
		}
		known := kind == "index" || strings.HasPrefix(name, "sqlite_")
		switch kind {
		case "table":
			tables[name] = true
			known = known || columns[name] != nil
		case "trigger":
			if m := guard.FindStringSubmatch(strings.Join(strings.Fields(text), " ")); m != nil {
				guarded[strings.ToLower(m[2]+" "+m[1])] = true
				known = true
			}
		}
		if !known {
			v.find(FindingSchema, name, "The store has a %s of this name that is none of its own.", kind)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	for _, need := range []string{"events update", "events delete", "checkpoints update", "checkpoints delete"} {
		if !guarded[need] {
			table, act, _ := strings.Cut(need, " ")
			v.find(FindingTrigger, table, "No trigger refuses every %s.", act)
		}
	}
	usable = true
	for _, table := range slices.Sorted(keysOf(columns)) {
		if !tables[table] {
			v.find(FindingSchema, table, "The table is missing.")
			usable = false
			continue
		}
		have := []string{}
		err := t.each("SELECT name FROM pragma_table_info(?)", []any{table}, func(rows *sql.Rows) error {
			var name string
			err := rows.Scan(&name)
			have = append(have, name)
			return err
		})
		if err != nil {
			return false, err
		}
		for _, name := range columns[table] {
			if !slices.Contains(have, name) {
				v.find(FindingSchema, table, "The column %s is missing.", name)
				usable = false
			}
		}
	}
	return usable, nil
}

func keysOf(m map[string][]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (v *verifier) meta(t tx) error {
	id, err := t.meta(metaStoreID)
	if err != nil {
		return err
	}
	v.storeID = id
	if parsed, err := uuid.Parse(id); err != nil || parsed.Version() != 7 || parsed.String() != id {
		v.find(FindingMeta, metaStoreID, "It is no UUID of version 7.")
	}
	key, err := t.meta(metaCursorKey)
	if err != nil {
		return err
	}
	if _, err := tree.ParseHex(key); err != nil {
		v.find(FindingMeta, metaCursorKey, "It is not 64 lower-case hex digits.")
	}
	since, err := t.meta(metaEventsSince)
	if err != nil {
		return err
	}
	v.since, err = spine.ParseTime(since)
	if err != nil || !spine.IsTimestamp(since) {
		v.find(FindingMeta, metaEventsSince, "It is no UTC time.")
	}
	return nil
}

func (v *verifier) runs(t tx) error {
	return t.each(runSelect+" ORDER BY r.run_id", nil, func(rows *sql.Rows) error {
		var row runRow
		if err := row.scan(rows); err != nil {
			return err
		}
		if row.foreign() {
			v.out.Checked.ForeignRows++
			return nil
		}
		v.out.Checked.Runs++
		v.row()
		return v.fault(row.id, v.run(t, &row))
	})
}

func (v *verifier) run(t tx, row *runRow) error {
	rec, err := row.record()
	if err != nil {
		return err
	}
	if rec.projection.EvidenceReportDigest != nil {
		v.out.Checked.EvidenceReports++
		found, err := rec.evidence(row.id)
		if err == nil {
			err = rec.checkAgainst(row.id, found)
		}
		if err := v.fault(row.id, err); err != nil {
			return err
		}
	}
	if err := row.check(rec); err != nil {
		return err
	}
	return v.runEvents(t, row, rec)
}

// runEvents holds the events of a run against the one or two that its row stands
// for, to the byte.
func (v *verifier) runEvents(t tx, row *runRow, rec *record) error {
	var created, cancelled []eventRow
	err := t.each("SELECT "+eventColumns+" FROM events WHERE run_id = ? ORDER BY sequence LIMIT 8", []any{row.id}, func(rows *sql.Rows) error {
		var e eventRow
		if err := e.scan(rows); err != nil {
			return err
		}
		switch e.kind {
		case spine.RunCreated:
			created = append(created, e)
		case spine.RunCancelled:
			cancelled = append(cancelled, e)
		}
		return nil
	})
	if err != nil {
		return err
	}
	at, err := spine.ParseTime(row.createdAt)
	old := err == nil && at.Before(v.since)

	first := rec.projection.Clone()
	first.State = spine.Proposed
	var reference *spine.EvidenceRef
	if rec.imported != nil {
		first.State = rec.imported.initialState
		reference = &spine.EvidenceRef{Kind: "svc-run-evidence-report", Digest: *first.EvidenceReportDigest}
	}
	switch {
	case len(created) == 0 && !old:
		v.find(FindingEventMissing, row.id, "The run has no %s.", spine.RunCreated)
	case len(created) > 1:
		v.find(FindingEventMismatch, row.id, "The run has more than one %s.", spine.RunCreated)
	case len(created) == 1:
		v.compare(&created[0], spine.CreatedEvent(created[0].sequence, row.createdAt, first, row.requestDigest, reference))
	}
	isCancelled := rec.projection.State == spine.Cancelled
	switch {
	case isCancelled && len(cancelled) == 0 && !old:
		v.find(FindingEventMissing, row.id, "The run is cancelled and has no %s.", spine.RunCancelled)
	case len(cancelled) > 1 || len(cancelled) == 1 && !isCancelled:
		v.find(FindingEventMismatch, row.id, "The run has a %s that its state does not bear out.", spine.RunCancelled)
	case len(cancelled) == 1:
		// An older run may have been cancelled from a state that nothing recorded.
		previous := first.State
		if old {
			previous = previousState(&cancelled[0])
		}
		v.compare(&cancelled[0], spine.CancelledEvent(cancelled[0].sequence, row.updatedAt, rec.projection, previous))
	case !isCancelled && !old && rec.projection.State != first.State:
		v.find(FindingEventMissing, row.id, "The run went from %s to %s without an event.", first.State, rec.projection.State)
	case !isCancelled && !old && row.updatedAt != row.createdAt:
		v.find(FindingRun, row.id, "updated_at changed without an event.")
	}
	return nil
}

func previousState(e *eventRow) spine.State {
	payload, err := canonicalObject(e.payload)
	if err != nil {
		return ""
	}
	state, _ := payload.Get("previous_state")
	text, _ := state.(string)
	return spine.State(text)
}

func (v *verifier) compare(stored *eventRow, want spine.Event) {
	row, err := rowOf(want)
	if err != nil || string(row.envelope()) != string(stored.envelope()) {
		v.find(FindingEventMismatch, fmt.Sprintf("event %d", stored.sequence), "It is not the %s that the run %s stands for.", stored.kind, want.RunID)
	}
}

// keys looks for keys that lead nowhere: those of runs are checked with the run.
func (v *verifier) keys(t tx) error {
	if err := t.row("SELECT count(*) FROM idempotency").Scan(&v.out.Checked.IdempotencyKeys); err != nil {
		return err
	}
	return t.each(`SELECT i.run_id FROM idempotency i LEFT JOIN runs r ON r.run_id = i.run_id
		WHERE r.run_id IS NULL OR r.idempotency_key <> i.idempotency_key`, nil, func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id)
		v.find(FindingIdempotency, id, "An idempotency key leads to a run that does not have it.")
		return err
	})
}

func (v *verifier) connections(t tx) error {
	return t.each("SELECT connection_id, metadata_json, updated_at FROM connections ORDER BY connection_id", nil, func(rows *sql.Rows) error {
		var id, metadata, at string
		if err := rows.Scan(&id, &metadata, &at); err != nil {
			return err
		}
		v.out.Checked.Connections++
		_, err := decodeConnection(id, metadata)
		if err == nil && !spine.IsTimestamp(at) {
			err = errors.New("updated_at is no UTC time")
		}
		if err != nil {
			v.find(FindingConnection, id, "%v", err)
		}
		return nil
	})
}

// events walks the log once and holds each size against the checkpoints over it.
func (v *verifier) events(t tx) error {
	checkpoints := map[int64]bool{}
	sizes := []int64{}
	err := t.each("SELECT tree_size FROM checkpoints ORDER BY tree_size", nil, func(rows *sql.Rows) error {
		var size int64
		err := rows.Scan(&size)
		sizes = append(sizes, size)
		checkpoints[size] = true
		return err
	})
	if err != nil {
		return err
	}
	var f frontier
	at := func(occurred string) error {
		if v.options.Checkpoint != nil && f.size == v.older.size {
			v.againstOlder(f.root())
		}
		if !checkpoints[f.size] {
			return nil
		}
		return v.checkpoint(t, f.size, f.root(), occurred)
	}
	if err := at(""); err != nil {
		return err
	}
	err = t.eachEvent(-1<<62, -1, func(e *eventRow) error {
		v.out.Checked.Events++
		v.row()
		if want := f.size + 1; e.sequence != want {
			v.find(FindingSequence, fmt.Sprintf("event %d", e.sequence), "Event %d should stand here.", want)
		}
		v.event(e)
		f.add(e.leaf())
		return at(e.occurredAt)
	})
	if err != nil {
		return err
	}
	return v.end(t, &f, sizes)
}

func (v *verifier) event(e *eventRow) {
	subject := fmt.Sprintf("event %d", e.sequence)
	value, err := canon.Parse(e.envelope())
	if err == nil {
		_, err = spine.ReadEvent(value)
	}
	var f *spine.Fault
	switch {
	case errors.As(err, &f) && f.Code == spine.PayloadDigestMismatch:
	case err != nil:
		v.find(FindingEvent, subject, "%v", err)
	default:
		if err := e.check(); err != nil && !errors.Is(err, errPayloadDigest) {
			v.find(FindingEvent, subject, "%v", err)
		}
	}
	if canon.DigestBytes([]byte(e.payload)) != e.payloadDigest {
		v.find(FindingPayload, subject, "%v", errPayloadDigest)
	}
}

func (v *verifier) checkpoint(t tx, size int64, root tree.Hash, occurred string) error {
	subject := fmt.Sprintf("checkpoint %d", size)
	var c checkpointRow
	if err := c.scan(t.row("SELECT "+checkpointColumns+" FROM checkpoints WHERE tree_size = ?", size)); err != nil {
		return err
	}
	v.out.Checked.Checkpoints++
	if c.root != tree.Hex(root) {
		v.find(FindingTree, subject, "The events do not make up its root.")
	}
	if !spine.IsTimestamp(c.createdAt) || size > 0 && c.createdAt != occurred {
		v.find(FindingCheckpoint, subject, "created_at is not the time of the event that it ends with.")
	}
	if !c.note.Valid {
		return nil
	}
	stated, err := openNote(c.note.String, v.options.PublicKey)
	switch want := (statement{originPrefix + v.storeID, size, root}); {
	case err != nil:
		v.find(FindingSignature, subject, "%v", err)
	case stated != want:
		v.find(FindingCheckpoint, subject, "Its note speaks of another log, size or root.")
	case v.options.PublicKey != nil:
		v.out.Checked.SignedCheckpoints++
		if v.out.OldestSigned == 0 {
			v.out.OldestSigned = size
		}
	}
	return nil
}

// end checks what is known once the log's size is.
func (v *verifier) end(t tx, f *frontier, sizes []int64) error {
	last, err := t.lastSequence()
	if err != nil {
		return err
	}
	if last != f.size {
		v.find(FindingSequence, "events", "The newest sequence ever given is %d, and %d events are there.", last, f.size)
	}
	for _, size := range sizes {
		if size < 0 || size > f.size {
			v.find(FindingCheckpoint, fmt.Sprintf("checkpoint %d", size), "The log has only %d events.", f.size)
		}
	}
	if !slices.Contains(sizes, f.size) {
		v.find(FindingCheckpoint, "checkpoints", "No checkpoint covers all %d events.", f.size)
	}
	text, err := t.meta(metaFrontier)
	if err != nil {
		return err
	}
	if text != f.String() {
		v.find(FindingMeta, metaFrontier, "It is not that of the events.")
	}
	if v.options.PublicKey != nil && v.out.Checked.SignedCheckpoints == 0 {
		v.find(FindingUnsigned, "checkpoints", "No checkpoint is signed by the given key.")
	}
	if v.options.Checkpoint != nil && (v.older.size > f.size || v.older.size < 0) {
		v.find(FindingInconsistent, "older checkpoint", "It covers %d events; the log has %d.", v.older.size, f.size)
	}
	if v.olderNote != "" && v.options.PublicKey != nil {
		if _, err := openNote(v.olderNote, v.options.PublicKey); err != nil {
			v.find(FindingSignature, "older checkpoint", "%v", err)
		}
	}
	return nil
}

// againstOlder is called where the log has the older checkpoint's size.
func (v *verifier) againstOlder(root tree.Hash) {
	if v.older.origin != originPrefix+v.storeID {
		v.find(FindingInconsistent, "older checkpoint", "It is another store's.")
	}
	if v.older.root != root {
		v.find(FindingInconsistent, "older checkpoint", "The first %d events are not those that it covers.", v.older.size)
	}
}

// parseCheckpoint reads a checkpoint that somebody kept: a signed note, its text
// alone, or the document that the API answers with.
func parseCheckpoint(data []byte) (s statement, signed string, err error) {
	text := string(data)
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		value, err := canon.Parse(data, canon.ObjectRoot())
		if err != nil {
			return s, "", err
		}
		document := value.(*canon.Object)
		if kind, _ := document.Get("kind"); kind != "svc-event-log-checkpoint" {
			return s, "", errors.New("the document is no svc-event-log-checkpoint")
		}
		inner, _ := document.Get("checkpoint")
		o, _ := inner.(*canon.Object)
		origin, _ := o.Get("origin")
		size, _ := o.Get("tree_size")
		hash, _ := o.Get("root_hash")
		number, _ := size.(canon.Int)
		text, _ := hash.(string)
		var whole bool
		s.origin, _ = origin.(string)
		s.size, whole = number.Int64()
		if s.root, err = tree.ParseHex(strings.TrimPrefix(text, "sha256:")); err != nil || !whole || s.origin == "" {
			return s, "", errors.New("the document names no origin, tree_size and root_hash")
		}
		if given, _ := o.Get("signed_note"); given != nil {
			signed, _ = given.(string)
			stated, noteErr := openNote(signed, nil)
			if noteErr != nil || stated != s {
				err = errors.New("the document and its signed note disagree")
			}
		}
		return s, signed, err
	}
	if strings.Contains(text, "\n\n") {
		s, err = openNote(text, nil)
		return s, text, err
	}
	s, err = parseStatement(text)
	return s, "", err
}
