package playbook

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// deployment is the deployment of that name, or nil.
func (x *index) deployment(r operation.Ref) *appsv1.Deployment {
	if r.Kind != "Deployment" {
		return nil
	}
	for i := range x.Deployments {
		if d := &x.Deployments[i]; d.Namespace == r.Namespace && d.Name == r.Name {
			return d
		}
	}
	return nil
}

// autoscaled says whether an autoscaler decides on a workload's replicas.
func (x *index) autoscaled(r operation.Ref) bool {
	for i := range x.Autoscalers {
		if a := &x.Autoscalers[i]; a.Namespace == r.Namespace && a.Spec.ScaleTargetRef.Kind == r.Kind && a.Spec.ScaleTargetRef.Name == r.Name {
			return true
		}
	}
	return false
}
