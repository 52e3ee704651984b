package governance

import (
	"fmt"
	"slices"

	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// Operations lists the operations for which a repository can be judged.
func Operations() []string {
	return []string{"read_only", "candidate_dispatch", "secret_bearing_dispatch", "high_risk_dispatch", "cloud_dispatch", "integration"}
}

// Levels of a guard.
const (
	Required = "required"
	Warning  = "warn"
	Optional = "optional"
)

// Sources that a guard reads: the blocks of an observation.
const (
	workflowSource      = "workflow_source"
	repositoryRules     = "repository_rules"
	codeownersFile      = "codeowners"
	environmentSettings = "environment_settings"
	connectorConfig     = "connector_configuration"
)

// The operations to which a guard applies.
func usesWorkflow(op string) bool     { return op != "integration" }
func needsPullRequest(op string) bool { return op != "read_only" }
func isCloudDispatch(op string) bool  { return op == "cloud_dispatch" }
func isGuardedDispatch(op string) bool {
	return op == "secret_bearing_dispatch" || op == "high_risk_dispatch" || isCloudDispatch(op)
}

// finding is a guard's result for an observation.
type finding int

const (
	satisfied finding = iota
	broken
	unobserved // a value it needs was not observable
)

type guard struct {
	code    string
	level   string
	about   func(operation string) bool
	sources []string
	unless  func(Observation) bool              // it does not apply then; blocks may be missing; nil: it always applies
	look    func(Observation) (finding, string) // all blocks of sources are there
}

func passOrBreak(ok bool, good, bad string) (finding, string) {
	if ok {
		return satisfied, good
	}
	return broken, bad
}

const noValue = "the value was not observable"

// requireFlag makes a guard's look of one rule that must be on.
func requireFlag(what string, rule func(*Rules) *bool) func(Observation) (finding, string) {
	return func(o Observation) (finding, string) {
		v := rule(o.Rules)
		if v == nil {
			return unobserved, noValue
		}
		return passOrBreak(*v, what, "not "+what)
	}
}

// guards is the policy github-first-governance-v0.1, in its order.
var guards = []guard{
	{"actions-default-contents-read", Required, usesWorkflow, []string{workflowSource}, nil, func(o Observation) (finding, string) {
		p := o.WorkflowSource.Permissions
		return passOrBreak(p == "none" || p == "read", "the token's contents permission is "+p, "the token's contents permission is "+p)
	}},
	{"checkout-persist-credentials-disabled", Required, usesWorkflow, []string{workflowSource},
		func(o Observation) bool { return o.WorkflowSource != nil && o.WorkflowSource.Pushes },
		func(o Observation) (finding, string) {
			return passOrBreak(o.WorkflowSource.PersistCredentials != "enabled", "no checkout keeps its credentials", "a checkout keeps its credentials")
		}},
	{"branch-deletion-blocked", Required, needsPullRequest, []string{repositoryRules}, nil,
		requireFlag("blocked", func(r *Rules) *bool { return r.DeletionBlocked })},
	{"force-push-blocked", Required, needsPullRequest, []string{repositoryRules}, nil,
		requireFlag("blocked", func(r *Rules) *bool { return r.ForcePushBlocked })},
	{"pull-request-integration", Required, needsPullRequest, []string{repositoryRules}, nil,
		requireFlag("required", func(r *Rules) *bool { return r.PullRequestRequired })},
	{"narrow-bypass-actors", Required, needsPullRequest, []string{repositoryRules}, nil, func(o Observation) (finding, string) {
		if o.Rules.BypassActors == nil {
			return unobserved, noValue
		}
		wide := slices.ContainsFunc(*o.Rules.BypassActors, func(a Actor) bool {
			return a.Mode == "always" && !a.isProgram()
		})
		return passOrBreak(!wide, "only keys and apps may always bypass", "an actor other than a deploy key or app may always bypass")
	}},
	{"required-checks-enforced", Required, needsPullRequest, []string{repositoryRules},
		func(o Observation) bool { return !o.Context.RequiredChecksDeclared },
		func(o Observation) (finding, string) {
			if o.Rules.RequiredChecks == nil {
				return unobserved, noValue
			}
			return passOrBreak(len(*o.Rules.RequiredChecks) > 0, "checks are required", "no check is required")
		}},
	{"codeowner-review-enforced", Required, needsPullRequest, []string{codeownersFile, repositoryRules},
		func(o Observation) bool {
			return !bool(o.Context.SensitivePaths) || o.Codeowners != nil && !o.Codeowners.Configured
		},
		requireFlag("required", func(r *Rules) *bool { return r.CodeownerReviewRequired })},
	{"risk-review-required", Required, needsPullRequest, []string{repositoryRules},
		func(o Observation) bool { return o.Context.Risk == spine.Risks()[0] },
		func(o Observation) (finding, string) {
			if o.Rules.RequiredApprovals == nil {
				return unobserved, noValue
			}
			return passOrBreak(*o.Rules.RequiredApprovals >= 1, "an approving review is required", "no approving review is required")
		}},
	{"high-risk-environment-approval", Required, isGuardedDispatch, []string{environmentSettings, workflowSource}, nil, environmentApproval},
	{"immutable-security-actions", Required, isGuardedDispatch, []string{workflowSource}, nil, func(o Observation) (finding, string) {
		n := len(o.WorkflowSource.UnpinnedActions)
		return passOrBreak(n == 0, "every action is pinned", fmt.Sprintf("actions not pinned: %d", n))
	}},
	{"untrusted-pr-secret-isolation", Required, isGuardedDispatch, []string{workflowSource},
		func(o Observation) bool { return o.WorkflowSource != nil && !o.WorkflowSource.UntrustedTrigger },
		func(o Observation) (finding, string) {
			if o.WorkflowSource.UntrustedScript {
				return broken, "strangers' events put text of theirs into a script"
			}
			return passOrBreak(!o.WorkflowSource.SecretsReferenced && !o.WorkflowSource.UntrustedCheckout,
				"strangers' events meet neither secrets nor a checkout of theirs", "strangers' events meet secrets or a checkout of theirs")
		}},
	{"environment-self-review-prevented", Warning, isGuardedDispatch, []string{environmentSettings},
		func(o Observation) bool { return o.Environments != nil && !o.Environments.ProtectionSupported },
		selfReview},
	{"sensitive-path-codeowners", Warning, needsPullRequest, []string{codeownersFile},
		func(o Observation) bool { return !bool(o.Context.SensitivePaths) },
		func(o Observation) (finding, string) {
			return passOrBreak(!bool(o.Codeowners.Uncovered), "every sensitive path has an owner", "a sensitive path has no owner")
		}},
	{"stable-ci-checks-present", Warning, needsPullRequest, []string{repositoryRules, workflowSource}, nil, stableChecks},
	{"oidc-short-lived-cloud-auth", Optional, isCloudDispatch, []string{connectorConfig, workflowSource}, nil, func(o Observation) (finding, string) {
		return passOrBreak(o.Connectors.CloudAuth == "oidc", "cloud_auth is oidc", "cloud_auth is "+o.Connectors.CloudAuth)
	}},
}

func stableChecks(o Observation) (finding, string) {
	if o.Rules.RequiredChecks == nil {
		return unobserved, noValue
	}
	for _, check := range *o.Rules.RequiredChecks {
		if !slices.Contains(o.WorkflowSource.Jobs, check) {
			return broken, "a required check is no job of the workflow"
		}
	}
	return satisfied, "each required check is a job"
}

func environmentApproval(o Observation) (finding, string) {
	if len(o.WorkflowSource.Environments) == 0 {
		return broken, "the workflow names no environment"
	}
	for _, name := range o.WorkflowSource.Environments {
		if !slices.ContainsFunc(o.Environments.All, func(e Environment) bool { return e.Name == name && e.RequiredReviewers > 0 }) {
			return broken, "an environment of the workflow has no reviewer"
		}
	}
	return satisfied, "each environment of the workflow has a reviewer"
}

func selfReview(o Observation) (finding, string) {
	out, reason := satisfied, "prevented on all environments"
	for _, e := range o.Environments.All {
		switch {
		case e.SelfReviewPrevented == nil:
			out, reason = unobserved, noValue
		case !*e.SelfReviewPrevented:
			return broken, "an environment lets people approve what they started"
		}
	}
	return out, reason
}

// missing lists the blocks of a guard that the observation does not hold.
func (g guard) missing(o Observation) []string {
	absent := map[string]bool{
		workflowSource: o.WorkflowSource == nil, repositoryRules: o.Rules == nil, codeownersFile: o.Codeowners == nil,
		environmentSettings: o.Environments == nil, connectorConfig: o.Connectors == nil,
	}
	var out []string
	for _, s := range g.sources {
		if absent[s] {
			out = append(out, s)
		}
	}
	return out
}
