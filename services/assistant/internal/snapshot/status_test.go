package snapshot

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// TestStatusMessagesAreRedacted: foreign text quoted in a status contains no secret.
func TestStatusMessagesAreRedacted(t *testing.T) {
	t.Parallel()
	const secret = "hunter2hunter2"
	const said = "cannot log in: password=" + secret
	state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Message: said}, Terminated: &corev1.ContainerStateTerminated{Message: said}}
	s := &engine.Snapshot{
		Pods: []corev1.Pod{{Status: corev1.PodStatus{
			Message: said, Conditions: []corev1.PodCondition{{Message: said}},
			ContainerStatuses: []corev1.ContainerStatus{{State: state}}, InitContainerStatuses: []corev1.ContainerStatus{{LastTerminationState: *state.DeepCopy()}},
		}}},
		Deployments: []appsv1.Deployment{{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Message: said}}}}},
		ReplicaSets: []appsv1.ReplicaSet{{Status: appsv1.ReplicaSetStatus{Conditions: []appsv1.ReplicaSetCondition{{Message: said}}}}},
		Jobs:        []batchv1.Job{{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Message: said}}}}},
		Autoscalers: []autoscalingv2.HorizontalPodAutoscaler{{Status: autoscalingv2.HorizontalPodAutoscalerStatus{Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{{Message: said}}}}},
		Nodes:       []corev1.Node{{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Message: said}}}}},
		Namespaces:  []corev1.Namespace{{Status: corev1.NamespaceStatus{Conditions: []corev1.NamespaceCondition{{Message: said}}}}},
	}
	(&reading{into: s}).clean()
	text, err := json.Marshal([]any{s.Pods, s.Deployments, s.ReplicaSets, s.Jobs, s.Autoscalers, s.Nodes, s.Namespaces})
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), secret); n > 0 || !strings.Contains(string(text), "cannot log in") {
		t.Errorf("the secret is left in %d messages of %s; want 0, and the rest of each message", n, text)
	}
}

// TestHiddenServiceOfAWebhook: a configuration names no service of a hidden namespace.
func TestHiddenServiceOfAWebhook(t *testing.T) {
	t.Parallel()
	service := func(namespace string) admissionv1.WebhookClientConfig {
		return admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: namespace, Name: "guard"}}
	}
	s := &engine.Snapshot{
		Validating: []admissionv1.ValidatingWebhookConfiguration{{Webhooks: []admissionv1.ValidatingWebhook{{ClientConfig: service("payments")}, {ClientConfig: service("shop")}}}},
		Mutating:   []admissionv1.MutatingWebhookConfiguration{{Webhooks: []admissionv1.MutatingWebhook{{ClientConfig: service("payments")}}}},
	}
	(&reading{into: s, policy: guard.Policy{Hidden: []string{"payments"}}}).clean()
	if got := s.Validating[0].Webhooks[0].ClientConfig.Service; got != nil {
		t.Errorf("a validating webhook names %v; want nil", got)
	}
	if got := s.Mutating[0].Webhooks[0].ClientConfig.Service; got != nil {
		t.Errorf("a mutating webhook names %v; want nil", got)
	}
	if s.Validating[0].Webhooks[1].ClientConfig.Service == nil {
		t.Error("the service of a visible namespace is gone")
	}
}
