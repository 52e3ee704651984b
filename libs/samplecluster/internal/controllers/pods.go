package controllers

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

type groupResource = schema.GroupResource

func isPodReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// deletionCost orders pods by how much would be lost with them.
func deletionCost(pod *corev1.Pod) int {
	switch {
	case pod.Spec.NodeName == "":
		return 0
	case pod.Status.Phase == corev1.PodPending:
		return 1
	case !isPodReady(pod):
		return 2
	}
	return 3
}

func (p *pass) podsOf(owner resource.Object, key groupResource) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range store.List[*corev1.Pod](p.Tx, key, owner.GetNamespace()) {
		if isController(owner, pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// podFrom makes a pod of a template, not yet stored.
func (p *pass) podFrom(owner resource.Object, key groupResource, t *corev1.PodTemplateSpec, name string) *corev1.Pod {
	pod := resource.Of(resource.Pods).New().(*corev1.Pod)
	t = t.DeepCopy()
	pod.Labels, pod.Annotations, pod.Finalizers = t.Labels, t.Annotations, t.Finalizers
	pod.Spec = t.Spec
	pod.Name, pod.Namespace = name, owner.GetNamespace()
	pod.OwnerReferences = ownedBy(owner, key)
	return pod
}

// creationRefusal describes a refused creation in a text that is the same for every try: it omits the generated name.
func creationRefusal(err error, pod *corev1.Pod) string {
	text := err.Error()
	if before, after, ok := strings.Cut(text, `pods "`); ok {
		if _, rest, ok := strings.Cut(after, `"`); ok {
			text = before + `pods "` + pod.GenerateName + `"` + rest
		}
	}
	return text
}

// stop requests a pod's deletion, as a controller would.
func (p *pass) stop(pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil {
		return
	}
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		p.Remove(resource.Pods, pod.Namespace, pod.Name)
		return
	}
	going := copyObject(pod)
	grace := *pod.Spec.TerminationGracePeriodSeconds
	at := metav1.NewTime(p.now.Truncate(time.Second).Add(time.Duration(grace) * time.Second))
	going.DeletionTimestamp, going.DeletionGracePeriodSeconds = &at, &grace
	p.Put(resource.Pods, going)
}
