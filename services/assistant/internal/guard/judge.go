package guard

import (
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// cascading are the kinds whose deletion removes more than the object.
var cascading = map[[2]string]bool{
	{"", "Namespace"}:             true,
	{"", "PersistentVolume"}:      true,
	{"", "PersistentVolumeClaim"}: true,
	{"", "Node"}:                  true,
	{"apiextensions.k8s.io", "CustomResourceDefinition"}: true,
	{"storage.k8s.io", "StorageClass"}:                   true,
}

// Judge decides what a role may do with operations that form one action. It examines the
// expanded operations and the objects before and after, never text. One member of the
// always-confirm class makes the whole action a member.
func (p Policy) Judge(c Case) Verdict {
	v := Verdict{Risk: operation.Low}
	writes := false
	for _, e := range c.Operations {
		v.Risk = v.Risk.Max(e.Risk())
		writes = writes || e.Risk() != operation.Low
	}
	if !writes {
		return p.judgeRead(c)
	}
	if len(c.Operations) == 0 {
		return v.refuse("unresolved", "There is nothing to do.")
	}
	if r := p.outOfReach(c); r != nil {
		v.Row, v.Risk = Forbidden, operation.High
		return v.refuse(r.code, r.reason)
	}
	for _, e := range c.Operations {
		if e.Risk() == operation.Low {
			continue // a read or a dry run among the writes
		}
		if len(e.Targets) == 0 {
			return v.refuse("unresolved", "Nothing in the cluster matches, so there is nothing to do.")
		}
		v.confirmOperation(e, c.Changes)
	}
	ended := false
	for _, change := range c.Changes {
		ended = v.confirmChange(change) || ended
	}
	if !c.OriginJudged {
		v.confirmOrigin(c)
		v.confirmChoice(c)
	}
	v.finish(c.Role, ended || slices.ContainsFunc(c.Operations, func(e operation.Expanded) bool {
		return e.Risk() == operation.High && e.Verb != operation.SetImage && e.Verb != operation.SetResources
	}))
	return v
}

// judgeRead permits reads and dry runs, except in hidden namespaces.
func (p Policy) judgeRead(c Case) Verdict {
	v := Verdict{Answer: Permit(c.Role, Read), Row: Read, Risk: operation.Low}
	if v.Answer == Refuse {
		return v.refuse("role_too_low", "The role is not known.")
	}
	for _, e := range c.Operations {
		hidden := !p.Visible(e.Namespace)
		for _, t := range e.Targets {
			hidden = hidden || !p.Visible(scopeOf(t.Ref))
		}
		if hidden {
			return v.refuse("not_found", "There is no such namespace.")
		}
	}
	return v
}

func (v Verdict) refuse(code, reason string) Verdict {
	v.Answer, v.Code, v.Reason = Refuse, code, reason
	return v
}

func (v *Verdict) add(c Confirm, note string) {
	if !slices.Contains(v.Confirms, c) {
		v.Confirms = append(v.Confirms, c)
	}
	v.note(note)
}

func (v *Verdict) note(note string) {
	if note != "" && !slices.Contains(v.Notes, note) {
		v.Notes = append(v.Notes, note)
	}
}

// confirmOperation finds the members of the always-confirm class that the operation and its
// targets show.
func (v *Verdict) confirmOperation(e operation.Expanded, changes []Change) {
	selected := e.All || e.LabelSelector != "" || e.FieldSelector != ""
	several := len(e.Targets) > 1 || len(e.Names) > 1
	switch e.Verb {
	case operation.Delete, operation.Evict:
		if selected || several {
			v.add(RemovesMany, "")
		}
	case operation.Scale:
		if (selected || several) && slices.ContainsFunc(changes, endsPods) {
			v.add(RemovesMany, "")
		}
	case operation.Drain:
		v.add(Drains, "")
	case operation.Taint:
		for _, t := range e.Taints {
			if strings.HasSuffix(t, ":NoExecute") {
				v.add(TaintsNoExecute, "evicts the pods that do not tolerate "+t)
			}
		}
	case operation.SetImage, operation.SetResources:
		v.add(ChangesImageOrResources, "")
	case operation.Replace:
		if e.Force {
			v.add(ReplacesByForce, "")
		}
	case operation.Apply:
		if e.Prune {
			v.add(Prunes, "")
		}
	}
	removes := e.Verb == operation.Delete || e.Verb == operation.Replace && e.Force
	for _, t := range e.Targets {
		if removes && cascading[[2]string{t.Ref.Group, t.Ref.Kind}] {
			v.add(DeletesCascadingKind, "deletes "+t.Ref.String())
		}
	}
	if e.NoDryRun || !wasRehearsed(e, changes) {
		v.add(NoDryRun, "")
	}
}

// endsPods reports whether a change lowers the number of replicas.
func endsPods(c Change) bool {
	return c.Before != nil && c.After != nil && numberLess(podSpecOf(c.After, "spec", "replicas"), podSpecOf(c.Before, "spec", "replicas"))
}

// wasRehearsed reports whether each target was read, and each that the operation keeps was
// returned by the dry run. Otherwise there is nothing to judge.
func wasRehearsed(e operation.Expanded, changes []Change) bool {
	removes := e.Verb == operation.Delete || e.Verb == operation.Evict || e.Verb == operation.Apply && e.Prune
	for _, t := range e.Targets {
		if !slices.ContainsFunc(changes, func(c Change) bool { return sameObject(c.Ref, t.Ref) && (removes || c.After != nil) }) {
			return false
		}
	}
	return true
}

// sameObject reports whether two references name the same object; versions of one kind are
// views of the same object.
func sameObject(a, b operation.Ref) bool {
	return a.Group == b.Group && a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name
}

// confirmChange finds the members that only the objects show, whatever verb causes them. ended
// reports a write that amounts to a deletion, and therefore has high risk.
func (v *Verdict) confirmChange(c Change) (ended bool) {
	for _, note := range takesAlong(c) {
		v.add(DeletesCascadingKind, note)
	}
	if c.After == nil {
		if c.Before != nil && cascading[[2]string{c.Ref.Group, c.Ref.Kind}] {
			v.add(DeletesCascadingKind, "deletes "+c.Ref.String())
		}
		return false
	}
	if changesOwner(c) {
		v.add(ChangesOwner, "changes the owner of "+c.Ref.String()+", which ends with its owner")
	}
	if len(c.Removes) > 1 {
		v.add(RemovesMany, "")
	}
	for _, note := range listEndings(c) {
		v.note(note)
		v.Risk, ended = operation.High, true
	}
	for _, f := range lostFinalizers(c.Before, c.After) {
		v.add(RemovesFinalizer, "removes the finalizer "+f)
	}
	if c.Before != nil && changesImageOrResources(c.Before, c.After) {
		v.add(ChangesImageOrResources, "")
	}
	for _, field := range programChanges(c) {
		v.add(ChangesProgram, "changes "+field+" of "+c.Ref.String())
	}
	for _, gain := range listGains(c) {
		v.add(GainsPrivilege, "gains "+gain)
	}
	base := c.Before
	if base == nil {
		base = c.CopyOf
	}
	for _, gain := range newCredentials(base, c.After) {
		v.add(GainsCredentials, "gives its pods "+gain)
	}
	if c.Ref.Group == "" && c.Ref.Kind == "Node" {
		for _, t := range newNoExecute(c.Before, c.After) {
			v.add(TaintsNoExecute, "evicts the pods that do not tolerate "+t)
		}
	}
	return ended
}

// finish determines the row, the risk and the answer. highVerb reports a high risk that does
// not come from image, resources or credentials.
func (v *Verdict) finish(role Role, highVerb bool) {
	has := func(c Confirm) bool { return slices.Contains(v.Confirms, c) }
	if len(v.Confirms) > 1 || len(v.Confirms) == 1 && !has(ModelChoice) {
		v.Risk = operation.High
	}
	// An operator may change images, resources, programs and the Secrets of a pod although their
	// risk is high; nothing else with high risk may hide behind that.
	ofPods := []Confirm{ChangesImageOrResources, ChangesProgram, GainsCredentials}
	onlyImage := slices.ContainsFunc(ofPods, has) && !slices.ContainsFunc(v.Confirms, func(c Confirm) bool {
		return !slices.Contains(ofPods, c) && c != UntrustedValue && c != ModelChoice
	})
	switch {
	case has(GainsPrivilege):
		v.Row = PrivilegeGain
	case onlyImage && !highVerb:
		v.Row = ImageOrResources
	case v.Risk == operation.High:
		v.Row = HighWrite
	default:
		v.Row = MediumWrite
	}
	if has(ModelChoice) {
		v.Risk = operation.High // for the decider; what a role may do depends on the write alone
	}
	v.Answer = Permit(role, v.Row)
	switch {
	case v.Answer == Refuse:
		v.Code = "role_too_low"
		v.Reason = "The role " + string(role) + " may not do this: it is " + phrases[v.Row] + "."
	case len(v.Confirms) > 0:
		v.Answer = AlwaysAsk
	}
}

var phrases = map[Row]string{
	MediumWrite:      "a write",
	HighWrite:        "a write of high risk",
	ImageOrResources: "a change of a container's image, program, resources or Secrets",
	PrivilegeGain:    "a gain of privilege",
}
