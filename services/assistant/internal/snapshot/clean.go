package snapshot

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/argocd"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// stripNames keeps only the resources that a pod holds on its node.
func stripNames(p *corev1.Pod) corev1.Pod {
	kept := corev1.Pod{Spec: corev1.PodSpec{NodeName: p.Spec.NodeName, Overhead: p.Spec.Overhead, Resources: p.Spec.Resources}, Status: corev1.PodStatus{Phase: p.Status.Phase}}
	for _, c := range p.Spec.Containers {
		kept.Spec.Containers = append(kept.Spec.Containers, corev1.Container{Resources: c.Resources})
	}
	for _, c := range p.Spec.InitContainers {
		kept.Spec.InitContainers = append(kept.Spec.InitContainers, corev1.Container{Resources: c.Resources, RestartPolicy: c.RestartPolicy})
	}
	return kept
}

// clean removes values that may be secret, and names of hidden objects.
func (r *reading) clean() {
	s := r.into
	for i := range s.Pods {
		cleanPod(&s.Pods[i].Spec)
	}
	for i := range s.Deployments {
		cleanPod(&s.Deployments[i].Spec.Template.Spec)
	}
	for i := range s.ReplicaSets {
		cleanPod(&s.ReplicaSets[i].Spec.Template.Spec)
	}
	for i := range s.StatefulSets {
		cleanPod(&s.StatefulSets[i].Spec.Template.Spec)
	}
	for i := range s.DaemonSets {
		cleanPod(&s.DaemonSets[i].Spec.Template.Spec)
	}
	for i := range s.Jobs {
		cleanPod(&s.Jobs[i].Spec.Template.Spec)
	}
	for i := range s.CronJobs {
		cleanPod(&s.CronJobs[i].Spec.JobTemplate.Spec.Template.Spec)
	}
	for i := range s.ConfigMaps {
		// Diagnoses need the keys; the values may be secret.
		for key := range s.ConfigMaps[i].Data {
			s.ConfigMaps[i].Data[key] = ""
		}
		for key := range s.ConfigMaps[i].BinaryData {
			s.ConfigMaps[i].BinaryData[key] = nil
		}
	}
	for i := range s.Events {
		s.Events[i].Message = redact.Text(s.Events[i].Message)
	}
	cleanStatus(s)
	r.cleanApplications(s)
	r.hide()
}

// cleanPod redacts environments and arguments. An empty value stays, since it may be the cause.
func cleanPod(spec *corev1.PodSpec) {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			for e := range list[i].Env {
				list[i].Env[e].Value = redact.Value(list[i].Env[e].Name, list[i].Env[e].Value)
			}
			for _, words := range [][]string{list[i].Command, list[i].Args} {
				for w := range words {
					words[w] = redact.Text(words[w])
				}
			}
		}
	}
}

// isVisible reports whether an object belongs to no hidden namespace. Cluster-scoped objects may belong to one, too.
func (r *reading) isVisible(o metav1.Object) bool {
	if !r.policy.Visible(o.GetNamespace()) {
		return false
	}
	switch o := o.(type) {
	case *corev1.Namespace:
		return r.policy.Visible(o.Name)
	case *corev1.PersistentVolume:
		return o.Spec.ClaimRef == nil || r.policy.Visible(o.Spec.ClaimRef.Namespace)
	case *argocd.Application:
		return !o.IsHere() || r.policy.Visible(o.Spec.Destination.Namespace)
	case *corev1.Event:
		return r.policy.Visible(o.InvolvedObject.Namespace) && (o.InvolvedObject.Kind != "Namespace" || r.policy.Visible(o.InvolvedObject.Name))
	}
	return true
}

// hide removes the subjects of bindings, and the services of webhooks, that are in a hidden namespace.
func (r *reading) hide() {
	s := r.into
	refers := func(to *admissionv1.WebhookClientConfig) {
		if to.Service != nil && !r.policy.Visible(to.Service.Namespace) {
			to.Service = nil
		}
	}
	for i := range s.Validating {
		for j := range s.Validating[i].Webhooks {
			refers(&s.Validating[i].Webhooks[j].ClientConfig)
		}
	}
	for i := range s.Mutating {
		for j := range s.Mutating[i].Webhooks {
			refers(&s.Mutating[i].Webhooks[j].ClientConfig)
		}
	}
	hidden := func(subject rbacv1.Subject) bool { return !r.policy.Visible(subject.Namespace) }
	for i := range s.ClusterBindings {
		s.ClusterBindings[i].Subjects = slices.DeleteFunc(s.ClusterBindings[i].Subjects, hidden)
	}
	for i := range s.RoleBindings {
		s.RoleBindings[i].Subjects = slices.DeleteFunc(s.RoleBindings[i].Subjects, hidden)
	}
}
