// Package manifest is the result manifest v0.1: what a worker says it made. All of
// it is a claim.
package manifest

import (
	"fmt"
	"slices"
	"time"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/field"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/workunit"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
)

// SchemaVersion is the version of a manifest.
const SchemaVersion = "0.1"

// Succeeded is the status of a worker that says it did what it was asked.
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
type Artifact struct{ ID, Type, Locator, Digest string }

// Log is a record of the work. Digest is "" if the manifest gives none.
type Log struct{ Type, Locator, Digest string }

// LogTypes are the types of log.
var LogTypes = []string{"stdout", "stderr", "trace", "tool_calls", "other"}

// Parse reads a manifest from bytes; a fault is a *closed.Fault.
func Parse(data []byte) (*Manifest, error) {
	o, err := field.Parse(data)
	if err != nil {
		return nil, err
	}
	return Read(o)
}

// Read checks a parsed manifest; a fault is a *closed.Fault.
func Read(v canon.Value) (*Manifest, error) {
	r := field.NewReader()
	o := r.Root(v, "schema_version", "id", "work_unit_id", "work_unit_version", "attempt", "worker", "status", "started_at",
		"finished_at", "produced_artifacts", "logs", "metrics", "resources", "self_report", "provenance", "verification_request")
	o.OneOf("schema_version", field.InvalidValue, SchemaVersion)
	m := &Manifest{
		ID:       field.Identifier(o, "id"),
		WorkUnit: workunit.Ref{ID: workunit.ID(o, "work_unit_id"), Version: o.Int("work_unit_version", 1)},
		Attempt:  o.Int("attempt", 1),
	}
	worker := o.Object("worker", "id", "type", "adapter")
	m.WorkerID = field.Identifier(worker, "id")
	worker.Text("type")
	worker.Text("adapter")
	m.Status = o.OneOf("status", field.InvalidValue, Succeeded, "failed", "error", "timeout", "cancelled")
	Period(o)
	m.readProducts(r, o)
	field.Map(o, "metrics")
	field.Number(o.Object("resources", "wall_seconds"), "wall_seconds")
	self := o.Object("self_report", "summary", "claims")
	self.String("summary")
	field.Opens(r, self, "claims", 0)
	from := o.Object("provenance", "work_unit_digest", "source_revision", "environment")
	m.WorkUnit.Digest = field.Digest(from, "work_unit_digest")
	m.SourceRevision = field.Revision(from, "source_revision")
	field.Open(r, from.Value("environment"), from.At("environment"))
	request := o.Object("verification_request", "expected_validator_ids", "evidence_artifact_ids")
	m.ExpectValidators = field.Identifiers(r, request, "expected_validator_ids", 0)
	for i, id := range field.Identifiers(r, request, "evidence_artifact_ids", 0) {
		if _, ok := m.Artifact(id); !ok {
			r.Fail(field.InvalidValue, canon.Element(request.At("evidence_artifact_ids"), i), "no artifact that was produced has this id")
		}
	}
	if f := r.Fault(); f != nil {
		return nil, f
	}
	m.Digest = canon.Digest(v)
	return m, nil
}

func (m *Manifest) readProducts(r *closed.Reader, o closed.Object) {
	seen := map[string]bool{}
	o.Array("produced_artifacts", 0, func(v canon.Value, path string) {
		a := r.Object(v, path, "id", "type", "locator", "digest")
		id := field.Identifier(a, "id")
		field.Once(r, seen, id, a.At("id"))
		m.Artifacts = append(m.Artifacts, Artifact{ID: id, Type: a.Text("type"), Locator: field.Path(a, "locator"), Digest: field.Digest(a, "digest")})
	})
	o.Array("logs", 0, func(v canon.Value, path string) {
		l := r.Object(v, path, field.With(v, []string{"type", "locator"}, "digest")...)
		log := Log{Type: l.OneOf("type", field.InvalidValue, LogTypes...), Locator: field.Path(l, "locator")}
		if has, _ := v.(*canon.Object); has != nil {
			if _, ok := has.Get("digest"); ok {
				log.Digest = field.Digest(l, "digest")
			}
		}
		m.Logs = append(m.Logs, log)
	})
}

// Period reads started_at and finished_at, of which the second is not the earlier.
func Period(o closed.Object) {
	started, finished := field.Time(o, "started_at"), field.Time(o, "finished_at")
	if s, ok := parseInstant(started); ok {
		if f, ok := parseInstant(finished); ok && f.Before(s) {
			o.Fail(field.InvalidValue, "finished_at", "the work cannot have ended before it started")
		}
	}
}

// Artifact gives the artifact with this id.
func (m *Manifest) Artifact(id string) (Artifact, bool) {
	i := slices.IndexFunc(m.Artifacts, func(a Artifact) bool { return a.ID == id })
	if i < 0 {
		return Artifact{}, false
	}
	return m.Artifacts[i], true
}

// CheckUnit says where the manifest is not about this revision of this work unit.
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

func parseInstant(s string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, s)
	return t, err == nil
}
