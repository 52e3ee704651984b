// Package verification is the verification result v0.1: a verifier's observations of a candidate and its
// recommendation.
package verification

import (
	"fmt"
	"strings"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/field"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/manifest"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/shape"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
	"github.com/mlp-platform/platform/libs/evidence/report"
)

// SchemaVersion is the version of a result.
const SchemaVersion = "0.1"

// The states of a check and of a result.
const (
	Passed = report.Passed
	Failed = "failed"
	Error  = "error" // the check could not be done
)

// Result is a verification result in the order of its keys.
type Result struct {
	SchemaVersion    string          `json:"schema_version"`
	ID               string          `json:"id"`
	ResultManifestID string          `json:"result_manifest_id"`
	WorkUnitID       string          `json:"work_unit_id"`
	WorkUnitVersion  int64           `json:"work_unit_version"`
	Attempt          int64           `json:"attempt"`
	Verifier         Verifier        `json:"verifier"`
	Independence     Independence    `json:"independence"`
	Status           string          `json:"status"`
	StartedAt        string          `json:"started_at"`
	FinishedAt       string          `json:"finished_at"`
	Checks           []Check         `json:"checks"`
	Evidence         []Evidence      `json:"evidence"`
	Findings         []Finding       `json:"findings"`
	Metrics          Metrics         `json:"metrics"`
	Resources        Resources       `json:"resources"`
	Provenance       Provenance      `json:"provenance"`
	DecisionSupport  DecisionSupport `json:"decision_support"`
}

// Verifier is who verified.
type Verifier struct {
	ID      string `json:"id"`
	Adapter string `json:"adapter"`
	Version string `json:"version"`
}

// Independence describes the distance between verifier and worker, as far as known; null means unknown.
type Independence struct {
	IndependentFromWorker bool   `json:"independent_from_worker"`
	WorkerIDObserved      string `json:"worker_id_observed"`
	SharedModelFamily     *bool  `json:"shared_model_family"`
	SharedRuntime         *bool  `json:"shared_runtime"`
}

// Check is one check and the evidence it rests on.
type Check struct {
	ID          string   `json:"id"`
	Status      string   `json:"status"`
	Required    bool     `json:"required"`
	EvidenceIDs []string `json:"evidence_ids"`
}

// Evidence is one observation, by its digest.
type Evidence struct {
	ID     string `json:"id"`
	Digest string `json:"digest"`
}

// Finding is one sentence about a check's observation.
type Finding struct {
	CheckID string `json:"check_id"`
	Message string `json:"message"`
}

// Metrics count the checks.
type Metrics struct {
	ChecksPassed  int64 `json:"checks_passed"`
	ChecksFailed  int64 `json:"checks_failed"`
	ChecksErrored int64 `json:"checks_errored"`
}

// Resources are those the verification used.
type Resources struct {
	WallSeconds float64 `json:"wall_seconds"`
}

// Provenance binds the result to its subject.
type Provenance struct {
	ResultManifestDigest string      `json:"result_manifest_digest"`
	WorkUnitDigest       string      `json:"work_unit_digest"`
	SourceRevision       string      `json:"source_revision"`
	Environment          Environment `json:"environment"`
	VerifierConfigDigest string      `json:"verifier_config_digest,omitempty"`
}

// Environment is the environment in which the verifier ran.
type Environment struct {
	Architecture    string `json:"architecture"`
	OperatingSystem string `json:"operating_system"`
	Runtime         string `json:"runtime"`
}

// DecisionSupport is advice to the person who decides.
type DecisionSupport struct {
	Recommendation string  `json:"recommendation"`
	Confidence     float64 `json:"confidence"` // 0 to 1, of the recommendation
	Rationale      string  `json:"rationale"`
}

