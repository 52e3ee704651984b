package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// cleanStatus redacts the messages of statuses. Programs, operators and webhooks write into them, and
// answers quote them.
func cleanStatus(s *engine.Snapshot) {
	for i := range s.Pods {
		cleanPodStatus(&s.Pods[i].Status)
	}
	cleanWorkloadStatus(s)
	cleanGatewayStatus(s)
	cleanCertificateStatus(s)
	for i := range s.Autoscalers {
		for c := range s.Autoscalers[i].Status.Conditions {
			cleanMessage(&s.Autoscalers[i].Status.Conditions[c].Message)
		}
	}
	for i := range s.Nodes {
		for c := range s.Nodes[i].Status.Conditions {
			cleanMessage(&s.Nodes[i].Status.Conditions[c].Message)
		}
	}
	for i := range s.Namespaces {
		for c := range s.Namespaces[i].Status.Conditions {
			cleanMessage(&s.Namespaces[i].Status.Conditions[c].Message)
		}
	}
	for i := range s.Volumes {
		cleanMessage(&s.Volumes[i].Status.Message)
	}
	for i := range s.Claims {
		for c := range s.Claims[i].Status.Conditions {
			cleanMessage(&s.Claims[i].Status.Conditions[c].Message)
		}
	}
	for i := range s.Services {
		for c := range s.Services[i].Status.Conditions {
			cleanMessage(&s.Services[i].Status.Conditions[c].Message)
		}
	}
	for i := range s.Budgets {
		for c := range s.Budgets[i].Status.Conditions {
			cleanMessage(&s.Budgets[i].Status.Conditions[c].Message)
		}
	}
}

func cleanWorkloadStatus(s *engine.Snapshot) {
	for i := range s.Deployments {
		for c := range s.Deployments[i].Status.Conditions {
			cleanMessage(&s.Deployments[i].Status.Conditions[c].Message)
		}
	}
	for i := range s.ReplicaSets {
		for c := range s.ReplicaSets[i].Status.Conditions {
			cleanMessage(&s.ReplicaSets[i].Status.Conditions[c].Message)
		}
	}
	for i := range s.StatefulSets {
		for c := range s.StatefulSets[i].Status.Conditions {
			cleanMessage(&s.StatefulSets[i].Status.Conditions[c].Message)
		}
	}
	for i := range s.DaemonSets {
		for c := range s.DaemonSets[i].Status.Conditions {
			cleanMessage(&s.DaemonSets[i].Status.Conditions[c].Message)
		}
	}
	for i := range s.Jobs {
		for c := range s.Jobs[i].Status.Conditions {
			cleanMessage(&s.Jobs[i].Status.Conditions[c].Message)
		}
	}
}

// cleanPodStatus redacts the messages of the scheduler and the kubelet, and those of the containers, which programs
// wrote to their termination logs.
func cleanPodStatus(s *corev1.PodStatus) {
	cleanMessage(&s.Message)
	for c := range s.Conditions {
		cleanMessage(&s.Conditions[c].Message)
	}
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for i := range list {
			for _, state := range []corev1.ContainerState{list[i].State, list[i].LastTerminationState} {
				if state.Waiting != nil {
					cleanMessage(&state.Waiting.Message)
				}
				if state.Terminated != nil {
					cleanMessage(&state.Terminated.Message)
				}
			}
		}
	}
}

func cleanMessage(message *string) {
	if *message != "" {
		*message = redact.Text(*message)
	}
}

func cleanConditions(all []metav1.Condition) {
	for c := range all {
		cleanMessage(&all[c].Message)
	}
}

// cleanCertificateStatus redacts the messages of issuers and ACME servers.
func cleanCertificateStatus(s *engine.Snapshot) {
	for i := range s.Certificates {
		cleanConditions(s.Certificates[i].Status.Conditions)
	}
	for i := range s.CertificateRequests {
		cleanConditions(s.CertificateRequests[i].Status.Conditions)
	}
	for i := range s.Issuers {
		cleanConditions(s.Issuers[i].Status.Conditions)
	}
	for i := range s.Orders {
		cleanMessage(&s.Orders[i].Status.Reason)
	}
	for i := range s.Challenges {
		cleanMessage(&s.Challenges[i].Status.Reason)
	}
}

func cleanGatewayStatus(s *engine.Snapshot) {
	for i := range s.GatewayClasses {
		cleanConditions(s.GatewayClasses[i].Status.Conditions)
	}
	for i := range s.Gateways {
		cleanConditions(s.Gateways[i].Status.Conditions)
		for _, l := range s.Gateways[i].Status.Listeners {
			cleanConditions(l.Conditions)
		}
	}
	for i := range s.Routes {
		for _, p := range s.Routes[i].Status.Parents {
			cleanConditions(p.Conditions)
		}
	}
}
