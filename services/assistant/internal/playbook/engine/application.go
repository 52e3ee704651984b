package engine

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/argocd"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// ApplicationRef returns the reference to an Argo CD application.
func ApplicationRef(a *argocd.Application) operation.Ref {
	return operation.Ref{Group: argocd.Group, Version: argocd.Version, Kind: "Application", Namespace: a.Namespace, Name: a.Name}
}

// ApplicationsOf returns the Argo CD applications that manage an object of this cluster, by name: one, unless several
// compete for it.
func (s *Snapshot) ApplicationsOf(r operation.Ref) []*argocd.Application {
	if len(s.Applications) == 0 {
		return nil
	}
	var annotations map[string]string
	if o := s.workload(r); o != nil {
		annotations = o.GetAnnotations()
	}
	var all []*argocd.Application
	for i := range s.Applications {
		if a := &s.Applications[i]; a.Manages(r, annotations) {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b *argocd.Application) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// workload returns the object of a workload, or nil.
func (s *Snapshot) workload(r operation.Ref) metav1.Object {
	switch r.Kind {
	case "Deployment":
		return findObject(s.Deployments, r)
	case "StatefulSet":
		return findObject(s.StatefulSets, r)
	case "DaemonSet":
		return findObject(s.DaemonSets, r)
	case "Job":
		return findObject(s.Jobs, r)
	case "CronJob":
		return findObject(s.CronJobs, r)
	}
	return nil
}

func findObject[T any, P interface {
	*T
	metav1.Object
}](list []T, r operation.Ref) metav1.Object {
	for i := range list {
		if o := P(&list[i]); o.GetName() == r.Name && o.GetNamespace() == r.Namespace {
			return o
		}
	}
	return nil
}
