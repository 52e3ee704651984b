package apiserver

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
)

// replicaCount points at the replica count of a kind that scales.
func replicaCount(o resource.Object) *int32 {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return o.Spec.Replicas
	case *appsv1.ReplicaSet:
		return o.Spec.Replicas
	case *appsv1.StatefulSet:
		return o.Spec.Replicas
	}
	return new(int32)
}

func scaleOf(o resource.Object) autoscalingv1.Scale {
	var running int32
	var pods *metav1.LabelSelector
	switch o := o.(type) {
	case *appsv1.Deployment:
		running, pods = o.Status.Replicas, o.Spec.Selector
	case *appsv1.ReplicaSet:
		running, pods = o.Status.Replicas, o.Spec.Selector
	case *appsv1.StatefulSet:
		running, pods = o.Status.Replicas, o.Spec.Selector
	}
	return autoscalingv1.Scale{
		TypeMeta:   metav1.TypeMeta{Kind: "Scale", APIVersion: "autoscaling/v1"},
		ObjectMeta: metav1.ObjectMeta{Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), CreationTimestamp: o.GetCreationTimestamp()},
		Spec:       autoscalingv1.ScaleSpec{Replicas: *replicaCount(o)},
		Status:     autoscalingv1.ScaleStatus{Replicas: running, Selector: metav1.FormatLabelSelector(pods)},
	}
}
