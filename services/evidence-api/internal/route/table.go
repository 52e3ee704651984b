// Package route is the table of the evidence API's endpoints. The server dispatches by
// it, the OpenAPI and status documents are generated from it, and a test compares the
// reference with it.
package route

import (
	"net/http"

	"github.com/mlp-platform/platform/libs/evidence/store"
	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
	"github.com/mlp-platform/platform/services/evidence-api/internal/query"
)

// Op is one endpoint. A path has one: each is read by GET (and HEAD), or is the one POST.
type Op struct {
	ID      string // operation id
	Method  string // GET or POST
	Path    string // {…} is an id, which may hold "/"
	Summary string
	Query   []string // names that the query may have, sorted
	Open    bool     // needs no token
	Store   bool     // reads the store
	Stream  bool     // answers with an event stream
	Text    string   // media type of an answer that is no document, or ""
	Schema  string   // schema of the document, or "" for the OpenAPI document and text
	Item    string   // of a list: the schema of its items
	Codes   []catalogue.Code
}

// Allow returns the Allow header of the endpoint.
func (o *Op) Allow() string {
	switch {
	case o.Method == http.MethodPost:
		return http.MethodPost
	case o.Stream:
		return http.MethodGet
	}
	return http.MethodGet + ", " + http.MethodHead
}

// Takes reports whether the endpoint answers this method.
func (o *Op) Takes(method string) bool {
	return method == o.Method || method == http.MethodHead && o.Method == http.MethodGet && !o.Stream
}

// Prefix starts the path of all versioned endpoints.
const Prefix = "/api/v1/"

// The operation ids.
const (
	Health       = "health"
	Readiness    = "readiness"
	Prometheus   = "prometheus_metrics"
	Status       = "status"
	OpenAPI      = "openapi"
	Metrics      = "metrics"
	Inspect      = "inspect_run_evidence"
	Connections  = "list_connections"
	Connection   = "read_connection"
	Runs         = "list_runs"
	Run          = "read_run"
	RunAttempts  = "read_run_attempts"
	RunEvidence  = "read_run_evidence"
	WorkUnits    = "list_work_units"
	WorkUnit     = "read_work_unit"
	Project      = "read_project"
	Events       = "list_events"
	StreamEvents = "stream_events"
	Checkpoint   = "read_event_checkpoint"
	Proof        = "read_event_proof"
)

// The query names.
const (
	Limit      = "limit"
	Cursor     = "cursor"
	State      = "state"
	ProjectID  = "project_id"
	RunID      = "run_id"
	WorkUnitID = "work_unit_id"
	EventType  = "event_type"
	Since      = "since"
)

var eventFilters = []string{EventType, ProjectID, RunID, WorkUnitID}

// EventFilter returns the filter of events that the query gives.
func EventFilter(v query.Values) store.EventFilter {
	return store.EventFilter{ProjectID: v.Get(ProjectID), RunID: v.Get(RunID), WorkUnitID: v.Get(WorkUnitID), EventType: v.Get(EventType)}
}

