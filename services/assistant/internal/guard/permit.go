package guard

import "github.com/mlp-platform/platform/services/assistant/internal/operation"

// permissions is the table of roles; its columns are admin, operator, readonly.
var permissions = map[Row][3]Answer{
	Read:             {Allow, Allow, Allow},
	MediumWrite:      {Approval, Approval, Refuse},
	HighWrite:        {Approval, Refuse, Refuse},
	ImageOrResources: {AlwaysAsk, AlwaysAsk, Refuse},
	PrivilegeGain:    {AlwaysAsk, Refuse, Refuse},
	Forbidden:        {Refuse, Refuse, Refuse},
	OthersSessions:   {Allow, Refuse, Refuse},
	MintDemoKeys:     {Allow, Refuse, Refuse},
}

// Permit returns the answer of a row for a role. Unknown roles are refused.
func Permit(role Role, row Row) Answer {
	answers, known := permissions[row]
	if !known {
		return Refuse
	}
	switch role {
	case Admin:
		return answers[0]
	case Operator:
		return answers[1]
	case Readonly:
		return answers[2]
	}
	return Refuse
}

// MayAttempt reports whether a role could ever use a verb, before any object is known: a
// refusal here needs no call to the cluster.
func MayAttempt(role Role, o operation.Operation) bool {
	switch {
	case o.Risk() == operation.Low:
		return Permit(role, Read) == Allow
	case o.Verb == operation.SetImage || o.Verb == operation.SetResources:
		return Permit(role, ImageOrResources) != Refuse
	case o.Risk() == operation.Medium:
		return Permit(role, MediumWrite) != Refuse
	}
	return Permit(role, HighWrite) != Refuse
}

// Prompts reports whether a person must decide now. beforehand means that the request or the
// session approved writes in advance, which never covers actions that always need a decision,
// and nothing at all under four eyes.
func (v Verdict) Prompts(beforehand, fourEyes bool) bool {
	switch v.Answer {
	case Allow, Refuse:
		return false
	case Approval:
		return !beforehand || fourEyes
	}
	return true
}
