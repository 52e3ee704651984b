package controllers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

const revisionKey = "deployment.kubernetes.io/revision"

// retryCreate is the interval at which a controller retries to create a pod that was refused.
const retryCreate = time.Minute

func hashOf(v any) string {
	data, err := json.Marshal(v)
	if err != nil { // API types always encode
		panic(err)
	}
	sum := fnv.New32a()
	_, _ = sum.Write(data)
	return rand.SafeEncodeString(strconv.FormatUint(uint64(sum.Sum32()), 10))
}

func (p *pass) deployments() {
	for _, d := range store.List[*appsv1.Deployment](p.Tx, resource.Deployments, "") {
		if d.DeletionTimestamp == nil {
			p.deployment(d)
		}
	}
}

func (p *pass) deployment(old *appsv1.Deployment) {
	d := copyObject(old)
	var sets []*appsv1.ReplicaSet
	for _, rs := range store.List[*appsv1.ReplicaSet](p.Tx, resource.ReplicaSets, d.Namespace) {
		if isController(d, rs) {
			sets = append(sets, copyObject(rs))
		}
	}
	slices.SortFunc(sets, func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(revisionNumber(a), revisionNumber(b)) })
	last := int64(0)
	if len(sets) > 0 {
		last = revisionNumber(sets[len(sets)-1])
	}
	var fresh *appsv1.ReplicaSet
	var stale []*appsv1.ReplicaSet
	for _, rs := range sets {
		if fresh == nil && sameTemplate(&rs.Spec.Template, &d.Spec.Template) {
			fresh = rs
		} else {
			stale = append(stale, rs)
		}
	}
	if fresh == nil && !d.Spec.Paused {
		fresh = p.newReplicaSet(d, last+1)
		if fresh == nil {
			return
		}
	}
	if fresh != nil {
		if revisionNumber(fresh) < last {
			fresh.Annotations[revisionKey] = strconv.FormatInt(last+1, 10)
		}
		if d.Annotations == nil {
			d.Annotations = map[string]string{}
		}
		d.Annotations[revisionKey] = fresh.Annotations[revisionKey]
	}
	p.scaleSets(d, fresh, stale)
	p.deploymentStatus(d, fresh, stale)
	p.Put(resource.Deployments, d)
	if excess := len(stale) - int(*d.Spec.RevisionHistoryLimit); excess > 0 {
		for _, rs := range stale[:excess] {
			if rs.Status.Replicas == 0 && *rs.Spec.Replicas == 0 {
				p.Remove(resource.ReplicaSets, rs.Namespace, rs.Name)
			}
		}
	}
}

func revisionNumber(rs *appsv1.ReplicaSet) int64 {
	n, _ := strconv.ParseInt(rs.Annotations[revisionKey], 10, 64) // none counts as the first
	return n
}

func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	x, y := a.DeepCopy(), b.DeepCopy()
	delete(x.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(y.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return equality.Semantic.DeepEqual(x, y)
}

func (p *pass) newReplicaSet(d *appsv1.Deployment, rev int64) *appsv1.ReplicaSet {
	rs := resource.Of(resource.ReplicaSets).New().(*appsv1.ReplicaSet)
	hash := hashOf(d.Spec.Template)
	rs.Name, rs.Namespace = d.Name+"-"+hash, d.Namespace
	rs.OwnerReferences = ownedBy(d, resource.Deployments)
	rs.Annotations = map[string]string{revisionKey: strconv.FormatInt(rev, 10)}
	rs.Spec.Template = *d.Spec.Template.DeepCopy()
	rs.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	rs.Labels = rs.Spec.Template.Labels
	rs.Spec.Selector = d.Spec.Selector.DeepCopy()
	if rs.Spec.Selector.MatchLabels == nil {
		rs.Spec.Selector.MatchLabels = map[string]string{}
	}
	rs.Spec.Selector.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	rs.Spec.Replicas = new(int32)
	rs.Spec.MinReadySeconds = d.Spec.MinReadySeconds
	if err := p.create(resource.ReplicaSets, rs); err != nil {
		p.note(d, "deployment-controller", corev1.EventTypeWarning, "ReplicaSetCreateError", fmt.Sprintf("Failed to create new replica set %q: %v", rs.Name, err))
		return nil
	}
	return copyObject(rs)
}

// scaleSets moves pods from the old sets to the new one within the deployment's bounds.
func (p *pass) scaleSets(d *appsv1.Deployment, fresh *appsv1.ReplicaSet, stale []*appsv1.ReplicaSet) {
	want := *d.Spec.Replicas
	surge, unavailable := rolloutBounds(d)
	if d.Spec.Paused {
		// A paused deployment still scales, but moves nothing between its sets.
		if fresh == nil && len(stale) > 0 {
			fresh, stale = stale[len(stale)-1], stale[:len(stale)-1]
		}
		if fresh != nil {
			others := int32(0)
			for _, rs := range stale {
				others += *rs.Spec.Replicas
			}
			p.resize(d, fresh, max(want-others, 0))
		}
		return
	}
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		left := int32(0)
		for _, rs := range stale {
			p.resize(d, rs, 0)
			left += rs.Status.Replicas
		}
		if left == 0 {
			p.resize(d, fresh, want)
		}
		return
	}
	total, available := *fresh.Spec.Replicas, fresh.Status.AvailableReplicas
	for _, rs := range stale {
		total += *rs.Spec.Replicas
		available += rs.Status.AvailableReplicas
	}
	switch have := *fresh.Spec.Replicas; {
	case have > want:
		p.resize(d, fresh, want)
	case have < want:
		if room := want + surge - total; room > 0 {
			p.resize(d, fresh, min(have+room, want))
			total += *fresh.Spec.Replicas - have
		}
	}
	least := want - unavailable
	// Old pods that are not available cost nothing: they go first, as long as the new set's missing ones are still counted as missing.
	spare := total - least - (*fresh.Spec.Replicas - fresh.Status.AvailableReplicas)
	for _, rs := range stale {
		broken := *rs.Spec.Replicas - rs.Status.AvailableReplicas
		if drop := min(broken, spare); drop > 0 {
			p.resize(d, rs, *rs.Spec.Replicas-drop)
			spare -= drop
		}
	}
	extra := available - least
	for _, rs := range stale {
		if drop := min(*rs.Spec.Replicas, extra); drop > 0 && rs.Status.AvailableReplicas > 0 {
			p.resize(d, rs, *rs.Spec.Replicas-drop)
			extra -= drop
		}
	}
}

