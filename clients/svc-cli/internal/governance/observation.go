package governance

import (
	"slices"
	"strings"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// ObservationKind is the kind of an observation.
const ObservationKind = "svc-github-governance-observation"

// The codes of an observation's faults.
const (
	InvalidDocument    = "invalid_document"
	MissingField       = "missing_field"
	UnknownField       = "unknown_field"
	InvalidType        = "invalid_type"
	InvalidValue       = "invalid_value"
	InvalidKind        = "invalid_kind"
	UnsupportedVersion = "unsupported_version"
	InvalidRepository  = "invalid_repository"
	InvalidTimestamp   = "invalid_timestamp"
	InvalidRisk        = "invalid_risk"
	DuplicateValue     = "duplicate_value"
)

var codes = closed.Codes{
	Missing: MissingField, Unknown: UnknownField, Root: InvalidDocument,
	Shape: InvalidType, Type: InvalidType, Value: InvalidValue,
}

// Observation is what somebody saw of a repository at one time. A nil block or value was
// not observable.
type Observation struct {
	Repository    string // owner/name
	ObservedAt    string
	DefaultBranch string
	Context       Context

	Rules        *Rules
	Codeowners   *Codeowners
	Environments *Environments
	CloudAuth    *string // of connector_configuration: none, oidc or long_lived_secret

	WorkflowSource *Workflow
}

// Context is what the judged change is about.
type Context struct {
	Risk                   string // one of spine.Risks
	SensitivePaths         bool   // the change may touch sensitive paths
	RequiredChecksDeclared bool
}

// Rules are the rules of the default branch.
type Rules struct {
	PullRequestRequired     *bool
	ForcePushBlocked        *bool
	DeletionBlocked         *bool
	CodeownerReviewRequired *bool
	RequiredChecks          *[]string
	RequiredApprovals       *int64
	BypassActors            *[]Actor
}

// Actor may bypass the rules.
type Actor struct {
	Type string
	Mode string // always or pull_request
}

// Codeowners is the CODEOWNERS file.
type Codeowners struct {
	Configured bool
	Uncovered  bool // a sensitive path has no owner
}

// Environments are the deployment environments.
type Environments struct {
	ProtectionSupported bool
	All                 []Environment
}

// Environment is one of them.
type Environment struct {
	Name                string
	RequiredReviewers   int64
	SelfReviewPrevented *bool
}

// Workflow is what the workflows do.
type Workflow struct {
	Permissions        string // of contents, the worst: none, read, write or unset
	PersistCredentials string // of checkouts, the worst: disabled, enabled or absent
	Pushes             bool
	UnpinnedActions    []string
	Environments       []string
	SecretsReferenced  bool
	UntrustedTrigger   bool
	UntrustedCheckout  bool
	Jobs               []string // the names under which jobs report
}

// LoadObservation reads an observation's file.
func LoadObservation(path string) (Observation, error) {
	v, err := command.ReadDocument(path)
	if err != nil {
		return Observation{}, err
	}
	return ParseObservation(v)
}

// ParseObservation reads an observation. An error is a *closed.Fault.
func ParseObservation(v canon.Value) (Observation, error) {
	rd := closed.NewReader(codes)
	o := rd.Root(v, "schema_version", "kind", "repository", "observed_at", "default_branch", "context",
		"repository_rules", "codeowners", "environment_settings", "connector_configuration", "workflow_source")
	o.OneOf("schema_version", UnsupportedVersion, spine.SchemaVersion)
	o.OneOf("kind", InvalidKind, ObservationKind)
	out := Observation{
		Repository:    o.Match("repository", InvalidRepository, "owner/name", IsRepository),
		ObservedAt:    o.Match("observed_at", InvalidTimestamp, "a time such as 2026-01-02T03:04:05Z", spine.IsTimestamp),
		DefaultBranch: o.Match("default_branch", InvalidValue, "the name of a branch", IsBranch),
	}
	c := o.Object("context", "risk", "sensitive_paths", "required_checks_declared")
	out.Context = Context{
		Risk:                   c.OneOf("risk", InvalidRisk, spine.Risks()...),
		SensitivePaths:         anyOf(rd, c, "sensitive_paths"),
		RequiredChecksDeclared: c.Bool("required_checks_declared"),
	}
	if !o.Null("repository_rules") {
		out.Rules = readRules(rd, o)
	}
	if !o.Null("codeowners") {
		b := o.Object("codeowners", "configured", "uncovered_sensitive_paths")
		out.Codeowners = &Codeowners{Configured: b.Bool("configured"), Uncovered: anyOf(rd, b, "uncovered_sensitive_paths")}
	}
	if !o.Null("environment_settings") {
		out.Environments = readEnvironments(rd, o)
	}
	if !o.Null("connector_configuration") {
		auth := o.Object("connector_configuration", "cloud_auth").OneOf("cloud_auth", InvalidValue, "none", "oidc", "long_lived_secret")
		out.CloudAuth = &auth
	}
	if !o.Null("workflow_source") {
		out.WorkflowSource = readWorkflow(rd, o)
	}
	if f := rd.Fault(); f != nil {
		return Observation{}, f
	}
	return out, nil
}

func readRules(rd *closed.Reader, o closed.Object) *Rules {
	b := o.Object("repository_rules", "pull_request_required", "force_push_blocked", "deletion_blocked", "codeowner_review_required",
		"required_checks", "required_approving_reviews", "bypass_actors")
	out := &Rules{
		PullRequestRequired: boolOrNull(b, "pull_request_required"), ForcePushBlocked: boolOrNull(b, "force_push_blocked"),
		DeletionBlocked: boolOrNull(b, "deletion_blocked"), CodeownerReviewRequired: boolOrNull(b, "codeowner_review_required"),
	}
	if !b.Null("required_checks") {
		checks := readTexts(rd, b, "required_checks")
		out.RequiredChecks = &checks
	}
	if !b.Null("required_approving_reviews") {
		n := b.Int("required_approving_reviews", 0)
		out.RequiredApprovals = &n
	}
	if !b.Null("bypass_actors") {
		actors := []Actor{}
		b.Array("bypass_actors", 0, func(v canon.Value, path string) {
			a := rd.Object(v, path, "type", "id", "mode")
			// A forge numbers its actors, people name them.
			if n, ok := a.Value("id").(canon.Int); !ok {
				a.Text("id")
			} else if n.Sign() < 0 {
				a.Fail(InvalidValue, "id", "the number of an actor is 0 or more")
			}
			actors = append(actors, Actor{Type: a.Text("type"), Mode: a.OneOf("mode", InvalidValue, "always", "pull_request")})
		})
		out.BypassActors = &actors
	}
	return out
}

func readEnvironments(rd *closed.Reader, o closed.Object) *Environments {
	b := o.Object("environment_settings", "protection_supported", "environments")
	out := &Environments{ProtectionSupported: b.Bool("protection_supported")}
	b.Array("environments", 0, func(v canon.Value, path string) {
		e := rd.Object(v, path, "name", "required_reviewers", "self_review_prevented")
		name := e.Text("name")
		if slices.ContainsFunc(out.All, func(x Environment) bool { return x.Name == name }) {
			e.Fail(DuplicateValue, "name", "another environment has this name")
		}
		out.All = append(out.All, Environment{name, e.Int("required_reviewers", 0), boolOrNull(e, "self_review_prevented")})
	})
	return out
}

func readWorkflow(rd *closed.Reader, o closed.Object) *Workflow {
	b := o.Object("workflow_source", "permissions", "persist_credentials", "pushes", "unpinned_actions", "environments",
		"secrets_referenced", "untrusted_trigger", "untrusted_checkout", "jobs")
	return &Workflow{
		Permissions:        b.OneOf("permissions", InvalidValue, permissionLevels...),
		PersistCredentials: b.OneOf("persist_credentials", InvalidValue, "disabled", "enabled", "absent"),
		Pushes:             b.Bool("pushes"),
		UnpinnedActions:    readTexts(rd, b, "unpinned_actions"),
		Environments:       readTexts(rd, b, "environments"),
		SecretsReferenced:  b.Bool("secrets_referenced"),
		UntrustedTrigger:   b.Bool("untrusted_trigger"),
		UntrustedCheckout:  b.Bool("untrusted_checkout"),
		Jobs:               readTexts(rd, b, "jobs"),
	}
}

// anyOf reads a list of paths, of which only matters whether there are any, or just that:
// an observer who knows of sensitive paths need not know which.
func anyOf(rd *closed.Reader, o closed.Object, key string) bool {
	if _, ok := o.Value(key).(bool); ok {
		return o.Bool(key)
	}
	return len(readTexts(rd, o, key)) > 0
}

func boolOrNull(o closed.Object, key string) *bool {
	if o.Null(key) {
		return nil
	}
	b := o.Bool(key)
	return &b
}

func readTexts(rd *closed.Reader, o closed.Object, key string) []string {
	out := []string{}
	o.Array(key, 0, func(v canon.Value, path string) {
		s := rd.Text(v, path)
		if slices.Contains(out, s) {
			rd.Fail(DuplicateValue, path, "the text stands in the list twice")
		}
		out = append(out, s)
	})
	return out
}

// IsRepository says that s is owner/name: up to 39 letters, digits and hyphens, then up
// to 100 letters, digits and ._-
func IsRepository(s string) bool {
	owner, name, ok := strings.Cut(s, "/")
	return ok && len(owner) <= 39 && len(name) <= 100 && hasOnly(owner, "-") && hasOnly(name, "._-") &&
		!strings.HasPrefix(owner, "-") && name != "." && name != ".."
}

// IsBranch says that s is the name of a branch that this tool takes: a letter or digit,
// then up to 127 of letters, digits and ._/- without what git refuses.
func IsBranch(s string) bool {
	return len(s) <= 128 && hasOnly(s, "._/-") && hasOnly(s[:1], "") &&
		!strings.Contains(s, "..") && !strings.Contains(s, "//") &&
		!strings.HasSuffix(s, "/") && !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, ".lock")
}

// hasOnly says that s is not empty and has nothing but ASCII letters, digits and punctuation.
func hasOnly(s, punctuation string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte(punctuation, c) < 0 {
			return false
		}
	}
	return s != ""
}
