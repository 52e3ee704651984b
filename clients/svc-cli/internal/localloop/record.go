package localloop

import (
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/control"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/verification"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/workunit"
	"github.com/mlp-platform/platform/libs/evidence/report"
)

// Version of a run record and of the orchestrator that writes it.
const (
	RecordVersion       = "0.1"
	OrchestratorVersion = "0.2"
)

// The states of a run.
const (
	Completed             = "completed"
	CompletedWithFailures = "completed_with_failures"
)

// Record holds the observations of a run, in the order of its keys. It holds no time:
// two runs over the same files have the same.
type Record struct {
	SchemaVersion        string           `json:"schema_version"`
	Kind                 string           `json:"kind"`
	RunID                string           `json:"run_id"`
	OrchestratorVersion  string           `json:"orchestrator_version"`
	ConfigDigest         string           `json:"config_digest"`
	WorkUnit             workunit.Ref     `json:"work_unit"`
	VerifierPolicyDigest string           `json:"verifier_policy_digest"`
	VerificationControl  ControlRecord    `json:"verification_control"`
	AttemptOrder         []string         `json:"attempt_order"`
	Attempts             []AttemptRecord  `json:"attempts"`
	Summary              RecordSummary    `json:"summary"`
	RunState             string           `json:"run_state"`
	Authority            report.Authority `json:"authority"`
}

// ControlRecord names the policy or plan of the run.
type ControlRecord struct {
	Kind          string          `json:"kind"`
	ID            string          `json:"id"`
	SchemaVersion string          `json:"schema_version"`
	Backend       control.Backend `json:"backend"`
	Digest        string          `json:"digest"`
}

// AttemptRecord is the progress of one attempt.
type AttemptRecord struct {
	AttemptID      string              `json:"attempt_id"`
	Order          int64               `json:"order"`
	WorkerAdapter  string              `json:"worker_adapter"`
	State          string              `json:"state"`
	Error          *string             `json:"error"`
	CandidateRoot  string              `json:"candidate_root,omitempty"`
	ResultManifest *ManifestRecord     `json:"result_manifest"`
	Verification   *VerificationRecord `json:"verification"`
}

// ManifestRecord is the worker's claim.
type ManifestRecord struct {
	ID           string `json:"id"`
	Attempt      int64  `json:"attempt"`
	WorkerID     string `json:"worker_id"`
	WorkerStatus string `json:"worker_status"`
	Digest       string `json:"digest"`
}

// VerificationRecord is the verifier's finding.
type VerificationRecord struct {
	ID                   string               `json:"id"`
	VerifierID           string               `json:"verifier_id"`
	Status               string               `json:"status"`
	Recommendation       string               `json:"recommendation"`
	Checks               []verification.Check `json:"checks"`
	SemanticDigest       string               `json:"semantic_digest"`
	WorkUnitDigest       string               `json:"work_unit_digest"`
	ResultManifestDigest string               `json:"result_manifest_digest"`
}

// RecordSummary counts.
type RecordSummary struct {
	AttemptCount        int64 `json:"attempt_count"`
	ControlFailures     int64 `json:"control_failures"`
	CandidatesSupported int64 `json:"candidates_supported"`
	CandidatesRejected  int64 `json:"candidates_rejected"`
}

func (s *Source) record(unit *workunit.Unit, ctl *control.Control, attempts []attempt) *Record {
	r := &Record{
		SchemaVersion: RecordVersion, Kind: report.SourceRunKind, RunID: s.Config.RunID, OrchestratorVersion: OrchestratorVersion,
		ConfigDigest: s.Config.Digest, WorkUnit: unit.Ref(), VerifierPolicyDigest: ctl.Digest,
		VerificationControl: ControlRecord{Kind: ctl.Kind, ID: ctl.ID, SchemaVersion: ctl.SchemaVersion, Backend: ctl.Backend, Digest: ctl.Digest},
		AttemptOrder:        []string{}, Attempts: []AttemptRecord{}, RunState: Completed,
	}
	r.Summary.AttemptCount = int64(len(attempts))
	for i, a := range attempts {
		r.AttemptOrder = append(r.AttemptOrder, a.config.ID)
		r.Attempts = append(r.Attempts, a.record(i+1))
		switch {
		case a.result == nil:
			r.Summary.ControlFailures++
			r.RunState = CompletedWithFailures
		case a.result.DecisionSupport.Recommendation == report.AcceptCandidate:
			r.Summary.CandidatesSupported++
		case a.result.DecisionSupport.Recommendation == report.RejectCandidate:
			r.Summary.CandidatesRejected++
		}
	}
	return r
}

func (a *attempt) record(order int) AttemptRecord {
	out := AttemptRecord{AttemptID: a.config.ID, Order: int64(order), WorkerAdapter: a.config.Adapter, State: a.state, Error: a.problem, CandidateRoot: a.config.CandidateRoot}
	if m := a.manifest; m != nil {
		out.ResultManifest = &ManifestRecord{ID: m.ID, Attempt: m.Attempt, WorkerID: m.WorkerID, WorkerStatus: m.Status, Digest: m.Digest}
	}
	if v := a.result; v != nil {
		out.Verification = &VerificationRecord{
			ID: v.ID, VerifierID: v.Verifier.ID, Status: v.Status, Recommendation: v.DecisionSupport.Recommendation, Checks: v.Checks,
			SemanticDigest: v.SemanticDigest(), WorkUnitDigest: v.Provenance.WorkUnitDigest, ResultManifestDigest: v.Provenance.ResultManifestDigest,
		}
	}
	return out
}
