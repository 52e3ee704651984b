package controllers

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mlp-platform/platform/services/assistant/internal/seeded/resource"
	"github.com/mlp-platform/platform/services/assistant/internal/seeded/store"
)

// budgets counts how many pods of each disruption budget may go.
func (p *pass) budgets() {
	for _, old := range store.List[*policyv1.PodDisruptionBudget](p.Tx, resource.DisruptionBudgets, "") {
		b := change(old)
		expected, healthy := int32(0), int32(0)
		for _, pod := range store.List[*corev1.Pod](p.Tx, resource.Pods, b.Namespace) {
			if finished(pod) || b.Spec.Selector == nil || !selects(b.Spec.Selector, pod.Labels) {
				continue
			}
			expected++
			if ready(pod) && pod.DeletionTimestamp == nil {
				healthy++
			}
		}
		need := int32(0)
		if b.Spec.MinAvailable != nil {
			n, _ := intstr.GetScaledValueFromIntOrPercent(b.Spec.MinAvailable, int(expected), true) // a bad percentage asks for nothing
			need = int32(n)
		} else if b.Spec.MaxUnavailable != nil {
			n, _ := intstr.GetScaledValueFromIntOrPercent(b.Spec.MaxUnavailable, int(expected), true) // as above
			need = max(expected-int32(n), 0)
		}
		b.Status.ObservedGeneration = b.Generation
		b.Status.ExpectedPods, b.Status.CurrentHealthy, b.Status.DesiredHealthy = expected, healthy, need
		b.Status.DisruptionsAllowed = max(healthy-need, 0)
		p.Put(resource.DisruptionBudgets, b)
	}
}

// autoscalers says for each autoscaler why it can or cannot act. There is no metrics API here, so none ever scales by load.
func (p *pass) autoscalers() {
	for _, old := range store.List[*autoscalingv2.HorizontalPodAutoscaler](p.Tx, resource.Autoscalers, "") {
		h := change(old)
		d, ok := store.Get[*appsv1.Deployment](p.Tx, resource.Deployments, h.Namespace, h.Spec.ScaleTargetRef.Name)
		if !ok || h.Spec.ScaleTargetRef.Kind != "Deployment" {
			why := fmt.Sprintf("the HPA controller was unable to get the target's current scale: %ss.apps %q not found", lower(h.Spec.ScaleTargetRef.Kind), h.Spec.ScaleTargetRef.Name)
			p.autoscalerCondition(h, autoscalingv2.AbleToScale, corev1.ConditionFalse, "FailedGetScale", why)
			if p.Put(resource.Autoscalers, h) {
				p.note(h, "horizontal-pod-autoscaler", corev1.EventTypeWarning, "FailedGetScale", why)
			}
			continue
		}
		h.Status.CurrentReplicas, h.Status.DesiredReplicas = d.Status.Replicas, *d.Spec.Replicas
		p.autoscalerCondition(h, autoscalingv2.AbleToScale, corev1.ConditionTrue, "SucceededGetScale", "the HPA controller was able to get the target's current scale")
		why := "the HPA was unable to compute the replica count: failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)"
		for _, c := range d.Spec.Template.Spec.Containers {
			if _, asked := c.Resources.Requests[corev1.ResourceCPU]; !asked {
				why = fmt.Sprintf("the HPA was unable to compute the replica count: failed to get cpu utilization: missing request for cpu in container %s of Pod of %s", c.Name, d.Name)
			}
		}
		p.autoscalerCondition(h, autoscalingv2.ScalingActive, corev1.ConditionFalse, "FailedGetResourceMetric", why)
		if p.Put(resource.Autoscalers, h) {
			p.note(h, "horizontal-pod-autoscaler", corev1.EventTypeWarning, "FailedGetResourceMetric", why)
		}
	}
}

func lower(kind string) string {
	if kind == "" {
		return kind
	}
	return string(kind[0]|0x20) + kind[1:]
}

func (p *pass) autoscalerCondition(h *autoscalingv2.HorizontalPodAutoscaler, kind autoscalingv2.HorizontalPodAutoscalerConditionType, status corev1.ConditionStatus, reason, message string) {
	c := autoscalingv2.HorizontalPodAutoscalerCondition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: p.stamp()}
	i := slices.IndexFunc(h.Status.Conditions, func(old autoscalingv2.HorizontalPodAutoscalerCondition) bool { return old.Type == kind })
	if i < 0 {
		h.Status.Conditions = append(h.Status.Conditions, c)
		return
	}
	if h.Status.Conditions[i].Status == status {
		c.LastTransitionTime = h.Status.Conditions[i].LastTransitionTime
	}
	h.Status.Conditions[i] = c
}
