package engine

import (
	"slices"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/argocd"
	"github.com/mlp-platform/platform/services/assistant/internal/certmanager"
	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/helmrelease"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// Snapshot holds the objects read from a cluster, from all namespaces that the reader may see. This package never
// modifies it. Its order does not matter.
type Snapshot struct {
	Taken time.Time
	// Within is the namespace that was read, with its dependencies elsewhere; empty: all.
	Within string

	// Nodes, and the pods of all namespaces: together they determine the free resources of a node.
	Nodes []corev1.Node
	Pods  []corev1.Pod

	Deployments  []appsv1.Deployment
	ReplicaSets  []appsv1.ReplicaSet
	StatefulSets []appsv1.StatefulSet
	DaemonSets   []appsv1.DaemonSet
	Jobs         []batchv1.Job
	CronJobs     []batchv1.CronJob
	Autoscalers  []autoscalingv2.HorizontalPodAutoscaler
	Budgets      []policyv1.PodDisruptionBudget

	Services        []corev1.Service
	EndpointSlices  []discoveryv1.EndpointSlice
	Ingresses       []networkingv1.Ingress
	IngressClasses  []networkingv1.IngressClass
	NetworkPolicies []networkingv1.NetworkPolicy

	// Of the Gateway API, where the cluster serves it.
	GatewayClasses  []gatewayapi.GatewayClass
	Gateways        []gatewayapi.Gateway
	Routes          []gatewayapi.Route
	ReferenceGrants []gatewayapi.ReferenceGrant
	// GatewayKinds are the kinds, plural, of the Gateway API that the cluster serves; nil if not read. No object of any
	// other kind is reported as absent.
	GatewayKinds map[string]bool

	// Of cert-manager, where the cluster serves it.
	Certificates        []certmanager.Certificate
	CertificateRequests []certmanager.CertificateRequest
	Issuers             []certmanager.Issuer // those of one namespace and those of the cluster
	Orders              []certmanager.Order
	Challenges          []certmanager.Challenge
	// CertificateKinds is the same for cert-manager.
	CertificateKinds map[string]bool

	// Applications are the Argo CD applications, if the cluster serves them.
	Applications []argocd.Application

	ConfigMaps     []corev1.ConfigMap
	Secrets        []SecretKeys
	Claims         []corev1.PersistentVolumeClaim
	Volumes        []corev1.PersistentVolume
	StorageClasses []storagev1.StorageClass

	// ResourceClaims are read only if a pod uses one.
	ResourceClaims []resourcev1.ResourceClaim

	Namespaces      []corev1.Namespace
	Quotas          []corev1.ResourceQuota
	LimitRanges     []corev1.LimitRange
	ServiceAccounts []corev1.ServiceAccount
	Roles           []rbacv1.Role
	RoleBindings    []rbacv1.RoleBinding
	ClusterRoles    []rbacv1.ClusterRole
	ClusterBindings []rbacv1.ClusterRoleBinding

	Validating []admissionv1.ValidatingWebhookConfiguration
	Mutating   []admissionv1.MutatingWebhookConfiguration
	Leases     []coordinationv1.Lease // of nodes
	Events     []corev1.Event

	// Usage holds the metrics API's figures for each pod's containers; nil where the cluster has no such API.
	Usage map[Log]corev1.ResourceList
	// Served holds the group/versions that discovery lists, such as apps/v1; nil if not read.
	Served map[string]bool

	// Logs holds the last lines, redacted, of the containers that Wants names.
	Logs map[Log]string

	// Unread are the kinds, plural, that could not be read completely. No object of such a kind is ever reported as
	// absent.
	Unread map[string]bool

	mu    sync.Mutex
	found map[string]func() []Finding // guarded by mu: by namespace
}

// DiagnoseOnce returns the findings of diagnose for a namespace, and calls it once for all callers that share one
// snapshot: there may be hundreds at a time, and each diagnosis takes as much memory as the cluster is large. From the
// first call on the snapshot must not be modified, nor ever the returned findings.
func (s *Snapshot) DiagnoseOnce(namespace string, diagnose func() []Finding) []Finding {
	s.mu.Lock()
	find := s.found[namespace]
	if find == nil {
		if s.found == nil {
			s.found = map[string]func() []Finding{}
		}
		find = sync.OnceValue(func() []Finding { return slices.Clip(diagnose()) })
		s.found[namespace] = find
	}
	s.mu.Unlock()
	return find()
}

// SecretKeys is a Secret without its values: what is not here cannot leak.
type SecretKeys struct {
	Namespace, Name string
	Keys            []string
	Type            string
	// Certificate is the public part of a TLS Secret's certificate; nil for other Secrets.
	Certificate *redact.Certificate
	// Release is the revision of a Helm release that the Secret stores; nil for other Secrets. Its keys are not read.
	Release *helmrelease.Release
}

// Log names one container's log.
type Log struct {
	Namespace, Pod, Container string
	Previous                  bool // of the run before the last restart
}
