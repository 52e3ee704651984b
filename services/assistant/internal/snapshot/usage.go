package snapshot

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

var podMetrics = schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "pods"}

// usage reads the current resource usage of containers. A cluster without that API is no failure.
func (r *reading) usage() *group {
	g := r.within(kind{"pods in use", func(ctx context.Context) (int, bool, error) {
		list, err := r.cluster.Dynamic().Resource(podMetrics).Namespace(r.namespace).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsForbidden(err) {
			return 0, true, nil
		}
		if err != nil {
			return 0, false, err
		}
		found := map[engine.Log]corev1.ResourceList{}
		for i := range list.Items {
			pod := &list.Items[i]
			if !r.policy.Visible(pod.GetNamespace()) {
				continue
			}
			containers, _, _ := unstructured.NestedSlice(pod.Object, "containers")
			for _, entry := range containers {
				c, _ := entry.(map[string]any)
				name, _ := c["name"].(string)
				found[engine.Log{Namespace: pod.GetNamespace(), Pod: pod.GetName(), Container: name}] = parseUsage(c)
			}
		}
		r.into.Usage = found
		return len(found), true, nil // one for each row
	}, r.usageRows})
	g.op.Verb, g.op.Kind = operation.Top, "pods"
	return g
}

func parseUsage(container map[string]any) corev1.ResourceList {
	list := corev1.ResourceList{}
	texts, _, _ := unstructured.NestedStringMap(container, "usage")
	for name, text := range texts {
		if q, err := resource.ParseQuantity(text); err == nil {
			list[corev1.ResourceName(name)] = q
		}
	}
	return list
}
