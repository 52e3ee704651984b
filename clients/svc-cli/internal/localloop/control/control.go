// Package control is what a verifier is told to check: the verifier policy and the
// evaluator plans. Whoever writes one decides what counts; it must lie where no worker
// can write.
package control

import (
	"fmt"
	"slices"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/field"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/manifest"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/workunit"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
)

// Kinds of control document.
const (
	PolicyKind = "svc-verifier-policy"
	PlanKind   = "svc-evaluator-plan"
)

// PolicyVersion is the version of a policy.
const PolicyVersion = "0.1"

// PolicyVerifier is the id under which a policy's verifier works. A plan names its own.
const PolicyVerifier = "svc-local-verifier"

// Backend is which verifier a control drives.
type Backend string

// The backends.
const (
	JSON  Backend = "json"
	Patch Backend = "patch"
)

// The evaluators of a plan, one for each version.
const (
	JSONExact            = "json_exact"
	PatchExactLines      = "patch_exact_lines"
	PatchAddedSubstrings = "patch_added_substrings"
	PatchSubstrings      = "patch_substrings"
)

var evaluators = map[string]string{"0.1": JSONExact, "0.2": PatchExactLines, "0.3": PatchAddedSubstrings, "0.4": PatchSubstrings}

// Control is a checked policy or plan.
type Control struct {
	Kind, ID, SchemaVersion string
	Backend                 Backend
	Evaluator               string // of a plan; "" of a policy
	VerifierID              string
	WorkUnit                workunit.Ref
	SourceRevision          string // of a plan; "" of a policy, which binds none
	RequiredValidators      []string
	CandidateArtifactID     string
	Digest                  string

	// For the JSON backend.
	AllowedFiles      []string // sorted
	MaxCandidateBytes int64
	RequiredJSON      canon.Value

	// For the patch backend.
	RequiredLogTypes []string
	Files            []File // in the order of the plan
}

// File is what a patch must do to one file.
type File struct {
	Path string
	// AddedLines are exactly the lines to add, in their order.
	AddedLines []string
	// Each of these must stand within a line that is added or removed.
	AddedSubstrings, RemovedSubstrings []string
}

// ReadPolicy checks a parsed policy.
func ReadPolicy(v canon.Value) (*Control, error) {
	r := field.NewReader()
	o := r.Root(v, "schema_version", "kind", "id", "work_unit", "required_validators", "candidate_artifact_id",
		"allowed_files", "max_candidate_bytes", "required_json")
	c := &Control{
		SchemaVersion: o.OneOf("schema_version", field.InvalidValue, PolicyVersion),
		Kind:          o.OneOf("kind", field.InvalidValue, PolicyKind),
		ID:            field.Identifier(o, "id"),
		Backend:       JSON, VerifierID: PolicyVerifier,
		WorkUnit: workunit.ReadRef(o, "work_unit"),
	}
	c.readCandidate(r, o)
	c.readJSON(r, o)
	return c.checked(r, v)
}

// ReadPlan checks a parsed plan. Its version says which keys it has.
func ReadPlan(v canon.Value) (*Control, error) {
	r := field.NewReader()
	keys := []string{"schema_version", "kind", "id", "evaluator", "verifier_id", "work_unit", "source_revision", "required_validators", "candidate_artifact_id"}
	version, _ := textMember(v, "schema_version")
	switch version {
	case "0.2":
		keys = append(keys, "required_log_types", "files")
	case "0.3", "0.4":
		keys = append(keys, "files")
	default: // 0.1, and what no version is: the fault names the version first
		if version != "0.1" {
			if o, ok := v.(*canon.Object); ok {
				if _, has := o.Get("schema_version"); has {
					r.Fail(field.InvalidValue, "/schema_version", "one of 0.1, 0.2, 0.3, 0.4 must stand here")
				}
			}
		}
		keys = append(keys, "allowed_files", "max_candidate_bytes", "required_json")
	}
	o := r.Root(v, keys...)
	c := &Control{
		SchemaVersion:  version,
		Kind:           o.OneOf("kind", field.InvalidValue, PlanKind),
		ID:             field.Identifier(o, "id"),
		Evaluator:      o.OneOf("evaluator", field.InvalidValue, evaluators[version]),
		VerifierID:     field.Identifier(o, "verifier_id"),
		WorkUnit:       workunit.ReadRef(o, "work_unit"),
		SourceRevision: field.Revision(o, "source_revision"),
	}
	c.readCandidate(r, o)
	if version == "0.1" {
		c.Backend = JSON
		c.readJSON(r, o)
		return c.checked(r, v)
	}
	c.Backend = Patch
	if version == "0.2" {
		c.RequiredLogTypes = field.Unique(r, o, "required_log_types", 0, "a type of log", func(s string) bool {
			return slices.Contains(manifest.LogTypes, s)
		})
	}
	c.readFiles(r, o)
	return c.checked(r, v)
}