func rolloutBounds(d *appsv1.Deployment) (surge, unavailable int32) {
	if r := d.Spec.Strategy.RollingUpdate; r != nil {
		// Validation let these through; a bad percentage counts as none.
		s, _ := intstr.GetScaledValueFromIntOrPercent(r.MaxSurge, int(*d.Spec.Replicas), true)
		u, _ := intstr.GetScaledValueFromIntOrPercent(r.MaxUnavailable, int(*d.Spec.Replicas), false)
		surge, unavailable = int32(s), int32(u)
	}
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

func (p *pass) resize(d *appsv1.Deployment, rs *appsv1.ReplicaSet, to int32) {
	from := *rs.Spec.Replicas
	if from != to {
		rs.Spec.Replicas = &to
		rs.Generation++
		verb := "up"
		if to < from {
			verb = "down"
		}
		p.note(d, "deployment-controller", corev1.EventTypeNormal, "ScalingReplicaSet", fmt.Sprintf("Scaled %s replica set %s from %d to %d", verb, rs.Name, from, to))
	}
	p.Put(resource.ReplicaSets, rs)
}

func (p *pass) deploymentStatus(d *appsv1.Deployment, fresh *appsv1.ReplicaSet, stale []*appsv1.ReplicaSet) {
	was := d.Status
	s := appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Conditions: was.Conditions, CollisionCount: was.CollisionCount}
	var failure *appsv1.ReplicaSetCondition
	sets := stale
	if fresh != nil {
		p.Put(resource.ReplicaSets, fresh)
		s.UpdatedReplicas = fresh.Status.Replicas
		sets = append(slices.Clone(stale), fresh)
	}
	for _, rs := range sets {
		s.Replicas += rs.Status.Replicas
		s.ReadyReplicas += rs.Status.ReadyReplicas
		s.AvailableReplicas += rs.Status.AvailableReplicas
		for i := range rs.Status.Conditions {
			if rs.Status.Conditions[i].Type == appsv1.ReplicaSetReplicaFailure {
				failure = &rs.Status.Conditions[i]
			}
		}
	}
	want := *d.Spec.Replicas
	s.UnavailableReplicas = max(want-s.AvailableReplicas, 0)
	_, unavailable := rolloutBounds(d)
	if s.AvailableReplicas >= want-unavailable {
		p.condition(&s, appsv1.DeploymentAvailable, corev1.ConditionTrue, "MinimumReplicasAvailable", "Deployment has minimum availability.")
	} else {
		p.condition(&s, appsv1.DeploymentAvailable, corev1.ConditionFalse, "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
	}
	if failure != nil {
		p.condition(&s, appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, failure.Reason, failure.Message)
	} else {
		s.Conditions = slices.DeleteFunc(slices.Clone(s.Conditions), func(c appsv1.DeploymentCondition) bool { return c.Type == appsv1.DeploymentReplicaFailure })
	}
	name := d.Name
	if fresh != nil {
		name = fresh.Name
	}
	moved := s.UpdatedReplicas != was.UpdatedReplicas || s.ReadyReplicas > was.ReadyReplicas || s.AvailableReplicas > was.AvailableReplicas || was.ObservedGeneration != d.Generation
	progress := slices.IndexFunc(s.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == appsv1.DeploymentProgressing })
	done := fresh != nil && s.UpdatedReplicas == want && s.Replicas == want && s.AvailableReplicas == want
	switch {
	case d.Spec.Paused:
		p.condition(&s, appsv1.DeploymentProgressing, corev1.ConditionUnknown, "DeploymentPaused", "Deployment is paused")
	case done:
		p.condition(&s, appsv1.DeploymentProgressing, corev1.ConditionTrue, "NewReplicaSetAvailable", fmt.Sprintf("ReplicaSet %q has successfully progressed.", name))
	case moved || progress < 0:
		p.condition(&s, appsv1.DeploymentProgressing, corev1.ConditionTrue, "ReplicaSetUpdated", fmt.Sprintf("ReplicaSet %q is progressing.", name))
	}
	progress = slices.IndexFunc(s.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == appsv1.DeploymentProgressing })
	if progress >= 0 {
		c := &s.Conditions[progress]
		if moved && !done {
			c.LastUpdateTime = p.stamp()
		}
		if !done && !d.Spec.Paused && c.Reason == "ReplicaSetUpdated" {
			due := c.LastUpdateTime.Add(time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second)
			if due.After(p.now) {
				p.again(due)
			} else {
				p.condition(&s, appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded", fmt.Sprintf("ReplicaSet %q has timed out progressing.", name))
			}
		}
	}
	d.Status = s
}

