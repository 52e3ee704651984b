package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// metricsAPI is the API that serves the usage of pods.
const metricsAPI = "metrics.k8s.io/v1beta1"

// checkAutoscalers explains AutoscalerIdle: autoscalers that do not scale.
func checkAutoscalers(x *Index) []engine.Finding {
	var found []engine.Finding
	for i := range x.Autoscalers {
		a := &x.Autoscalers[i]
		if a.DeletionTimestamp != nil {
			continue
		}
		f := engine.Finding{Class: engine.AutoscalerIdle, Object: autoscalerRef(a), Confidence: engine.High}
		if explainAutoscaler(&f, x, a) {
			found = append(found, f)
		}
	}
	return found
}

func autoscalerRef(a *autoscalingv2.HorizontalPodAutoscaler) operation.Ref {
	return operation.Ref{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler", Namespace: a.Namespace, Name: a.Name}
}

func autoscalerCondition(a *autoscalingv2.HorizontalPodAutoscaler, kind autoscalingv2.HorizontalPodAutoscalerConditionType) autoscalingv2.HorizontalPodAutoscalerCondition {
	for _, c := range a.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return autoscalingv2.HorizontalPodAutoscalerCondition{}
}

// explainAutoscaler reports whether an autoscaler does not scale, and why.
func explainAutoscaler(f *engine.Finding, x *Index, a *autoscalingv2.HorizontalPodAutoscaler) bool {
	able := autoscalerCondition(a, autoscalingv2.AbleToScale)
	active := autoscalerCondition(a, autoscalingv2.ScalingActive)
	w, unread := x.scaled(a)
	switch {
	case w == nil && !unread:
		explainNoTarget(f, x, a)
		return true
	case w != nil && w.Replicas == 0, active.Reason == "ScalingDisabled":
		return false // switched off on purpose
	case able.Status == corev1.ConditionFalse:
		f.Evidence = []string{conditionText(able)}
		f.Cause = "The controller cannot read or change the scale of what the autoscaler names."
		f.Text = "Repair what the condition names."
		return true
	case active.Status == corev1.ConditionTrue:
		return explainBoundReached(f, a)
	}
	if w != nil && explainNoRequests(f, x, a, w) {
		return true
	}
	if active.Status != corev1.ConditionFalse {
		return false // the controller has not seen it yet
	}
	f.Evidence = append(f.Evidence, conditionText(active))
	explainInactive(f, x, a, active, w)
	return true
}

func conditionText(c autoscalingv2.HorizontalPodAutoscalerCondition) string {
	return fmt.Sprintf("Its condition %s is %s, %s: %s.", c.Type, c.Status, engine.QuoteCode(c.Reason), engine.QuoteCode(c.Message))
}

// scaled returns the workload that an autoscaler scales; nil if it does not exist or its kind is not read.
func (x *Index) scaled(a *autoscalingv2.HorizontalPodAutoscaler) (w *engine.Workload, unread bool) {
	t := a.Spec.ScaleTargetRef
	if t.Kind != "Deployment" && t.Kind != "StatefulSet" && t.Kind != "ReplicaSet" || x.Unread[strings.ToLower(t.Kind)+"s"] {
		return nil, true
	}
	return x.Workloads[operation.Ref{Group: appsv1.GroupName, Version: "v1", Kind: t.Kind, Namespace: a.Namespace, Name: t.Name}], false
}

func explainNoTarget(f *engine.Finding, x *Index, a *autoscalingv2.HorizontalPodAutoscaler) {
	t := a.Spec.ScaleTargetRef
	f.Cause = fmt.Sprintf("It is to scale %s %s, which does not exist.", strings.ToLower(t.Kind), engine.QuoteCode(t.Name))
	f.Evidence = []string{fmt.Sprintf("Namespace %s was searched: no %s has this name.", engine.QuoteCode(a.Namespace), t.Kind)}
	f.Text = "Choose what it should scale, or delete it."
	var others []string
	for ref := range x.Workloads {
		if ref.Kind == t.Kind && ref.Namespace == a.Namespace {
			others = append(others, ref.Name)
		}
	}
	if near, ok := engine.NearestName(t.Name, slices.Sorted(slices.Values(others))); ok {
		f.Cause += fmt.Sprintf(" The nearest is %s.", engine.QuoteCode(near))
		if f.Fix = engine.NewPatch(f.Object, engine.Members{"spec": engine.Members{"scaleTargetRef": engine.Members{"apiVersion": t.APIVersion, "kind": t.Kind, "name": near}}}); f.Fix != nil {
			f.Text = fmt.Sprintf("Let it scale %s, if that is meant.", engine.QuoteCode(near))
		}
	}
}

// explainNoRequests explains utilization targets without a resource request: utilization is a percentage of the
// request, and without one the controller computes nothing.
func explainNoRequests(f *engine.Finding, x *Index, a *autoscalingv2.HorizontalPodAutoscaler, w *engine.Workload) bool {
	if w.Template == nil {
		return false
	}
	spec := &w.Template.Spec
	for _, pod := range x.PodsOf(w.Ref) {
		if pod.Status.Phase != corev1.PodFailed {
			spec = &pod.Spec // with the defaults of a LimitRange or webhook
			break
		}
	}
	for _, m := range a.Spec.Metrics {
		kind, only := utilizationTarget(m)
		if kind == "" || spec.Resources != nil && engine.HasResource(spec.Resources.Requests, kind) {
			continue
		}
		var lacks []string
		for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range list {
				c := &list[i]
				counts := only == "" || only == c.Name
				if counts && !engine.HasResource(c.Resources.Requests, kind) && (only != "" || slices.ContainsFunc(spec.Containers, func(main corev1.Container) bool { return main.Name == c.Name }) || engine.RunsBeside(c)) {
					lacks = append(lacks, c.Name)
				}
			}
		}
		if len(lacks) == 0 {
			continue
		}
		f.Evidence = []string{fmt.Sprintf("It scales by %s usage in percent of the request; no %s request has container %s of %s.", kind, kind, engine.QuoteCodes(lacks), engine.RefTitle(w.Ref))}
		if active := autoscalerCondition(a, autoscalingv2.ScalingActive); active.Status == corev1.ConditionFalse {
			f.Evidence = append(f.Evidence, conditionText(active))
		}
		f.Cause = fmt.Sprintf("The containers miss the %s request that their usage is measured against, so the autoscaler cannot compute anything.", kind)
		f.Text = fmt.Sprintf("Choose a %s request for each container of %s.", kind, engine.RefTitle(w.Ref))
		if len(lacks) == 1 {
			offerLostRequest(f, w, lacks[0], kind)
		}
		return true
	}
	return false
}

