package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// The findings of a verification, worst first: those that make the rest unreadable, those
// that show another log than the one written, those about single rows, and those about
// the constraints that protect rows.
const (
	FindingSQLite        = "sqlite_integrity"        // SQLite's own check, or a damaged page
	FindingForeignFile   = "journal_foreign"         // the file in the place of the journal is none
	FindingVersion       = "store_version"           // user_version is not this build's
	FindingHeader        = "store_header"            // the file's header or length is not one that this build writes
	FindingSchema        = "store_schema"            // tables or indexes are not those of this build
	FindingJournal       = "store_journal"           // part of the store may lie in another file
	FindingInconsistent  = "checkpoint_inconsistent" // the log does not continue an older checkpoint
	FindingSignature     = "checkpoint_signature"    // a note that the key did not sign
	FindingSequence      = "event_sequence"          // sequences are not 1 to n
	FindingEvent         = "event_invalid"           // an envelope that fails its checks
	FindingPayload       = "event_payload_digest"    // a payload with another digest
	FindingTree          = "tree_root_mismatch"      // the events are not those of a checkpoint
	FindingCheckpoint    = "checkpoint_invalid"      // a checkpoint that cannot be of this log
	FindingMissing       = "checkpoint_missing"      // an event without the checkpoint of its act
	FindingUnsigned      = "checkpoint_unsigned"     // a key was given, and events are not below a checkpoint that it signed
	FindingOlder         = "older_runs"              // runs without events that the key did not sign
	FindingEventMissing  = "event_missing"           // a run without the event of its state
	FindingEventMismatch = "event_run_mismatch"      // an event that contradicts its run
	FindingRun           = "persisted_state_corrupt"
	FindingEvidence      = "evidence_integrity_error"
	FindingForeignKey    = "foreign_key"        // a row refers to a row that is not there
	FindingIdempotency   = "idempotency_orphan" // a key that leads to no run
	FindingConnection    = "connection_record_invalid"
	FindingValue         = "value_type"         // a blob or number where a text is expected, or the other way round
	FindingTrigger       = "trigger_missing"    // nothing refuses a change of this table
	FindingMeta          = "store_meta_invalid" // store_id, cursor_key, events_since or the frontier
	FindingJournalLeft   = "journal_left"       // a warning: a writer ended in mid-transaction
	FindingTruncated     = "findings_truncated" // there are more than are listed
)

// findingOrder is the order of a report.
var findingOrder = []string{
	FindingSQLite, FindingForeignFile, FindingVersion, FindingHeader, FindingSchema, FindingJournal,
	FindingInconsistent, FindingSignature, FindingSequence, FindingEvent, FindingPayload, FindingTree, FindingCheckpoint,
	FindingMissing, FindingUnsigned, FindingOlder,
	FindingEventMissing, FindingEventMismatch, FindingRun, FindingEvidence, FindingForeignKey, FindingIdempotency, FindingConnection,
	FindingValue, FindingTrigger, FindingMeta, FindingJournalLeft, FindingTruncated,
}

// maxFindings limits a report on a store in which everything is wrong.
const maxFindings = 1000

// Verification is the outcome of [Verify]. It is OK if no finding is more than a warning.
type Verification struct {
	Kind          string    `json:"kind"`
	SchemaVersion string    `json:"schema_version"`
	OK            bool      `json:"ok"`
	Checked       Checked   `json:"checked"`
	Findings      []Finding `json:"findings"`

	// OldestSigned is the size of the oldest checkpoint with a good signature, 0 if there
	// is none. A log truncated and extended again before it leaves no trace.
	OldestSigned int64 `json:"-"`
}

// Checked counts the records that were checked.
type Checked struct {
	Runs              int64 `json:"runs"`
	ForeignRows       int64 `json:"foreign_rows"`
	EvidenceReports   int64 `json:"evidence_reports"`
	IdempotencyKeys   int64 `json:"idempotency_keys"`
	Connections       int64 `json:"connections"`
	Events            int64 `json:"events"`
	Checkpoints       int64 `json:"checkpoints"`
	SignedCheckpoints int64 `json:"signed_checkpoints"` // that carry a signature: with a key a good one, without one any
	SignedEvents      int64 `json:"signed_events"`      // up to the newest of these
	RunsWithoutEvents int64 `json:"runs_without_events"`
}

// Finding is one thing that is wrong.
type Finding struct {
	Code    string `json:"code"`
	Subject string `json:"subject"` // the row or part of the store
	Detail  string `json:"detail"`
}

// VerifyOptions are the external references that a store is verified against.
type VerifyOptions struct {
	PublicKey  note.Verifier // nil: signatures are not checked
	Checkpoint []byte        // an older checkpoint: a note, or an svc-event-log-checkpoint document
	Wait       time.Duration // for locks; 0: CommandWait
	Progress   func(Checked) // nil, or called every thousand rows with the counts so far
}

// progressRows is the number of rows between two reports of progress.
const progressRows = 1000