func (p *pass) condition(s *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) {
	c := appsv1.DeploymentCondition{Type: kind, Status: status, Reason: reason, Message: message, LastUpdateTime: p.stamp(), LastTransitionTime: p.stamp()}
	s.Conditions = slices.Clone(s.Conditions)
	i := slices.IndexFunc(s.Conditions, func(old appsv1.DeploymentCondition) bool { return old.Type == kind })
	if i < 0 {
		s.Conditions = append(s.Conditions, c)
		return
	}
	old := s.Conditions[i]
	if old.Status == status && old.Reason == reason && old.Message == message {
		return
	}
	if old.Status == status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	s.Conditions[i] = c
}

func (p *pass) replicaSets() {
	for _, old := range store.List[*appsv1.ReplicaSet](p.Tx, resource.ReplicaSets, "") {
		if old.DeletionTimestamp != nil {
			continue
		}
		rs := copyObject(old)
		pods := p.podsOf(rs, resource.Pods)
		live := slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool {
			return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
		})
		// The least useful pods go first.
		slices.SortStableFunc(live, func(a, b *corev1.Pod) int { return cmp.Compare(deletionCost(a), deletionCost(b)) })
		want := int(*rs.Spec.Replicas)
		for len(live) > want {
			p.stop(live[0])
			p.note(rs, "replicaset-controller", corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: "+live[0].Name)
			live = live[1:]
		}
		rs.Status.Conditions = p.fill(rs, resource.ReplicaSets, "replicaset-controller", &rs.Spec.Template, &live, want, rs.Status.Conditions)
		rs.Status.ObservedGeneration = rs.Generation
		rs.Status.Replicas, rs.Status.ReadyReplicas, rs.Status.FullyLabeledReplicas = int32(len(live)), 0, int32(len(live))
		for _, pod := range live {
			if isPodReady(pod) {
				rs.Status.ReadyReplicas++
			}
		}
		rs.Status.AvailableReplicas = rs.Status.ReadyReplicas
		p.Put(resource.ReplicaSets, rs)
	}
}

// fill creates the missing pods of a set and returns its conditions: a refusal is kept there and retried.
func (p *pass) fill(rs *appsv1.ReplicaSet, key groupResource, component string, t *corev1.PodTemplateSpec, live *[]*corev1.Pod, want int, conditions []appsv1.ReplicaSetCondition) []appsv1.ReplicaSetCondition {
	i := slices.IndexFunc(conditions, func(c appsv1.ReplicaSetCondition) bool { return c.Type == appsv1.ReplicaSetReplicaFailure })
	for len(*live) < want {
		pod := p.podFrom(rs, key, t, "")
		pod.GenerateName = rs.Name + "-"
		err := p.create(resource.Pods, pod)
		if err == nil {
			*live = append(*live, pod)
			p.note(rs, component, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: "+pod.Name)
			continue
		}
		pod.Name = ""
		failed := appsv1.ReplicaSetCondition{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: creationRefusal(err, pod), LastTransitionTime: p.stamp()}
		if i >= 0 && conditions[i].LastTransitionTime.Add(retryCreate).After(p.now) {
			p.again(conditions[i].LastTransitionTime.Add(retryCreate))
			return conditions
		}
		p.note(rs, component, corev1.EventTypeWarning, "FailedCreate", "Error creating: "+failed.Message)
		p.again(p.now.Add(retryCreate))
		return []appsv1.ReplicaSetCondition{failed}
	}
	return nil
}
