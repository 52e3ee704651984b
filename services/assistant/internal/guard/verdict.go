package guard

import (
	"slices"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Role is what a caller may do at most.
type Role string

// The three roles.
const (
	Admin    Role = "admin"
	Operator Role = "operator"
	Readonly Role = "readonly"
)

// Answer is what a role gets for an operation. The zero value asks.
type Answer int

// The answers.
const (
	AlwaysAsk Answer = iota // a person decides, whatever was approved beforehand
	Approval                // a person decides, now or beforehand
	Allow
	Refuse
)

func (a Answer) String() string {
	switch a {
	case Approval:
		return "approval"
	case Allow:
		return "yes"
	case Refuse:
		return "refused"
	}
	return "always asks"
}

// Row is one row of the permission table.
type Row string

// The rows.
const (
	Read             Row = "read"
	MediumWrite      Row = "medium_write"
	HighWrite        Row = "high_write"
	ImageOrResources Row = "image_or_resources"
	PrivilegeGain    Row = "privilege_gain"
	Forbidden        Row = "forbidden"
	Decide           Row = "decide"
	OthersSessions   Row = "others_sessions"
	MintDemoKeys     Row = "mint_demo_keys"
)

// Change is one object before and after an operation, as plain JSON values. Before is
// nil when the object is created, After when it is deleted.
type Change struct {
	Ref           operation.Ref
	Before, After map[string]any
	// CopyOf is what a created object takes over, in the same shape: for a job that is
	// run now the job template of its CronJob. What stands there already is no gain.
	CopyOf map[string]any
	// Removes are objects that a controller deletes on account of it, though nobody
	// named them.
	Removes []operation.Ref
}

// Case is all that a verdict depends on.
type Case struct {
	Role       Role
	Operations []operation.Expanded
	// Changes hold one entry per target that the dry run returned, in any order.
	Changes []Change
	// Words is what the user wrote in this session; Known is [SpecTexts] of existing
	// objects and earlier revisions; Untrusted is text of logs, events and annotations
	// that was read.
	Words, Known, Untrusted []string
	// OriginJudged says that where the values come from was judged when the operations
	// were proposed, and that nobody has the words any more; see [Verdict.Recall].
	OriginJudged bool
	// Choice is nil where no language model had a say.
	Choice *Choice
}

// Confirm names why an operation always asks. The set is closed.
type Confirm string

// The members of the always-confirm class.
const (
	DeletesCascadingKind    Confirm = "deletes_cascading_kind"
	RemovesMany             Confirm = "removes_many"
	Drains                  Confirm = "drains"
	TaintsNoExecute         Confirm = "taints_no_execute"
	ChangesImageOrResources Confirm = "changes_image_or_resources"
	ReplacesByForce         Confirm = "replaces_by_force"
	Prunes                  Confirm = "prunes"
	RemovesFinalizer        Confirm = "removes_finalizer"
	ChangesOwner            Confirm = "changes_owner"
	GainsPrivilege          Confirm = "gains_privilege"
	GainsCredentials        Confirm = "gains_credentials"
	UntrustedValue          Confirm = "untrusted_value"
	ModelChoice             Confirm = "model_choice"
	NoDryRun                Confirm = "no_dry_run"
)

// Verdict is the judgement of a [Case].
type Verdict struct {
	Answer Answer
	Row    Row
	Risk   operation.Risk
	// Confirms are the members of the always-confirm class that apply, each once.
	Confirms []Confirm
	// Code is a slug for metrics when refused, and Reason the sentence for the caller.
	Code, Reason string
	// Notes say what was found, such as the privilege gained, for the prompt.
	Notes []string
}

// Recall adds what a later look cannot find out again: earlier are the members that
// applied at the proposal, and of these only where the write and its values come from is
// not in the cluster.
func (v Verdict) Recall(role Role, earlier []string) Verdict {
	applied := func(c Confirm) bool {
		return slices.Contains(earlier, string(c)) && !slices.Contains(v.Confirms, c)
	}
	untrusted, chosen := applied(UntrustedValue), applied(ModelChoice)
	if v.Answer == Refuse || !untrusted && !chosen {
		return v
	}
	v.Confirms = slices.Clone(v.Confirms)
	if chosen {
		v.Confirms = append(v.Confirms, ModelChoice)
	}
	if untrusted {
		v.Confirms = append(v.Confirms, UntrustedValue)
		if v.Row == MediumWrite {
			v.Row = HighWrite
		}
	}
	v.Risk = operation.High
	if Permit(role, v.Row) == Refuse {
		return v.refuse("role_too_low", "The role "+string(role)+" may not do this: it is "+phrases[v.Row]+".")
	}
	v.Answer = AlwaysAsk
	return v
}
