// Package report is the evidence report of a run: the closed validator that every
// report passes before it is kept or shown, and the inspection snapshot made from
// it. Neither reads a clock or a file: the same report gives the same bytes.
package report

import (
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
)

// Kind, version and the constants of a report.
const (
	Kind          = "svc-run-evidence-report"
	SchemaVersion = "0.1"
	SourceRunKind = "svc-two-attempt-run"

	// Pending is the status of a human decision that a report can show.
	Pending = "pending"
	// IntegrationAuthority is who decides what happens to a candidate.
	IntegrationAuthority = "external_human_or_governance"
)

// Fault is why a report was refused: one of the reasons below, the JSON pointer of
// the place, one sentence.
type Fault = closed.Fault

// The reasons. The first three come from the parser.
const (
	InvalidJSON      = string(canon.InvalidJSON)
	DuplicateKey     = string(canon.DuplicateKey)
	TooDeep          = string(canon.TooDeep)
	NotAnObject      = string(canon.NotAnObject)
	MissingField     = "missing_field"
	UnknownField     = "unknown_field"
	InvalidType      = "invalid_type"
	InvalidValue     = "invalid_value"
	DuplicateAttempt = "duplicate_attempt"
	StateMismatch    = "state_mismatch"
	SummaryMismatch  = "summary_mismatch"
)

// The states of an attempt. The last three are also states of its evidence.
const (
	Verified            = "verified"
	WorkerError         = "worker_error"
	ResultManifestError = "result_manifest_error"
	VerificationError   = "verification_error"
)

// The verdicts on the candidate in the evidence of a verified attempt.
const (
	Supported    = "supported"
	Rejected     = "rejected"
	Inconclusive = "inconclusive"
)

// What a verifier recommends.
const (
	AcceptCandidate      = "accept_candidate"
	RejectCandidate      = "reject_candidate"
	Escalate             = "escalate"
	InsufficientEvidence = "insufficient_evidence"
)

// Report is a report in the order of its keys.
type Report struct {
	SchemaVersion        string    `json:"schema_version"`
	Kind                 string    `json:"kind"`
	RunID                string    `json:"run_id"`
	SourceRunKind        string    `json:"source_run_kind"`
	SourceRunDigest      string    `json:"source_run_digest"`
	SourceConfigDigest   string    `json:"source_config_digest"`
	OrchestratorVersion  string    `json:"orchestrator_version"`
	WorkUnit             WorkUnit  `json:"work_unit"`
	VerifierPolicyDigest string    `json:"verifier_policy_digest"`
	Attempts             []Attempt `json:"attempts"` // in the report's own order
	Summary              Summary   `json:"summary"`
	Warnings             []string  `json:"warnings"`
	HumanDecision        Decision  `json:"human_decision"`
	Authority            Authority `json:"authority"`
}

// WorkUnit names the revision of the work unit that was worked on.
type WorkUnit struct {
	ID      string `json:"id"`
	Version int64  `json:"version"`
	Digest  string `json:"digest"`
}

// Attempt holds the claim of one attempt and its verifier's findings.
type Attempt struct {
	AttemptID     string    `json:"attempt_id"`
	Order         int64     `json:"order"`
	WorkerAdapter string    `json:"worker_adapter"`
	State         string    `json:"state"`
	EvidenceState string    `json:"evidence_state"`
	Worker        *Worker   `json:"worker"`
	Verifier      *Verifier `json:"verifier"`
	Error         *string   `json:"error"`
}

// Worker is the claim of the worker.
type Worker struct {
	ID                   string `json:"id"`
	Status               string `json:"status"`
	ResultManifestID     string `json:"result_manifest_id"`
	ResultManifestDigest string `json:"result_manifest_digest"`
}

// Verifier is the finding of the verifier.
type Verifier struct {
	ID                         string  `json:"id"`
	Status                     string  `json:"status"`
	Recommendation             string  `json:"recommendation"`
	VerificationSemanticDigest string  `json:"verification_semantic_digest"`
	Checks                     []Check `json:"checks"`
}

// Check is one check of a verifier.
type Check struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Required bool   `json:"required"`
}

// Passed is the status of a check that passed.
const Passed = "passed"

// Summary counts the attempts by the verdict of their evidence.
type Summary struct {
	AttemptCount             int64 `json:"attempt_count"`
	Supported                int64 `json:"supported"`
	Rejected                 int64 `json:"rejected"`
	Inconclusive             int64 `json:"inconclusive"`
	ControlErrors            int64 `json:"control_errors"`
	VerificationDisagreement bool  `json:"verification_disagreement"`
	ControlFailurePresent    bool  `json:"control_failure_present"`
}

// Decision is the human decision as a report shows it: none yet.
type Decision struct {
	Status               string  `json:"status"`
	SelectedAttemptID    *string `json:"selected_attempt_id"`
	IntegrationAuthority string  `json:"integration_authority"`
}

// Authority lists what a run may do without approval: nothing.
type Authority struct {
	CanonicalStateWrite         bool `json:"canonical_state_write"`
	GitPush                     bool `json:"git_push"`
	Merge                       bool `json:"merge"`
	AutomaticCandidateSelection bool `json:"automatic_candidate_selection"`
}

// Value returns the report as a document.
func (r *Report) Value() *canon.Object { return canon.MustFrom(r).(*canon.Object) }

// Digest is the evidence_report_digest: of the whole report, whatever its spelling.
func (r *Report) Digest() string { return canon.Digest(r) }

// Check checks a report that was built in the program against every rule.
func (r *Report) Check() error {
	v, err := canon.From(r)
	if err != nil {
		return &Fault{Code: InvalidType, Detail: err.Error()}
	}
	_, err = Read(v)
	return err
}

// Summarize counts attempts as a report's summary must.
func Summarize(attempts []Attempt) Summary {
	s := Summary{AttemptCount: int64(len(attempts))}
	recommendations := map[string]bool{}
	for _, a := range attempts {
		switch a.EvidenceState {
		case Supported:
			s.Supported++
		case Rejected:
			s.Rejected++
		case Inconclusive:
			s.Inconclusive++
		default:
			s.ControlErrors++
		}
		if a.Verifier != nil {
			recommendations[a.Verifier.Recommendation] = true
		}
	}
	s.VerificationDisagreement = len(recommendations) > 1
	s.ControlFailurePresent = s.ControlErrors > 0
	return s
}
