package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

const (
	// mostChanges limits the changes named in a cause.
	mostChanges = 3
	// longReady is the minReadySeconds above which users take the wait for a stuck rollout.
	longReady = 5 * time.Minute
)

// checkRollouts explains RolloutStuck: a deployment whose new revision does not come up, or which is paused. If the new
// pods have a finding, it follows from that.
func checkRollouts(x *Index) []engine.Finding {
	var found []engine.Finding
	for i := range x.Deployments {
		d := &x.Deployments[i]
		ref := operation.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: d.Namespace, Name: d.Name}
		w := x.Workloads[ref]
		f := engine.Finding{Class: engine.RolloutStuck, Object: ref, Because: []operation.Ref{ref}}
		c := deploymentCondition(d, appsv1.DeploymentProgressing)
		switch {
		case d.DeletionTimestamp != nil || x.Unread["replicasets"] || w.Newest == nil:
			continue
		case d.Spec.Paused:
			running := x.waitingRevision(d, w)
			changed := append(diffPodSpecs(&running.Spec, &d.Spec.Template.Spec), diffPodMetadata(&running.ObjectMeta, &d.Spec.Template.ObjectMeta)...)
			if len(changed) == 0 {
				continue // paused, and no change is pending
			}
			f.Because = nil
			f.Confidence = engine.High
			f.Evidence = append([]string{fmt.Sprintf("The rollout is paused; %d of %s of the revision that is wanted. What differs from the pods that run:", d.Status.UpdatedReplicas, engine.CountNoun(int(d.Status.Replicas), "pod is", "pods are"))}, changed...)
			f.Cause = "Its rollout is paused, so that the change does not reach the pods."
			f.Text = "If the change is meant to be rolled out, resume it."
			f.Fix = engine.ValidFix(engine.NewOperation(operation.Resume, ref))
		case time.Duration(d.Spec.MinReadySeconds)*time.Second >= longReady && d.Status.ReadyReplicas > d.Status.AvailableReplicas:
			f.Because, f.Confidence = nil, engine.High
			f.Evidence = []string{fmt.Sprintf("%d of its pods are ready, and %d count as available.", d.Status.ReadyReplicas, d.Status.AvailableReplicas)}
			f.Cause = fmt.Sprintf("A pod counts as available only when it has been ready for `minReadySeconds`, which is %d (%s), so the rollout does not end before.", d.Spec.MinReadySeconds, time.Duration(d.Spec.MinReadySeconds)*time.Second)
			f.Text = "If that is not meant, set minReadySeconds to some seconds."
		case c != nil && c.Status == corev1.ConditionFalse && c.Reason == "ProgressDeadlineExceeded":
			explainStuck(&f, d, c, w)
			x.quoteWarning(&f, ref)
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}

// waitingRevision returns the pod template that pods of a paused deployment still run although another one is wanted;
// if there is none, that of the newest revision. A revision that is wanted again gets the highest number immediately,
// but no pods until the rollout is resumed.
func (x *Index) waitingRevision(d *appsv1.Deployment, w *engine.Workload) *corev1.PodTemplateSpec {
	for i := range x.ReplicaSets {
		set := &x.ReplicaSets[i]
		if set.Status.Replicas == 0 || set.Namespace != d.Namespace || !metav1.IsControlledBy(set, d) {
			continue
		}
		if t := &set.Spec.Template; len(diffPodSpecs(&t.Spec, &d.Spec.Template.Spec)) > 0 || len(diffPodMetadata(&t.ObjectMeta, &d.Spec.Template.ObjectMeta)) > 0 {
			return t
		}
	}
	return w.Newest.Template
}

func deploymentCondition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	at := slices.IndexFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == kind })
	if at < 0 {
		return nil
	}
	return &d.Status.Conditions[at]
}

func explainStuck(f *engine.Finding, d *appsv1.Deployment, c *appsv1.DeploymentCondition, w *engine.Workload) {
	f.Evidence = []string{fmt.Sprintf("The controller says %s; %d of %s updated, %d ready.", engine.QuoteCode(c.Message), d.Status.UpdatedReplicas, engine.CountNoun(int(w.Replicas), "pod is", "pods are"), d.Status.ReadyReplicas)}
	f.Cause, f.Confidence = fmt.Sprintf("Its new pods have not become ready within %s.", engine.CountNoun(int(engine.ValueOr(d.Spec.ProgressDeadlineSeconds, 600)), "second", "seconds")), engine.Medium
	f.Text = "Find out why the new pods are not ready: describe one of them."
	if len(w.Older) == 0 {
		return
	}
	before := w.Older[0]
	changed := diffPodSpecs(&before.Template.Spec, &d.Spec.Template.Spec)
	if len(changed) > mostChanges {
		f.Evidence = append(append(f.Evidence, "All changes:"), changed...)
		changed = append(changed[:mostChanges:mostChanges], "And more.")
	}
	if len(changed) > 0 {
		f.Cause += fmt.Sprintf(" Revision %d changed against revision %d: %s", w.Newest.Number, before.Number, strings.Join(changed, " "))
	}
	fix, text := engine.UndoRollout(w, func(older *corev1.PodTemplateSpec) bool {
		return len(diffPodSpecs(&older.Spec, &d.Spec.Template.Spec)) > 0
	})
	if fix != nil {
		f.Fix, f.Text = fix, text
	}
}

