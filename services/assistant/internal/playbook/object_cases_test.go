package playbook_test

import (
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

func TestTerminatingCases(t *testing.T) {
	t.Parallel()
	on := func(change func(*corev1.Namespace)) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) { change(&s.Namespaces[0]) }
	}
	checkCases(t, []changeCase{
		{"on the namespace itself", "a18_namespace", "", func(s *engine.Snapshot) {
			s.ConfigMaps, s.Namespaces[0].Status.Conditions = nil, nil
			s.Namespaces[0].Finalizers = []string{"tenants.example/cleanup"}
		}, "`tenants.example/cleanup` on the namespace itself"},
		{"kind that is not read", "a18_namespace", "", func(s *engine.Snapshot) { s.ConfigMaps = nil }, "the controller of `backups.example`"},
		{"API away", "a18_namespace", "", on(func(n *corev1.Namespace) {
			n.Status.Conditions[0].Status = corev1.ConditionTrue
			n.Status.Conditions[0].Message = "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: metrics.k8s.io/v1beta1: stale GroupVersion discovery: metrics.k8s.io/v1beta1"
		}), "An API of the cluster does not answer"},
		{"deleted just now", "a18_namespace", "", func(s *engine.Snapshot) {
			now := metav1.Time{Time: s.Taken.Add(-time.Minute)}
			s.Namespaces[0].DeletionTimestamp, s.ConfigMaps[0].DeletionTimestamp = &now, &now
			s.Namespaces[0].Status.Conditions = s.Namespaces[0].Status.Conditions[:4] // content remains
		}, ""},
		{"deleted just now and held", "a18_namespace", "", func(s *engine.Snapshot) {
			now := metav1.Time{Time: s.Taken.Add(-time.Minute)}
			s.Namespaces[0].DeletionTimestamp, s.ConfigMaps[0].DeletionTimestamp = &now, &now
		}, "The finalizer `backups.example/archive` holds the namespace"},
		{"object in a namespace that stays", "a18_namespace", "", on(func(n *corev1.Namespace) { n.DeletionTimestamp = nil }), "Configmap `ledger` in namespace `retired`: stuck terminating"},
		{"pod whose node is gone", "a21_budget", "", func(s *engine.Snapshot) {
			s.Budgets, s.Pods = nil, s.Pods[:1]
			s.StatefulSets[0].Spec.Replicas = new(int32(1))
			s.Pods[0].DeletionTimestamp, s.Pods[0].Spec.NodeName = &metav1.Time{Time: s.Taken.Add(-time.Hour)}, "node-9"
		}, "Its node `node-9` is no longer there"},
		{"pod that the kubelet cannot end", "a21_budget", "", func(s *engine.Snapshot) {
			s.Budgets, s.Pods = nil, s.Pods[:1]
			s.StatefulSets[0].Spec.Replicas = new(int32(1))
			s.Pods[0].DeletionTimestamp = &metav1.Time{Time: s.Taken.Add(-time.Hour)}
			s.Events = []corev1.Event{{Reason: "FailedKillPod", Message: "error killing pod: context deadline exceeded", InvolvedObject: corev1.ObjectReference{UID: s.Pods[0].UID}}}
		}, "`error killing pod: context deadline exceeded`"},
		{"claim that is mounted", "a11_absent_class", "", func(s *engine.Snapshot) {
			s.Claims[0].Status.Phase, s.Claims[0].DeletionTimestamp = corev1.ClaimBound, &metav1.Time{Time: s.Taken.Add(-time.Hour)}
			s.Pods[0].Status.Conditions, s.Pods[0].Spec.NodeName, s.Pods[0].Status.Phase = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}, "node-1", corev1.PodRunning
			s.StatefulSets[0].Status.ReadyReplicas, s.StatefulSets[0].Status.AvailableReplicas = 1, 1
		}, "still mounted by 1 pod"},
	})
}