var table = []Op{
	{ID: Health, Path: "/healthz", Open: true, Text: "text/plain", Summary: "Whether the process answers"},
	{ID: Readiness, Path: "/readyz", Open: true, Schema: "readiness", Summary: "Whether the server takes requests; the store is not touched"},
	{ID: Prometheus, Path: "/metrics", Text: "text/plain", Summary: "The counters as Prometheus text"},
	{ID: Status, Path: Prefix + "status", Schema: "control-tower-status", Summary: "What the server can do and within which limits"},
	{ID: OpenAPI, Path: Prefix + "openapi.json", Summary: "This document"},
	{ID: Metrics, Path: Prefix + "metrics", Schema: "api-operational-metrics", Summary: "The counters of this process"},
	{ID: Inspect, Method: http.MethodPost, Path: Prefix + "run-evidence/inspect", Schema: "control-tower-inspection-response",
		Summary: "The inspection snapshot of a report; nothing is stored",
		Codes: []catalogue.Code{catalogue.UnsupportedTransferEncoding, catalogue.UnsupportedMediaType, catalogue.LengthRequired,
			catalogue.InvalidContentLength, catalogue.PayloadTooLarge, catalogue.RequestTimeout, catalogue.InvalidUTF8, catalogue.InvalidRunEvidence}},
	{ID: Connections, Path: Prefix + "connections", Query: []string{Cursor, Limit}, Store: true, Schema: "list", Item: "control-tower-connection-response#connection",
		Summary: "Connectors by id", Codes: []catalogue.Code{catalogue.InvalidLimit, catalogue.InvalidCursor, catalogue.ConnectionRecordInvalid}},
	{ID: Connection, Path: Prefix + "connections/{connection_id}", Store: true, Schema: "control-tower-connection-response",
		Summary: "One connector; nothing is probed, no secret is read", Codes: []catalogue.Code{catalogue.ConnectionNotFound, catalogue.ConnectionRecordInvalid}},
	{ID: Runs, Path: Prefix + "runs", Query: []string{Cursor, Limit, ProjectID, State}, Store: true, Schema: "list", Item: "product-spine-run",
		Summary: "Runs by id", Codes: []catalogue.Code{catalogue.InvalidLimit, catalogue.InvalidCursor, catalogue.InvalidState, catalogue.InvalidFilter, catalogue.PersistedStateCorrupt}},
	{ID: Run, Path: Prefix + "runs/{run_id}", Store: true, Schema: "control-tower-run-response",
		Summary: "One run", Codes: runCodes()},
	{ID: RunAttempts, Path: Prefix + "runs/{run_id}/attempts", Store: true, Schema: "control-tower-run-attempts-response",
		Summary: "The attempts of a run", Codes: runCodes()},
	{ID: RunEvidence, Path: Prefix + "runs/{run_id}/evidence", Store: true, Schema: "control-tower-run-evidence-response",
		Summary: "The retained report of a run, checked against the digest the run names",
		Codes:   runCodes(catalogue.EvidenceNotAvailable, catalogue.EvidenceIntegrityError)},
	{ID: WorkUnits, Path: Prefix + "work-units", Query: []string{Cursor, Limit, ProjectID}, Store: true, Schema: "list", Item: "control-tower-work-unit-response#work_unit_summary",
		Summary: "Work units by id; `project_id` restricts the counts", Codes: []catalogue.Code{catalogue.InvalidLimit, catalogue.InvalidCursor, catalogue.InvalidFilter, catalogue.PersistedStateCorrupt}},
	{ID: WorkUnit, Path: Prefix + "work-units/{work_unit_id}", Store: true, Schema: "control-tower-work-unit-response",
		Summary: "What the runs of a work unit add up to", Codes: []catalogue.Code{catalogue.WorkUnitNotFound, catalogue.PersistedStateCorrupt}},
	{ID: Project, Path: Prefix + "projects/{project_id}", Store: true, Schema: "control-tower-project-response",
		Summary: "What the runs of a project add up to", Codes: []catalogue.Code{catalogue.ProjectNotFound, catalogue.PersistedStateCorrupt}},
	{ID: Events, Path: Prefix + "events", Query: append([]string{Cursor}, insertAt(eventFilters, 1, Limit)...), Store: true, Schema: "list", Item: "event",
		Summary: "Events by sequence", Codes: []catalogue.Code{catalogue.InvalidLimit, catalogue.InvalidCursor, catalogue.InvalidFilter, catalogue.InvalidEventType}},
	{ID: StreamEvents, Path: Prefix + "events/stream", Query: eventFilters, Store: true, Stream: true, Text: "text/event-stream",
		Summary: "Events as they come, after those above Last-Event-ID",
		Codes:   []catalogue.Code{catalogue.InvalidFilter, catalogue.InvalidEventType, catalogue.InvalidLastEventID, catalogue.TooManyStreams}},
	{ID: Checkpoint, Path: Prefix + "events/checkpoint", Query: []string{Since}, Store: true, Schema: "event-log-checkpoint",
		Summary: "Size and root of the event log, and proof that the log of `since` events is its beginning", Codes: []catalogue.Code{catalogue.InvalidTreeSize}},
	{ID: Proof, Path: Prefix + "events/{event_id}/proof", Store: true, Schema: "event-inclusion-proof",
		Summary: "Proof that the event is in the log", Codes: []catalogue.Code{catalogue.EventNotFound}},
}

func insertAt(list []string, at int, s string) []string {
	out := append([]string{}, list[:at]...)
	return append(append(out, s), list[at:]...)
}

func runCodes(more ...catalogue.Code) []catalogue.Code {
	return append([]catalogue.Code{catalogue.RunNotFound, catalogue.NotProductSpineRun, catalogue.PersistedStateCorrupt}, more...)
}

var byID = map[string]*Op{}

func init() {
	for i := range table {
		o := &table[i]
		if o.Method == "" {
			o.Method = http.MethodGet
		}
		byID[o.ID] = o
	}
}

// Table lists the endpoints.
func Table() []*Op {
	out := make([]*Op, len(table))
	for i := range table {
		out[i] = &table[i]
	}
	return out
}

// AllCodes lists every code that the endpoint can answer with, the common ones first.
func (o *Op) AllCodes() []catalogue.Code {
	if o.ID == Health {
		return []catalogue.Code{catalogue.InvalidHost, catalogue.MethodNotAllowed, catalogue.PreflightNotSupported,
			catalogue.UnexpectedQueryParameters, catalogue.InternalError}
	}
	codes := []catalogue.Code{catalogue.Overloaded, catalogue.ShuttingDown, catalogue.InvalidHost, catalogue.PreflightNotSupported}
	if !o.Open {
		codes = append(codes, catalogue.InvalidSessionToken)
	}
	codes = append(codes, catalogue.MethodNotAllowed, catalogue.UnexpectedQueryParameters)
	if o.Negotiates() {
		codes = append(codes, catalogue.NotAcceptable)
	}
	// An id may be empty, or end in a word that names a sub-resource which does not exist.
	if o.hasID() {
		codes = append(codes, catalogue.NotFound)
	}
	if o.Store {
		codes = append(codes, catalogue.StoreNotConfigured, catalogue.StoreError)
	}
	return append(append(codes, o.Codes...), catalogue.InternalError)
}
