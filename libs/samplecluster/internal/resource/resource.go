// Package resource lists the kinds the sample cluster serves, as discovery announces them.
package resource

import (
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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Object is a typed API object with metadata; every stored value is one.
type Object interface {
	runtime.Object
	metav1.Object
}

// Kind describes one served resource.
type Kind struct {
	GroupVersionKind schema.GroupVersionKind
	// Plural is the resource name in URLs.
	Plural     string
	Singular   string
	Short      []string
	Categories []string
	Namespaced bool
	// Status and Scale report whether the kind has that subresource.
	Status, Scale bool
	// Generation reports whether metadata.generation counts changes of the spec.
	Generation bool
}

// GroupResource is the kind's key in the store.
func (k Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.GroupVersionKind.Group, Resource: k.Plural}
}

// New returns an empty object of the kind with its type set.
func (k Kind) New() Object {
	made, err := scheme.Scheme.New(k.GroupVersionKind)
	if err != nil { // the table below names only kinds of the scheme; a test walks it
		panic(err)
	}
	made.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	return made.(Object)
}

// Keys of the resources that the cluster's own parts read and write.
var (
	Namespaces          = schema.GroupResource{Resource: "namespaces"}
	Nodes               = schema.GroupResource{Resource: "nodes"}
	Pods                = schema.GroupResource{Resource: "pods"}
	Services            = schema.GroupResource{Resource: "services"}
	Endpoints           = schema.GroupResource{Resource: "endpoints"}
	Events              = schema.GroupResource{Resource: "events"}
	ConfigMaps          = schema.GroupResource{Resource: "configmaps"}
	Secrets             = schema.GroupResource{Resource: "secrets"}
	ServiceAccounts     = schema.GroupResource{Resource: "serviceaccounts"}
	PersistentVolumes   = schema.GroupResource{Resource: "persistentvolumes"}
	Claims              = schema.GroupResource{Resource: "persistentvolumeclaims"}
	Quotas              = schema.GroupResource{Resource: "resourcequotas"}
	LimitRanges         = schema.GroupResource{Resource: "limitranges"}
	Deployments         = schema.GroupResource{Group: "apps", Resource: "deployments"}
	ReplicaSets         = schema.GroupResource{Group: "apps", Resource: "replicasets"}
	StatefulSets        = schema.GroupResource{Group: "apps", Resource: "statefulsets"}
	DaemonSets          = schema.GroupResource{Group: "apps", Resource: "daemonsets"}
	Jobs                = schema.GroupResource{Group: "batch", Resource: "jobs"}
	CronJobs            = schema.GroupResource{Group: "batch", Resource: "cronjobs"}
	EndpointSlices      = schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"}
	NetworkPolicies     = schema.GroupResource{Group: "networking.k8s.io", Resource: "networkpolicies"}
	DisruptionBudgets   = schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}
	Autoscalers         = schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}
	StorageClasses      = schema.GroupResource{Group: "storage.k8s.io", Resource: "storageclasses"}
	Leases              = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	all                 = []string{"all"}
	kinds               = listKinds()
	byResource, byKinds = indexKinds(kinds)
)

