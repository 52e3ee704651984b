package registry

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// versions are the resource versions of a snapshot's objects.
type versions map[objectKey]string

type objectKey struct{ kind, namespace, name string }

// newVersions reads the versions of the objects that findings are about.
func newVersions(s *engine.Snapshot) versions {
	v := versions{}
	addVersions(v, "Node", s.Nodes)
	addVersions(v, "Pod", s.Pods)
	addVersions(v, "Deployment", s.Deployments)
	addVersions(v, "ReplicaSet", s.ReplicaSets)
	addVersions(v, "StatefulSet", s.StatefulSets)
	addVersions(v, "DaemonSet", s.DaemonSets)
	addVersions(v, "Job", s.Jobs)
	addVersions(v, "CronJob", s.CronJobs)
	addVersions(v, "HorizontalPodAutoscaler", s.Autoscalers)
	addVersions(v, "PodDisruptionBudget", s.Budgets)
	addVersions(v, "Service", s.Services)
	addVersions(v, "Ingress", s.Ingresses)
	addVersions(v, "NetworkPolicy", s.NetworkPolicies)
	addVersions(v, "Application", s.Applications)
	addVersions(v, "Certificate", s.Certificates)
	addVersions(v, "ConfigMap", s.ConfigMaps)
	addVersions(v, "PersistentVolumeClaim", s.Claims)
	addVersions(v, "PersistentVolume", s.Volumes)
	addVersions(v, "Namespace", s.Namespaces)
	addVersions(v, "ResourceQuota", s.Quotas)
	addVersions(v, "LimitRange", s.LimitRanges)
	addVersions(v, "ServiceAccount", s.ServiceAccounts)
	addVersions(v, "Event", s.Events)
	return v
}

func addVersions[T any, P interface {
	*T
	metav1.Object
}](v versions, kind string, list []T) {
	for i := range list {
		o := P(&list[i])
		v[objectKey{kind, o.GetNamespace(), o.GetName()}] = o.GetResourceVersion()
	}
}

// cite returns the reference to an object, with its version if the snapshot has it.
func (v versions) cite(r operation.Ref) operation.Reference {
	return r.Cite(v[objectKey{r.Kind, r.Namespace, r.Name}])
}
