package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Keys lists what the ConfigMaps and Secrets of a view hold, by key. Values are never shown.
func Keys(v View) string {
	t := newTable("Namespace", "Kind", "Name", "Keys")
	n := 0
	add := func(kind, namespace, name string, keys []string) {
		n += len(keys)
		slices.Sort(keys)
		t.add(tableCell(namespace), kind, tableCell(name), tableCells(keys))
	}
	wants := func(kind string) bool {
		return len(v.Objects) == 0 || slices.ContainsFunc(v.Objects, func(r operation.Ref) bool { return r.Kind == kind })
	}
	for i := range v.ConfigMaps {
		if m := &v.ConfigMaps[i]; m.Name != "" && wants("ConfigMap") && v.about("ConfigMap", m) {
			add("ConfigMap", m.Namespace, m.Name, slices.Concat(slices.Collect(maps.Keys(m.Data)), slices.Collect(maps.Keys(m.BinaryData))))
		}
	}
	for _, s := range v.Snapshot.Secrets {
		if s.Name != "" && wants("Secret") && v.about("Secret", &metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}) {
			add("Secret", s.Namespace, s.Name, slices.Clone(s.Keys))
		}
	}
	return t.under(fmt.Sprintf("%s %s. Values are not shown:", countNoun(n, "key", "keys"), v.where()), "There are no ConfigMaps and no Secrets "+v.where()+".")
}

// Users lists the workloads that use the ConfigMaps, Secrets, volume claims and service accounts of a view.
func Users(v View) string {
	t := newTable("Namespace", "Workload", "Uses")
	n := 0
	all := View{Snapshot: v.Snapshot, Namespace: v.Namespace}
	owner := all.Owners()
	for _, r := range v.Objects {
		if !IsUsed(r.Kind) {
			continue
		}
		seen := map[operation.Ref]bool{}
		add := func(by operation.Ref) {
			if by.Namespace == r.Namespace && !seen[by] {
				seen[by] = true
				n++
				t.add(tableCell(by.Namespace), kindName(by), kindName(r))
			}
		}
		for _, w := range all.Workloads() {
			if w.Template != nil && uses(&corev1.Pod{Spec: w.Template.Spec}, r) {
				add(w.Ref)
			}
		}
		for i := range v.CronJobs {
			c := &v.CronJobs[i]
			if uses(&corev1.Pod{Spec: c.Spec.JobTemplate.Spec.Template.Spec}, r) {
				add(operation.Ref{Group: "batch", Version: "v1", Kind: "CronJob", Namespace: c.Namespace, Name: c.Name})
			}
		}
		for i := range v.Pods { // of Jobs, and those that are left of an older template
			if pod := &v.Pods[i]; pod.Name != "" && pod.Namespace == r.Namespace && uses(pod, r) {
				add(owner(pod))
			}
		}
	}
	about := "of " + joinNames(v.Objects)
	return t.under(fmt.Sprintf("%s %s %s:", countNoun(n, "workload", "workloads"), useVerb(n), joinNames(v.Objects)), "No workload "+all.where()+" makes use "+about+".")
}

func useVerb(n int) string {
	if n == 1 {
		return "uses"
	}
	return "use"
}

// HasUsers reports whether all objects of a view are of kinds that workloads use.
func (v View) HasUsers() bool {
	return len(v.Objects) > 0 && !slices.ContainsFunc(v.Objects, func(r operation.Ref) bool { return !IsUsed(r.Kind) })
}

// IsUsed reports whether objects of a kind, in any case of its letters, hold something that workloads use.
func IsUsed(kind string) bool {
	switch strings.ToLower(kind) {
	case "configmap", "secret", "persistentvolumeclaim", "serviceaccount":
		return true
	}
	return false
}

func joinNames(refs []operation.Ref) string {
	var names []string
	for _, r := range refs {
		names = append(names, kindName(r))
	}
	return joinList(names)
}
