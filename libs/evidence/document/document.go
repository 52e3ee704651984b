// Package document is the wire form of the API's answers and the commands' output:
// one struct a kind, written with canon.C1. A command prints the detail, an answer is
// the detail under a [Head].
package document

import (
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/report"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// APIVersion is the version in the URL of the API.
const APIVersion = "v1"

// The kinds of document.
const (
	KindError        = "svc-api-error"
	KindList         = "svc-list"
	KindReadiness    = "svc-readiness"
	KindRun          = "svc-control-tower-run-response"
	KindRunAttempts  = "svc-control-tower-run-attempts-response"
	KindRunEvidence  = "svc-control-tower-run-evidence-response"
	KindInspection   = "svc-control-tower-inspection-response"
	KindWorkUnit     = "svc-control-tower-work-unit-response"
	KindProject      = "svc-control-tower-project-response"
	KindConnection   = "svc-control-tower-connection-response"
	KindCheckpoint   = "svc-event-log-checkpoint"
	KindInclusion    = "svc-event-inclusion-proof"
	ServiceName      = "svc-control-tower"
	ModeLocalReading = "local-read-only"
)

// Head begins every answer about a single object.
type Head struct {
	APIVersion    string `json:"api_version"`
	SchemaVersion string `json:"schema_version"`
	Kind          string `json:"kind"`
	OK            bool   `json:"ok"`
}

func newHead(kind string) Head {
	return Head{APIVersion: APIVersion, SchemaVersion: spine.SchemaVersion, Kind: kind, OK: true}
}

// Error is the envelope of every answer that is no success.
type Error struct {
	Head
	Error ErrorBody `json:"error"`
}

// ErrorBody describes an error. Clients branch on Code.
type ErrorBody struct {
	Code      string        `json:"code"`
	Message   string        `json:"message"`
	Retryable bool          `json:"retryable"`
	Details   *canon.Object `json:"details,omitempty"` // bounded, never secrets
}

// NewError makes the envelope; details may be nil.
func NewError(code, message string, retryable bool, details *canon.Object) Error {
	h := newHead(KindError)
	h.OK = false
	return Error{Head: h, Error: ErrorBody{Code: code, Message: message, Retryable: retryable, Details: details}}
}

// List is one page. Both cursor fields always hold the same value.
type List[T any] struct {
	SchemaVersion string  `json:"schema_version"`
	Kind          string  `json:"kind"`
	Items         []T     `json:"items"`
	NextCursor    *string `json:"next_cursor"`
	Page          Page    `json:"page"`
}

// Page describes the page: its limit and the cursor of the next one.
type Page struct {
	Limit      int     `json:"limit"`
	NextCursor *string `json:"next_cursor"`
}

// NewList makes a page; an empty cursor means that there is no next page.
func NewList[T any](items []T, limit int, cursor string) List[T] {
	var next *string
	if cursor != "" {
		next = &cursor
	}
	return List[T]{SchemaVersion: spine.SchemaVersion, Kind: KindList, Items: items, NextCursor: next, Page: Page{Limit: limit, NextCursor: next}}
}

// Readiness reports that the server answers; it never reads the store.
type Readiness struct {
	APIVersion     string `json:"api_version"`
	SchemaVersion  string `json:"schema_version"`
	Kind           string `json:"kind"`
	Status         string `json:"status"`
	Service        string `json:"service"`
	ServiceVersion string `json:"service_version"`
	Mode           string `json:"mode"`
}

// NewReadiness makes the document of a build.
func NewReadiness(version string) Readiness {
	return Readiness{
		APIVersion: APIVersion, SchemaVersion: spine.SchemaVersion, Kind: KindReadiness, Status: "ready",
		Service: ServiceName, ServiceVersion: version, Mode: ModeLocalReading,
	}
}

// RunDetail is a run and how it came about. The last five are all false on reads.
type RunDetail struct {
	Run                         spine.Run `json:"run"`
	IdempotencyKey              string    `json:"idempotency_key"` // as the caller gave it
	CreateRequestDigest         string    `json:"create_request_digest"`
	Created                     bool      `json:"created"`
	Replayed                    bool      `json:"replayed"`
	ProviderExecutionTerminated bool      `json:"provider_execution_terminated"`
	CandidateAccepted           bool      `json:"candidate_accepted"`
	MergeAuthority              bool      `json:"merge_authority"`
}

// Run is the answer about one run.
type Run struct {
	Head
	RunDetail
}

// RunAttempts is the answer about a run's attempts.
type RunAttempts struct {
	Head
	RunID    string          `json:"run_id"`
	Attempts []spine.Attempt `json:"attempts"`
}

// NewRunAttempts makes the answer.
func NewRunAttempts(r spine.Run) RunAttempts {
	return RunAttempts{Head: newHead(KindRunAttempts), RunID: r.RunID, Attempts: r.Attempts}
}

// EvidenceDetail is a retained report.
type EvidenceDetail struct {
	RunID                string         `json:"run_id"`
	EvidenceReportDigest string         `json:"evidence_report_digest"`
	EvidenceReport       *report.Report `json:"evidence_report"`
}

// RunEvidence is the answer about a run's evidence.
type RunEvidence struct {
	Head
	EvidenceDetail
}

// Inspection is the answer about a report that was brought.
type Inspection struct {
	Head
	SnapshotDigest string           `json:"snapshot_digest"`
	Snapshot       *report.Snapshot `json:"snapshot"`
}

// NewInspection makes the answer.
func NewInspection(r *report.Report) Inspection {
	s := report.Inspect(r)
	return Inspection{Head: newHead(KindInspection), SnapshotDigest: s.Digest(), Snapshot: s}
}

// WorkUnit is the answer about one work unit.
type WorkUnit struct {
	Head
	WorkUnit spine.WorkUnit `json:"work_unit"`
}

// NewWorkUnit makes the answer.
func NewWorkUnit(w spine.WorkUnit) WorkUnit { return WorkUnit{newHead(KindWorkUnit), w} }

// Project is the answer about one project.
type Project struct {
	Head
	Project spine.Project `json:"project"`
}

// NewProject makes the answer.
func NewProject(p spine.Project) Project { return Project{newHead(KindProject), p} }

// Connection is the answer about one connector.
type Connection struct {
	Head
	Connection spine.Connection `json:"connection"`
}

// NewConnection makes the answer.
func NewConnection(c spine.Connection) Connection { return Connection{newHead(KindConnection), c} }

// Checkpoint is the answer about the current end of the event log.
type Checkpoint struct {
	Head
	Checkpoint  CheckpointDetail `json:"checkpoint"`
	Consistency *Consistency     `json:"consistency"`
}

// CheckpointDetail is the log's size and root at a time.
type CheckpointDetail struct {
	Origin     string  `json:"origin"` // svc/ and the store's id
	TreeSize   int64   `json:"tree_size"`
	RootHash   string  `json:"root_hash"` // hex
	CreatedAt  string  `json:"created_at"`
	SignedNote *string `json:"signed_note"`
}

// Consistency proves that the log still holds all it held at an earlier size.
type Consistency struct {
	FromSize int64    `json:"from_size"`
	Path     []string `json:"path"` // hex
}

// NewCheckpoint makes the answer; consistency may be nil.
func NewCheckpoint(c CheckpointDetail, consistency *Consistency) Checkpoint {
	return Checkpoint{Head: newHead(KindCheckpoint), Checkpoint: c, Consistency: consistency}
}

// Inclusion is the answer that proves an event to be in the log.
type Inclusion struct {
	Head
	InclusionDetail
}

// InclusionDetail is the proof of one event under a root.
type InclusionDetail struct {
	EventID       string   `json:"event_id"`
	Sequence      int64    `json:"sequence"`
	LeafHash      string   `json:"leaf_hash"` // hex
	TreeSize      int64    `json:"tree_size"`
	RootHash      string   `json:"root_hash"`      // hex
	InclusionPath []string `json:"inclusion_path"` // hex
}

// NewInclusion makes the answer.
func NewInclusion(d InclusionDetail) Inclusion { return Inclusion{newHead(KindInclusion), d} }
