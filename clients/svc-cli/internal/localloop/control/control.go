// Package control defines a verifier's instructions: the verifier policy and the
// evaluator plans. Their author decides what counts; they must lie where no worker can
// write.
package control

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/field"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/manifest"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/workunit"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/shape"
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

// planVersions are the versions of a plan in the order of the schema's alternatives.
var planVersions = []string{"0.1", "0.2", "0.3", "0.4"}

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

// File lists requirements for a patch's changes to one file.
type File struct {
	Path string `json:"path"`
	// AddedLines are exactly the lines to add, in their order.
	AddedLines []string `json:"added_lines"`
	// Each of these must be part of a line that is added or removed.
	AddedSubstrings   []string `json:"added_substrings"`
	RemovedSubstrings []string `json:"removed_substrings"`
}

// document is a policy or a plan of any version.
type document struct {
	SchemaVersion       string       `json:"schema_version"`
	Kind                string       `json:"kind"`
	ID                  string       `json:"id"`
	Evaluator           string       `json:"evaluator"`
	VerifierID          string       `json:"verifier_id"`
	WorkUnit            workunit.Ref `json:"work_unit"`
	SourceRevision      string       `json:"source_revision"`
	RequiredValidators  []string     `json:"required_validators"`
	CandidateArtifactID string       `json:"candidate_artifact_id"`
	AllowedFiles        []string     `json:"allowed_files"`
	MaxCandidateBytes   int64        `json:"max_candidate_bytes"`
	RequiredLogTypes    []string     `json:"required_log_types"`
	Files               []File       `json:"files"`
}

var (
	policySchema = shape.New("verifier-policy", "", field.Codes)
	planSchemas  = map[string]*shape.Schema{}
)

func init() {
	for i, version := range planVersions {
		planSchemas[version] = shape.New("evaluator-plan", canon.Element("/oneOf", i), field.Codes)
	}
}

// ReadPolicy checks a parsed policy.
func ReadPolicy(v canon.Value) (*Control, error) { return readControl(v, policySchema) }

// ReadPlan checks a parsed plan. Its version determines its keys.
func ReadPlan(v canon.Value) (*Control, error) {
	schema := planSchemas[planVersions[0]]
	if o, ok := v.(*canon.Object); ok {
		if version, has := o.Get("schema_version"); has {
			s, _ := version.(string)
			if schema, ok = planSchemas[s]; !ok {
				return nil, &closed.Fault{Code: field.InvalidValue, Path: "/schema_version", Detail: "expected one of " + strings.Join(planVersions, ", ")}
			}
		}
	}
	return readControl(v, schema)
}

func readControl(v canon.Value, schema *shape.Schema) (*Control, error) {
	var d document
	if err := schema.Decode(v, &d); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	r := field.NewReader()
	for i, f := range d.Files {
		path := canon.Element("/files", i)
		if d.Evaluator == PatchSubstrings && len(f.AddedSubstrings)+len(f.RemovedSubstrings) == 0 {
			r.Fail(field.InvalidValue, path, "a file needs at least one substring, added or removed")
		}
		field.Once(r, seen, f.Path, path+"/path")
	}
	if f := r.Fault(); f != nil {
		return nil, f
	}
	slices.Sort(d.AllowedFiles)
	c := &Control{
		Kind: d.Kind, ID: d.ID, SchemaVersion: d.SchemaVersion, Backend: Patch, Evaluator: d.Evaluator, VerifierID: cmp.Or(d.VerifierID, PolicyVerifier),
		WorkUnit: d.WorkUnit, SourceRevision: strings.ToLower(d.SourceRevision), RequiredValidators: d.RequiredValidators,
		CandidateArtifactID: d.CandidateArtifactID, Digest: canon.Digest(v), AllowedFiles: d.AllowedFiles,
		MaxCandidateBytes: d.MaxCandidateBytes, RequiredLogTypes: d.RequiredLogTypes, Files: d.Files,
	}
	if d.Kind == PolicyKind || d.Evaluator == JSONExact {
		c.Backend = JSON
		c.RequiredJSON, _ = v.(*canon.Object).Get("required_json")
	}
	return c, nil
}

// Bind returns nil, or why this control cannot judge what m claims to be the result of
// u, with a verifier that has these checks. A control for anything but the exact
// revision in question, or that a worker could have satisfied itself, is no ground for
// a recommendation.
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