func TestNodeCases(t *testing.T) {
	t.Parallel()
	said := func(status corev1.ConditionStatus, message string) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) {
			c := &s.Nodes[0].Status.Conditions[2]
			c.Status, c.Reason, c.Message = status, "KubeletNotReady", message
		}
	}
	pressed := func(s *engine.Snapshot) { // ready, and alone
		s.Nodes[0].Status.Conditions[2].Status = corev1.ConditionTrue
		s.Pods, s.Services, s.StatefulSets, s.DaemonSets = nil, nil, nil, nil
	}
	evicted := func(ago time.Duration, message string) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) {
			pressed(s)
			at := metav1.Time{Time: s.Taken.Add(-ago)}
			pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}, Spec: corev1.PodSpec{NodeName: "node-1"}}
			pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: message, StartTime: &at}
			s.Pods = []corev1.Pod{pod}
		}
	}
	returned := func(after time.Duration) func(*engine.Snapshot) { // ready since an hour, and created before that
		return func(s *engine.Snapshot) {
			pressed(s)
			at := metav1.Time{Time: s.Taken.Add(-time.Hour)}
			s.Nodes[0].Status.Conditions[2].LastTransitionTime = at
			s.Nodes[0].CreationTimestamp = metav1.Time{Time: at.Add(-after)}
		}
	}
	const low = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
	checkCases(t, []changeCase{
		{"network plug-in", "a19_node_not_ready", "", said(corev1.ConditionFalse, "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"), "The network plug-in of node `node-1`"},
		{"runtime", "a19_node_not_ready", "", said(corev1.ConditionFalse, "[container runtime is down, PLEG is not healthy: pleg was last seen active 5m0s ago; threshold is 3m0s]"), "container runtime of node `node-1` does not answer"},
		{"cordoned", "a19_node_not_ready", "", func(s *engine.Snapshot) { s.Nodes[0].Spec.Unschedulable = true }, "perhaps for maintenance"},
		{"memory", "a19_node_not_ready", "", func(s *engine.Snapshot) {
			pressed(s)
			s.Nodes[0].Status.Conditions[0].Status, s.Nodes[0].Status.Conditions[0].Message = corev1.ConditionTrue, "kubelet has insufficient memory available"
		}, "Node `node-1` runs short of memory"},
		{"disk", "a19_node_not_ready", "", func(s *engine.Snapshot) {
			pressed(s)
			s.Nodes[0].Status.Conditions[1].Status = corev1.ConditionTrue
		}, "runs short of disk space"},
		{"not ready for a time", "a19_node_not_ready", "", returned(24 * time.Hour), "Node `node-1` was not ready for a time and is ready again"},
		{"new", "a19_node_not_ready", "", returned(time.Minute), ""},
		{"rebooted", "a19_node_not_ready", "", func(s *engine.Snapshot) {
			returned(time.Minute)(s)
			s.Events = []corev1.Event{{Reason: "Rebooted", Message: "Node node-1 has been rebooted, boot id: 7", InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "node-1", UID: "node-1"}, LastTimestamp: metav1.Time{Time: s.Taken.Add(-time.Hour)}}}
		}, "Node `node-1` has rebooted"},
		{"evicted", "a19_node_not_ready", "", evicted(time.Hour, low), "Evicted for memory: `shop/web-1`"},
		{"evicted long ago", "a19_node_not_ready", "", evicted(48*time.Hour, low), ""},
		{"over its own limit", "a19_node_not_ready", "", evicted(time.Hour, `Container web exceeded its local ephemeral storage limit "1Gi". `), "the node is not at fault"},
		{"over an emptyDir's limit", "a19_node_not_ready", "", evicted(time.Hour, `Usage of EmptyDir volume "tmp" exceeds the limit "1Gi". `), "the node is not at fault"},
		{"over its request on a node that ran short", "a19_node_not_ready", "", evicted(time.Hour, "The node was low on resource: ephemeral-storage. Container web was using 1Gi, which exceeds its request of 0. "), "it now has enough again"},
		{"over its request, in a text without the node", "a19_node_not_ready", "", evicted(time.Hour, "Container web was using 1Gi, which exceeds its request of 0. "), ""},
		{"over its own limit, ends just now", "a19_node_not_ready", "", func(s *engine.Snapshot) {
			evicted(time.Hour, "")(s)
			s.Pods[0].UID, s.Pods[0].Status = "web-1", corev1.PodStatus{Phase: corev1.PodRunning}
			s.Events = []corev1.Event{{Reason: "Evicted", Message: "Pod ephemeral local storage usage exceeds the total limit of containers 20Mi. ",
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web-1", UID: "web-1"}, LastTimestamp: metav1.Time{Time: s.Taken}}}
		}, "the node is not at fault"},
		{"nodes unread", "a19_node_not_ready", "", func(s *engine.Snapshot) {
			pressed(s)
			s.Nodes[0].Status.Conditions[2].Status, s.Unread["nodes"] = corev1.ConditionUnknown, true
		}, ""},
	})
}

