package playbook

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

// revisionAnnotation is where the deployment controller numbers its ReplicaSets.
const revisionAnnotation = "deployment.kubernetes.io/revision"

type name = types.NamespacedName

// workload is what a person would edit: the top of a pod's owners.
type workload struct {
	ref      operation.Ref
	template *corev1.PodTemplateSpec // nil when the owner was not read
	replicas int32
	// older are a deployment's earlier revisions, newest first.
	older []revision
	// newest is the revision that the deployment's controller made last, or nil.
	newest *revision
}

// revision is an earlier state of a deployment's pods.
type revision struct {
	number   int64
	template *corev1.PodTemplateSpec
	ready    int32
}

// patchable says whether the pod template sits at spec.template and may be changed.
func (w *workload) patchable() bool {
	switch w.ref.Kind {
	case "Deployment", "StatefulSet", "DaemonSet":
		return w.template != nil
	}
	return false
}

// index finds the objects of a snapshot by name, owner and label.
type index struct {
	*Snapshot
	workloads  map[operation.Ref]*workload
	ownerOf    map[name]operation.Ref // replica set or job → its owner
	configMaps map[name][]string
	secrets    map[name][]string
	events     map[types.UID][]*corev1.Event
	nodes      map[string]*corev1.Node
	services   map[name]*corev1.Service
	byName     []*corev1.Pod                   // living pods
	pods       *Chooser[*corev1.Pod]           // the same by label
	owned      map[operation.Ref][]*corev1.Pod // the same by workload
	tops       map[*corev1.Pod]*workload       // the other way round
	backends   map[name][]*corev1.Pod          // of services, once asked for
	used       map[string]corev1.ResourceList  // by node, once asked for
	tables
}

func newIndex(s *Snapshot) *index {
	x := &index{
		Snapshot:   s,
		workloads:  map[operation.Ref]*workload{},
		ownerOf:    map[name]operation.Ref{},
		configMaps: map[name][]string{},
		secrets:    map[name][]string{},
		events:     map[types.UID][]*corev1.Event{},
		nodes:      map[string]*corev1.Node{},
		services:   map[name]*corev1.Service{},
		backends:   map[name][]*corev1.Pod{},
	}
	x.lazily()
	for i := range s.Services {
		x.services[name{Namespace: s.Services[i].Namespace, Name: s.Services[i].Name}] = &s.Services[i]
	}
	for i := range s.Nodes {
		x.nodes[s.Nodes[i].Name] = &s.Nodes[i]
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
		x.configMaps[name{Namespace: m.Namespace, Name: m.Name}] = keys
	}
	for _, secret := range s.Secrets {
		x.secrets[name{Namespace: secret.Namespace, Name: secret.Name}] = slices.Sorted(slices.Values(secret.Keys))
	}
	for i := range s.Events {
		e := &s.Events[i]
		x.events[e.InvolvedObject.UID] = append(x.events[e.InvolvedObject.UID], e)
	}
	for _, list := range x.events {
		slices.SortFunc(list, func(a, b *corev1.Event) int {
			return cmp.Or(LastSeen(b).Compare(LastSeen(a).Time), cmp.Compare(a.Name, b.Name))
		})
	}
	for i := range s.Pods {
		pod := &s.Pods[i]
		if pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded {
			x.byName = append(x.byName, pod)
		}
	}
	slices.SortFunc(x.byName, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	x.pods = NewChooser(PodLabels)
	x.owned = map[operation.Ref][]*corev1.Pod{}
	x.tops = make(map[*corev1.Pod]*workload, len(x.byName))
	for _, pod := range x.byName {
		w := x.top(pod)
		x.tops[pod] = w
		x.owned[w.ref] = append(x.owned[w.ref], pod)
		x.pods.Add(pod.Namespace, pod)
	}
	return x
}

// podsOf are the living pods of a workload, by name.
func (x *index) podsOf(ref operation.Ref) []*corev1.Pod { return x.owned[ref] }

func (x *index) addWorkloads() {
	for i := range x.Deployments {
		d := &x.Deployments[i]
		x.add("apps", "Deployment", d, &d.Spec.Template, d.Spec.Replicas)
	}
	for i := range x.StatefulSets {
		d := &x.StatefulSets[i]
		x.add("apps", "StatefulSet", d, &d.Spec.Template, d.Spec.Replicas)
	}
	for i := range x.DaemonSets {
		d := &x.DaemonSets[i]
		x.add("apps", "DaemonSet", d, &d.Spec.Template, nil)
	}
	for i := range x.Jobs {
		j := &x.Jobs[i]
		x.add("batch", "Job", j, &j.Spec.Template, j.Spec.Parallelism)
	}
	for i := range x.ReplicaSets {
		x.addRevision(&x.ReplicaSets[i])
	}
	for _, w := range x.workloads {
		// The newest revision is the one that the deployment wants now.
		slices.SortFunc(w.older, func(a, b revision) int { return cmp.Compare(b.number, a.number) })
		if len(w.older) > 0 {
			w.newest, w.older = &w.older[0], w.older[1:]
		}
	}
}

func (x *index) add(group, kind string, o metav1.Object, template *corev1.PodTemplateSpec, replicas *int32) {
	ref := operation.Ref{Group: group, Version: "v1", Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
	w := &workload{ref: ref, template: template, replicas: 1}
	if replicas != nil {
		w.replicas = *replicas
	}
	x.workloads[ref] = w
}

func (x *index) addRevision(set *appsv1.ReplicaSet) {
	owner := metav1.GetControllerOf(set)
	if owner == nil {
		x.add("apps", "ReplicaSet", set, &set.Spec.Template, set.Spec.Replicas)
		return
	}
	ref := refOf(owner, set.Namespace)
	x.ownerOf[name{Namespace: set.Namespace, Name: set.Name}] = ref
	number, err := strconv.ParseInt(set.Annotations[revisionAnnotation], 10, 64)
	if w := x.workloads[ref]; w != nil && err == nil {
		w.older = append(w.older, revision{number, &set.Spec.Template, set.Status.ReadyReplicas})
	}
}

// refOf is the object that an owner reference names.
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

// workloadOf is what a person would edit for a pod.
func (x *index) workloadOf(pod *corev1.Pod) *workload {
	if w := x.tops[pod]; w != nil {
		return w
	}
	return x.top(pod)
}

// top climbs from a pod to what owns it, at most to the pod itself.
func (x *index) top(pod *corev1.Pod) *workload {
	ref := operation.Ref{Version: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		ref = refOf(owner, pod.Namespace)
		if up, ok := x.ownerOf[name{Namespace: pod.Namespace, Name: owner.Name}]; ok && owner.Kind == "ReplicaSet" {
			ref = up
		}
	}
	if w := x.workloads[ref]; w != nil {
		return w
	}
	return &workload{ref: ref}
}

// selected are the living pods of a namespace with these labels, by name.
func (x *index) selected(namespace string, selector map[string]string) []*corev1.Pod {
	return x.pods.Choose(namespace, selector)
}

// eventOf is the newest event of an object with one of these reasons, or nil.
func (x *index) eventOf(uid types.UID, matches func(*corev1.Event) bool) *corev1.Event {
	if uid == "" {
		return nil
	}
	for _, e := range x.events[uid] {
		if matches(e) {
			return e
		}
	}
	return nil
}

// LastSeen is when an event happened last; which field says so depends on who wrote it.
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
