package playbook_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// controlPlane turns the last node into a control plane node.
func controlPlane(s *engine.Snapshot) *corev1.Node {
	node := &s.Nodes[len(s.Nodes)-1]
	node.Name, node.Labels = "head", map[string]string{"node-role.kubernetes.io/control-plane": ""}
	return node
}

func TestControlPlaneCases(t *testing.T) {
	t.Parallel()
	unseen := func(s *engine.Snapshot) {
		controlPlane(s)
		s.Pods[0].Status.Conditions = nil
		s.Pods[0].CreationTimestamp = metav1.NewTime(s.Taken.Add(-3 * time.Minute))
	}
	scheduler := func(ready corev1.ConditionStatus) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) {
			unseen(s)
			s.Pods = append(s.Pods, corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler-head", UID: "p-sched", Labels: map[string]string{"component": "kube-scheduler"}, Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}},
				Spec:       corev1.PodSpec{NodeName: "head"},
				Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
			})
		}
	}
	checkCases(t, []changeCase{
		{"no scheduler, and where it runs", "a10_all_tainted", "", unseen, "Look at kube-scheduler on `head`"},
		{"a scheduler that is down", "a10_all_tainted", "", scheduler(corev1.ConditionFalse), "Its pods are not ready: `kube-scheduler-head`."},
		{"a scheduler that is ready", "a10_all_tainted", "", scheduler(corev1.ConditionTrue), "Its pods that are ready are `kube-scheduler-head`"},
		{"a cordoned node of the control plane beside workers that an affinity refuses", "a10_all_tainted", "", func(s *engine.Snapshot) {
			for i := range s.Nodes {
				s.Nodes[i].Spec = corev1.NodeSpec{}
			}
			s.Nodes = append(s.Nodes, *s.Nodes[0].DeepCopy(), *s.Nodes[0].DeepCopy())
			s.Nodes[2].Name = "node-3"
			head := controlPlane(s)
			head.Spec.Unschedulable = true
			head.Labels["zone"] = "a"
			s.Pods[0].Spec.NodeSelector = map[string]string{"zone": "a"}
		}, "No node has all the labels together"},
		{"cordoned workers beside a node of the control plane", "a10_all_tainted", "", func(s *engine.Snapshot) {
			s.Nodes[0].Spec = corev1.NodeSpec{Unschedulable: true}
			controlPlane(s).Spec = corev1.NodeSpec{Unschedulable: true}
		}, "are cordoned"},
	})
}

func TestMirrorCases(t *testing.T) {
	t.Parallel()
	says := func(message string) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) { s.Pods[0].Status.ContainerStatuses[0].State.Waiting.Message = message }
	}
	const mirror = `failed to pull and unpack image: unexpected status from HEAD request to https://mirror.example.net/v2/media/x/manifests/1: 403 Forbidden`
	checkCases(t, []changeCase{
		{"403 of a mirror", "a5_registry_refuses", "", says(mirror), "or a mirror of the registry does not let it out. (Confidence: medium.)"},
		{"the mirror's name", "a5_registry_refuses", "", says(mirror), "The node asked `mirror.example.net`, which is not the registry of the image."},
		{"401", "a5_registry_refuses", "", says("unexpected status code 401 Unauthorized"), "wants pull credentials"},
	})
}

func TestResolverCases(t *testing.T) {
	t.Parallel()
	none := func(servers ...string) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) {
			setVariables("OVEN_ADDR", "oven:7000")(s)
			s.Pods[0].Spec.DNSPolicy, s.Pods[0].Spec.DNSConfig = corev1.DNSNone, &corev1.PodDNSConfig{Nameservers: servers}
		}
	}
	checkCases(t, []changeCase{
		{"name servers of the internet", "variable", "", none("9.9.9.9"), "does not ask the cluster's name server (DNS) but `9.9.9.9`"},
		{"a name server of the cluster", "variable", "", none("10.0.0.12"), ""},
		{"the node's own", "variable", "", func(s *engine.Snapshot) { s.Pods[0].Spec.DNSPolicy = corev1.DNSDefault }, "those of its node"},
		{"the node's network", "variable", "", func(s *engine.Snapshot) {
			s.Pods[0].Spec.DNSPolicy, s.Pods[0].Spec.HostNetwork = corev1.DNSClusterFirst, true
		}, "uses the node's name servers"},
		{"no name of the cluster is needed", "variable", "", func(s *engine.Snapshot) {
			setVariables()(s)
			s.Pods[0].Spec.DNSPolicy = corev1.DNSDefault
		}, ""},
	})
}

// TestOrderOfServices: a Service that has no callers comes last, and one that has callers and is scaled to 0 comes
// first.
func TestOrderOfServices(t *testing.T) {
	t.Parallel()
	s := joinSnapshots(readSnapshot(t, "a4_absent_tag"), readSnapshot(t, "variable"))
	for i := range s.Deployments {
		if s.Deployments[i].Name == "oven" {
			s.Deployments[i].Spec.Replicas = new(int32)
		}
	}
	var left []corev1.Pod
	for _, pod := range s.Pods {
		if pod.Labels["app"] != "oven" {
			left = append(left, pod)
		}
	}
	s.Pods, s.EndpointSlices = left, nil
	s.Services = append(s.Services, corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "bakery", Name: "forgotten"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.77", Selector: map[string]string{"run": "nothing"}}})
	found := playbook.Diagnose(s, "")
	if len(found) != 3 || found[0].Object.Name != "oven" || found[2].Object.Name != "forgotten" {
		t.Errorf("found %+v; want oven first of three and forgotten last", found)
	}
}
