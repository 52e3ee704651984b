package investigate

import (
	"fmt"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
)

// releases joins workloads that were asked about with their Helm releases, and such a release with its workloads.
func (r *relations) releases(asked []operation.Ref) {
	of := map[engine.Name]bool{}
	for _, o := range asked {
		if release, ok := r.ReleaseOf(o); ok {
			of[release] = true
		}
	}
	newest := map[engine.Name]bool{}
	for _, release := range r.Releases() {
		name := engine.Name{Namespace: release.Ref.Namespace, Name: release.Name}
		if of[name] {
			r.near[plainRef(release.Ref)] = true
		} else if r.near[plainRef(release.Ref)] {
			newest[name] = true
		}
	}
	if len(newest) == 0 {
		return
	}
	for _, w := range r.view.Workloads() {
		if release, ok := r.ReleaseOf(w.Ref); ok && newest[release] {
			r.near[plainRef(w.Ref)] = true
		}
	}
}

// releasesNamed returns the newest revisions of the Helm releases with a name, as the Secrets that store them.
func releasesNamed(s *engine.Snapshot, namespace, name string) []operation.Ref {
	var found []operation.Ref
	for _, r := range s.Releases() {
		if r.Name == name && withinNamespace(r.Ref, namespace) {
			found = append(found, r.Ref)
		}
	}
	return found
}

// findRelease returns the Helm release that a Secret stores, or nil.
func findRelease(s *engine.Snapshot, r operation.Ref) *engine.Release {
	if r.Kind != "Secret" {
		return nil
	}
	for _, release := range s.Releases() {
		if release.Ref.Name == r.Name && release.Ref.Namespace == r.Namespace {
			return &release
		}
	}
	return nil
}

// describeRelease describes the state of a Helm release; empty for other Secrets.
func describeRelease(s *engine.Snapshot, r operation.Ref, head string) string {
	release := findRelease(s, r)
	if release == nil {
		return ""
	}
	return fmt.Sprintf("%s stores revision %d of the Helm release %s, which is %s.", head, release.Revision, report.Code(release.Name), report.Code(release.Status))
}
