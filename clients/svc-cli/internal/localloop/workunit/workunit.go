// Package workunit is the work unit v0.2: what a worker was asked for, where it may
// write, and who must check it.
package workunit

import (
	"strings"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/field"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
)

// SchemaVersion is the version of a work unit.
const SchemaVersion = "0.2"

// Unit is a checked work unit: the parts that a loop uses, and the digest of all.
type Unit struct {
	ID      string
	Version int64
	Digest  string
	// Validators that must have passed, in the order of the document.
	Required []string
	// Globs of the paths that a change may touch, may not touch, and may write.
	AllowedPaths, ForbiddenPaths, FilesystemWrite []string
	// SourceRevision is the revision that the unit was written against, or "".
	SourceRevision string
}

var (
	kinds = []string{"coding", "testing", "review", "benchmarking", "documentation", "research", "integration", "governance", "other"}
	risks = []string{"low", "medium", "high", "critical"}
)

// Read checks a parsed work unit; a fault is a *closed.Fault.
func Read(v canon.Value) (*Unit, error) {
	r := field.NewReader()
	o := r.Root(v, "schema_version", "id", "version", "kind", "objective", "inputs", "outputs", "dependencies", "requirements",
		"constraints", "uncertainty", "security", "permissions", "verification_policy", "validators", "evidence_requirements",
		"budget", "provenance", "failure_semantics")
	o.OneOf("schema_version", field.InvalidValue, SchemaVersion)
	u := &Unit{ID: ID(o, "id"), Version: o.Int("version", 1)}
	o.OneOf("kind", field.InvalidValue, kinds...)
	o.Text("objective")
	field.Opens(r, o, "inputs", 0)
	field.Opens(r, o, "outputs", 1)
	field.Opens(r, o, "dependencies", 0)

	needs := o.Object("requirements", "capabilities", "resources")
	field.Texts(r, needs, "capabilities", 0)
	resources := needs.Object("resources", "cpu_cores_min", "memory_mb_min", "gpu")
	field.Number(resources, "cpu_cores_min")
	field.Number(resources, "memory_mb_min")
	resources.OneOf("gpu", field.InvalidValue, "none", "optional", "required")

	limits := o.Object("constraints", "allowed_paths", "forbidden_paths", "policies")
	u.AllowedPaths = field.Globs(r, limits, "allowed_paths")
	u.ForbiddenPaths = field.Globs(r, limits, "forbidden_paths")
	field.Opens(r, limits, "policies", 0)

	field.Open(r, o.Value("uncertainty"), o.At("uncertainty"))
	security := o.Object("security", "risk_class", "data_classification", "minimum_worker_trust", "sandbox_required")
	security.OneOf("risk_class", field.InvalidValue, risks...)
	security.Text("data_classification")
	security.Text("minimum_worker_trust")
	security.Bool("sandbox_required")

	may := o.Object("permissions", "network", "filesystem_write", "secrets", "process_execution")
	may.OneOf("network", field.InvalidValue, "none", "allowlist", "unrestricted")
	u.FilesystemWrite = field.Globs(r, may, "filesystem_write")
	field.Texts(r, may, "secrets", 0)
	field.Texts(r, may, "process_execution", 0)

	policy := o.Object("verification_policy", "strategy", "independent_from_worker", "minimum_independent_verifiers")
	policy.Text("strategy")
	policy.Bool("independent_from_worker")
	policy.Int("minimum_independent_verifiers", 0)
	u.Required = readValidators(r, o)
	field.Opens(r, o, "evidence_requirements", 1)
	field.Open(r, o.Value("budget"), o.At("budget"))

	from := o.Object("provenance", field.With(o.Value("provenance"), []string{"created_by", "creator_type", "source"}, "source_revision")...)
	from.Text("created_by")
	from.Text("creator_type")
	from.Text("source")
	if from.Value("source_revision") != nil {
		u.SourceRevision = field.Revision(from, "source_revision")
	} else if from.Null("source_revision") {
		from.Fail(field.InvalidType, "source_revision", "a revision must stand here, or the key be absent")
	}
	failure := o.Object("failure_semantics", "retryable", "max_attempts", "on_failure")
	failure.Bool("retryable")
	failure.Int("max_attempts", 1)
	failure.Text("on_failure")
	if f := r.Fault(); f != nil {
		return nil, f
	}
	u.Digest = canon.Digest(v)
	return u, nil
}

func readValidators(r *closed.Reader, o closed.Object) []string {
	required, seen := []string{}, map[string]bool{}
	o.Array("validators", 1, func(v canon.Value, path string) {
		check := r.Object(v, path, "id", "type", "required")
		id := field.Identifier(check, "id")
		field.Once(r, seen, id, check.At("id"))
		check.Text("type")
		if check.Bool("required") {
			required = append(required, id)
		}
	})
	return required
}

// ID reads the id of a work unit.
func ID(o closed.Object, key string) string {
	return o.Match(key, field.InvalidValue, "the id of a work unit: 3 to 128 of a-z 0-9 . _ / -, the first a letter or digit", IsID)
}

// IsID says that s names a work unit: a lower-case letter or digit, then 2 to 127 of
// lower-case letters, digits and ._/-
func IsID(s string) bool {
	const first, rest = "abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghijklmnopqrstuvwxyz0123456789._/-"
	return len(s) >= 3 && len(s) <= 128 && strings.IndexByte(first, s[0]) >= 0 && strings.Trim(s, rest) == ""
}

// Ref names one revision of a work unit.
type Ref struct {
	ID      string `json:"id"`
	Version int64  `json:"version"`
	Digest  string `json:"digest"`
}

// Ref is how others name this unit.
func (u *Unit) Ref() Ref { return Ref{ID: u.ID, Version: u.Version, Digest: u.Digest} }

// ReadRef reads how a document names a work unit.
func ReadRef(o closed.Object, key string) Ref {
	w := o.Object(key, "id", "version", "digest")
	return Ref{ID: ID(w, "id"), Version: w.Int("version", 1), Digest: field.Digest(w, "digest")}
}
