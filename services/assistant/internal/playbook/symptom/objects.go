package symptom

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

func (l *lister) workloads() {
	lacks := func(kind string, o metav1.Object, wanted, ready int32) {
		if ready < wanted {
			r := ref(kind, o)
			l.add(Symptom{Object: r, Text: fmt.Sprintf("%s has %d of %d pods ready.", engine.UpperFirst(engine.RefTitle(r)), ready, wanted)})
		}
	}
	for i := range l.Deployments {
		d := &l.Deployments[i]
		if !l.in(d) {
			continue
		}
		lacks("Deployment", d, engine.ValueOr(d.Spec.Replicas, 1), d.Status.ReadyReplicas)
		for _, c := range d.Status.Conditions {
			if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse || c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
				r := ref("Deployment", d)
				l.add(Symptom{Object: r, telling: c.Type == appsv1.DeploymentReplicaFailure,
					Text: fmt.Sprintf("%s says %s: %s.", engine.UpperFirst(engine.RefTitle(r)), engine.QuoteCode(c.Reason), engine.QuoteCode(c.Message))})
			}
		}
	}
	for i := range l.StatefulSets {
		if d := &l.StatefulSets[i]; l.in(d) {
			lacks("StatefulSet", d, engine.ValueOr(d.Spec.Replicas, 1), d.Status.ReadyReplicas)
		}
	}
	for i := range l.DaemonSets {
		if d := &l.DaemonSets[i]; l.in(d) {
			lacks("DaemonSet", d, d.Status.DesiredNumberScheduled, d.Status.NumberReady)
		}
	}
}

// jobs lists failed jobs, which count until a later job of their owner succeeds.
func (l *lister) jobs() {
	latest := map[operation.Ref]*batchv1.Job{}
	for i := range l.Jobs {
		j := &l.Jobs[i]
		of := l.top(ref("Job", j))
		if l.in(j) && (latest[of] == nil || latest[of].CreationTimestamp.Before(&j.CreationTimestamp)) {
			latest[of] = j
		}
	}
	for i := range l.Jobs {
		j := &l.Jobs[i]
		of := l.top(ref("Job", j))
		if latest[of] != j {
			continue
		}
		for _, c := range j.Status.Conditions {
			if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue && l.since(c.LastTransitionTime.Time) < engine.Recent {
				l.add(Symptom{Object: ref("Job", j), Owner: of, Text: fmt.Sprintf("Job %s failed: %s.", engine.QuoteCode(j.Name), engine.QuoteCode(c.Reason+" "+c.Message))})
			}
		}
	}
}

func (l *lister) services() {
	if l.Unread["endpointslices"] || l.Unread["services"] {
		return
	}
	ready := engine.ReadyEndpoints(l.EndpointSlices)
	for i := range l.Services {
		s := &l.Services[i]
		if l.in(s) && len(s.Spec.Selector) > 0 && s.Spec.Type != corev1.ServiceTypeExternalName && ready[engine.NameOf(s)] == 0 {
			l.add(Symptom{Object: ref("Service", s), Text: fmt.Sprintf("Service %s has no ready endpoints.", engine.QuoteCode(s.Name))})
		}
	}
}

func (l *lister) claims() {
	waits := map[string]bool{} // storage classes that bind on first use
	for i := range l.StorageClasses {
		c := &l.StorageClasses[i]
		waits[c.Name] = c.VolumeBindingMode != nil && *c.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	}
	mounted := map[engine.Name]bool{}
	for i := range l.Pods {
		for _, claim := range engine.ClaimsOf(&l.Pods[i]) {
			mounted[engine.Name{Namespace: l.Pods[i].Namespace, Name: claim}] = true
		}
	}
	for i := range l.Claims {
		c := &l.Claims[i]
		idle := waits[engine.ValueOr(c.Spec.StorageClassName, "")] && !mounted[engine.NameOf(c)]
		if l.in(c) && c.DeletionTimestamp == nil && c.Status.Phase != corev1.ClaimBound && c.Status.Phase != "" && !idle {
			l.add(Symptom{Object: ref("PersistentVolumeClaim", c), Text: fmt.Sprintf("Volume claim %s is %s.", engine.QuoteCode(c.Name), engine.QuoteCode(string(c.Status.Phase)))})
		}
	}
}

func (l *lister) autoscalers() {
	for i := range l.Autoscalers {
		a := &l.Autoscalers[i]
		if !l.in(a) {
			continue
		}
		for _, c := range a.Status.Conditions {
			bad := c.Type == autoscalingv2.AbleToScale || c.Type == autoscalingv2.ScalingActive && c.Reason != "ScalingDisabled"
			if bad && c.Status == corev1.ConditionFalse {
				l.add(Symptom{Object: ref("HorizontalPodAutoscaler", a), Text: fmt.Sprintf("Autoscaler %s says %s: %s.", engine.QuoteCode(a.Name), engine.QuoteCode(c.Reason), engine.QuoteCode(c.Message))})
			}
		}
	}
}