// utilizationTarget returns the resource of a utilization metric, and its container if the metric names one.
func utilizationTarget(m autoscalingv2.MetricSpec) (kind corev1.ResourceName, container string) {
	switch {
	case m.Resource != nil && m.Resource.Target.Type == autoscalingv2.UtilizationMetricType:
		return m.Resource.Name, ""
	case m.ContainerResource != nil && m.ContainerResource.Target.Type == autoscalingv2.UtilizationMetricType:
		return m.ContainerResource.Name, m.ContainerResource.Container
	}
	return "", ""
}

// offerLostRequest offers the request that the container had in an earlier revision.
func offerLostRequest(f *engine.Finding, w *engine.Workload, container string, kind corev1.ResourceName) {
	for _, r := range w.Older {
		then := engine.FindContainer(r.Template, container)
		if then == nil || !engine.HasResource(then.Resources.Requests, kind) {
			continue
		}
		request := then.Resources.Requests[kind]
		o := engine.NewOperation(operation.SetResources, w.Ref)
		o.Container = container
		o.Requests = map[string]string{string(kind): request.String()}
		if f.Fix = engine.ValidFix(o); f.Fix != nil {
			f.Text = fmt.Sprintf("Give back the %s request of revision %d, %s.", kind, r.Number, request.String())
		}
		return
	}
}

