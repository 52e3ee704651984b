// Package catalogue is every error that the evidence API can answer with: its code,
// status, whether to try again, and the sentence that goes with it. Codes are frozen:
// one may be added, none renamed, none moved to another status.
package catalogue

import (
	"strconv"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/document"
)

// Code is the stable name of an error; clients branch on it.
type Code string

// The codes that any request can return.
const (
	InvalidHost               Code = "invalid_host"
	InvalidSessionToken       Code = "invalid_session_token"
	UnsupportedAPIVersion     Code = "unsupported_api_version"
	NotAcceptable             Code = "not_acceptable"
	UnexpectedQueryParameters Code = "unexpected_query_parameters"
	MethodNotAllowed          Code = "method_not_allowed"
	PreflightNotSupported     Code = "preflight_not_supported"
	NotFound                  Code = "not_found"
	InternalError             Code = "internal_error"
)

// The codes of a report sent for inspection.
const (
	UnsupportedTransferEncoding Code = "unsupported_transfer_encoding"
	UnsupportedMediaType        Code = "unsupported_media_type"
	LengthRequired              Code = "length_required"
	InvalidContentLength        Code = "invalid_content_length"
	PayloadTooLarge             Code = "payload_too_large"
	RequestTimeout              Code = "request_timeout"
	InvalidUTF8                 Code = "invalid_utf8"
	InvalidRunEvidence          Code = "invalid_run_evidence"
)

// The codes of reads from the store.
const (
	StoreNotConfigured      Code = "product_spine_store_not_configured"
	InvalidLimit            Code = "invalid_limit"
	InvalidCursor           Code = "invalid_cursor"
	InvalidState            Code = "invalid_state"
	InvalidEventType        Code = "invalid_event_type"
	InvalidFilter           Code = "invalid_filter"
	InvalidLastEventID      Code = "invalid_last_event_id"
	InvalidTreeSize         Code = "invalid_tree_size"
	RunNotFound             Code = "run_not_found"
	WorkUnitNotFound        Code = "work_unit_not_found"
	ProjectNotFound         Code = "project_not_found"
	ConnectionNotFound      Code = "connection_not_found"
	EventNotFound           Code = "event_not_found"
	EvidenceNotAvailable    Code = "evidence_not_available"
	EvidenceIntegrityError  Code = "evidence_integrity_error"
	StoreError              Code = "store_error"
	PersistedStateCorrupt   Code = "persisted_state_corrupt"
	NotProductSpineRun      Code = "not_product_spine_cli_run"
	ConnectionRecordInvalid Code = "connection_record_invalid"
)

// The codes of a server that has no room. They alone may be tried again.
const (
	Overloaded     Code = "overloaded"
	TooManyStreams Code = "too_many_streams"
	ShuttingDown   Code = "shutting_down"
)

// Entry is one line of the catalogue.
type Entry struct {
	Code      Code
	Status    int
	Retryable bool
	Message   string // what is wrong and what to do, unless the fault has a better text
	When      string // for the reference
}

