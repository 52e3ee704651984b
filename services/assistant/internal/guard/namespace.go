package guard

import (
	"maps"
	"slices"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Policy lists the namespaces that are out of reach.
type Policy struct {
	Protected []string // readable, never written
	Hidden    []string // invisible to all callers
}

// Visible reports whether callers may see a namespace.
func (p Policy) Visible(namespace string) bool { return !slices.Contains(p.Hidden, namespace) }

// refusal is the reason why a write is out of reach for every role.
type refusal struct{ code, reason string }

// fixedGroups are groups with kinds that grant power over the cluster; every kind of these
// groups is out of reach.
var fixedGroups = map[string]string{
	"rbac.authorization.k8s.io":    "RBAC",
	"admissionregistration.k8s.io": "admission",
	"certificates.k8s.io":          "certificate",
	"apiregistration.k8s.io":       "API service",
}

// outOfReach finds operations that no role may make.
func (p Policy) outOfReach(c Case) *refusal {
	for _, e := range c.Operations {
		if r := p.named(e.Operation); r != nil {
			return r
		}
		for _, t := range e.Targets {
			if r := p.refused(t.Ref); r != nil {
				return r
			}
		}
		for _, ref := range e.Affected {
			if !p.Visible(scopeOf(ref)) {
				return &refusal{"not_found", "This would reach objects that are not there for you."}
			}
			// A drain lists the pods that it moves, so that the approver sees them.
			if e.Verb != operation.Drain && slices.Contains(p.Protected, scopeOf(ref)) {
				return p.protected(ref)
			}
		}
	}
	for _, change := range c.Changes {
		if r := p.refused(change.Ref); r != nil {
			return r
		}
		for _, object := range []map[string]any{change.Before, change.After} {
			if change.Ref.Group != "" || change.Ref.Kind != "PersistentVolume" {
				continue
			}
			reached := set{textAt(object, "spec", "claimRef", "namespace"): true}
			for namespace := range secretNamespaces(podSpecOf(change.After, "spec"), 0) {
				reached[namespace] = reached[namespace] || !secretNamespaces(podSpecOf(change.Before, "spec"), 0)[namespace]
			}
			for _, namespace := range slices.Sorted(maps.Keys(reached)) {
				switch {
				case !reached[namespace]:
				case !p.Visible(namespace):
					return &refusal{"not_found", "This would reach objects that are not there for you."}
				case slices.Contains(p.Protected, namespace):
					return p.protected(operation.Ref{Namespace: namespace})
				}
			}
		}
	}
	return nil
}

// named checks the namespace that an operation names, before anything is resolved.
func (p Policy) named(o operation.Operation) *refusal {
	switch {
	case o.Namespace == "":
		return nil
	case !p.Visible(o.Namespace):
		return &refusal{"not_found", "There is no such namespace."}
	case o.Risk() != operation.Low && slices.Contains(p.Protected, o.Namespace):
		return p.protected(operation.Ref{Namespace: o.Namespace})
	}
	return nil
}

// Precheck returns the refusals that follow from role and namespace alone, so that no call to
// the cluster is needed. Any answer other than Refuse is no permission yet: [Policy.Judge]
// gives that.
func (p Policy) Precheck(role Role, o operation.Operation) Verdict {
	v := Verdict{Risk: o.Risk()}
	if r := p.named(o); r != nil {
		return v.refuse(r.code, r.reason)
	}
	if !MayAttempt(role, o) {
		return v.refuse("role_too_low", "The role "+string(role)+" may not "+string(o.Verb)+".")
	}
	return v
}

// Reach reports whether the operations stay within reach of any role, so that nothing outside
// is dry-run. As with [Policy.Precheck], only a refusal is meaningful.
func (p Policy) Reach(role Role, ops []operation.Expanded) Verdict {
	v := Verdict{Risk: operation.Low}
	var reads, writes []operation.Expanded
	for _, e := range ops {
		v.Risk = v.Risk.Max(e.Risk())
		if e.Risk() == operation.Low {
			reads = append(reads, e)
		} else {
			writes = append(writes, e)
		}
		if !e.Verb.Writes() {
			continue
		}
		for _, t := range e.Targets {
			// Nor is it dry-run: whether the server accepts a value would reveal the current one.
			if r := fixedKind(t.Ref); r != nil {
				v.Row, v.Risk = Forbidden, operation.High
				return v.refuse(r.code, r.reason)
			}
		}
	}
	if read := p.judgeRead(Case{Role: role, Operations: reads}); read.Answer == Refuse {
		return read
	}
	if r := p.outOfReach(Case{Operations: writes}); r != nil {
		v.Row, v.Risk = Forbidden, operation.High
		return v.refuse(r.code, r.reason)
	}
	return v
}

func (p Policy) refused(ref operation.Ref) *refusal {
	switch {
	case ref.Kind == "" || ref.Version == "":
		return &refusal{"unresolved", "The kind could not be resolved, so it is not known what this would change."}
	case !p.Visible(scopeOf(ref)):
		return &refusal{"not_found", ref.Kind + " " + ref.Name + " is not there."}
	case slices.Contains(p.Protected, scopeOf(ref)):
		return p.protected(ref)
	}
	return fixedKind(ref)
}

// fixedKind refuses kinds that no role may write, in any namespace.
func fixedKind(ref operation.Ref) *refusal {
	switch {
	case ref.Group == "" && (ref.Kind == "Secret" || ref.Kind == "ServiceAccount"):
		return &refusal{"protected_kind", ref.Kind + " objects are never written here; do it yourself with your own rights."}
	case fixedGroups[ref.Group] != "":
		return &refusal{"protected_kind", "Objects of " + fixedGroups[ref.Group] + " are never written here; do it yourself with your own rights."}
	}
	return nil
}

func (p Policy) protected(ref operation.Ref) *refusal {
	return &refusal{"protected_namespace", "The namespace " + scopeOf(ref) + " is protected: it can be read and is never written."}
}

// scopeOf returns the namespace of an object; a namespace is its own.
func scopeOf(ref operation.Ref) string {
	if ref.Group == "" && ref.Kind == "Namespace" {
		return ref.Name
	}
	return ref.Namespace
}
