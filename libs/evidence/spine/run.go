package spine

import (
	"fmt"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
)

// RunKind is the kind of a run projection.
const RunKind = "svc-product-spine-run"

// Fault is why a document of this package was refused: a code of its list, the
// JSON pointer of the place, one sentence.
type Fault = closed.Fault

// The faults of a projection.
const (
	MissingField           = "missing_field"
	UnknownField           = "unknown_field"
	UnsupportedVersion     = "unsupported_version"
	InvalidKind            = "invalid_kind"
	AuthorityViolation     = "authority_violation"
	InvalidType            = "invalid_type"
	InvalidShape           = "invalid_shape"
	InvalidIdentifier      = "invalid_identifier"
	InvalidDigest          = "invalid_digest"
	InvalidState           = "invalid_state"
	InvalidSourceRevision  = "invalid_source_revision"
	InvalidAuthorityMode   = "invalid_authority_mode"
	DuplicateConnector     = "duplicate_connector"
	InvalidAdmission       = "invalid_admission"
	InvalidAttemptState    = "invalid_attempt_state"
	DuplicateAttempt       = "duplicate_attempt"
	InvalidAttemptOrder    = "invalid_attempt_order"
	InvalidRunEvidence     = "invalid_run_evidence"
	InvalidAttemptEvidence = "invalid_attempt_evidence"
	InvalidValue           = "invalid_value"
)

// AuthorityMode names who may do the work of a run.
type AuthorityMode string

// The modes of authority.
const (
	Deterministic      AuthorityMode = "deterministic"
	AgentCandidate     AuthorityMode = "agent_candidate"
	HumanGateThenAgent AuthorityMode = "human_gate_then_agent"
	HumanRequired      AuthorityMode = "human_required"
)

// Run is the projection of one run, in the order of its keys. Pointers are null
// where nil. It is a plain value; Clone before changing one that others hold.
type Run struct {
	SchemaVersion             string    `json:"schema_version"`
	Kind                      string    `json:"kind"`
	RunID                     string    `json:"run_id"`
	RequestDigest             string    `json:"request_digest"`
	ProjectID                 string    `json:"project_id"`
	WorkUnit                  Revision  `json:"work_unit"`
	Routing                   Routing   `json:"routing"`
	State                     State     `json:"state"`
	Attempts                  []Attempt `json:"attempts"`
	EvidenceReportDigest      *string   `json:"evidence_report_digest"`
	HumanDecisionRecordDigest *string   `json:"human_decision_record_digest"`
	Authority                 Authority `json:"authority"`
}

// Revision names one revision of a work unit.
type Revision struct {
	ID             string `json:"id"`
	Version        int64  `json:"version"`
	Digest         string `json:"digest"`
	SourceRevision string `json:"source_revision"`
}

// Routing names the policy and the connectors under which a run may be worked on.
type Routing struct {
	PolicyVersion      string        `json:"policy_version"`
	AuthorityMode      AuthorityMode `json:"authority_mode"`
	AdmittedConnectors []string      `json:"admitted_connectors"`
}

// Authority lists what a run may change outside the store: nothing. A projection
// that claims more is refused.
type Authority struct {
	CanonicalStateWrite bool `json:"canonical_state_write"`
	GitPush             bool `json:"git_push"`
	Merge               bool `json:"merge"`
}

// Attempt is one try of a run.
type Attempt struct {
	AttemptID                  string       `json:"attempt_id"`
	Order                      int64        `json:"order"`
	ConnectorID                string       `json:"connector_id"`
	State                      AttemptState `json:"state"`
	ProviderReference          *string      `json:"provider_reference"`
	CandidateReferenceDigest   *string      `json:"candidate_reference_digest"`
	ResultManifestDigest       *string      `json:"result_manifest_digest"`
	VerificationSemanticDigest *string      `json:"verification_semantic_digest"`
	ErrorCode                  *string      `json:"error_code"`
}

// Value returns the projection as a document.
func (r Run) Value() *canon.Object { return canon.MustFrom(r).(*canon.Object) }

// Clone copies the run with its lists.
func (r Run) Clone() Run {
	r.Attempts = append([]Attempt{}, r.Attempts...)
	r.Routing.AdmittedConnectors = append([]string{}, r.Routing.AdmittedConnectors...)
	return r
}

// MoveError is a move the lifecycle does not have.
type MoveError struct{ From, To State }

func (e *MoveError) Error() string {
	return fmt.Sprintf("a run in state %s cannot become %s", e.From, e.To)
}

// Move returns the run in another state. It fails with a *MoveError where the table
// has no such move, and with a *Fault where the run lacks what the state needs (its
// evidence digest, an admitted connector). The same state again gives the run back.
func (r Run) Move(to State) (Run, error) {
	if !CanMove(r.State, to, r.Routing.AuthorityMode) {
		return Run{}, &MoveError{From: r.State, To: to}
	}
	next := r.Clone()
	next.State = to
	if err := next.Check(); err != nil {
		return Run{}, err
	}
	return next, nil
}
