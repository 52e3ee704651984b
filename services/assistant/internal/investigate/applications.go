package investigate

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/argocd"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
)

// applications joins an Argo CD application that was asked about with the objects it manages, and objects that were
// asked about with the applications that manage them. Other objects of those are unrelated.
func (r *relations) applications(asked []operation.Ref) {
	for i := range r.Applications {
		a := &r.Applications[i]
		if !a.IsHere() {
			continue
		}
		all := r.has("Application", a.Namespace, a.Name)
		for _, o := range a.Status.Resources {
			if all {
				r.put(o.Kind, o.Namespace, o.Name)
			}
		}
	}
	for _, o := range asked {
		for _, a := range r.ApplicationsOf(o) {
			r.put("Application", a.Namespace, a.Name)
		}
	}
}

// describeApplication describes the state of an Argo CD application, its sources, and its sync policy.
func describeApplication(s *engine.Snapshot, r operation.Ref, head string) string {
	for i := range s.Applications {
		a := &s.Applications[i]
		if a.Name != r.Name || a.Namespace != r.Namespace {
			continue
		}
		var sources []string
		for _, source := range a.SourceList() {
			sources = append(sources, fmt.Sprintf("%s of %s at %s", report.Code(cmp.Or(source.Chart, source.Path, ".")), report.Code(source.RepoURL), report.Code(cmp.Or(source.TargetRevision, "HEAD"))))
		}
		text := fmt.Sprintf("%s is %s and %s, says Argo CD", head, report.Code(cmp.Or(a.Status.Sync.Status, "Unknown")), report.Code(cmp.Or(a.Status.Health.Status, "Unknown")))
		if len(sources) > 0 {
			text += "; it comes from " + strings.Join(sources, " and ")
		}
		return text + ", and is " + policyText(a) + "."
	}
	return ""
}

func policyText(a *argocd.Application) string {
	switch {
	case a.HealsItself():
		return "synced automatically, with self-heal"
	case a.IsAutomatic():
		return "synced automatically"
	}
	return "synced manually"
}

// describeManager names the Argo CD application that manages an object; empty if none does.
func describeManager(s *engine.Snapshot, r operation.Ref) string {
	text := ""
	for _, a := range s.ApplicationsOf(r) {
		text += fmt.Sprintf(" It is managed by the Argo CD application %s in namespace %s.", report.Code(a.Name), report.Code(a.Namespace))
	}
	return text
}
