// Package manifest is the result manifest v0.1: a worker's account of its results.
// All of it is a claim.
package manifest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/field"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/workunit"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/shape"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
)

// Succeeded is the status of a worker that claims to have done its task.
const Succeeded = "succeeded"

// Manifest is a checked manifest: the parts that a loop uses, and the digest of all.
type Manifest struct {
	ID               string
	WorkUnit         workunit.Ref // the digest is from the provenance
	Attempt          int64
	WorkerID         string
	Status           string
	Artifacts        []Artifact
	Logs             []Log
	SourceRevision   string
	ExpectValidators []string
	Digest           string
}

// Artifact is a file that the worker made.
type Artifact struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Locator string `json:"locator"`
	Digest  string `json:"digest"`
}

// Log is a record of the work. Digest is "" if the manifest has none.
type Log struct {
	Type    string `json:"type"`
	Locator string `json:"locator"`
	Digest  string `json:"digest"`
}

// Parse reads a manifest from bytes; a fault is a *closed.Fault.
func Parse(data []byte) (*Manifest, error) {
	o, err := field.Parse(data)
	if err != nil {
		return nil, err
	}
	return Read(o)
}

var schema = shape.New("result-manifest", "", field.Codes)

// document holds the fields of a manifest that a loop uses.
type document struct {
	ID              string `json:"id"`
	WorkUnitID      string `json:"work_unit_id"`
	WorkUnitVersion int64  `json:"work_unit_version"`
	Attempt         int64  `json:"attempt"`
	Worker          struct {
		ID string `json:"id"`
	} `json:"worker"`
	Status     string     `json:"status"`
	StartedAt  string     `json:"started_at"`
	FinishedAt string     `json:"finished_at"`
	Artifacts  []Artifact `json:"produced_artifacts"`
	Logs       []Log      `json:"logs"`
	Provenance struct {
		WorkUnitDigest string `json:"work_unit_digest"`
		SourceRevision string `json:"source_revision"`
	} `json:"provenance"`
	Request struct {
		ExpectedValidators []string `json:"expected_validator_ids"`
		EvidenceArtifacts  []string `json:"evidence_artifact_ids"`
	} `json:"verification_request"`
}

// Read checks a parsed manifest; a fault is a *closed.Fault.
func Read(v canon.Value) (*Manifest, error) {
	var d document
	if err := schema.Decode(v, &d); err != nil {
		return nil, err
	}
	m := &Manifest{
		ID: d.ID, WorkUnit: workunit.Ref{ID: d.WorkUnitID, Version: d.WorkUnitVersion, Digest: d.Provenance.WorkUnitDigest},
		Attempt: d.Attempt, WorkerID: d.Worker.ID, Status: d.Status, Artifacts: d.Artifacts, Logs: d.Logs,
		SourceRevision: strings.ToLower(d.Provenance.SourceRevision), ExpectValidators: d.Request.ExpectedValidators, Digest: canon.Digest(v),
	}
	r := field.NewReader()
	CheckPeriod(r, d.StartedAt, d.FinishedAt)
	seen := map[string]bool{}
	for i, a := range m.Artifacts {
		field.Once(r, seen, a.ID, canon.Element("/produced_artifacts", i)+"/id")
	}
	for i, id := range d.Request.EvidenceArtifacts {
		if !seen[id] {
			r.Fail(field.InvalidValue, canon.Element("/verification_request/evidence_artifact_ids", i), "no artifact that was produced has this id")
		}
	}
	if f := r.Fault(); f != nil {
		return nil, f
	}
	return m, nil
}

// CheckPeriod refuses work that ended before it started.
func CheckPeriod(r *closed.Reader, started, finished string) {
	s, _ := time.Parse(time.RFC3339Nano, started)
	if f, _ := time.Parse(time.RFC3339Nano, finished); f.Before(s) {
		r.Fail(field.InvalidValue, "/finished_at", "the work cannot have ended before it started")
	}
}

// Artifact returns the artifact with this id.
func (m *Manifest) Artifact(id string) (Artifact, bool) {
	i := slices.IndexFunc(m.Artifacts, func(a Artifact) bool { return a.ID == id })
	if i < 0 {
		return Artifact{}, false
	}
	return m.Artifacts[i], true
}

// CheckUnit reports where the manifest is not about this revision of this work unit.
func (m *Manifest) CheckUnit(u workunit.Ref) error {
	switch {
	case m.WorkUnit.ID != u.ID:
		return fmt.Errorf("the manifest is about work unit %s, not %s", m.WorkUnit.ID, u.ID)
	case m.WorkUnit.Version != u.Version:
		return fmt.Errorf("the manifest is about version %d of the work unit, not %d", m.WorkUnit.Version, u.Version)
	case m.WorkUnit.Digest != u.Digest:
		return fmt.Errorf("the manifest is about the work unit with digest %s, not %s", m.WorkUnit.Digest, u.Digest)
	}
	return nil
}