func TestAutoscalerCases(t *testing.T) {
	t.Parallel()
	asked := func(s *engine.Snapshot) { // the request is there
		for _, c := range []*corev1.Container{&s.Pods[0].Spec.Containers[0], &s.Deployments[0].Spec.Template.Spec.Containers[0]} {
			c.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("100m")
		}
	}
	says := func(reason, message string) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) {
			asked(s)
			c := &s.Autoscalers[0].Status.Conditions[1]
			c.Reason, c.Message = reason, message
		}
	}
	atMaximum := func(use int32) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) {
			asked(s)
			a := &s.Autoscalers[0]
			a.Status.CurrentReplicas = a.Spec.MaxReplicas
			a.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricStatus{
				Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: &use}}}}
			a.Status.Conditions[1].Status = corev1.ConditionTrue
			a.Status.Conditions = append(a.Status.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{Type: autoscalingv2.ScalingLimited, Status: corev1.ConditionTrue, Reason: "TooManyReplicas"})
		}
	}
	const noAPI = "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)"
	checkCases(t, []changeCase{
		{"no metrics API", "a20_no_requests", "", says("FailedGetResourceMetric", noAPI), "The resource metrics API does not answer"},
		{"no metrics API and no requests", "a20_no_requests", "", func(s *engine.Snapshot) { s.Autoscalers[0].Status.Conditions[1].Message = noAPI }, "miss the cpu request"},
		{"request of an earlier revision", "a20_no_requests", "", func(s *engine.Snapshot) {
			now := s.ReplicaSets[0].DeepCopy()
			now.Name, now.UID, now.Annotations = "web-2", "r-web-2", map[string]string{"deployment.kubernetes.io/revision": "2"}
			now.Spec.Template = s.Deployments[0].Spec.Template
			s.ReplicaSets = append(s.ReplicaSets, *now)
			s.ReplicaSets[0].Spec.Replicas = new(int32)
			s.ReplicaSets[0].Status.Replicas = 0
			s.ReplicaSets[0].Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
			s.Pods[0].OwnerReferences[0].Name = "web-2"
		}, "--requests=cpu=250m"},
		{"pods not ready", "a20_no_requests", "", says("FailedGetResourceMetric", "failed to get cpu utilization: did not receive metrics for targeted pods (pods might be unready)"), "There is no usage to measure yet"},
		{"custom metric", "a20_no_requests", "", says("FailedGetPodsMetric", "unable to get metric queue: unable to fetch metrics from custom metrics API: no custom metrics API registered"), "custom or external metric"},
		{"two autoscalers", "a20_no_requests", "", says("AmbiguousSelector", "pods by selector app=web are controlled by multiple HPAs: [shop/a shop/b]"), "Keep only one autoscaler"},
		{"target absent", "a20_no_requests", "", func(s *engine.Snapshot) { s.Autoscalers[0].Spec.ScaleTargetRef.Name = "wep" }, "The nearest is `web`"},
		{"target unread", "a20_no_requests", "", func(s *engine.Snapshot) {
			s.Autoscalers[0].Spec.ScaleTargetRef.Name, s.Unread["deployments"] = "wep", true
			s.Autoscalers[0].Status.Conditions = nil
		}, ""},
		{"switched off", "a20_no_requests", "", func(s *engine.Snapshot) { s.Deployments[0].Spec.Replicas, s.Pods = new(int32), nil }, ""},
		{"at its maximum by design", "a20_no_requests", "", atMaximum(75), ""},
		{"at its maximum and over", "a20_no_requests", "", atMaximum(140), "Confidence: low"},
		{"average value", "a20_no_requests", "", func(s *engine.Snapshot) {
			s.Autoscalers[0].Spec.Metrics[0].Resource.Target = autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType}
			s.Autoscalers[0].Status.Conditions[1].Status = corev1.ConditionTrue
		}, ""},
	})
}

func TestBudgetCases(t *testing.T) {
	t.Parallel()
	budget := func(change func(*policyv1.PodDisruptionBudget)) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) { change(&s.Budgets[0]) }
	}
	checkCases(t, []changeCase{
		{"nobody drains", "a21_budget", "", func(s *engine.Snapshot) { s.Nodes[0].Spec = corev1.NodeSpec{} }, "Confidence: low"},
		{"none may be away", "a21_budget", "", budget(func(b *policyv1.PodDisruptionBudget) {
			b.Spec.MinAvailable, b.Spec.MaxUnavailable = nil, new(intstr.FromInt32(0))
		}), "more replicas do not help"},
		{"one may go", "a21_budget", "", budget(func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = 1 }), ""},
		{"one is going", "a21_budget", "", budget(func(b *policyv1.PodDisruptionBudget) { b.Status.DesiredHealthy = 1; b.Status.CurrentHealthy = 1 }), ""},
		{"not looked at yet", "a21_budget", "", budget(func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 }), ""},
		{"chooses nothing", "a21_budget", "", budget(func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector.MatchLabels["app"] = "else" }), ""},
		{"pods without a scale", "a21_budget", "", budget(func(b *policyv1.PodDisruptionBudget) {
			b.Status.Conditions[0].Reason, b.Status.Conditions[0].Message = policyv1.SyncFailedReason, "found no controllers for pod"
		}), "`found no controllers for pod`"},
		{"two budgets", "a21_budget", "", func(s *engine.Snapshot) {
			b := s.Budgets[0].DeepCopy()
			b.Name, b.Spec.Selector.MatchLabels = "other", map[string]string{"app": "ledger", "tier": "data"}
			s.Budgets = append(s.Budgets, *b)
			s.Pods[0].Labels["tier"] = "data"
			b.Status.DisruptionsAllowed, s.Budgets[0].Status.DisruptionsAllowed = 1, 1
			s.Budgets[1].Generation = 9
		}, "under more than one budget"},
	})
}