// SemanticDigest is the digest of the verifier's input and findings, without when and where: two runs over the same
// candidate have the same.
func (r *Result) SemanticDigest() string {
	checks, evidence := canon.Array{}, canon.Array{}
	for _, c := range r.Checks {
		checks = append(checks, canon.Array{c.ID, c.Status, canon.MustFrom(c.EvidenceIDs)})
	}
	for _, e := range r.Evidence {
		evidence = append(evidence, canon.Array{e.ID, e.Digest})
	}
	return canon.Digest(canon.NewObject(
		canon.Member{Key: "status", Value: r.Status},
		canon.Member{Key: "checks", Value: checks},
		canon.Member{Key: "evidence", Value: evidence},
		canon.Member{Key: "recommendation", Value: r.DecisionSupport.Recommendation},
	))
}

// Check validates a result; a fault is a *closed.Fault.
func (r *Result) Check() error {
	v, err := canon.From(r)
	if err != nil {
		return &closed.Fault{Code: field.InvalidType, Detail: err.Error()}
	}
	_, err = Read(v)
	return err
}

var schema = shape.New("verification-result", "", field.Codes)

// Read checks a parsed result: its shape, and that status, recommendation and counts follow from the checks.
func Read(v canon.Value) (*Result, error) {
	r := &Result{}
	if err := schema.Decode(v, r); err != nil {
		return nil, err
	}
	r.Provenance.SourceRevision = strings.ToLower(r.Provenance.SourceRevision)
	rd := field.NewReader()
	manifest.CheckPeriod(rd, r.StartedAt, r.FinishedAt)
	evidence, checks := map[string]bool{}, map[string]bool{}
	for i, e := range r.Evidence {
		field.Once(rd, evidence, e.ID, canon.Element("/evidence", i)+"/id")
	}
	for i, c := range r.Checks {
		path := canon.Element("/checks", i)
		field.Once(rd, checks, c.ID, path+"/id")
		for j, id := range c.EvidenceIDs {
			if !evidence[id] {
				rd.Fail(field.InvalidValue, canon.Element(path+"/evidence_ids", j), "no evidence has this id")
			}
		}
	}
	for i, f := range r.Findings {
		if !checks[f.CheckID] {
			rd.Fail(field.InvalidValue, canon.Element("/findings", i)+"/check_id", "no check has this id")
		}
	}
	if status := Overall(r.Checks); r.Status != status {
		rd.Fail(field.InvalidValue, "/status", "the checks make it %s", status)
	}
	if r.Metrics != Count(r.Checks) {
		rd.Fail(field.InvalidValue, "/metrics", "the checks say otherwise")
	}
	if f := rd.Fault(); f != nil {
		return nil, f
	}
	return r, nil
}

// Overall is the status that checks make: a check that failed outweighs one that could
// not be done.
func Overall(checks []Check) string {
	status := Passed
	for _, c := range checks {
		switch {
		case c.Status == Failed:
			return Failed
		case c.Status == Error:
			status = Error
		}
	}
	return status
}

// Count counts checks by their status.
func Count(checks []Check) Metrics {
	var m Metrics
	for _, c := range checks {
		switch c.Status {
		case Passed:
			m.ChecksPassed++
		case Failed:
			m.ChecksFailed++
		default:
			m.ChecksErrored++
		}
	}
	return m
}

// Recommend returns the recommendation that follows from the checks and the worker's own status: a required check that
// failed rejects, one that could not be done leaves too little evidence, and a worker that does not itself claim
// success is left to a person.
func Recommend(checks []Check, workerStatus string) DecisionSupport {
	var failed, errored int
	for _, c := range checks {
		switch {
		case c.Required && c.Status == Failed:
			failed++
		case c.Required && c.Status == Error:
			errored++
		}
	}
	switch {
	case failed > 0:
		return DecisionSupport{report.RejectCandidate, 1, fmt.Sprintf("%d of %d checks failed that are required.", failed, len(checks))}
	case errored > 0:
		return DecisionSupport{report.InsufficientEvidence, 0, fmt.Sprintf("%d of %d checks could not be done that are required.", errored, len(checks))}
	case workerStatus != manifest.Succeeded:
		return DecisionSupport{report.Escalate, 0, "The checks passed, but the worker's own status is " + workerStatus + "."}
	}
	return DecisionSupport{report.AcceptCandidate, 1, "Every required check passed. That is no proof beyond these checks."}
}
