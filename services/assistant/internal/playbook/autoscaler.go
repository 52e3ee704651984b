package playbook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// metricsAPI is what serves the usage of pods.
const metricsAPI = "metrics.k8s.io/v1beta1"

// checkAutoscalers explains class 20: autoscalers that do not scale.
func checkAutoscalers(x *index) []Finding {
	var found []Finding
	for i := range x.Autoscalers {
		a := &x.Autoscalers[i]
		if a.DeletionTimestamp != nil {
			continue
		}
		f := Finding{Class: AutoscalerIdle, Object: autoscalerRef(a), Confidence: High}
		if f.autoscaler(x, a) {
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

// autoscaler says whether and why one does not scale.
func (f *Finding) autoscaler(x *index, a *autoscalingv2.HorizontalPodAutoscaler) bool {
	able := autoscalerCondition(a, autoscalingv2.AbleToScale)
	active := autoscalerCondition(a, autoscalingv2.ScalingActive)
	w, unread := x.scaled(a)
	switch {
	case w == nil && !unread:
		f.noTarget(x, a)
		return true
	case w != nil && w.replicas == 0, active.Reason == "ScalingDisabled":
		return false // switched off on purpose
	case able.Status == corev1.ConditionFalse:
		f.Evidence = []string{conditionText(able)}
		f.Cause = "The controller cannot read or change the scale of what the autoscaler names."
		f.Text = "Repair what the condition names."
		return true
	case active.Status == corev1.ConditionTrue:
		return f.atBound(a)
	}
	if w != nil && f.noRequests(x, a, w) {
		return true
	}
	if active.Status != corev1.ConditionFalse {
		return false // the controller has not looked yet
	}
	f.Evidence = append(f.Evidence, conditionText(active))
	f.inactive(x, a, active, w)
	return true
}

func conditionText(c autoscalingv2.HorizontalPodAutoscalerCondition) string {
	return fmt.Sprintf("Its condition %s is %s, %s: %s.", c.Type, c.Status, quoteCode(c.Reason), quoteCode(c.Message))
}

// scaled is what an autoscaler scales; nil where it is not there, or of a kind that is not
// read.
func (x *index) scaled(a *autoscalingv2.HorizontalPodAutoscaler) (w *workload, unread bool) {
	t := a.Spec.ScaleTargetRef
	if t.Kind != "Deployment" && t.Kind != "StatefulSet" && t.Kind != "ReplicaSet" || x.Unread[strings.ToLower(t.Kind)+"s"] {
		return nil, true
	}
	return x.workloads[operation.Ref{Group: appsv1.GroupName, Version: "v1", Kind: t.Kind, Namespace: a.Namespace, Name: t.Name}], false
}

func (f *Finding) noTarget(x *index, a *autoscalingv2.HorizontalPodAutoscaler) {
	t := a.Spec.ScaleTargetRef
	f.Cause = fmt.Sprintf("It is to scale %s %s, which does not exist.", strings.ToLower(t.Kind), quoteCode(t.Name))
	f.Evidence = []string{fmt.Sprintf("Namespace %s was searched: no %s has this name.", quoteCode(a.Namespace), t.Kind)}
	f.Text = "Say what it is to scale, or delete it."
	var others []string
	for ref := range x.workloads {
		if ref.Kind == t.Kind && ref.Namespace == a.Namespace {
			others = append(others, ref.Name)
		}
	}
	if near, ok := nearestName(t.Name, slices.Sorted(slices.Values(others))); ok {
		f.Cause += fmt.Sprintf(" The nearest is %s.", quoteCode(near))
		if f.Fix = newPatch(f.Object, members{"spec": members{"scaleTargetRef": members{"apiVersion": t.APIVersion, "kind": t.Kind, "name": near}}}); f.Fix != nil {
			f.Text = fmt.Sprintf("Let it scale %s, if that is meant.", quoteCode(near))
		}
	}
}

// noRequests tells of shares of requests that nobody made: usage in percent is of the
// request, and without one the controller computes nothing.
func (f *Finding) noRequests(x *index, a *autoscalingv2.HorizontalPodAutoscaler, w *workload) bool {
	if w.template == nil {
		return false
	}
	spec := &w.template.Spec
	for _, pod := range x.podsOf(w.ref) {
		if pod.Status.Phase != corev1.PodFailed {
			spec = &pod.Spec // with what a LimitRange or webhook filled in
			break
		}
	}
	for _, m := range a.Spec.Metrics {
		kind, only := utilizationTarget(m)
		if kind == "" || spec.Resources != nil && hasResource(spec.Resources.Requests, kind) {
			continue
		}
		var lacks []string
		for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range list {
				c := &list[i]
				counts := only == "" || only == c.Name
				if counts && !hasResource(c.Resources.Requests, kind) && (only != "" || slices.ContainsFunc(spec.Containers, func(main corev1.Container) bool { return main.Name == c.Name }) || runsBeside(c)) {
					lacks = append(lacks, c.Name)
				}
			}
		}
		if len(lacks) == 0 {
			continue
		}
		f.Evidence = []string{fmt.Sprintf("It scales by %s usage in percent of the request; no %s request has container %s of %s.", kind, kind, quoteCodes(lacks), refTitle(w.ref))}
		if active := autoscalerCondition(a, autoscalingv2.ScalingActive); active.Status == corev1.ConditionFalse {
			f.Evidence = append(f.Evidence, conditionText(active))
		}
		f.Cause = fmt.Sprintf("The containers miss the %s request that their usage is measured against, so the autoscaler cannot compute anything.", kind)
		f.Text = fmt.Sprintf("Say which %s request each container of %s is to have.", kind, refTitle(w.ref))
		if len(lacks) == 1 {
			f.lostRequest(w, lacks[0], kind)
		}
		return true
	}
	return false
}

// utilizationTarget is the resource of which a metric wants a share, and the one container it
// looks at, if it names one.
func utilizationTarget(m autoscalingv2.MetricSpec) (kind corev1.ResourceName, container string) {
	switch {
	case m.Resource != nil && m.Resource.Target.Type == autoscalingv2.UtilizationMetricType:
		return m.Resource.Name, ""
	case m.ContainerResource != nil && m.ContainerResource.Target.Type == autoscalingv2.UtilizationMetricType:
		return m.ContainerResource.Name, m.ContainerResource.Container
	}
	return "", ""
}

// lostRequest offers the request that the container had in an earlier revision.
func (f *Finding) lostRequest(w *workload, container string, kind corev1.ResourceName) {
	for _, r := range w.older {
		then := findContainer(r.template, container)
		if then == nil || !hasResource(then.Resources.Requests, kind) {
			continue
		}
		request := then.Resources.Requests[kind]
		o := newOperation(operation.SetResources, w.ref)
		o.Container = container
		o.Requests = map[string]string{string(kind): request.String()}
		if f.Fix = validFix(o); f.Fix != nil {
			f.Text = fmt.Sprintf("Give back the %s request of revision %d, %s.", kind, r.number, request.String())
		}
		return
	}
}

// inactive tells apart why no metric can be had.
func (f *Finding) inactive(x *index, a *autoscalingv2.HorizontalPodAutoscaler, c autoscalingv2.HorizontalPodAutoscalerCondition, w *workload) {
	served, listed := x.Served[metricsAPI]
	switch {
	case c.Reason == "InvalidSelector" || c.Reason == "AmbiguousSelector":
		f.Cause = "The pods that it would scale cannot be told apart from those of another autoscaler, or it has no way to choose them."
		f.Text = "Let one autoscaler stay for these pods."
	case (c.Reason == "FailedGetResourceMetric" || c.Reason == "FailedGetContainerResourceMetric") && (strings.Contains(c.Message, "unable to fetch metrics from resource metrics API") || x.Served != nil && !listed && !served):
		f.Cause = "The resource metrics API does not answer, so the autoscaler does not know what the pods use."
		if x.Served != nil && !served {
			f.Evidence = append(f.Evidence, fmt.Sprintf("The cluster does not serve %s.", quoteCode(metricsAPI)))
		}
		f.Text = "Install metrics-server, or look why its pods and its APIService are not ready."
	case strings.Contains(c.Message, "no metrics returned") || strings.Contains(c.Message, "did not receive metrics"):
		f.Cause, f.Confidence = "There is no usage to measure yet: its pods are not ready, or just started.", Medium
		f.Text = "Find out whether its pods are ready; if they are, wait a minute."
		if w != nil {
			f.because = []operation.Ref{w.ref}
		}
	case c.Reason == "FailedGetPodsMetric" || c.Reason == "FailedGetObjectMetric" || c.Reason == "FailedGetExternalMetric":
		f.Cause = "The custom or external metric that it names cannot be had, so it does not scale."
		f.Text = "Look whether a metrics adapter serves the metric under this name."
	default:
		f.Cause, f.Confidence = "It has no valid metric, so it does not scale.", Medium
		f.Text = "Repair what the condition names."
	}
	if a.Status.CurrentReplicas > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("It stays at %s.", countNoun(int(a.Status.CurrentReplicas), "replica", "replicas")))
	}
}

// atBound tells of an autoscaler that wants more than it may have. That is often meant so.
func (f *Finding) atBound(a *autoscalingv2.HorizontalPodAutoscaler) bool {
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
			// Within a tenth of the target the controller itself leaves things as they are.
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
	f.Evidence = append(f.Evidence, fmt.Sprintf("It has %s, and may have no more.", countNoun(int(a.Status.CurrentReplicas), "replica", "replicas")))
	f.Confidence = Low
	f.Cause = fmt.Sprintf("It is at its maximum of %d and would want more, which may be meant so.", a.Spec.MaxReplicas)
	f.Text = "Say which maximum it is to have, if the load is to be carried."
	return true
}
