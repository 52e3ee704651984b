package engine

// Replaced lists the API versions that Kubernetes removed, by kind, with their successors. Same means that only the
// version has to be changed in a manifest.
var Replaced = []struct {
	Kinds []string
	Gone  []string
	Now   string
	Same  bool
	Note  string
}{
	{[]string{"Deployment", "DaemonSet", "ReplicaSet"}, []string{"extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"}, "apps/v1", false, "spec.selector is required now, and equals the labels of the template"},
	{[]string{"StatefulSet"}, []string{"apps/v1beta1", "apps/v1beta2"}, "apps/v1", false, "spec.selector is required now, and equals the labels of the template"},
	{[]string{"Ingress"}, []string{"extensions/v1beta1", "networking.k8s.io/v1beta1"}, "networking.k8s.io/v1", false, "the backend is written service.name and service.port now, and pathType is required"},
	{[]string{"IngressClass"}, []string{"networking.k8s.io/v1beta1"}, "networking.k8s.io/v1", true, ""},
	{[]string{"NetworkPolicy"}, []string{"extensions/v1beta1"}, "networking.k8s.io/v1", true, ""},
	{[]string{"CronJob"}, []string{"batch/v1beta1", "batch/v2alpha1"}, "batch/v1", true, ""},
	{[]string{"PodDisruptionBudget"}, []string{"policy/v1beta1"}, "policy/v1", true, "an empty selector chooses all pods now, and no longer none"},
	{[]string{"HorizontalPodAutoscaler"}, []string{"autoscaling/v2beta2"}, "autoscaling/v2", true, ""},
	{[]string{"HorizontalPodAutoscaler"}, []string{"autoscaling/v2beta1"}, "autoscaling/v2", false, "a metric's target now has a type, with its value or averageUtilization beneath it"},
	{[]string{"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}, []string{"rbac.authorization.k8s.io/v1beta1", "rbac.authorization.k8s.io/v1alpha1"}, "rbac.authorization.k8s.io/v1", true, ""},
	{[]string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}, []string{"admissionregistration.k8s.io/v1beta1"}, "admissionregistration.k8s.io/v1", false, "sideEffects and admissionReviewVersions are required now"},
	{[]string{"CustomResourceDefinition"}, []string{"apiextensions.k8s.io/v1beta1"}, "apiextensions.k8s.io/v1", false, "every version needs a schema now"},
	{[]string{"StorageClass", "VolumeAttachment", "CSIDriver", "CSINode"}, []string{"storage.k8s.io/v1beta1"}, "storage.k8s.io/v1", true, ""},
	{[]string{"CSIStorageCapacity"}, []string{"storage.k8s.io/v1beta1"}, "storage.k8s.io/v1", true, ""},
	{[]string{"PriorityClass"}, []string{"scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha1"}, "scheduling.k8s.io/v1", true, ""},
	{[]string{"Lease"}, []string{"coordination.k8s.io/v1beta1"}, "coordination.k8s.io/v1", true, ""},
	{[]string{"EndpointSlice"}, []string{"discovery.k8s.io/v1beta1"}, "discovery.k8s.io/v1", true, "topology became nodeName and zone"},
	{[]string{"FlowSchema", "PriorityLevelConfiguration"}, []string{"flowcontrol.apiserver.k8s.io/v1beta1", "flowcontrol.apiserver.k8s.io/v1beta2", "flowcontrol.apiserver.k8s.io/v1beta3"}, "flowcontrol.apiserver.k8s.io/v1", true, ""},
	{[]string{"PodSecurityPolicy"}, []string{"policy/v1beta1", "extensions/v1beta1"}, "", false, "Pod Security Admission takes its place: labels on the namespace"},
}
