package snapshot

import (
	"context"
	"strings"

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
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// withoutNamespace adapts the list of a cluster-scoped kind.
func withoutNamespace[L any](list lister[L]) func(string) lister[L] {
	return func(string) lister[L] { return list }
}

// groups returns all reads, in the order in which they are shown: the most likely culprits first.
func (r *reading) groups() []*group {
	t, s := r.cluster.Typed(), r.into
	core, apps, batch, net := t.CoreV1(), t.AppsV1(), t.BatchV1(), t.NetworkingV1()
	return []*group{
		r.within(r.pods(r.namespace)),
		r.within(readScoped(r, "events", func(n string) lister[*corev1.EventList] { return core.Events(n).List }, func(l *corev1.EventList) []corev1.Event { return l.Items }, &s.Events)),
		r.within(
			readScoped(r, "deployments", func(n string) lister[*appsv1.DeploymentList] { return apps.Deployments(n).List }, func(l *appsv1.DeploymentList) []appsv1.Deployment { return l.Items }, &s.Deployments),
			readScoped(r, "replicasets", func(n string) lister[*appsv1.ReplicaSetList] { return apps.ReplicaSets(n).List }, func(l *appsv1.ReplicaSetList) []appsv1.ReplicaSet { return l.Items }, &s.ReplicaSets),
			readScoped(r, "statefulsets", func(n string) lister[*appsv1.StatefulSetList] { return apps.StatefulSets(n).List }, func(l *appsv1.StatefulSetList) []appsv1.StatefulSet { return l.Items }, &s.StatefulSets),
			readScoped(r, "daemonsets", func(n string) lister[*appsv1.DaemonSetList] { return apps.DaemonSets(n).List }, func(l *appsv1.DaemonSetList) []appsv1.DaemonSet { return l.Items }, &s.DaemonSets),
			readScoped(r, "jobs", func(n string) lister[*batchv1.JobList] { return batch.Jobs(n).List }, func(l *batchv1.JobList) []batchv1.Job { return l.Items }, &s.Jobs),
			readScoped(r, "cronjobs", func(n string) lister[*batchv1.CronJobList] { return batch.CronJobs(n).List }, func(l *batchv1.CronJobList) []batchv1.CronJob { return l.Items }, &s.CronJobs),
			readScoped(r, "horizontalpodautoscalers", func(n string) lister[*autoscalingv2.HorizontalPodAutoscalerList] {
				return t.AutoscalingV2().HorizontalPodAutoscalers(n).List
			}, func(l *autoscalingv2.HorizontalPodAutoscalerList) []autoscalingv2.HorizontalPodAutoscaler {
				return l.Items
			}, &s.Autoscalers),
		),
		r.within(
			readScoped(r, "configmaps", func(n string) lister[*corev1.ConfigMapList] { return core.ConfigMaps(n).List }, func(l *corev1.ConfigMapList) []corev1.ConfigMap { return l.Items }, &s.ConfigMaps),
			r.secrets(),
			readScoped(r, "serviceaccounts", func(n string) lister[*corev1.ServiceAccountList] { return core.ServiceAccounts(n).List }, func(l *corev1.ServiceAccountList) []corev1.ServiceAccount { return l.Items }, &s.ServiceAccounts),
			readScoped(r, "persistentvolumeclaims", func(n string) lister[*corev1.PersistentVolumeClaimList] { return core.PersistentVolumeClaims(n).List }, func(l *corev1.PersistentVolumeClaimList) []corev1.PersistentVolumeClaim { return l.Items }, &s.Claims),
			readScoped(r, "resourcequotas", func(n string) lister[*corev1.ResourceQuotaList] { return core.ResourceQuotas(n).List }, func(l *corev1.ResourceQuotaList) []corev1.ResourceQuota { return l.Items }, &s.Quotas),
			readScoped(r, "limitranges", func(n string) lister[*corev1.LimitRangeList] { return core.LimitRanges(n).List }, func(l *corev1.LimitRangeList) []corev1.LimitRange { return l.Items }, &s.LimitRanges),
			readScoped(r, "ingresses", func(n string) lister[*networkingv1.IngressList] { return net.Ingresses(n).List }, func(l *networkingv1.IngressList) []networkingv1.Ingress { return l.Items }, &s.Ingresses),
			readScoped(r, "roles", func(n string) lister[*rbacv1.RoleList] { return t.RbacV1().Roles(n).List }, func(l *rbacv1.RoleList) []rbacv1.Role { return l.Items }, &s.Roles),
			readScoped(r, "rolebindings", func(n string) lister[*rbacv1.RoleBindingList] { return t.RbacV1().RoleBindings(n).List }, func(l *rbacv1.RoleBindingList) []rbacv1.RoleBinding { return l.Items }, &s.RoleBindings),
		),
		r.everywhere(
			readWide(r, "services", func(n string) lister[*corev1.ServiceList] { return core.Services(n).List }, func(l *corev1.ServiceList) []corev1.Service { return l.Items }, &s.Services),
			readWide(r, "endpointslices", func(n string) lister[*discoveryv1.EndpointSliceList] { return t.DiscoveryV1().EndpointSlices(n).List }, func(l *discoveryv1.EndpointSliceList) []discoveryv1.EndpointSlice { return l.Items }, &s.EndpointSlices),
			readWide(r, "networkpolicies", func(n string) lister[*networkingv1.NetworkPolicyList] { return net.NetworkPolicies(n).List }, func(l *networkingv1.NetworkPolicyList) []networkingv1.NetworkPolicy { return l.Items }, &s.NetworkPolicies),
			readWide(r, "poddisruptionbudgets", func(n string) lister[*policyv1.PodDisruptionBudgetList] {
				return t.PolicyV1().PodDisruptionBudgets(n).List
			}, func(l *policyv1.PodDisruptionBudgetList) []policyv1.PodDisruptionBudget { return l.Items }, &s.Budgets),
		),
		clusterWide(
			readScoped(r, "nodes", withoutNamespace(core.Nodes().List), func(l *corev1.NodeList) []corev1.Node { return l.Items }, &s.Nodes),
			readScoped(r, "namespaces", withoutNamespace(core.Namespaces().List), func(l *corev1.NamespaceList) []corev1.Namespace { return l.Items }, &s.Namespaces),
			readScoped(r, "persistentvolumes", withoutNamespace(core.PersistentVolumes().List), func(l *corev1.PersistentVolumeList) []corev1.PersistentVolume { return l.Items }, &s.Volumes),
			readScoped(r, "storageclasses", withoutNamespace(t.StorageV1().StorageClasses().List), func(l *storagev1.StorageClassList) []storagev1.StorageClass { return l.Items }, &s.StorageClasses),
			readScoped(r, "ingressclasses", withoutNamespace(net.IngressClasses().List), func(l *networkingv1.IngressClassList) []networkingv1.IngressClass { return l.Items }, &s.IngressClasses),
			readScoped(r, "clusterroles", withoutNamespace(t.RbacV1().ClusterRoles().List), func(l *rbacv1.ClusterRoleList) []rbacv1.ClusterRole { return l.Items }, &s.ClusterRoles),
			readScoped(r, "clusterrolebindings", withoutNamespace(t.RbacV1().ClusterRoleBindings().List), func(l *rbacv1.ClusterRoleBindingList) []rbacv1.ClusterRoleBinding { return l.Items }, &s.ClusterBindings),
			readScoped(r, "validatingwebhookconfigurations", withoutNamespace(t.AdmissionregistrationV1().ValidatingWebhookConfigurations().List), func(l *admissionv1.ValidatingWebhookConfigurationList) []admissionv1.ValidatingWebhookConfiguration {
				return l.Items
			}, &s.Validating),
			readScoped(r, "mutatingwebhookconfigurations", withoutNamespace(t.AdmissionregistrationV1().MutatingWebhookConfigurations().List), func(l *admissionv1.MutatingWebhookConfigurationList) []admissionv1.MutatingWebhookConfiguration {
				return l.Items
			}, &s.Mutating),
		),
		{
			op:    operation.Operation{Verb: operation.List, Kind: "leases", Namespace: corev1.NamespaceNodeLease},
			kinds: []kind{readScoped(r, "leases", withoutNamespace(t.CoordinationV1().Leases(corev1.NamespaceNodeLease).List), func(l *coordinationv1.LeaseList) []coordinationv1.Lease { return l.Items }, &s.Leases)},
		},
		r.usage(),
	}
}

// within returns a group of the namespace in question.
func (r *reading) within(kinds ...kind) *group {
	g := clusterWide(kinds...)
	g.op.Namespace, g.op.AllNamespaces = r.namespace, r.namespace == ""
	return g
}

// everywhere returns a group of all namespaces.
func (r *reading) everywhere(kinds ...kind) *group {
	g := clusterWide(kinds...)
	g.op.AllNamespaces = true
	return g
}

func clusterWide(kinds ...kind) *group {
	names := make([]string, 0, len(kinds))
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return &group{op: operation.Operation{Verb: operation.List, Kind: strings.Join(names, ",")}, kinds: kinds}
}

// pods reads the pods of a namespace and the cluster's DNS servers; an empty namespace means all. Pods of hidden
// namespaces stay as nameless load on their nodes.
func (r *reading) pods(namespace string) kind {
	return kind{"pods", func(ctx context.Context) (int, bool, error) {
		client, items := r.cluster.Typed().CoreV1(), func(l *corev1.PodList) []corev1.Pod { return l.Items }
		found, whole, err := readAllPages(ctx, client.Pods(namespace).List, items, metav1.ListOptions{})
		if err == nil && namespace != "" && namespace != metav1.NamespaceSystem {
			dns, _, dnsErr := readAllPages(ctx, client.Pods(metav1.NamespaceSystem).List, items, metav1.ListOptions{LabelSelector: "k8s-app=kube-dns"})
			if dnsErr == nil { // an account that may not read them sees the endpoints of the service
				found = append(found, dns...)
			}
		}
		if err != nil {
			return 0, false, err
		}
		load := found[:0:0]
		for i := range found {
			if !r.policy.Visible(found[i].Namespace) {
				load = append(load, stripNames(&found[i]))
			}
		}
		pods := filterVisible[corev1.Pod](r, found)
		r.into.Pods = append(pods, load...)
		return len(pods), whole, nil
	}, r.podRows}
}

// secrets reads the names of keys and the public part of certificates, never a value.
func (r *reading) secrets() kind {
	return kind{"secrets", func(ctx context.Context) (int, bool, error) {
		all, err := r.cluster.SecretKeys(ctx, r.namespace)
		if err != nil {
			return 0, false, err
		}
		for _, s := range all {
			if r.policy.Visible(s.Namespace) {
				r.into.Secrets = append(r.into.Secrets, engine.SecretKeys(s))
			}
		}
		return len(r.into.Secrets), true, nil
	}, r.secretRows}
}
