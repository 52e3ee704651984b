package report

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Workload is what keeps pods running: a Deployment, StatefulSet or DaemonSet, or a pod
// of nobody.
type Workload struct {
	Ref           operation.Ref
	Template      *corev1.PodTemplateSpec
	Wanted, Ready int
}

// Workloads lists what the view looks at, by namespace and name.
func (v View) Workloads() []Workload {
	var all []Workload
	add := func(kind string, o metav1.Object, t *corev1.PodTemplateSpec, wanted, ready int32) {
		if v.about(kind, o) {
			ref := operation.Ref{Group: "apps", Version: "v1", Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
			all = append(all, Workload{ref, t, int(wanted), int(ready)})
		}
	}
	for i := range v.Deployments {
		d := &v.Deployments[i]
		add("Deployment", d, &d.Spec.Template, replicas(d.Spec.Replicas), d.Status.ReadyReplicas)
	}
	for i := range v.StatefulSets {
		d := &v.StatefulSets[i]
		add("StatefulSet", d, &d.Spec.Template, replicas(d.Spec.Replicas), d.Status.ReadyReplicas)
	}
	for i := range v.DaemonSets {
		d := &v.DaemonSets[i]
		add("DaemonSet", d, &d.Spec.Template, d.Status.DesiredNumberScheduled, d.Status.NumberReady)
	}
	for i := range v.Pods {
		pod := &v.Pods[i]
		if pod.Name == "" || metav1.GetControllerOf(pod) != nil || !v.about("Pod", pod) {
			continue
		}
		w := Workload{operation.Ref{Version: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}, &corev1.PodTemplateSpec{Spec: pod.Spec}, 1, 0}
		if healthy(pod) {
			w.Ready = 1
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b Workload) int {
		return cmp.Or(cmp.Compare(a.Ref.Namespace, b.Ref.Namespace), cmp.Compare(a.Ref.Name, b.Ref.Name), cmp.Compare(a.Ref.Kind, b.Ref.Kind))
	})
	return all
}

// replicas is what a nil count means.
func replicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

func kindName(r operation.Ref) string { return strings.ToLower(r.Kind) + " " + cell(r.Name) }

func join(list []string) string { return strings.Join(list, ", ") }
