package report

import (
	"fmt"
	"slices"

	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// SnapshotKind is the kind of an inspection snapshot.
const SnapshotKind = "svc-control-tower-snapshot"

// Snapshot is the result of inspecting a report. It is a function of the report
// alone: no clock, no configuration, no store.
type Snapshot struct {
	APIVersion          string          `json:"api_version"`
	SchemaVersion       string          `json:"schema_version"`
	Kind                string          `json:"kind"`
	Source              Source          `json:"source"`
	WorkUnit            WorkUnit        `json:"work_unit"`
	Summary             Summary         `json:"summary"`
	Attention           []Attention     `json:"attention"`
	Attempts            []AttemptView   `json:"attempts"` // by order
	Provenance          Provenance      `json:"provenance"`
	Timeline            []TimelineEntry `json:"timeline"`
	Warnings            []string        `json:"warnings"`
	HumanDecision       Decision        `json:"human_decision"`
	Authority           Authority       `json:"authority"`
	InterpretationRules []string        `json:"interpretation_rules"`
}

// Source names the report that was inspected.
type Source struct {
	Kind                 string `json:"kind"`
	SchemaVersion        string `json:"schema_version"`
	EvidenceReportDigest string `json:"evidence_report_digest"`
	RunID                string `json:"run_id"`
	SourceRunDigest      string `json:"source_run_digest"`
	SourceConfigDigest   string `json:"source_config_digest"`
	VerifierPolicyDigest string `json:"verifier_policy_digest"`
}

// Attention is something a reader must not overlook.
type Attention struct {
	Severity string `json:"severity"` // high, medium or action
	Code     string `json:"code"`
	Title    string `json:"title"`
	Why      string `json:"why"`
}

// The codes of attention, in their order.
const (
	IdentityOverlap       = "worker_verifier_identity_overlap"
	Disagreement          = "verification_disagreement"
	ControlFailurePresent = "control_failure_present"
	RejectedAttempts      = "rejected_attempts"
	HumanDecisionPending  = "human_decision_pending"
)

// AttemptView is an attempt with the worker's claim apart from the verifier's
// evidence.
type AttemptView struct {
	AttemptID     string    `json:"attempt_id"`
	Order         int64     `json:"order"`
	State         string    `json:"state"`
	EvidenceState string    `json:"evidence_state"`
	WorkerAdapter string    `json:"worker_adapter"`
	Claim         *Claim    `json:"claim"`
	Evidence      *Evidence `json:"evidence"`
	Error         *string   `json:"error"`
}

// Claim is a worker's claim about its work.
type Claim struct {
	WorkerID             string `json:"worker_id"`
	WorkerStatus         string `json:"worker_status"`
	ResultManifestID     string `json:"result_manifest_id"`
	ResultManifestDigest string `json:"result_manifest_digest"`
}

// Evidence holds a verifier's findings.
type Evidence struct {
	VerifierID         string  `json:"verifier_id"`
	VerifierStatus     string  `json:"verifier_status"`
	Recommendation     string  `json:"recommendation"`
	VerificationDigest string  `json:"verification_digest"`
	Checks             []Check `json:"checks"`
}

// Provenance names the basis of each statement.
type Provenance struct {
	WorkUnit  WorkUnit            `json:"work_unit"`
	Run       ProvenanceRun       `json:"run"`
	Attempts  []ProvenanceAttempt `json:"attempts"` // by order
	Authority ProvenanceAuthority `json:"authority"`
}

// ProvenanceRun names the sources of the run.
type ProvenanceRun struct {
	RunID                string `json:"run_id"`
	SourceRunDigest      string `json:"source_run_digest"`
	SourceConfigDigest   string `json:"source_config_digest"`
	VerifierPolicyDigest string `json:"verifier_policy_digest"`
	OrchestratorVersion  string `json:"orchestrator_version"`
}

// ProvenanceAttempt names the documents behind an attempt.
type ProvenanceAttempt struct {
	AttemptID      string                  `json:"attempt_id"`
	Order          int64                   `json:"order"`
	WorkerAdapter  string                  `json:"worker_adapter"`
	ResultManifest *ManifestRef            `json:"result_manifest"`
	Verification   *ProvenanceVerification `json:"verification"`
	EvidenceState  string                  `json:"evidence_state"`
	Error          *string                 `json:"error"`
}

// ManifestRef names a result manifest.
type ManifestRef struct {
	ID     string `json:"id"`
	Digest string `json:"digest"`
}

// ProvenanceVerification names a verification and what its ids can show.
type ProvenanceVerification struct {
	VerifierID                 string        `json:"verifier_id"`
	VerifierStatus             string        `json:"verifier_status"`
	Recommendation             string        `json:"recommendation"`
	VerificationSemanticDigest string        `json:"verification_semantic_digest"`
	RequiredChecks             []CheckStatus `json:"required_checks"`
	IdentityDistinctFromWorker bool          `json:"identity_distinct_from_worker"`
	IndependenceClaim          string        `json:"independence_claim"`
}

// CheckStatus is the outcome of one required check.
type CheckStatus struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

// ProvenanceAuthority names who may act on all this.
type ProvenanceAuthority struct {
	Authority
	HumanDecisionStatus  string `json:"human_decision_status"`
	IntegrationAuthority string `json:"integration_authority"`
}

// Inspect makes the snapshot of a report that Parse, Read or Check passed.
func Inspect(r *Report) *Snapshot {
	s := &Snapshot{
		APIVersion: "v1", SchemaVersion: SchemaVersion, Kind: SnapshotKind,
		Source: Source{
			Kind: Kind, SchemaVersion: r.SchemaVersion, EvidenceReportDigest: r.Digest(), RunID: r.RunID,
			SourceRunDigest: r.SourceRunDigest, SourceConfigDigest: r.SourceConfigDigest, VerifierPolicyDigest: r.VerifierPolicyDigest,
		},
		WorkUnit: r.WorkUnit, Summary: r.Summary, Attention: listAttention(r),
		Warnings: slices.Clone(r.Warnings), HumanDecision: r.HumanDecision, Authority: r.Authority,
		InterpretationRules: slices.Clone(interpretationRules),
		Provenance: Provenance{
			WorkUnit: r.WorkUnit,
			Run: ProvenanceRun{
				RunID: r.RunID, SourceRunDigest: r.SourceRunDigest, SourceConfigDigest: r.SourceConfigDigest,
				VerifierPolicyDigest: r.VerifierPolicyDigest, OrchestratorVersion: r.OrchestratorVersion,
			},
			Authority: ProvenanceAuthority{
				Authority: r.Authority, HumanDecisionStatus: r.HumanDecision.Status, IntegrationAuthority: r.HumanDecision.IntegrationAuthority,
			},
		},
	}
	for _, a := range r.ByOrder() {
		s.Attempts = append(s.Attempts, viewAttempt(a))
		s.Provenance.Attempts = append(s.Provenance.Attempts, traceAttempt(a))
	}
	s.Timeline = buildTimeline(r)
	return s
}

// Digest is the snapshot_digest.
func (s *Snapshot) Digest() string { return canon.Digest(s) }

func overlapsIDs(a Attempt) bool {
	return a.Worker != nil && a.Verifier != nil && a.Worker.ID == a.Verifier.ID
}

func listAttention(r *Report) []Attention {
	out := []Attention{}
	if slices.ContainsFunc(r.Attempts, overlapsIDs) {
		out = append(out, Attention{"high", IdentityOverlap, titleOverlap, whyOverlap})
	}
	if r.Summary.VerificationDisagreement {
		out = append(out, Attention{"high", Disagreement, titleDisagreement, whyDisagreement})
	}
	if r.Summary.ControlFailurePresent {
		out = append(out, Attention{"high", ControlFailurePresent, titleControlFailure, whyControlFailure})
	}
	if n := r.Summary.Rejected; n > 0 {
		title := titleRejectedOne
		if n > 1 {
			title = fmt.Sprintf(titleRejectedMany, n)
		}
		out = append(out, Attention{"medium", RejectedAttempts, title, whyRejected})
	}
	return append(out, Attention{"action", HumanDecisionPending, titlePending, whyPending})
}

func viewAttempt(a Attempt) AttemptView {
	v := AttemptView{
		AttemptID: a.AttemptID, Order: a.Order, State: a.State, EvidenceState: a.EvidenceState,
		WorkerAdapter: a.WorkerAdapter, Error: a.Error,
	}
	if w := a.Worker; w != nil {
		v.Claim = &Claim{WorkerID: w.ID, WorkerStatus: w.Status, ResultManifestID: w.ResultManifestID, ResultManifestDigest: w.ResultManifestDigest}
	}
	if f := a.Verifier; f != nil {
		v.Evidence = &Evidence{
			VerifierID: f.ID, VerifierStatus: f.Status, Recommendation: f.Recommendation,
			VerificationDigest: f.VerificationSemanticDigest, Checks: slices.Clone(f.Checks),
		}
	}
	return v
}

func traceAttempt(a Attempt) ProvenanceAttempt {
	p := ProvenanceAttempt{
		AttemptID: a.AttemptID, Order: a.Order, WorkerAdapter: a.WorkerAdapter, EvidenceState: a.EvidenceState, Error: a.Error,
	}
	if w := a.Worker; w != nil {
		p.ResultManifest = &ManifestRef{ID: w.ResultManifestID, Digest: w.ResultManifestDigest}
	}
	f := a.Verifier
	if f == nil {
		return p
	}
	p.Verification = &ProvenanceVerification{
		VerifierID: f.ID, VerifierStatus: f.Status, Recommendation: f.Recommendation,
		VerificationSemanticDigest: f.VerificationSemanticDigest, RequiredChecks: []CheckStatus{},
		IdentityDistinctFromWorker: !overlapsIDs(a), IndependenceClaim: independenceDistinct,
	}
	if overlapsIDs(a) {
		p.Verification.IndependenceClaim = independenceOverlap
	}
	for _, c := range f.Checks {
		if c.Required {
			p.Verification.RequiredChecks = append(p.Verification.RequiredChecks, CheckStatus{c.ID, c.Status})
		}
	}
	return p
}
