package report

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Workload is a Deployment, StatefulSet or DaemonSet, or a pod without an owner.
type Workload struct {
	Ref           operation.Ref
	Template      *corev1.PodTemplateSpec
	Wanted, Ready int
	// Unwell are its unhealthy pods, including those of a new revision.
	Unwell int
}

// Workloads lists the workloads in view, by namespace and name.
func (v View) Workloads() []Workload {
	unwell, owner := map[[3]string]int{}, v.Owners()
	for i := range v.Pods {
		if pod := &v.Pods[i]; pod.Name != "" && !isHealthy(pod) {
			o := owner(pod)
			unwell[[3]string{o.Kind, o.Namespace, o.Name}]++
		}
	}
	var all []Workload
	add := func(kind string, o metav1.Object, t *corev1.PodTemplateSpec, wanted, ready int32) {
		if v.about(kind, o) {
			ref := operation.Ref{Group: "apps", Version: "v1", Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
			all = append(all, Workload{Ref: ref, Template: t, Wanted: int(wanted), Ready: int(ready), Unwell: unwell[[3]string{kind, ref.Namespace, ref.Name}]})
		}
	}
	for i := range v.Deployments {
		d := &v.Deployments[i]
		add("Deployment", d, &d.Spec.Template, replicasOrOne(d.Spec.Replicas), d.Status.ReadyReplicas)
	}
	for i := range v.StatefulSets {
		d := &v.StatefulSets[i]
		add("StatefulSet", d, &d.Spec.Template, replicasOrOne(d.Spec.Replicas), d.Status.ReadyReplicas)
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
		w := Workload{
			Ref:      operation.Ref{Version: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name},
			Template: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec}, Wanted: 1,
		}
		if isHealthy(pod) {
			w.Ready = 1
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b Workload) int {
		return cmp.Or(cmp.Compare(a.Ref.Namespace, b.Ref.Namespace), cmp.Compare(a.Ref.Name, b.Ref.Name), cmp.Compare(a.Ref.Kind, b.Ref.Kind))
	})
	return all
}

// replicasOrOne returns the count, or the API's default of 1.
func replicasOrOne(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

func kindName(r operation.Ref) string { return strings.ToLower(r.Kind) + " " + tableCell(r.Name) }

func joinList(list []string) string { return strings.Join(list, ", ") }
