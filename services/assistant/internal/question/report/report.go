package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
)

// View is what a report looks at: of a snapshot, one namespace or all, and perhaps
// only what belongs to some objects.
type View struct {
	*playbook.Snapshot
	Namespace string          // empty: all
	Objects   []operation.Ref // empty: all
}

// where names what is looked at, for sentences.
func (v View) where() string {
	if v.Namespace == "" {
		return "in the cluster"
	}
	return "in namespace " + Code(v.Namespace)
}

// in says whether an object is looked at by its namespace.
func (v View) in(o metav1.Object) bool { return v.Namespace == "" || o.GetNamespace() == v.Namespace }

// about says whether an object is one of those asked about.
func (v View) about(kind string, o metav1.Object) bool {
	if !v.in(o) {
		return false
	}
	if len(v.Objects) == 0 {
		return true
	}
	return slices.ContainsFunc(v.Objects, func(r operation.Ref) bool {
		return strings.EqualFold(r.Kind, kind) && r.Name == o.GetName() && r.Namespace == o.GetNamespace()
	})
}

// pods are the pods looked at: of the objects asked about, or of the namespace.
func (v View) pods() []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range v.Pods {
		pod := &v.Pods[i]
		if pod.Name == "" {
			continue // of a namespace that exists for nobody
		}
		owner := v.OwnerOf(pod)
		if v.about("Pod", pod) || v.in(pod) && slices.ContainsFunc(v.Objects, func(r operation.Ref) bool {
			return r.Kind == owner.Kind && r.Name == owner.Name && r.Namespace == pod.Namespace ||
				r.Kind == "Node" && r.Name == pod.Spec.NodeName || r.Kind == "Service" && v.selects(r, pod)
		}) {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return pods
}

func (v View) selects(service operation.Ref, pod *corev1.Pod) bool {
	for i := range v.Services {
		s := &v.Services[i]
		if s.Name == service.Name && s.Namespace == service.Namespace && s.Namespace == pod.Namespace && len(s.Spec.Selector) > 0 {
			for key, want := range s.Spec.Selector {
				if pod.Labels[key] != want {
					return false
				}
			}
			return true
		}
	}
	return false
}

// OwnerOf is the workload at the top of a pod's owners, or the pod.
func (v View) OwnerOf(pod *corev1.Pod) operation.Ref {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return operation.Ref{Version: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}
	}
	switch owner.Kind {
	case "ReplicaSet":
		for i := range v.ReplicaSets {
			if r := &v.ReplicaSets[i]; r.Name == owner.Name && r.Namespace == pod.Namespace {
				if up := metav1.GetControllerOf(r); up != nil {
					owner = up
				}
				break
			}
		}
	case "Job":
		for i := range v.Jobs {
			if j := &v.Jobs[i]; j.Name == owner.Name && j.Namespace == pod.Namespace {
				if up := metav1.GetControllerOf(j); up != nil {
					owner = up
				}
				break
			}
		}
	}
	group, version, ok := strings.Cut(owner.APIVersion, "/")
	if !ok {
		group, version = "", owner.APIVersion
	}
	return operation.Ref{Group: group, Version: version, Kind: owner.Kind, Namespace: pod.Namespace, Name: owner.Name}
}

// ready says how many of a pod's containers are ready.
func ready(pod *corev1.Pod) (n, of int) {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Ready {
			n++
		}
	}
	return n, len(pod.Spec.Containers)
}

// State is what kubectl shows as the status of a pod.
func State(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return "Terminating"
	}
	for i, st := range pod.Status.InitContainerStatuses {
		switch {
		case st.State.Terminated != nil && st.State.Terminated.ExitCode == 0:
			continue
		case st.State.Waiting != nil && st.State.Waiting.Reason != "" && st.State.Waiting.Reason != "PodInitializing":
			return "Init:" + st.State.Waiting.Reason
		}
		if st.State.Running != nil && st.Started != nil && *st.Started && restartsAlways(pod, st.Name) {
			continue // a sidecar
		}
		return fmt.Sprintf("Init:%d/%d", i, len(pod.Spec.InitContainers))
	}
	for _, st := range pod.Status.ContainerStatuses {
		if w := st.State.Waiting; w != nil && w.Reason != "" {
			return w.Reason
		}
		if e := st.State.Terminated; e != nil && pod.Status.Phase != corev1.PodSucceeded {
			return cmp.Or(e.Reason, "Error")
		}
	}
	if pod.Status.Phase == corev1.PodRunning {
		if n, of := ready(pod); n < of {
			return "NotReady"
		}
	}
	return cmp.Or(pod.Status.Reason, string(pod.Status.Phase))
}

func restartsAlways(pod *corev1.Pod, container string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == container && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}

// healthy says whether a pod does what it should.
func healthy(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		return true
	case corev1.PodRunning:
		n, of := ready(pod)
		return n == of && pod.DeletionTimestamp == nil
	}
	return false
}

func restarts(pod *corev1.Pod) int {
	n := 0
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			n += int(list[i].RestartCount)
		}
	}
	return n
}