// Verify checks all of a store and changes nothing in it. What it finds is no
// error; an error means that the store, or the checkpoint, could not be read.
//
// What no check can show, since nothing that is hashed or signed names it: a connector
// replaced by another valid one, the caller's part of an idempotency key changed in both
// its places, a new cursor key; and the end of a log that was truncated at a signed
// checkpoint: that takes one that was kept elsewhere. Without a key a rebuilt store
// cannot be recognised.
func Verify(ctx context.Context, path string, o VerifyOptions) (Verification, error) {
	if o.Wait == 0 {
		o.Wait = CommandWait
	}
	v := &verifier{options: o}
	var err error
	if o.Checkpoint != nil {
		if v.older, v.olderNote, err = parseCheckpoint(o.Checkpoint); err != nil {
			return Verification{}, brokenFault(err, "The older checkpoint cannot be read.")
		}
	}
	s := &source{path: path, wait: o.Wait}
	defer func() { _ = s.close() }()
	err = s.on(ctx, func(h *handle) error {
		return inTx(ctx, h.db, "BEGIN", func(t tx) error {
			v.begin(h)
			err := v.all(t)
			if code := primaryCode(err); (code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_ERROR) && v.opened {
				v.find(FindingSQLite, "store", "%v", err)
				err = nil
			}
			return err
		})
	})
	if err != nil {
		return Verification{}, err
	}
	v.finish()
	return v.out, nil
}

type verifier struct {
	options   VerifyOptions
	rows      int64 // checked so far, of all kinds
	older     statement
	olderNote string // the signed note that older came in, or ""
	out       Verification
	opened    bool // the file is a database whose first page can be read
	file      *handle
	storeID   string
	since     time.Time

	groups  []*group
	byCause map[cause]*group
	// A consequence of another finding is not reported again.
	badEvents    map[int64]bool // events with a finding of their own
	lostEvents   int64          // the number of events that are missing
	withoutEvent []Finding      // runs without the event of their state
	sinceWrong   bool           // events_since does not follow from the runs
}

// cause groups findings: those with the same code and the same part of the store become
// one.
type cause struct{ code, part string }

// group holds the findings of one cause: the first, and the number of further ones.
type group struct {
	Finding
	more int
	last string // the newest subject
}

// row counts a row that was checked.
func (v *verifier) row() {
	if v.rows++; v.options.Progress != nil && v.rows%progressRows == 0 {
		v.options.Progress(v.out.Checked)
	}
}

// begin starts over: a lock may have interrupted the verification before.
func (v *verifier) begin(h *handle) {
	*v = verifier{options: v.options, older: v.older, olderNote: v.olderNote, file: h,
		byCause: map[cause]*group{}, badEvents: map[int64]bool{}}
	v.out = Verification{Kind: "svc-store-verification", SchemaVersion: spine.SchemaVersion, Findings: []Finding{}}
}

// find records a fault of a subject.
func (v *verifier) find(code, subject, format string, args ...any) {
	v.findIn(subject, code, subject, format, args...)
}

// findIn records a fault of a subject whose cause it shares with others of a part of the
// store: the first of them is reported, and how many there are.
func (v *verifier) findIn(part, code, subject, format string, args ...any) {
	key := cause{code, part}
	if g := v.byCause[key]; g != nil {
		if g.last != subject {
			g.more++
			g.last = subject
		}
		return
	}
	g := &group{Finding: Finding{code, subject, fmt.Sprintf(format, args...)}, last: subject}
	v.byCause[key] = g
	if len(v.groups) <= maxFindings {
		v.groups = append(v.groups, g)
	}
}

// found reports whether there is a finding about a part of the store.
func (v *verifier) found(code, part string) bool { return v.byCause[cause{code, part}] != nil }

// finish writes the report.
func (v *verifier) finish() {
	slices.SortStableFunc(v.groups, func(a, b *group) int {
		return cmp.Compare(slices.Index(findingOrder, a.Code), slices.Index(findingOrder, b.Code))
	})
	v.out.OK = true
	for i, g := range v.groups {
		if i == maxFindings {
			v.out.Findings = append(v.out.Findings, Finding{FindingTruncated, "store",
				fmt.Sprintf("Only the first %d findings are listed.", maxFindings)})
			break
		}
		if g.more > 0 {
			g.Detail += fmt.Sprintf(" So it is with %d more, the last of them %s.", g.more, g.last)
		}
		// Stored text need not be UTF-8, which a document must be.
		v.out.Findings = append(v.out.Findings, Finding{g.Code, toPrintable(g.Subject), toPrintable(g.Detail)})
		v.out.OK = v.out.OK && g.Code == FindingJournalLeft
	}
}

func toPrintable(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// fault turns the fault of a row into a finding and returns other errors.
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
	v.leftovers()
	if err := v.sqlite(t); err != nil {
		return err
	}
	if err := v.header(t); err != nil {
		return err
	}
	if version != Version {
		v.find(FindingVersion, "user_version", "The store has version %d; this build verifies %d.", version, Version)
		return nil
	}
	if usable, err := v.schema(t); err != nil || !usable {
		return err
	}
	for _, part := range []func(tx) error{v.foreignKeys, v.journal, v.values, v.meta, v.events, v.runs, v.olderRuns, v.keys, v.connections, v.eventless} {
		if err := part(t); err != nil {
			return err
		}
	}
	return nil
}
