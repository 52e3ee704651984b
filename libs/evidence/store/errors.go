package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mlp-platform/platform/libs/evidence/closed"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// Code identifies an [Error] in the frozen catalogue of faults.
type Code string

// The faults that a store reports. Those of reads are codes of the API's
// catalogue; the last group are those of the writing commands.
const (
	StoreError              Code = "store_error"
	RunNotFound             Code = "run_not_found"
	WorkUnitNotFound        Code = "work_unit_not_found"
	ProjectNotFound         Code = "project_not_found"
	ConnectionNotFound      Code = "connection_not_found"
	EventNotFound           Code = "event_not_found"
	EvidenceNotAvailable    Code = "evidence_not_available"
	EvidenceIntegrityError  Code = "evidence_integrity_error"
	PersistedStateCorrupt   Code = "persisted_state_corrupt"
	NotProductSpineRun      Code = "not_product_spine_cli_run"
	ConnectionRecordInvalid Code = "connection_record_invalid"
	InvalidLimit            Code = "invalid_limit"
	InvalidCursor           Code = "invalid_cursor"
	InvalidState            Code = "invalid_state"
	InvalidEventType        Code = "invalid_event_type"
	InvalidFilter           Code = "invalid_filter"
	InvalidTreeSize         Code = "invalid_tree_size"
	InvalidIdempotencyKey   Code = "invalid_idempotency_key"
	InvalidTimestamp        Code = "invalid_timestamp"
	CreateRequiresProposed  Code = "create_requires_proposed"
	IdempotencyConflict     Code = "idempotency_conflict"
	CancelNotAllowed        Code = "cancel_not_allowed"
	CancelConflict          Code = "cancel_conflict"
	InvalidRunEvidence      Code = "invalid_run_evidence"
	InvalidAttemptEvidence  Code = "invalid_attempt_evidence"
)

// Error is a fault of a read or write, with the code that callers branch on.
type Error struct {
	Code    Code
	Message string // a sentence for the caller; names no stored secret
	ID      string // the row in question, or empty
	Reason  string // the fault of that row, or empty
	Allowed []string
	Err     error // the cause, for the log
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Describe() }

// Describe returns the message and its cause, for callers that show the code beside
// it.
func (e *Error) Describe() string {
	if e.Err == nil {
		return e.Message
	}
	return strings.TrimSuffix(e.Message, ".") + ": " + e.Err.Error()
}

// describeFault describes where and how a document is wrong, without the code, which
// would repeat it in one word.
func describeFault(err error) string {
	var f *closed.Fault
	if !errors.As(err, &f) {
		return err.Error()
	}
	if f.Path == "" {
		return f.Detail
	}
	return fmt.Sprintf("%.200s: %s", f.Path, f.Detail)
}

func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the first [Error] or [spine.Fault] in err's chain, or "".
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	var f *spine.Fault
	if errors.As(err, &f) {
		return Code(f.Code)
	}
	return ""
}

func newFault(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func corruptFault(id, format string, args ...any) *Error {
	reason := fmt.Sprintf(format, args...)
	return &Error{Code: PersistedStateCorrupt, ID: id, Reason: reason,
		Message: fmt.Sprintf("The stored run %s is inconsistent: %s.", id, reason)}
}

func brokenFault(cause error, format string, args ...any) *Error {
	return &Error{Code: StoreError, Message: fmt.Sprintf(format, args...), Err: cause}
}

// storeFault converts an error of accessing the file into an [Error]. A caller who
// went away keeps the context's own error: the store has no fault.
func storeFault(ctx context.Context, err error) error {
	var known *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, fs.ErrNotExist):
		return brokenFault(err, "The store file does not exist.")
	}
	switch primaryCode(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return brokenFault(err, "The store stayed locked by another process.")
	case sqlite3.SQLITE_NOTADB:
		return brokenFault(err, "The store file is not an SQLite database.")
	case sqlite3.SQLITE_CORRUPT:
		return brokenFault(err, "The store file is damaged.")
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY:
		return brokenFault(err, "The store file cannot be opened.")
	}
	return brokenFault(err, "The store cannot be read or written.")
}

// extendedCode is SQLite's extended result code of err, or 0.
func extendedCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

func primaryCode(err error) int { return extendedCode(err) & 0xff }