// quoteWarning quotes the newest warning of a pod that is not ready: it may give a reason that no playbook knows.
func (x *Index) quoteWarning(f *engine.Finding, ref operation.Ref) {
	for _, pod := range x.newest(ref) {
		if engine.PodReady(pod) {
			continue
		}
		if e := x.EventOf(pod.UID, func(e *corev1.Event) bool { return e.Type == corev1.EventTypeWarning }); e != nil {
			f.Evidence = append(f.Evidence, fmt.Sprintf("The newest warning of pod %s, %s, says %s.", engine.QuoteCode(pod.Name), engine.QuoteCode(e.Reason), engine.QuoteLine(e.Message)))
			return
		}
	}
}

// diffPodSpecs describes the differences between two pod specs. For variables it gives only their names, and for
// arguments only that they differ: both may contain secrets.
func diffPodSpecs(old, now *corev1.PodSpec) []string {
	var all []string
	for _, list := range []struct{ old, now []corev1.Container }{{old.InitContainers, now.InitContainers}, {old.Containers, now.Containers}} {
		before := byName(list.old)
		after := byName(list.now)
		for _, n := range slices.Sorted(maps.Keys(before)) {
			if after[n] == nil {
				all = append(all, fmt.Sprintf("Container %s is gone.", engine.QuoteCode(n)))
			}
		}
		for _, n := range slices.Sorted(maps.Keys(after)) {
			if before[n] == nil {
				all = append(all, fmt.Sprintf("Container %s is new, with image %s.", engine.QuoteCode(n), engine.QuoteCode(after[n].Image)))
				continue
			}
			all = append(all, containerChanges(before[n], after[n])...)
		}
	}
	for _, part := range []struct {
		what     string
		old, now any
	}{
		{"service account", old.ServiceAccountName, now.ServiceAccountName},
		{"volumes", old.Volumes, now.Volumes},
		{"node selector", old.NodeSelector, now.NodeSelector},
		{"affinity", old.Affinity, now.Affinity},
		{"tolerations", old.Tolerations, now.Tolerations},
		{"security context", old.SecurityContext, now.SecurityContext},
		{"pull credentials", old.ImagePullSecrets, now.ImagePullSecrets},
	} {
		if !engine.EqualValues(part.old, part.now) {
			all = append(all, fmt.Sprintf("The %s changed.", part.what))
		}
	}
	return all
}

func byName(list []corev1.Container) map[string]*corev1.Container {
	all := map[string]*corev1.Container{}
	for i := range list {
		all[list[i].Name] = &list[i]
	}
	return all
}

func containerChanges(old, now *corev1.Container) []string {
	var all []string
	if old.Image != now.Image {
		all = append(all, fmt.Sprintf("Container %s: image %s became %s.", engine.QuoteCode(now.Name), engine.QuoteCode(old.Image), engine.QuoteCode(now.Image)))
	}
	values := func(c *corev1.Container) map[string]corev1.EnvVar {
		vars := map[string]corev1.EnvVar{}
		for _, e := range c.Env {
			vars[e.Name] = e
		}
		return vars
	}
	before, after := values(old), values(now)
	var vars []string
	for n, v := range after {
		if o, ok := before[n]; !ok || !engine.EqualValues(o, v) {
			vars = append(vars, n)
		}
	}
	for n := range before {
		if _, ok := after[n]; !ok {
			vars = append(vars, n)
		}
	}
	if len(vars) > 0 {
		slices.Sort(vars)
		all = append(all, fmt.Sprintf("Container %s: the variables %s changed.", engine.QuoteCode(now.Name), engine.QuoteCodes(vars)))
	}
	for _, part := range []struct {
		what     string
		old, now any
	}{
		{"command", [][]string{old.Command, old.Args}, [][]string{now.Command, now.Args}},
		{"variables as a whole", old.EnvFrom, now.EnvFrom},
		{"requests and limits", old.Resources, now.Resources},
		{"ports", old.Ports, now.Ports},
		{"liveness probe", old.LivenessProbe, now.LivenessProbe},
		{"readiness probe", old.ReadinessProbe, now.ReadinessProbe},
		{"startup probe", old.StartupProbe, now.StartupProbe},
		{"mounts", old.VolumeMounts, now.VolumeMounts},
		{"security context", old.SecurityContext, now.SecurityContext},
	} {
		if !engine.EqualValues(part.old, part.now) {
			all = append(all, fmt.Sprintf("Container %s: the %s changed.", engine.QuoteCode(now.Name), part.what))
		}
	}
	return all
}

// diffPodMetadata describes which labels and annotations of a template have changed, as a restart or a release changes
// them.
func diffPodMetadata(old, now *metav1.ObjectMeta) []string {
	var all []string
	for _, part := range []struct {
		what     string
		old, now map[string]string
	}{{"label", old.Labels, now.Labels}, {"annotation", old.Annotations, now.Annotations}} {
		keys := maps.Clone(part.old)
		if keys == nil {
			keys = map[string]string{}
		}
		maps.Copy(keys, part.now)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if before, after := part.old[key], part.now[key]; before != after && key != appsv1.DefaultDeploymentUniqueLabelKey {
				all = append(all, fmt.Sprintf("The %s %s of the pods changed.", part.what, engine.QuoteCode(key)))
			}
		}
	}
	return all
}