// terminating lists terminating objects other than pods, which wait for a finalizer.
func (l *lister) terminating() {
	check := func(kind string, o metav1.Object) {
		if at := o.GetDeletionTimestamp(); at != nil && l.since(at.Time) > endingGrace {
			r := ref(kind, o)
			l.add(Symptom{Object: r, Text: fmt.Sprintf("%s was deleted and is still there.", engine.UpperFirst(engine.RefTitle(r)))})
		}
	}
	for i := range l.Namespaces {
		if n := &l.Namespaces[i]; l.namespace == "" || n.Name == l.namespace {
			check("Namespace", n)
		}
	}
	for i := range l.Claims {
		if l.in(&l.Claims[i]) {
			check("PersistentVolumeClaim", &l.Claims[i])
		}
	}
	for i := range l.Deployments {
		if l.in(&l.Deployments[i]) {
			check("Deployment", &l.Deployments[i])
		}
	}
	for i := range l.StatefulSets {
		if l.in(&l.StatefulSets[i]) {
			check("StatefulSet", &l.StatefulSets[i])
		}
	}
	for i := range l.Services {
		if l.in(&l.Services[i]) {
			check("Service", &l.Services[i])
		}
	}
}

// nodes lists unhealthy nodes; they have no namespace, so they are symptoms of the whole cluster only.
func (l *lister) nodes() {
	if l.namespace != "" {
		return
	}
	for i := range l.Nodes {
		n := &l.Nodes[i]
		for _, c := range n.Status.Conditions {
			bad := c.Status == corev1.ConditionTrue
			if c.Type == corev1.NodeReady {
				bad = c.Status != corev1.ConditionTrue
			}
			if bad {
				l.add(Symptom{Object: ref("Node", n), Text: fmt.Sprintf("Node %s has the condition %s: %s.", engine.QuoteCode(n.Name), engine.QuoteCode(string(c.Type)+"="+string(c.Status)), engine.QuoteCode(c.Message))})
			}
		}
	}
}

// startEvents are warnings of a pod's start; a healthy pod has got past them.
var startEvents = map[string]bool{
	"FailedScheduling": true, "FailedMount": true, "FailedAttachVolume": true, "Failed": true, "BackOff": true, "FailedCreatePodSandBox": true,
	"FailedCreate": true, "NetworkNotReady": true, "InspectFailed": true, "ErrImageNeverPull": true,
}

// events lists repeated warnings about an object without other symptoms.
func (l *lister) events() {
	const often = 3
	pods := map[operation.Ref]*corev1.Pod{}
	for i := range l.Pods {
		pods[ref("Pod", &l.Pods[i])] = &l.Pods[i]
	}
	measuring := map[operation.Ref]metav1.Time{}
	for i := range l.Autoscalers {
		a := &l.Autoscalers[i]
		for _, c := range a.Status.Conditions {
			if c.Type == autoscalingv2.ScalingActive && c.Status == corev1.ConditionTrue {
				measuring[ref("HorizontalPodAutoscaler", a)] = c.LastTransitionTime
			}
		}
	}
	for i := range l.Events {
		e := &l.Events[i]
		on := operation.Ref{Kind: e.InvolvedObject.Kind, Namespace: e.InvolvedObject.Namespace, Name: e.InvolvedObject.Name}
		if e.Type != corev1.EventTypeWarning || l.namespace != "" && on.Namespace != l.namespace || l.unhealthy[on] || l.unhealthy[l.top(on)] {
			continue
		}
		times := max(e.Count, 1)
		if e.Series != nil {
			times = e.Series.Count
		}
		if l.since(engine.LastSeen(e).Time) > freshEvent || times < often || startEvents[e.Reason] {
			continue
		}
		if since, measures := measuring[on]; measures && !engine.LastSeen(e).After(since.Time) {
			continue // an autoscaler that got its metrics after all
		}
		owner := l.top(on)
		if on.Kind == "Pod" {
			at := pods[on]
			if at == nil {
				continue // gone since
			}
			owner = l.ownerOf(at)
		}
		l.found = append(l.found, Symptom{Object: on, Owner: owner, Text: fmt.Sprintf("%s has had the warning %s %d times: %s.",
			engine.UpperFirst(engine.RefTitle(on)), engine.QuoteCode(e.Reason), times, engine.QuoteCode(e.Message))})
	}
}
