package governance

import (
	"encoding/json"
	"strings"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/shape"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
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

var observationSchema = shape.New("github-governance-observation", "", shape.Codes{
	Codes: closed.Codes{
		Missing: MissingField, Unknown: UnknownField, Root: InvalidDocument,
		Shape: InvalidType, Type: InvalidType, Value: InvalidValue,
	},
	Duplicate: DuplicateValue,
	Terms: map[string]shape.Term{
		"/schema_version": {Code: UnsupportedVersion},
		"/kind":           {Code: InvalidKind},
		"/repository":     {Code: InvalidRepository, What: "owner/name"},
		"/observed_at":    {Code: InvalidTimestamp, What: "a time such as 2026-01-02T03:04:05Z"},
		"/default_branch": {What: "the name of a branch"},
		"/context/risk":   {Code: InvalidRisk},
	},
})

// Observation is the observed state of a repository at one time. A nil block or value was not observable.
type Observation struct {
	Repository    string  `json:"repository"` // owner/name
	ObservedAt    string  `json:"observed_at"`
	DefaultBranch string  `json:"default_branch"`
	Context       Context `json:"context"`

	Rules        *Rules        `json:"repository_rules"`
	Codeowners   *Codeowners   `json:"codeowners"`
	Environments *Environments `json:"environment_settings"`
	Connectors   *Connectors   `json:"connector_configuration"`

	WorkflowSource *Workflow `json:"workflow_source"`
}

// Context describes the change to judge.
type Context struct {
	Risk                   string   `json:"risk"`            // one of spine.Risks
	SensitivePaths         Presence `json:"sensitive_paths"` // the change may touch sensitive paths
	RequiredChecksDeclared bool     `json:"required_checks_declared"`
}

// Presence reports whether there are any paths. An observation lists them or gives only this boolean: an observer who
// knows of sensitive paths need not know which.
type Presence bool

// UnmarshalJSON implements json.Unmarshaler.
func (p *Presence) UnmarshalJSON(text []byte) error {
	var paths []string
	if json.Unmarshal(text, &paths) == nil {
		*p = len(paths) > 0
		return nil
	}
	return json.Unmarshal(text, (*bool)(p))
}

// Rules are the rules of the default branch.
type Rules struct {
	PullRequestRequired     *bool     `json:"pull_request_required"`
	ForcePushBlocked        *bool     `json:"force_push_blocked"`
	DeletionBlocked         *bool     `json:"deletion_blocked"`
	CodeownerReviewRequired *bool     `json:"codeowner_review_required"`
	RequiredChecks          *[]string `json:"required_checks"`
	RequiredApprovals       *int64    `json:"required_approving_reviews"`
	BypassActors            *[]Actor  `json:"bypass_actors"`
}

// Actor may bypass the rules.
type Actor struct {
	Type string `json:"type"` // such as deploy_key, app or team; or as GitHub's API has it: DeployKey, Integration, Team
	Mode string `json:"mode"` // always or pull_request
}

// isProgram reports whether the actor is a deploy key or an app.
func (a Actor) isProgram() bool {
	switch strings.ReplaceAll(strings.ToLower(a.Type), "_", "") {
	case "deploykey", "app", "integration":
		return true
	}
	return false
}

// Codeowners is the CODEOWNERS file.
type Codeowners struct {
	Configured bool     `json:"configured"`
	Uncovered  Presence `json:"uncovered_sensitive_paths"` // a sensitive path has no owner
}

// Environments are the deployment environments.
type Environments struct {
	ProtectionSupported bool          `json:"protection_supported"`
	All                 []Environment `json:"environments"`
}

// Environment is one of them.
type Environment struct {
	Name                string `json:"name"`
	RequiredReviewers   int64  `json:"required_reviewers"`
	SelfReviewPrevented *bool  `json:"self_review_prevented"`
}

// Connectors is the configuration of the repository's connectors.
type Connectors struct {
	CloudAuth string `json:"cloud_auth"` // none, oidc or long_lived_secret
}

// Workflow summarises the workflows.
type Workflow struct {
	Permissions        string   `json:"permissions"`         // of contents, the worst: none, read, write or unset
	PersistCredentials string   `json:"persist_credentials"` // of checkouts, the worst: disabled, enabled or absent
	Pushes             bool     `json:"pushes"`
	UnpinnedActions    []string `json:"unpinned_actions"`
	Environments       []string `json:"environments"`
	SecretsReferenced  bool     `json:"secrets_referenced"`
	UntrustedTrigger   bool     `json:"untrusted_trigger"`
	UntrustedCheckout  bool     `json:"untrusted_checkout"`
	UntrustedScript    bool     `json:"-"`    // strangers may decide text of a script: only the file itself shows it
	Jobs               []string `json:"jobs"` // the names under which jobs report
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
	var o Observation
	if err := observationSchema.Decode(v, &o); err != nil {
		return Observation{}, err
	}
	if o.Environments != nil {
		names := map[string]bool{}
		for i, e := range o.Environments.All {
			if names[e.Name] {
				return Observation{}, &closed.Fault{Code: DuplicateValue, Path: canon.Element("/environment_settings/environments", i) + "/name",
					Detail: "another environment has this name"}
			}
			names[e.Name] = true
		}
	}
	return o, nil
}

// IsBranch reports whether s is a branch name that this tool accepts: a letter or digit, then up to 127 of letters,
// digits and ._/- without the forms that git refuses.
func IsBranch(s string) bool {
	return len(s) <= 128 && hasOnly(s, "._/-") && hasOnly(s[:1], "") &&
		!strings.Contains(s, "..") && !strings.Contains(s, "//") &&
		!strings.HasSuffix(s, "/") && !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, ".lock")
}

// hasOnly reports whether s is not empty and has nothing but ASCII letters, digits and punctuation.
func hasOnly(s, punctuation string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte(punctuation, c) < 0 {
			return false
		}
	}
	return s != ""
}
