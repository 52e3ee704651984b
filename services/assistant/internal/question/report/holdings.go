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

// Keys lists the keys of the ConfigMaps and Secrets in a view. Values are never shown.
func Keys(v View) Answer {
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

// usage is a workload and what it uses.
type usage struct{ by, of operation.Ref }

// usages returns the workloads that use the ConfigMaps, Secrets, volume claims and service accounts of a view.
func (v View) usages() []usage {
	var found []usage
	all := View{Snapshot: v.Snapshot, Namespace: v.Namespace, Except: v.Except}
	owner := all.Owners()
	for _, r := range v.Objects {
		if !IsUsed(r.Kind) {
			continue
		}
		add := func(by operation.Ref) {
			if u := (usage{by, r}); by.Namespace == r.Namespace && !slices.Contains(found, u) {
				found = append(found, u)
			}
		}
		for _, w := range all.Workloads() {
			if w.Template != nil && Uses(&corev1.Pod{Spec: w.Template.Spec}, r) {
				add(w.Ref)
			}
		}
		for i := range v.CronJobs {
			c := &v.CronJobs[i]
			if Uses(&corev1.Pod{Spec: c.Spec.JobTemplate.Spec.Template.Spec}, r) {
				add(operation.Ref{Group: "batch", Version: "v1", Kind: "CronJob", Namespace: c.Namespace, Name: c.Name})
			}
		}
		for i := range v.Pods { // of Jobs, and those left from an older template
			if pod := &v.Pods[i]; pod.Name != "" && pod.Namespace == r.Namespace && Uses(pod, r) {
				add(owner(pod))
			}
		}
	}
	return found
}

// UsersOf returns the workloads that use objects of a view.
func (v View) UsersOf() []operation.Ref {
	var users []operation.Ref
	for _, u := range v.usages() {
		users = append(users, u.by)
	}
	return users
}

// Users lists the workloads that use the ConfigMaps, Secrets, volume claims and service accounts of a view.
func Users(v View) string {
	t := newTable("Namespace", "Workload", "Uses")
	all := v.usages()
	for _, u := range all {
		t.add(tableCell(u.by.Namespace), kindName(u.by), kindName(u.of))
	}
	n, names := len(all), joinNames(v.Objects)
	place := View{Namespace: v.Namespace, Except: v.Except}
	return t.under(fmt.Sprintf("%s %s %s:", countNoun(n, "workload", "workloads"), useVerb(n), names), "No workload "+place.where()+" makes use of "+names+".").String()
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

// IsUsed reports whether objects of a kind, in any letter case, are used by workloads.
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
