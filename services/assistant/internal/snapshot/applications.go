package snapshot

import (
	"context"
	"slices"

	"github.com/mlp-platform/platform/services/assistant/internal/argocd"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// applications reads Argo CD's applications. They are in its namespace, whatever they manage.
func (r *reading) applications(ctx context.Context, show Show, served []cluster.Resource) error {
	_, err := r.customs(ctx, show, served, newCustom(argocd.Group, "applications", &r.into.Applications))
	return err
}

// cleanApplications redacts addresses and messages, and removes objects of hidden namespaces.
func (r *reading) cleanApplications(s *engine.Snapshot) {
	for i := range s.Applications {
		a := &s.Applications[i]
		if a.Spec.Source != nil {
			a.Spec.Source.RepoURL = redact.Text(a.Spec.Source.RepoURL)
		}
		for j := range a.Spec.Sources {
			a.Spec.Sources[j].RepoURL = redact.Text(a.Spec.Sources[j].RepoURL)
		}
		for j := range a.Status.Conditions {
			cleanMessage(&a.Status.Conditions[j].Message)
		}
		cleanMessage(&a.Status.Health.Message)
		a.Status.Resources = slices.DeleteFunc(a.Status.Resources, func(o argocd.Resource) bool { return !r.policy.Visible(o.Namespace) })
		for _, o := range a.Status.Resources {
			if o.Health != nil {
				cleanMessage(&o.Health.Message)
			}
		}
		op := a.Status.OperationState
		if op == nil {
			continue
		}
		cleanMessage(&op.Message)
		if op.SyncResult == nil {
			continue
		}
		op.SyncResult.Resources = slices.DeleteFunc(op.SyncResult.Resources, func(o argocd.Result) bool { return !r.policy.Visible(o.Namespace) })
		for j := range op.SyncResult.Resources {
			cleanMessage(&op.SyncResult.Resources[j].Message)
		}
	}
}