// Entries is the catalogue in the order in which a request meets it.
var Entries = []Entry{
	{InvalidHost, 403, false, "The Host header must name 127.0.0.1 or localhost, once, with a port from 1 to 65535 or none.", "Host is not a loopback name"},
	{InvalidSessionToken, 403, false, "Send this server's token in the header X-SVC-UI-Token, once and nowhere else.", "token missing, wrong or repeated"},
	{UnsupportedAPIVersion, 404, false, "This server serves the paths under /api/v1/ only.", "path under /api/ but not under /api/v1/"},
	{NotFound, 404, false, "There is no such endpoint; GET /api/v1/openapi.json lists all.", "no such endpoint, or an empty id"},
	{MethodNotAllowed, 405, false, "The endpoint exists, but not for this method; the Allow header names those it takes.", "route exists but not for this method"},
	{PreflightNotSupported, 405, false, "This server answers its own origin only; there is no cross-origin access to ask for.", "OPTIONS on any path"},
	{UnexpectedQueryParameters, 400, false, "The query has a name that the endpoint does not take, or one twice.", "unknown or repeated query name"},
	{NotAcceptable, 406, false, "The Accept header allows none of the media types that the endpoint answers with.", "Accept allows none of the types"},
	{UnsupportedTransferEncoding, 400, false, "Send the body with a Content-Length and without Transfer-Encoding.", "any Transfer-Encoding"},
	{UnsupportedMediaType, 415, false, "Send the report as application/json or application/vnd.svc.control-tower.v1+json.", "Content-Type is neither JSON type"},
	{LengthRequired, 411, false, "Send the length of the body in the header Content-Length.", "no Content-Length"},
	{InvalidContentLength, 400, false, "Content-Length must be plain decimal digits, the same wherever it is repeated.", "Content-Length is not plain decimal digits"},
	{PayloadTooLarge, 413, false, "The body is larger than 2097152 bytes; it was not read.", "declared body above 2 MiB"},
	{RequestTimeout, 408, false, "The body did not arrive whole within the request timeout.", "body short at the deadline, or ended early"},
	{InvalidUTF8, 400, false, "The body is not valid UTF-8.", "body is not UTF-8"},
	{InvalidRunEvidence, 400, false, "The body is not a valid evidence report.", "malformed JSON or not a valid report"},
	{StoreNotConfigured, 503, false, "This server was started without a store; start it with --product-spine-store PATH.", "server started without a store"},
	{InvalidLimit, 400, false, "limit must be an integer from 1 to 200.", "limit outside 1-200"},
	{InvalidCursor, 400, false, "The cursor was not issued by this service for this listing; start again without it.", "cursor of another listing or store, or altered"},
	{InvalidState, 400, false, "state is not a lifecycle state; details.allowed lists them.", "state is not a lifecycle state"},
	{InvalidFilter, 400, false, "A filter must not be blank; leave it out instead.", "project_id, run_id or work_unit_id blank"},
	{InvalidEventType, 400, false, "event_type is not a known type; details.allowed lists them.", "event_type is not a known type"},
	{InvalidLastEventID, 400, false, "Last-Event-ID must be one sequence of 1 to 18 digits, at most the newest.", "malformed, repeated or beyond the newest event"},
	{InvalidTreeSize, 400, false, "since must be a size of the event log, from 1 to its present one.", "since outside 1 to the size of the log"},
	{RunNotFound, 404, false, "The store has no run of this id.", "no stored run with this id"},
	{WorkUnitNotFound, 404, false, "No stored run references this work unit.", "no stored run references the work unit"},
	{ProjectNotFound, 404, false, "No stored run names this project.", "no stored run names the project"},
	{ConnectionNotFound, 404, false, "The store has no connector of this id.", "no stored connector with this id"},
	{EventNotFound, 404, false, "The log has no event of this id.", "no event with this id in the log"},
	{EvidenceNotAvailable, 404, false, "The run retains no evidence report.", "run exists but names no report"},
	{EvidenceIntegrityError, 500, false, "The retained report does not have the digest that its run names; it is not served. Run `svc verify` on the store.", "retained report absent, invalid or of another digest"},
	{StoreError, 500, false, "The store cannot be read.", "store locked, unreadable, corrupt or of another version"},
	{PersistedStateCorrupt, 400, false, "A stored run is inconsistent; details say which and why. Run `svc verify` on the store.", "a stored run fails its checks"},
	{NotProductSpineRun, 400, false, "The row of this id is not a run of this product.", "id names another product's row"},
	{ConnectionRecordInvalid, 500, false, "A stored connector is invalid; details say which and why.", "a stored connector fails its checks"},
	{Overloaded, 503, true, "All request slots are taken; nothing was done. Try again after the time in Retry-After.", "concurrent-request cap reached"},
	{TooManyStreams, 503, true, "All event-stream slots are taken. Try again after the time in Retry-After.", "no free event-stream slot"},
	{ShuttingDown, 503, true, "The server is shutting down. Try again after the time in Retry-After.", "server draining"},
	{InternalError, 500, false, "The server failed; its log holds the cause under this request id.", "a fault of the server"},
}

// RetryAfterSeconds is the Retry-After of retryable codes.
const RetryAfterSeconds = 1

var byCode = func() map[Code]Entry {
	m := map[Code]Entry{}
	for _, e := range Entries {
		m[e.Code] = e
	}
	return m
}()

// Lookup gives the entry of a code.
func Lookup(c Code) (Entry, bool) {
	e, ok := byCode[c]
	return e, ok
}

// Fault is an error on its way to the client.
type Fault struct {
	Code    Code
	Message string        // "": the catalogue's
	Details *canon.Object // nil: none; never secrets
	Allow   string        // the Allow header of a 405
	Cause   error         // for the log
}

// New returns a fault with the catalogue's message. Details are name and value in turn.
func New(c Code, details ...any) *Fault {
	f := &Fault{Code: c}
	for i := 0; i+1 < len(details); i += 2 {
		if f.Details == nil {
			f.Details = &canon.Object{}
		}
		f.Details.Set(details[i].(string), details[i+1])
	}
	return f
}

func (f *Fault) Error() string {
	if f.Cause != nil {
		return string(f.Code) + ": " + f.Cause.Error()
	}
	return string(f.Code)
}

func (f *Fault) Unwrap() error { return f.Cause }

// Entry returns the catalogue's entry of the fault; an unknown code is an internal error.
func (f *Fault) Entry() Entry {
	if e, ok := byCode[f.Code]; ok {
		return e
	}
	return byCode[InternalError]
}

// Envelope returns the document that answers the fault.
func (f *Fault) Envelope() document.Error {
	e := f.Entry()
	message := f.Message
	if message == "" {
		message = e.Message
	}
	details := f.Details
	if e.Retryable {
		details = canon.NewObject(canon.Member{Key: "retry_after_seconds", Value: RetryAfterSeconds})
	}
	return document.NewError(string(e.Code), message, e.Retryable, details)
}

// RetryAfter returns the value of the Retry-After header, or "".
func (f *Fault) RetryAfter() string {
	if f.Entry().Retryable {
		return strconv.Itoa(RetryAfterSeconds)
	}
	return ""
}
