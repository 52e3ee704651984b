package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// View selects the part of a snapshot that a report covers: one namespace or all, and optionally only what belongs to
// some objects.
type View struct {
	*engine.Snapshot
	Namespace string // empty: all
	Except    Exclusion
	Objects   []operation.Ref // empty: all
	// Within is the period before the snapshot that is covered; 0: each report's default.
	Within time.Duration
}

// Exclusion holds the places and objects that a question excludes. Its zero value excludes nothing.
type Exclusion struct {
	Namespaces []string
	Names      []string               // of objects
	Objects    map[operation.Ref]bool // these and what belongs to them, without group and version
}

// Has reports whether an object is excluded.
func (e Exclusion) Has(r operation.Ref) bool {
	return slices.Contains(e.Namespaces, r.Namespace) || e.Objects[operation.Ref{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}]
}

// within reports whether something happened in the period in question.
func (v View) within(at time.Time) bool { return v.Within == 0 || v.Taken.Sub(at) <= v.Within }

// period names the period in question, for the end of a phrase, or is empty.
func (v View) period() string {
	if v.Within == 0 {
		return ""
	}
	return " in the last " + FormatPeriod(v.Within)
}

// FormatPeriod formats a period to follow "the last".
func FormatPeriod(d time.Duration) string {
	for _, unit := range []struct {
		name string
		of   time.Duration
	}{{"week", 7 * 24 * time.Hour}, {"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}} {
		if d >= unit.of && d%unit.of == 0 {
			if d == unit.of {
				return unit.name
			}
			return fmt.Sprintf("%d %ss", d/unit.of, unit.name)
		}
	}
	return d.String()
}

// where names the part of the cluster in view, for sentences.
func (v View) where() string {
	if len(v.Objects) > 0 {
		var names []string
		for _, r := range v.Objects {
			if name := Code(r.Name); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		of := View{Namespace: v.Namespace, Except: v.Except}
		return "of " + joinList(names[:min(len(names), 5)]) + " " + of.where()
	}
	return Place(v.Namespace, v.Except)
}

// in reports whether an object's namespace is in view.
func (v View) in(o metav1.Object) bool { return v.has(o.GetNamespace()) }

// has reports whether a namespace is in view.
func (v View) has(namespace string) bool {
	return (v.Namespace == "" || namespace == v.Namespace) && !slices.Contains(v.Except.Namespaces, namespace)
}

// Place names a namespace, or the cluster, and what is excluded, for sentences.
func Place(namespace string, except Exclusion) string {
	place := "in the cluster"
	if namespace != "" {
		place = "in namespace " + Code(namespace)
	}
	var codes []string
	for _, n := range slices.Concat(except.Namespaces, except.Names) {
		codes = append(codes, Code(n))
	}
	if len(codes) == 0 {
		return place
	}
	return place + " without " + joinList(codes)
}

// about reports whether an object is one of those in question.
func (v View) about(kind string, o metav1.Object) bool {
	if !v.in(o) || v.Except.Has(operation.Ref{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}) {
		return false
	}
	if len(v.Objects) == 0 {
		return true
	}
	return slices.ContainsFunc(v.Objects, func(r operation.Ref) bool {
		return strings.EqualFold(r.Kind, kind) && r.Name == o.GetName() && r.Namespace == o.GetNamespace()
	})
}

// pods returns the pods in view: of the objects in question, or of the namespace.
func (v View) pods() []*corev1.Pod {
	chosen := v.chosen()
	var owner func(*corev1.Pod) operation.Ref
	if len(v.Objects) > 0 {
		owner = v.Owners()
	}
	var pods []*corev1.Pod
	for i := range v.Pods {
		pod := &v.Pods[i]
		if pod.Name == "" || !v.in(pod) || v.Except.Has(operation.Ref{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}) {
			continue // without a name: of a namespace hidden from the caller
		}
		if owner == nil || v.about("Pod", pod) || slices.ContainsFunc(chosen, func(match func(*corev1.Pod, operation.Ref) bool) bool { return match(pod, owner(pod)) }) {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return pods
}

// chosen returns, for each object in question, a test for the pods that belong to it.
func (v View) chosen() []func(pod *corev1.Pod, owner operation.Ref) bool {
	var all []func(*corev1.Pod, operation.Ref) bool
	for _, r := range v.Objects {
		switch r.Kind {
		case "Node":
			all = append(all, func(pod *corev1.Pod, _ operation.Ref) bool { return pod.Spec.NodeName == r.Name })
		case "Service":
			for i := range v.Services {
				if s := &v.Services[i]; s.Name == r.Name && s.Namespace == r.Namespace && len(s.Spec.Selector) > 0 {
					selector := labels.SelectorFromSet(s.Spec.Selector)
					all = append(all, func(pod *corev1.Pod, _ operation.Ref) bool {
						return pod.Namespace == r.Namespace && selector.Matches(labels.Set(pod.Labels))
					})
				}
			}
		case "ConfigMap", "Secret", "PersistentVolumeClaim", "ServiceAccount":
			all = append(all, func(pod *corev1.Pod, _ operation.Ref) bool { return pod.Namespace == r.Namespace && Uses(pod, r) })
		default:
			all = append(all, func(pod *corev1.Pod, owner operation.Ref) bool {
				return owner.Kind == r.Kind && owner.Name == r.Name && pod.Namespace == r.Namespace
			})
		}
	}
	return all
}

// Owners returns a function from any pod of the snapshot to its topmost owner, or the pod itself.
func (v View) Owners() func(*corev1.Pod) operation.Ref {
	above := map[operation.Ref]*metav1.OwnerReference{}
	for i := range v.ReplicaSets {
		r := &v.ReplicaSets[i]
		above[operation.Ref{Kind: "ReplicaSet", Namespace: r.Namespace, Name: r.Name}] = metav1.GetControllerOf(r)
	}
	for i := range v.Jobs {
		j := &v.Jobs[i]
		above[operation.Ref{Kind: "Job", Namespace: j.Namespace, Name: j.Name}] = metav1.GetControllerOf(j)
	}
	return func(pod *corev1.Pod) operation.Ref {
		owner := metav1.GetControllerOf(pod)
		if owner == nil {
			return operation.Ref{Version: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}
		}
		if up := above[operation.Ref{Kind: owner.Kind, Namespace: pod.Namespace, Name: owner.Name}]; up != nil {
			owner = up
		}
		group, version, ok := strings.Cut(owner.APIVersion, "/")
		if !ok {
			group, version = "", owner.APIVersion
		}
		return operation.Ref{Group: group, Version: version, Kind: owner.Kind, Namespace: pod.Namespace, Name: owner.Name}
	}
}

// readyContainers counts the ready containers of a pod. If the pod lists none, as in a recording that omits them, all
// containers of a ready pod count.
func readyContainers(pod *corev1.Pod) (n, of int) {
	if len(pod.Status.ContainerStatuses) == 0 && engine.PodReady(pod) {
		return len(pod.Spec.Containers), len(pod.Spec.Containers)
	}
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Ready {
			n++
		}
	}
	return n, len(pod.Spec.Containers)
}

// State returns the status of a pod as kubectl shows it.
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
	if pod.Status.Phase == corev1.PodRunning && !isReady(pod) {
		return "NotReady"
	}
	return cmp.Or(pod.Status.Reason, string(pod.Status.Phase))
}

func restartsAlways(pod *corev1.Pod, container string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == container && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}

// isHealthy reports whether a pod does what it should.
func isHealthy(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		return true
	case corev1.PodRunning:
		return isReady(pod) && pod.DeletionTimestamp == nil
	}
	return false
}

// isReady reports whether a running pod is ready: by its condition, which also covers lost nodes and readiness gates,
// else by its containers.
func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	n, of := readyContainers(pod)
	return n == of
}

func countRestarts(pod *corev1.Pod) int {
	n := 0
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			n += int(list[i].RestartCount)
		}
	}
	return n
}
