package engine

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/helmrelease"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Release is the newest revision of a Helm release.
type Release struct {
	helmrelease.Release
	Ref      operation.Ref // of the Secret that stores the revision
	Deployed int           // the newest revision that was deployed; 0: none
}

// Releases returns the Helm releases, by namespace and name.
func (s *Snapshot) Releases() []Release {
	all := map[Name]*Release{}
	for i := range s.Secrets {
		secret := &s.Secrets[i]
		if secret.Release == nil {
			continue
		}
		of := Name{Namespace: secret.Namespace, Name: secret.Release.Name}
		r := all[of]
		if r == nil {
			r = &Release{}
			all[of] = r
		}
		if secret.Release.Revision > r.Revision {
			r.Release, r.Ref = *secret.Release, operation.Ref{Version: "v1", Kind: "Secret", Namespace: secret.Namespace, Name: secret.Name}
		}
		// A superseded revision had been deployed.
		if secret.Release.Status == "deployed" || secret.Release.Status == "superseded" {
			r.Deployed = max(r.Deployed, secret.Release.Revision)
		}
	}
	list := make([]Release, 0, len(all))
	for _, r := range all {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b Release) int {
		return cmp.Or(cmp.Compare(a.Ref.Namespace, b.Ref.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// ReleaseOf returns the Helm release in a workload's annotations; ok is false if it belongs to none.
func (s *Snapshot) ReleaseOf(r operation.Ref) (release Name, ok bool) {
	o := s.workload(r)
	if o == nil {
		return release, false
	}
	return releaseOn(o)
}

func releaseOn(o metav1.Object) (Name, bool) {
	notes := o.GetAnnotations()
	return Name{Namespace: cmp.Or(notes[helmrelease.NamespaceAnnotation], o.GetNamespace()), Name: notes[helmrelease.NameAnnotation]}, notes[helmrelease.NameAnnotation] != ""
}

// WorkloadsOfRelease returns the workloads whose annotations name a release.
func (x *Index) WorkloadsOfRelease(namespace, name string) []operation.Ref {
	var all []operation.Ref
	for ref := range x.Workloads {
		if of, ok := x.ReleaseOf(ref); ok && of == (Name{Namespace: namespace, Name: name}) {
			all = append(all, ref)
		}
	}
	slices.SortFunc(all, func(a, b operation.Ref) int { return cmp.Compare(a.String(), b.String()) })
	return all
}