// explainInactive distinguishes the reasons why no metric is available.
func explainInactive(f *engine.Finding, x *Index, a *autoscalingv2.HorizontalPodAutoscaler, c autoscalingv2.HorizontalPodAutoscalerCondition, w *engine.Workload) {
	served, listed := x.Served[metricsAPI]
	switch {
	case c.Reason == "InvalidSelector" || c.Reason == "AmbiguousSelector":
		f.Cause = "Its pods cannot be distinguished from those of another autoscaler, or it has no valid selector for them."
		f.Text = "Keep only one autoscaler for these pods."
	case (c.Reason == "FailedGetResourceMetric" || c.Reason == "FailedGetContainerResourceMetric") && (strings.Contains(c.Message, "unable to fetch metrics from resource metrics API") || x.Served != nil && !listed && !served):
		f.Cause = "The resource metrics API does not answer, so the autoscaler does not know what the pods use."
		if x.Served != nil && !served {
			f.Evidence = append(f.Evidence, fmt.Sprintf("The cluster does not serve %s.", engine.QuoteCode(metricsAPI)))
		}
		f.Text = "Install metrics-server, or look why its pods and its APIService are not ready."
	case strings.Contains(c.Message, "no metrics returned") || strings.Contains(c.Message, "did not receive metrics"):
		f.Cause, f.Confidence = "There is no usage to measure yet: its pods are not ready, or just started.", engine.Medium
		f.Text = "Find out whether its pods are ready; if they are, wait a minute."
		if w != nil {
			f.Because = []operation.Ref{w.Ref}
		}
	case c.Reason == "FailedGetPodsMetric" || c.Reason == "FailedGetObjectMetric" || c.Reason == "FailedGetExternalMetric":
		f.Cause = "The custom or external metric that it names cannot be had, so it does not scale."
		f.Text = "Look whether a metrics adapter serves the metric under this name."
	default:
		f.Cause, f.Confidence = "It has no valid metric, so it does not scale.", engine.Medium
		f.Text = "Repair what the condition names."
	}
	if a.Status.CurrentReplicas > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("It stays at %s.", engine.CountNoun(int(a.Status.CurrentReplicas), "replica", "replicas")))
	}
}

// explainBoundReached explains an autoscaler that is at its maximum and wants more, which is often intended.
func explainBoundReached(f *engine.Finding, a *autoscalingv2.HorizontalPodAutoscaler) bool {
	limited := autoscalerCondition(a, autoscalingv2.ScalingLimited)
	if limited.Status != corev1.ConditionTrue || limited.Reason != "TooManyReplicas" || a.Status.CurrentReplicas < a.Spec.MaxReplicas {
		return false
	}
	over := false
	for _, m := range a.Spec.Metrics {
		kind, _ := utilizationTarget(m)
		for _, now := range a.Status.CurrentMetrics {
			if kind == "" || m.Resource == nil || now.Resource == nil || now.Resource.Name != kind || now.Resource.Current.AverageUtilization == nil || m.Resource.Target.AverageUtilization == nil {
				continue
			}
			have, want := *now.Resource.Current.AverageUtilization, *m.Resource.Target.AverageUtilization
			// Within a tenth of the target the controller itself changes nothing.
			if 10*have > 11*want {
				over = true
				f.Evidence = append(f.Evidence, fmt.Sprintf("The %s usage is %d%%, its target %d%%.", kind, have, want))
			}
		}
	}
	if !over {
		return false
	}
	slices.SortFunc(f.Evidence, cmp.Compare[string])
	f.Evidence = append(f.Evidence, fmt.Sprintf("It has %s, and may have no more.", engine.CountNoun(int(a.Status.CurrentReplicas), "replica", "replicas")))
	f.Confidence = engine.Low
	f.Cause = fmt.Sprintf("It is at its maximum of %d and would want more. This may be intentional.", a.Spec.MaxReplicas)
	f.Text = "If the load must be served, choose a higher maximum."
	return true
}
