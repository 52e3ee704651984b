package playbook_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// setVariables replaces the variables of the program in variable.yaml, in its pod and in its template.
func setVariables(pairs ...string) func(*engine.Snapshot) {
	return func(s *engine.Snapshot) {
		var env []corev1.EnvVar
		for i := 0; i < len(pairs); i += 2 {
			env = append(env, corev1.EnvVar{Name: pairs[i], Value: pairs[i+1]})
		}
		s.Pods[0].Spec.Containers[0].Env = env
		s.Deployments[0].Spec.Template.Spec.Containers[0].Env = env
	}
}

func TestVariableCases(t *testing.T) {
	t.Parallel()
	without := func(change func(*engine.Snapshot)) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) {
			s.Services, s.EndpointSlices = nil, nil
			change(s)
		}
	}
	checkCases(t, []changeCase{
		{"address that is right", "variable", "", nil, ""},
		{"port that the service lacks", "variable", "", setVariables("OVEN_ADDR", "oven:7100"), "names port 7100 of the service `oven`, which does not have that port: it has port `7000`"},
		{"port, with its fix", "variable", "", setVariables("OVEN_ADDR", "oven:7100"), "Let the variable `OVEN_ADDR` be `oven:7000`."},
		{"port in a URL", "variable", "", setVariables("OVEN_URL", "http://oven.bakery.svc.cluster.local:7100/heat"), "Let the variable `OVEN_URL` name port 7000."},
		{"port in a variable of its own", "variable", "", setVariables("OVEN_HOST", "oven", "OVEN_PORT", "7100"), "Let the variable `OVEN_PORT` be `7000`."},
		{"port of another program's own", "variable", "", setVariables("OVEN_HOST", "oven", "PORT", "7100"), ""},
		{"port of a headless service", "variable", "", func(s *engine.Snapshot) {
			setVariables("OVEN_ADDR", "oven:7100")(s)
			s.Services[0].Spec.ClusterIP = corev1.ClusterIPNone
		}, ""},
		{"host that is nearly a service", "variable", "", setVariables("OVEN_ADDR", "oven-v1:7000"), "there is no service of that name. The nearest is `oven`, with port `7000`."},
		{"host a letter away", "variable", "", setVariables("OVEN_ADDR", "ovem:7000"), "The nearest is `oven`"},
		{"optional host", "variable", "", setVariables("OVEN_ADDR", "oven:7000", "TRACES_ADDR", "collector:4317"), ""},
		{"optional host with a port that others have", "variable", "", setVariables("OVEN_ADDR", "oven:7000", "TRACES_ADDR", "collector:7000"), ""},
		{"host outside the cluster", "variable", "", setVariables("OVEN_ADDR", "oven.example.com:7000"), ""},
		{"host of the pod's own file of hosts", "variable", "", func(s *engine.Snapshot) {
			setVariables("OVEN_ADDR", "oven-v1:7000")(s)
			s.Pods[0].Spec.HostAliases = []corev1.HostAlias{{IP: "10.9.9.9", Hostnames: []string{"oven-v1"}}}
		}, ""},
		{"workload without its service", "variable", "", without(setVariables("OVEN_ADDR", "oven:7000")), "deployment `oven` has no service of its name"},
		{"services unread", "variable", "", without(func(s *engine.Snapshot) { s.Unread["services"] = true }), ""},
	})
}

func TestFullQuotaCases(t *testing.T) {
	t.Parallel()
	// limit adds a quota to the namespace.
	limit := func(s *engine.Snapshot, kind corev1.ResourceName, used, hard string) {
		list := func(amount string) corev1.ResourceList {
			return corev1.ResourceList{kind: resource.MustParse(amount)}
		}
		s.Quotas = append(s.Quotas, corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "bakery", Name: "few"}, Status: corev1.ResourceQuotaStatus{Hard: list(hard), Used: list(used)}})
	}
	noService := func(s *engine.Snapshot) { s.Services, s.EndpointSlices = nil, nil }
	claim := func(s *engine.Snapshot) {
		pod := &s.Pods[0]
		pod.Spec.NodeName, pod.Status.Phase, pod.Status.ContainerStatuses = "", corev1.PodPending, nil
		pod.Spec.Volumes = []corev1.Volume{{Name: "flour", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "flour"}}}}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: `0/1 nodes are available: persistentvolumeclaim "flour" not found.`}}
	}
	settings := func(s *engine.Snapshot) {
		pod := &s.Pods[0]
		pod.Status.ContainerStatuses[0].Ready = false
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError"}}
		pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "recipes"}}}}
	}
	checkCases(t, []changeCase{
		{"services", "variable", "", func(s *engine.Snapshot) { noService(s); limit(s, "services", "4", "4") }, "The quota `few` of the namespace is used up for `services`, so that the missing service `oven` cannot be created. (Confidence: high.)"},
		{"services, counted as objects", "variable", "", func(s *engine.Snapshot) { noService(s); limit(s, "count/services", "4", "4") }, "missing service `oven`"},
		{"a service that only a variable names", "variable", "", func(s *engine.Snapshot) {
			setVariables("OVEN_ADDR", "oven:7000", "MILL_ADDR", "mill:7001")(s)
			limit(s, "services", "4", "4")
		}, "missing service `mill` cannot be created. (Confidence: medium.)"},
		{"a workload that nobody names", "variable", "", func(s *engine.Snapshot) {
			setVariables()(s)
			noService(s)
			limit(s, "services", "4", "4")
		}, "missing service `oven`"},
		{"full, and nothing is missing", "variable", "", func(s *engine.Snapshot) { limit(s, "services", "4", "4") }, ""},
		{"a service is missing, and there is room", "variable", "", func(s *engine.Snapshot) { noService(s); limit(s, "services", "3", "4") }, "has no service of its name"},
		{"claims", "variable", "", func(s *engine.Snapshot) { claim(s); limit(s, "persistentvolumeclaims", "2", "2") }, "missing volume claim `flour`"},
		{"claims that were not read", "variable", "", func(s *engine.Snapshot) {
			claim(s)
			limit(s, "persistentvolumeclaims", "2", "2")
			s.Unread["persistentvolumeclaims"] = true
		}, "missing volume claim `flour`"},
		{"storage, with some left", "variable", "", func(s *engine.Snapshot) { claim(s); limit(s, "requests.storage", "1Gi", "3Gi") }, "has 2Gi of `requests.storage` left"},
		{"a claim is missing, without a quota", "variable", "", claim, "mounts the volume claim `flour`, which does not exist"},
		{"ConfigMaps", "variable", "", func(s *engine.Snapshot) { settings(s); limit(s, "configmaps", "9", "9") }, "missing ConfigMap `recipes`"},
	})
}
