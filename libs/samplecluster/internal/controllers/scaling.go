package controllers

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

// budgets counts how many pods of each disruption budget may go.
func (p *pass) budgets() {
	for _, old := range store.List[*policyv1.PodDisruptionBudget](p.Tx, resource.DisruptionBudgets, "") {
		b := copyObject(old)
		expected, healthy := int32(0), int32(0)
		for _, pod := range store.List[*corev1.Pod](p.Tx, resource.Pods, b.Namespace) {
			if isPodFinished(pod) || b.Spec.Selector == nil || !selectorMatches(b.Spec.Selector, pod.Labels) {
				continue
			}
			expected++
			if isPodReady(pod) && pod.DeletionTimestamp == nil {
				healthy++
			}
		}
		need := int32(0)
		if b.Spec.MinAvailable != nil {
			n, _ := intstr.GetScaledValueFromIntOrPercent(b.Spec.MinAvailable, int(expected), true) // an invalid percentage requires no pods
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

// autoscalers records for each autoscaler why it can or cannot act. Programs have constant usage, so each comes to
// rest.
func (p *pass) autoscalers() {
	for _, old := range store.List[*autoscalingv2.HorizontalPodAutoscaler](p.Tx, resource.Autoscalers, "") {
		h := copyObject(old)
		d, ok := store.Get[*appsv1.Deployment](p.Tx, resource.Deployments, h.Namespace, h.Spec.ScaleTargetRef.Name)
		if !ok || h.Spec.ScaleTargetRef.Kind != "Deployment" {
			why := fmt.Sprintf("the HPA controller was unable to get the target's current scale: %ss.apps %q not found", lowerFirst(h.Spec.ScaleTargetRef.Kind), h.Spec.ScaleTargetRef.Name)
			p.autoscalerCondition(h, autoscalingv2.AbleToScale, corev1.ConditionFalse, "FailedGetScale", why)
			if p.Put(resource.Autoscalers, h) {
				p.note(h, "horizontal-pod-autoscaler", corev1.EventTypeWarning, "FailedGetScale", why)
			}
			continue
		}
		h.Status.CurrentReplicas, h.Status.DesiredReplicas = d.Status.Replicas, *d.Spec.Replicas
		p.autoscalerCondition(h, autoscalingv2.AbleToScale, corev1.ConditionTrue, "SucceededGetScale", "the HPA controller was able to get the target's current scale")
		used, asked, why := p.load(d)
		if why != "" {
			p.autoscalerCondition(h, autoscalingv2.ScalingActive, corev1.ConditionFalse, "FailedGetResourceMetric", why)
			if p.Put(resource.Autoscalers, h) {
				p.note(h, "horizontal-pod-autoscaler", corev1.EventTypeWarning, "FailedGetResourceMetric", why)
			}
			continue
		}
		p.rescale(h, d, used, asked)
	}
}

// load returns the CPU usage and requests of a deployment's running pods, or why they are unknown.
func (p *pass) load(d *appsv1.Deployment) (used, asked int64, why string) {
	const failed = "the HPA was unable to compute the replica count: failed to get cpu utilization: "
	for _, c := range d.Spec.Template.Spec.Containers {
		if _, has := c.Resources.Requests[corev1.ResourceCPU]; !has {
			return 0, 0, fmt.Sprintf(failed+"missing request for cpu in container %s of Pod of %s", c.Name, d.Name)
		}
	}
	for _, pod := range store.List[*corev1.Pod](p.Tx, resource.Pods, d.Namespace) {
		if isPodFinished(pod) || d.Spec.Selector == nil || !selectorMatches(d.Spec.Selector, pod.Labels) {
			continue
		}
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			if usage, running := p.Usage(p.Tx, pod, c); running {
				used += usage.Cpu().MilliValue()
				asked += c.Resources.Requests.Cpu().MilliValue()
			}
		}
	}
	if asked == 0 {
		return 0, 0, failed + "unable to get metrics for resource cpu: no metrics returned from resource metrics API"
	}
	return used, asked, ""
}

// rescale sets the replicas that bring the load to the autoscaler's target, within its bounds.
func (p *pass) rescale(h *autoscalingv2.HorizontalPodAutoscaler, d *appsv1.Deployment, used, asked int64) {
	utilization := int32(used * 100 / asked)
	target := int32(80) // the API's default
	for _, m := range h.Spec.Metrics {
		if m.Resource != nil && m.Resource.Name == corev1.ResourceCPU && m.Resource.Target.AverageUtilization != nil {
			target = max(*m.Resource.Target.AverageUtilization, 1)
		}
	}
	least := int32(1)
	if h.Spec.MinReplicas != nil {
		least = *h.Spec.MinReplicas
	}
	now := *d.Spec.Replicas
	h.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricStatus{
		Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: &utilization},
	}}}
	p.autoscalerCondition(h, autoscalingv2.ScalingActive, corev1.ConditionTrue, "ValidMetricFound", "the HPA was able to successfully calculate a replica count from cpu resource utilization (percentage of request)")
	wanted := min(max((now*utilization+target-1)/target, least), h.Spec.MaxReplicas)
	if now == 0 {
		wanted = 0 // scaled to nothing by hand: autoscaling is off
	}
	h.Status.DesiredReplicas = wanted
	if wanted != now {
		d = copyObject(d)
		d.Spec.Replicas = &wanted
		d.Generation++
		p.Put(resource.Deployments, d)
		p.note(h, "horizontal-pod-autoscaler", corev1.EventTypeNormal, "SuccessfulRescale", fmt.Sprintf("New size: %d; reason: cpu resource utilization (percentage of request) differs from target", wanted))
	}
	p.Put(resource.Autoscalers, h)
}

func lowerFirst(kind string) string {
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