func listKinds() []Kind {
	core := corev1.SchemeGroupVersion.WithKind
	apps := appsv1.SchemeGroupVersion.WithKind
	batch := batchv1.SchemeGroupVersion.WithKind
	net := networkingv1.SchemeGroupVersion.WithKind
	rbac := rbacv1.SchemeGroupVersion.WithKind
	return []Kind{
		{GroupVersionKind: core("Namespace"), Plural: "namespaces", Singular: "namespace", Short: []string{"ns"}, Status: true},
		{GroupVersionKind: core("Node"), Plural: "nodes", Singular: "node", Short: []string{"no"}, Status: true},
		{GroupVersionKind: core("Pod"), Plural: "pods", Singular: "pod", Short: []string{"po"}, Categories: all, Namespaced: true, Status: true, Generation: true},
		{GroupVersionKind: core("Service"), Plural: "services", Singular: "service", Short: []string{"svc"}, Categories: all, Namespaced: true, Status: true},
		{GroupVersionKind: core("Endpoints"), Plural: "endpoints", Singular: "endpoints", Short: []string{"ep"}, Namespaced: true},
		{GroupVersionKind: core("Event"), Plural: "events", Singular: "event", Short: []string{"ev"}, Namespaced: true},
		{GroupVersionKind: core("ConfigMap"), Plural: "configmaps", Singular: "configmap", Short: []string{"cm"}, Namespaced: true},
		{GroupVersionKind: core("Secret"), Plural: "secrets", Singular: "secret", Namespaced: true},
		{GroupVersionKind: core("ServiceAccount"), Plural: "serviceaccounts", Singular: "serviceaccount", Short: []string{"sa"}, Namespaced: true},
		{GroupVersionKind: core("PersistentVolume"), Plural: "persistentvolumes", Singular: "persistentvolume", Short: []string{"pv"}, Status: true},
		{GroupVersionKind: core("PersistentVolumeClaim"), Plural: "persistentvolumeclaims", Singular: "persistentvolumeclaim", Short: []string{"pvc"}, Namespaced: true, Status: true},
		{GroupVersionKind: core("ResourceQuota"), Plural: "resourcequotas", Singular: "resourcequota", Short: []string{"quota"}, Namespaced: true, Status: true},
		{GroupVersionKind: core("LimitRange"), Plural: "limitranges", Singular: "limitrange", Short: []string{"limits"}, Namespaced: true},
		{GroupVersionKind: apps("Deployment"), Plural: "deployments", Singular: "deployment", Short: []string{"deploy"}, Categories: all, Namespaced: true, Status: true, Scale: true, Generation: true},
		{GroupVersionKind: apps("ReplicaSet"), Plural: "replicasets", Singular: "replicaset", Short: []string{"rs"}, Categories: all, Namespaced: true, Status: true, Scale: true, Generation: true},
		{GroupVersionKind: apps("StatefulSet"), Plural: "statefulsets", Singular: "statefulset", Short: []string{"sts"}, Categories: all, Namespaced: true, Status: true, Scale: true, Generation: true},
		{GroupVersionKind: apps("DaemonSet"), Plural: "daemonsets", Singular: "daemonset", Short: []string{"ds"}, Categories: all, Namespaced: true, Status: true, Generation: true},
		{GroupVersionKind: batch("Job"), Plural: "jobs", Singular: "job", Categories: all, Namespaced: true, Status: true, Generation: true},
		{GroupVersionKind: batch("CronJob"), Plural: "cronjobs", Singular: "cronjob", Short: []string{"cj"}, Categories: all, Namespaced: true, Status: true, Generation: true},
		{GroupVersionKind: discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), Plural: "endpointslices", Singular: "endpointslice", Namespaced: true},
		{GroupVersionKind: net("Ingress"), Plural: "ingresses", Singular: "ingress", Short: []string{"ing"}, Namespaced: true, Status: true, Generation: true},
		{GroupVersionKind: net("IngressClass"), Plural: "ingressclasses", Singular: "ingressclass"},
		{GroupVersionKind: net("NetworkPolicy"), Plural: "networkpolicies", Singular: "networkpolicy", Short: []string{"netpol"}, Namespaced: true, Generation: true},
		{GroupVersionKind: policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), Plural: "poddisruptionbudgets", Singular: "poddisruptionbudget", Short: []string{"pdb"}, Namespaced: true, Status: true, Generation: true},
		{GroupVersionKind: autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), Plural: "horizontalpodautoscalers", Singular: "horizontalpodautoscaler", Short: []string{"hpa"}, Categories: all, Namespaced: true, Status: true},
		{GroupVersionKind: storagev1.SchemeGroupVersion.WithKind("StorageClass"), Plural: "storageclasses", Singular: "storageclass", Short: []string{"sc"}},
		{GroupVersionKind: coordinationv1.SchemeGroupVersion.WithKind("Lease"), Plural: "leases", Singular: "lease", Namespaced: true},
		{GroupVersionKind: rbac("Role"), Plural: "roles", Singular: "role", Namespaced: true},
		{GroupVersionKind: rbac("RoleBinding"), Plural: "rolebindings", Singular: "rolebinding", Namespaced: true},
		{GroupVersionKind: rbac("ClusterRole"), Plural: "clusterroles", Singular: "clusterrole"},
		{GroupVersionKind: rbac("ClusterRoleBinding"), Plural: "clusterrolebindings", Singular: "clusterrolebinding"},
	}
}

func indexKinds(list []Kind) (map[schema.GroupResource]Kind, map[schema.GroupVersionKind]Kind) {
	resources, byKind := map[schema.GroupResource]Kind{}, map[schema.GroupVersionKind]Kind{}
	for _, k := range list {
		resources[k.GroupResource()] = k
		byKind[k.GroupVersionKind] = k
	}
	return resources, byKind
}

// All returns every kind in the order discovery lists them.
func All() []Kind { return kinds }

// Lookup finds a kind by group, version and plural name.
func Lookup(group, version, plural string) (Kind, bool) {
	k, ok := byResource[schema.GroupResource{Group: group, Resource: plural}]
	return k, ok && k.GroupVersionKind.Version == version
}

// Of returns the kind stored under a key of this package.
func Of(gr schema.GroupResource) Kind { return byResource[gr] }

// ForKind finds a kind by its name in manifests.
func ForKind(gvk schema.GroupVersionKind) (Kind, bool) {
	k, ok := byKinds[gvk]
	return k, ok
}
