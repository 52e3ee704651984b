package guard

import (
	"slices"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Role limits what a caller may do.
type Role string

// The three roles of people, and that of keys that only send alerts, for which the table of permissions has no column.
const (
	Admin    Role = "admin"
	Operator Role = "operator"
	Readonly Role = "readonly"
	Alerts   Role = "alerts"
)

// Answer is the answer to an operation for a role. The zero value asks.
type Answer int

// The answers.
const (
	AlwaysAsk Answer = iota // a person decides, whatever was approved in advance
	Approval                // a person decides, now or in advance
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
	// CopyOf is the template that a created object copies, in the same shape: for a job that is run now, the job template
	// of its CronJob. Its contents are no gain.
	CopyOf map[string]any
	// Removes are objects that a controller deletes as a result without being named.
	Removes []operation.Ref
}

// Case holds everything that a verdict depends on.
type Case struct {
	Role       Role
	Operations []operation.Expanded
	// Changes hold one entry per target that the dry run returned, in any order.
	Changes []Change
	// Words is the text that the user wrote in this session; Known is the [SpecTexts] of existing objects and earlier
	// revisions; Untrusted is the text of logs, events and annotations that was read.
	Words, Known, Untrusted []string
	// OriginJudged means that the origin of the values was judged when the operations were
	// proposed, and that the words are no longer available; see [Verdict.Recall].
	OriginJudged bool
	// Choice is nil if no language model took part.
	Choice *Choice
}

// Confirm is a reason why an operation always needs a decision. The set is closed.
type Confirm string

// The members of the always-confirm class.
const (
	DeletesCascadingKind    Confirm = "deletes_cascading_kind"
	RemovesMany             Confirm = "removes_many"
	Drains                  Confirm = "drains"
	TaintsNoExecute         Confirm = "taints_no_execute"
	ChangesImageOrResources Confirm = "changes_image_or_resources"
	ChangesProgram          Confirm = "changes_program"
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
	// Confirms are the applicable members of the always-confirm class, each once.
	Confirms []Confirm
	// Code is a slug for metrics if refused, and Reason the sentence for the caller.
	Code, Reason string
	// Notes describe findings for the prompt, such as a gained privilege.
	Notes []string
}

// Recall adds what a later check cannot find again. earlier are the members that applied at the
// proposal; only the ones about the origin of the write and of its values are kept, since the
// cluster does not show that origin.
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
