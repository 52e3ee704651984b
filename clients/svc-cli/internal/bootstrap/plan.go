package bootstrap

import (
	"regexp"
	"strings"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/governance"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// Codes of faults that prevent a plan.
const (
	UnpinnedRef   = "unpinned_svc_ref"
	InvalidBranch = "invalid_default_branch"
	ApplyMode     = "apply_mode_not_available"
	NoForge       = "forge_required"
)

// DryRun is the answer: a plan, and the files of it whose content is known already.
type DryRun struct {
	SchemaVersion           string     `json:"schema_version"`
	Kind                    string     `json:"kind"`
	DryRun                  bool       `json:"dry_run"`
	WritesPerformed         bool       `json:"writes_performed"`
	GithubMutationPerformed bool       `json:"github_mutation_performed"`
	SecretValuesAccessed    bool       `json:"secret_values_accessed"`
	Plan                    Plan       `json:"plan"`
	RenderedConfigFiles     []Rendered `json:"rendered_config_files"` // by path
}

// Plan lists the files and settings that the bootstrap would leave.
type Plan struct {
	PlanVersion          string   `json:"plan_version"`
	SvcRef               string   `json:"svc_ref"`
	RefExistenceVerified bool     `json:"ref_existence_verified"` // a tag may not exist: no request was made
	DefaultBranch        string   `json:"default_branch"`
	Files                []File   `json:"files"` // by path
	OwnerActions         []Action `json:"owner_actions"`
}

// File is one planned file.
type File struct {
	Path                 string `json:"path"`
	Ownership            string `json:"ownership"`
	Phase                string `json:"phase"`
	OverwritePolicy      string `json:"overwrite_policy"`
	Purpose              string `json:"purpose"`
	RenderSource         string `json:"render_source"`
	ExecutionEffect      string `json:"execution_effect"`
	SecretValuesAllowed  bool   `json:"secret_values_allowed"`
	IntegrationAuthority bool   `json:"integration_authority"`
}

// Action is a step that only the repository's owner can do.
type Action struct {
	Code                    string `json:"code"`
	Summary                 string `json:"summary"`
	Reason                  string `json:"reason"`
	RequiresRepositoryOwner bool   `json:"requires_repository_owner"`
	Automatic               bool   `json:"automatic"`
}

// Who owns a file, and what becomes of one that is there already.
const (
	managed = "svc_managed"
	seed    = "user_seed"

	replaceGenerated = "replace_if_generated_digest_matches"
	createIfAbsent   = "create_if_absent"
)

var (
	commitRef = regexp.MustCompile(`^[0-9a-f]{40}$`)
	tagRef    = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z][0-9A-Za-z.-]*)?$`)
)

// New plans for a ref of svc, which must be pinned, and a default branch.
func New(ref, branch string) (DryRun, error) {
	if !commitRef.MatchString(ref) && !tagRef.MatchString(ref) {
		return DryRun{}, command.Failf(UnpinnedRef, "--idkmesh-ref is a release tag such as v1.2.3 or a commit of 40 lower-case hex digits: a branch could change what runs")
	}
	if !governance.IsBranch(branch) {
		return DryRun{}, command.Failf(InvalidBranch, "--default-branch is a letter or digit, then up to 127 of letters, digits and ._/- without what git refuses")
	}
	out := DryRun{
		SchemaVersion: spine.SchemaVersion, Kind: "svc-github-bootstrap-dry-run", DryRun: true,
		Plan:                Plan{PlanVersion: "0.1", SvcRef: ref, DefaultBranch: branch, Files: planFiles(ref), OwnerActions: ownerActions()},
		RenderedConfigFiles: []Rendered{},
	}
	for _, f := range out.Plan.Files {
		if strings.HasPrefix(f.Path, configFolder) {
			r, err := renderFile(f, ref, branch)
			if err != nil {
				return DryRun{}, err
			}
			out.RenderedConfigFiles = append(out.RenderedConfigFiles, r)
		}
	}
	return out, nil
}

const configFolder = ".svc/"

func planFiles(ref string) []File {
	workflow := func(name, purpose, effect string) File {
		return File{
			Path: ".github/workflows/svc-" + name + ".yml", Ownership: managed, Phase: "C8-D", OverwritePolicy: replaceGenerated,
			Purpose: purpose, RenderSource: "svc@" + ref + ":bootstrap/workflows/svc-" + name + ".yml", ExecutionEffect: effect,
		}
	}
	config := func(name, ownership, purpose string) File {
		f := File{
			Path: configFolder + name, Ownership: ownership, Phase: "C8-C", OverwritePolicy: replaceGenerated,
			Purpose: purpose, RenderSource: "svc-cli:bootstrap/templates/" + name, ExecutionEffect: "none",
		}
		if ownership == seed {
			f.OverwritePolicy = createIfAbsent
		}
		return f
	}
	return []File{
		workflow("dispatch", "Dispatches a work unit to a connector that a person admitted; the result is a candidate.", "candidate_dispatch"),
		workflow("preview", "Shows how a work unit would be routed; nothing is dispatched.", "none"),
		workflow("status", "Publishes the status of runs from retained evidence.", "publication"),
		workflow("verify", "Verifies a candidate and retains the evidence; it decides nothing.", "verification"),
		config("README.md", managed, "Explains the files beside it and who changes them."),
		config("connections.json", seed, "Connector profiles of the project; the one that is there to begin with is disabled."),
		config(domainPack, managed, "Names the kinds of work, tasks and evidence of software engineering."),
		config("project.json", seed, "The project's policy: people decide, nothing merges automatically."),
	}
}

const domainPack = "domain-packs/software-engineering-v0.1.domain-pack.json"

func ownerActions() []Action {
	action := func(code, summary, reason string) Action {
		return Action{Code: code, Summary: summary, Reason: reason, RequiresRepositoryOwner: true}
	}
	return []Action{
		action("authorize-provider-apps", "Authorize the apps of the providers whose connectors get enabled.",
			"Access to the repository is the owner's to give."),
		action("configure-branch-protection", "Protect the default branch: pull requests and checks required, force pushes and deletion blocked.",
			"Without it a candidate could reach the branch past people."),
		action("configure-provider-secrets", "Store the secrets that the profiles refer to by name.",
			"No file of the plan holds a secret, and svc reads none."),
		action("configure-secret-environments", "Make environments with required reviewers for workflows that use secrets.",
			"A person must approve before a secret is handed to a job."),
	}
}
