package engine

import (
	"cmp"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// revisionAnnotation holds the revision number that the deployment controller gives a
// ReplicaSet.
const revisionAnnotation = "deployment.kubernetes.io/revision"

type Name = types.NamespacedName

// Workload is the object that a person would edit: the top of a pod's owners.
type Workload struct {
	Ref      operation.Ref
	Template *corev1.PodTemplateSpec // nil when the owner was not read
	Replicas int32
	// Older are a deployment's earlier revisions, newest first.
	Older []revision
	// Newest is the latest revision that the deployment's controller created, or nil.
	Newest *revision
}

// revision is an earlier state of a deployment's pods.
type revision struct {
	Number   int64
	Template *corev1.PodTemplateSpec
	Ready    int32
}

// Patchable reports whether the pod template is at spec.template and may be changed.
func (w *Workload) Patchable() bool {
	switch w.Ref.Kind {
	case "Deployment", "StatefulSet", "DaemonSet":
		return w.Template != nil
	}
	return false
}

// Index finds the objects of a snapshot by name, owner and label.
type Index struct {
	*Snapshot
	Workloads      map[operation.Ref]*Workload
	OwnerOf        map[Name]operation.Ref // replica set or job → its owner
	ConfigMapKeys  map[Name][]string
	SecretKeys     map[Name][]string
	eventsByUID    map[types.UID][]*corev1.Event
	nodeByName     map[string]*corev1.Node
	ServiceByName  map[Name]*corev1.Service
	LivingPods     []*corev1.Pod                   // living pods
	PodsByLabel    *Chooser[*corev1.Pod]           // the same by label
	podsByWorkload map[operation.Ref][]*corev1.Pod // the same by workload
	tops           map[*corev1.Pod]*Workload       // the inverse
	Backends       map[Name][]*corev1.Pod          // of services, computed on first use
	RequestsByNode map[string]corev1.ResourceList  // by node, computed on first use
	tables
}

func NewIndex(s *Snapshot) *Index {
	x := &Index{
		Snapshot:      s,
		Workloads:     map[operation.Ref]*Workload{},
		OwnerOf:       map[Name]operation.Ref{},
		ConfigMapKeys: map[Name][]string{},
		SecretKeys:    map[Name][]string{},
		eventsByUID:   map[types.UID][]*corev1.Event{},
		nodeByName:    map[string]*corev1.Node{},
		ServiceByName: map[Name]*corev1.Service{},
		Backends:      map[Name][]*corev1.Pod{},
	}
	x.lazily()
	for i := range s.Services {
		x.ServiceByName[Name{Namespace: s.Services[i].Namespace, Name: s.Services[i].Name}] = &s.Services[i]
	}
	for i := range s.Nodes {
		x.nodeByName[s.Nodes[i].Name] = &s.Nodes[i]
	}
	x.addWorkloads()
	for i := range s.ConfigMaps {
		m := &s.ConfigMaps[i]
		keys := []string{}
		for key := range m.Data {
			keys = append(keys, key)
		}
		for key := range m.BinaryData {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		x.ConfigMapKeys[Name{Namespace: m.Namespace, Name: m.Name}] = keys
	}
	for _, secret := range s.Secrets {
		x.SecretKeys[Name{Namespace: secret.Namespace, Name: secret.Name}] = slices.Sorted(slices.Values(secret.Keys))
	}
	for i := range s.Events {
		e := &s.Events[i]
		x.eventsByUID[e.InvolvedObject.UID] = append(x.eventsByUID[e.InvolvedObject.UID], e)
	}
	for _, list := range x.eventsByUID {
		slices.SortFunc(list, func(a, b *corev1.Event) int {
			return cmp.Or(LastSeen(b).Compare(LastSeen(a).Time), cmp.Compare(a.Name, b.Name))
		})
	}
	for i := range s.Pods {
		pod := &s.Pods[i]
		if pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded {
			x.LivingPods = append(x.LivingPods, pod)
		}
	}
	slices.SortFunc(x.LivingPods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	x.PodsByLabel = NewChooser(PodLabels)
	x.podsByWorkload = map[operation.Ref][]*corev1.Pod{}
	x.tops = make(map[*corev1.Pod]*Workload, len(x.LivingPods))
	for _, pod := range x.LivingPods {
		w := x.top(pod)
		x.tops[pod] = w
		x.podsByWorkload[w.Ref] = append(x.podsByWorkload[w.Ref], pod)
		x.PodsByLabel.Add(pod.Namespace, pod)
	}
	return x
}

// PodsOf returns the living pods of a workload, by name.
func (x *Index) PodsOf(ref operation.Ref) []*corev1.Pod { return x.podsByWorkload[ref] }

func (x *Index) addWorkloads() {
	for i := range x.Deployments {
		d := &x.Deployments[i]
		x.addWorkload("apps", "Deployment", d, &d.Spec.Template, d.Spec.Replicas)
	}
	for i := range x.StatefulSets {
		d := &x.StatefulSets[i]
		x.addWorkload("apps", "StatefulSet", d, &d.Spec.Template, d.Spec.Replicas)
	}
	for i := range x.DaemonSets {
		d := &x.DaemonSets[i]
		x.addWorkload("apps", "DaemonSet", d, &d.Spec.Template, nil)
	}
	for i := range x.Jobs {
		j := &x.Jobs[i]
		x.addWorkload("batch", "Job", j, &j.Spec.Template, j.Spec.Parallelism)
	}
	for i := range x.ReplicaSets {
		x.addRevision(&x.ReplicaSets[i])
	}
	for _, w := range x.Workloads {
		// The newest revision is the one that the deployment wants now.
		slices.SortFunc(w.Older, func(a, b revision) int { return cmp.Compare(b.Number, a.Number) })
		if len(w.Older) > 0 {
			w.Newest, w.Older = &w.Older[0], w.Older[1:]
		}
	}
}

func (x *Index) addWorkload(group, kind string, o metav1.Object, template *corev1.PodTemplateSpec, replicas *int32) {
	ref := operation.Ref{Group: group, Version: "v1", Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
	w := &Workload{Ref: ref, Template: template, Replicas: 1}
	if replicas != nil {
		w.Replicas = *replicas
	}
	x.Workloads[ref] = w
}

func (x *Index) addRevision(set *appsv1.ReplicaSet) {
	owner := metav1.GetControllerOf(set)
	if owner == nil {
		x.addWorkload("apps", "ReplicaSet", set, &set.Spec.Template, set.Spec.Replicas)
		return
	}
	ref := refOf(owner, set.Namespace)
	x.OwnerOf[Name{Namespace: set.Namespace, Name: set.Name}] = ref
	number, err := strconv.ParseInt(set.Annotations[revisionAnnotation], 10, 64)
	if w := x.Workloads[ref]; w != nil && err == nil {
		w.Older = append(w.Older, revision{number, &set.Spec.Template, set.Status.ReadyReplicas})
	}
}

// refOf returns the object that an owner reference names.
func refOf(owner *metav1.OwnerReference, namespace string) operation.Ref {
	gv := owner.APIVersion
	group, version := "", gv
	for i := range gv {
		if gv[i] == '/' {
			group, version = gv[:i], gv[i+1:]
		}
	}
	return operation.Ref{Group: group, Version: version, Kind: owner.Kind, Namespace: namespace, Name: owner.Name}
}

// WorkloadOf returns the object that a person would edit for a pod.
func (x *Index) WorkloadOf(pod *corev1.Pod) *Workload {
	if w := x.tops[pod]; w != nil {
		return w
	}
	return x.top(pod)
}

// top follows the owners of a pod to the last one, or returns the pod itself.
func (x *Index) top(pod *corev1.Pod) *Workload {
	ref := operation.Ref{Version: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		ref = refOf(owner, pod.Namespace)
		if up, ok := x.OwnerOf[Name{Namespace: pod.Namespace, Name: owner.Name}]; ok && owner.Kind == "ReplicaSet" {
			ref = up
		}
	}
	if w := x.Workloads[ref]; w != nil {
		return w
	}
	return &Workload{Ref: ref}
}

// Selected returns the living pods of a namespace with these labels, by name.
func (x *Index) Selected(namespace string, selector map[string]string) []*corev1.Pod {
	return x.PodsByLabel.Choose(namespace, selector)
}

// EventOf returns the newest matching event of an object, or nil.
func (x *Index) EventOf(uid types.UID, matches func(*corev1.Event) bool) *corev1.Event {
	if uid == "" {
		return nil
	}
	for _, e := range x.eventsByUID[uid] {
		if matches(e) {
			return e
		}
	}
	return nil
}

// LastSeen returns when an event happened last; the field that holds it depends on the writer.
func LastSeen(e *corev1.Event) metav1.Time {
	switch {
	case e.Series != nil:
		return metav1.Time{Time: e.Series.LastObservedTime.Time}
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	case !e.EventTime.IsZero():
		return metav1.Time{Time: e.EventTime.Time}
	}
	return e.CreationTimestamp
}
