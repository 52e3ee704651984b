// Package separation keeps the deciders of a request separate from its requesters.
package separation

import (
	"fmt"
	"slices"
	"time"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
)

// Rules limit who may decide a record, and until when.
type Rules struct {
	// Expiry is the age at which a pending record expires; 0: never.
	Expiry time.Duration
	// Duties reports whether separation of duties is enforced: no requester approves their own request, and a change
	// whose author is unknown needs two approvals.
	Duties func() bool
}

// Ask describes the request that an approval answers: those who count as its requesters.
type Ask struct {
	Requesters []string
	// PersonUnknown means that the person behind the commit is not known.
	PersonUnknown bool
	// FirstApprover is the first approver, where two are needed.
	FirstApprover *string
}

// asked reports whether the principal is among the requesters.
func (a Ask) asked(name string) bool {
	return slices.ContainsFunc(a.Requesters, func(who string) bool { return auth.SameName(who, name) })
}

// first returns the first approver, unless they have become a requester since.
func (a Ask) first() string {
	if a.FirstApprover == nil || a.asked(*a.FirstApprover) {
		return ""
	}
	return *a.FirstApprover
}

// DecidedBy reports whether the deciders were enough: none of them is a requester, and there were two where the person
// behind the commit is unknown.
func (a Ask) DecidedBy(duties bool, last string) bool {
	switch {
	case IsExempt(last):
		return true
	case a.asked(last):
		return false
	}
	first := a.first()
	return !duties || !a.PersonUnknown || first != "" && !auth.SameName(first, last)
}

// IsExempt reports whether separation of duties does not apply to a principal: the legacy
// token, and the platform's own components, such as the one that seeds the samples. No
// credential of a person bears such a name.
func IsExempt(name string) bool { return name == auth.LegacyPrincipal || auth.System(name) }

// Refuse returns the reason why p may not approve; nil if they may.
func (r Rules) Refuse(p auth.Principal, ask Ask) *problem.Error {
	if !r.Duties() || IsExempt(p.Name) {
		return nil
	}
	if ask.asked(p.Name) {
		return fault.OwnRequest.New(fmt.Sprintf("%s requested this, or pushed the commit; someone else must approve it.", p.Name))
	}
	if ask.PersonUnknown && auth.SameName(ask.first(), p.Name) {
		return fault.SecondApprover.New(fmt.Sprintf("%s has already approved this. The person behind the commit is unknown, so a second person must approve it.", p.Name))
	}
	return nil
}

// NeedsAnother reports whether the approval of p, who may approve, is the first of two.
func (r Rules) NeedsAnother(p auth.Principal, ask Ask) bool {
	return r.Duties() && !IsExempt(p.Name) && ask.PersonUnknown && ask.first() == ""
}

// ExpiresAt returns when a record created at t expires; nil means never.
func (r Rules) ExpiresAt(t time.Time) *time.Time {
	if r.Expiry <= 0 {
		return nil
	}
	end := t.Add(r.Expiry)
	return &end
}

// MergeNames returns the union of lists of principals, each once.
func MergeNames(lists ...[]string) []string {
	out := []string{}
	for _, list := range lists {
		for _, name := range list {
			if name != "" && !slices.ContainsFunc(out, func(have string) bool { return auth.SameName(have, name) }) {
				out = append(out, name)
			}
		}
	}
	return out
}