func textMember(v canon.Value, key string) (string, bool) {
	o, _ := v.(*canon.Object)
	value, _ := o.Get(key)
	s, ok := value.(string)
	return s, ok
}

func (c *Control) readCandidate(r *closed.Reader, o closed.Object) {
	c.RequiredValidators = field.Identifiers(r, o, "required_validators", 1)
	c.CandidateArtifactID = field.Identifier(o, "candidate_artifact_id")
}

func (c *Control) readJSON(r *closed.Reader, o closed.Object) {
	c.AllowedFiles = field.Paths(r, o, "allowed_files", 1)
	slices.Sort(c.AllowedFiles)
	c.MaxCandidateBytes = o.Int("max_candidate_bytes", 1)
	if c.MaxCandidateBytes > canon.MaxFile {
		o.Fail(field.InvalidValue, "max_candidate_bytes", "at most %d can be checked", canon.MaxFile)
	}
	c.RequiredJSON = o.Value("required_json")
}

func (c *Control) readFiles(r *closed.Reader, o closed.Object) {
	seen := map[string]bool{}
	o.Array("files", 1, func(v canon.Value, path string) {
		var f File
		switch c.Evaluator {
		case PatchExactLines:
			file := r.Object(v, path, "path", "added_lines")
			f = File{Path: field.Path(file, "path"), AddedLines: field.Strings(r, file, "added_lines", 0)}
			for i, line := range f.AddedLines {
				oneLine(r, line, canon.Element(file.At("added_lines"), i))
			}
		case PatchAddedSubstrings:
			file := r.Object(v, path, "path", "added_substrings")
			f = File{Path: field.Path(file, "path"), AddedSubstrings: readSubstrings(r, file, "added_substrings", 1)}
		default:
			file := r.Object(v, path, "path", "added_substrings", "removed_substrings")
			f = File{Path: field.Path(file, "path"), AddedSubstrings: readSubstrings(r, file, "added_substrings", 0),
				RemovedSubstrings: readSubstrings(r, file, "removed_substrings", 0)}
			if r.OK() && len(f.AddedSubstrings)+len(f.RemovedSubstrings) == 0 {
				r.Fail(field.InvalidValue, path, "a file needs at least one substring, added or removed")
			}
		}
		field.Once(r, seen, f.Path, path+"/path")
		c.Files = append(c.Files, f)
	})
}

func readSubstrings(r *closed.Reader, o closed.Object, key string, least int) []string {
	out := field.Texts(r, o, key, least)
	for i, s := range out {
		oneLine(r, s, canon.Element(o.At(key), i))
	}
	return out
}

func oneLine(r *closed.Reader, s, path string) {
	for i := range len(s) {
		if s[i] == '\n' {
			r.Fail(field.InvalidValue, path, "one line must stand here")
		}
	}
}

func (c *Control) checked(r *closed.Reader, v canon.Value) (*Control, error) {
	if f := r.Fault(); f != nil {
		return nil, f
	}
	c.Digest = canon.Digest(v)
	return c, nil
}

// Bind says why this control cannot judge what m says it made of u, with a verifier
// that does these checks, or nil. A control that is about anything else than the very
// revision in front of it, or that a worker could have answered to itself, is no
// ground for a recommendation.
func (c *Control) Bind(u *workunit.Unit, m *manifest.Manifest, checks []string) error {
	if c.WorkUnit != u.Ref() {
		return fmt.Errorf("the %s is about another revision of the work unit: %s version %d, %s", c.noun(), c.WorkUnit.ID, c.WorkUnit.Version, c.WorkUnit.Digest)
	}
	if !sameSet(c.RequiredValidators, u.Required) {
		return fmt.Errorf("the %s does not require exactly the validators that the work unit requires", c.noun())
	}
	for _, id := range c.RequiredValidators {
		if !slices.Contains(m.ExpectValidators, id) {
			return fmt.Errorf("the result manifest does not request the required validator %s", id)
		}
		if !slices.Contains(checks, id) {
			return fmt.Errorf("the verifier has no check %s, which is required", id)
		}
	}
	if c.VerifierID == m.WorkerID {
		return fmt.Errorf("the verifier and the worker have the same id %s", c.VerifierID)
	}
	if c.SourceRevision != "" && c.SourceRevision != m.SourceRevision {
		return fmt.Errorf("the plan is about source revision %s, the result manifest about %s", c.SourceRevision, m.SourceRevision)
	}
	if _, ok := m.Artifact(c.CandidateArtifactID); !ok {
		return fmt.Errorf("the result manifest has no artifact %s, which is the candidate", c.CandidateArtifactID)
	}
	return nil
}

func (c *Control) noun() string {
	if c.Kind == PlanKind {
		return "evaluator plan"
	}
	return "verifier policy"
}

func sameSet(a, b []string) bool {
	x, y := slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(x, y)
}
