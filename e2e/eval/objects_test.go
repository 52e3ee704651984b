//go:build e2e

package eval

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// keepOut keeps kwok from pods whose status this package writes. It has no value: the simulated kubelet of package kube
// leaves such pods alone, too.
const keepOut = "e2e/program"

// object builds the object that creates the pods of a workload.
func (w *Workload) object(namespace string) *unstructured.Unstructured {
	kind := cmp.Or(w.Kind, "Deployment")
	labels := map[string]any{"app": w.Name}
	for k, v := range w.Labels {
		labels[k] = v
	}
	notes := map[string]any{keepOut: ""}
	for k, v := range w.Notes {
		notes[k] = v
	}
	pod := map[string]any{"containers": buildContainers(append([]Container{w.Container}, w.Sidecars...))}
	if len(w.Init) > 0 {
		pod["initContainers"] = buildContainers(w.Init)
	}
	switch kind {
	case "Job", "Pod":
		pod["restartPolicy"] = "Never"
	}
	merge(pod, w.Pod)
	meta := map[string]any{"name": w.Name, "namespace": namespace, "labels": labels}
	template := map[string]any{"metadata": map[string]any{"labels": maps.Clone(labels), "annotations": notes}, "spec": pod}
	o := map[string]any{"metadata": meta, "kind": kind, "apiVersion": "apps/v1"}
	selector := map[string]any{"matchLabels": map[string]any{"app": w.Name}}
	spec := map[string]any{"template": template, "selector": selector}
	switch kind {
	case "Deployment", "StatefulSet":
		spec["replicas"] = int64(w.replicas())
		if kind == "StatefulSet" {
			spec["podManagementPolicy"] = "Parallel"
			if w.Service > 0 {
				spec["serviceName"] = w.Name
			}
		}
	case "Job":
		o["apiVersion"] = "batch/v1"
		delete(spec, "selector")
		spec["backoffLimit"] = int64(0)
	case "Pod":
		o["apiVersion"] = "v1"
		meta["annotations"] = notes
		spec = pod
	}
	merge(spec, w.Spec)
	o["spec"] = spec
	return &unstructured.Unstructured{Object: o}
}

func (w *Workload) replicas() int32 {
	if w.Replicas == nil {
		return 1
	}
	return *w.Replicas
}

// pods returns the number of pods to wait for before the questions.
func (w *Workload) pods() int {
	if w.Pods != nil {
		return *w.Pods
	}
	return int(w.replicas())
}

// service builds the Service of a workload.
func (w *Workload) service(namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"name": w.Name, "namespace": namespace, "labels": map[string]any{"app": w.Name}},
		"spec": map[string]any{
			"selector": map[string]any{"app": w.Name},
			"ports":    []any{map[string]any{"name": "main", "port": int64(w.Service), "targetPort": int64(cmp.Or(w.Port, w.Service))}},
		},
	}}
}

func buildContainers(list []Container) []any {
	var out []any
	for i := range list {
		c := &list[i]
		m := map[string]any{"name": c.Name, "image": cmp.Or(c.Image, "registry.example.com/"+c.Name+":1.4.2")}
		if len(c.Command) > 0 {
			command := []any{}
			for _, word := range c.Command {
				command = append(command, word)
			}
			m["command"] = command
		}
		if c.Script != nil {
			m["command"] = []any{map[string]any{"sh": "sh", "python": "python3"}[c.Script.Language], "-c", c.Script.Text}
		}
		if c.Port > 0 {
			m["ports"] = []any{map[string]any{"containerPort": int64(c.Port)}}
		}
		var env []any
		for _, k := range slices.Sorted(maps.Keys(c.Env)) {
			env = append(env, map[string]any{"name": k, "value": c.Env[k]})
		}
		if len(env) > 0 {
			m["env"] = env
		}
		resources := map[string]any{}
		for name, amounts := range map[string]map[string]string{"requests": c.Requests, "limits": c.Limits} {
			if len(amounts) > 0 {
				a := map[string]any{}
				for k, v := range amounts {
					a[k] = v
				}
				resources[name] = a
			}
		}
		m["resources"] = resources
		merge(m, c.Spec)
		out = append(out, m)
	}
	return out
}

// merge applies a JSON merge patch.
func merge(into, patch map[string]any) {
	for k, v := range patch {
		if v == nil {
			delete(into, k)
			continue
		}
		if p, ok := v.(map[string]any); ok {
			if m, ok := into[k].(map[string]any); ok {
				merge(m, p)
				continue
			}
		}
		into[k] = v
	}
}

var workloadResources = map[string]schema.GroupVersionResource{
	"Deployment":  {Group: "apps", Version: "v1", Resource: "deployments"},
	"StatefulSet": {Group: "apps", Version: "v1", Resource: "statefulsets"},
	"DaemonSet":   {Group: "apps", Version: "v1", Resource: "daemonsets"},
	"Job":         {Group: "batch", Version: "v1", Resource: "jobs"},
	"Pod":         {Version: "v1", Resource: "pods"},
	"Service":     {Version: "v1", Resource: "services"},
}

// build creates the objects of a scenario.
func (c *cluster) build(ctx context.Context, s *Scenario) error {
	if err := c.Namespace(ctx, s.Namespace); err != nil {
		return err
	}
	for _, n := range s.Nodes {
		if err := c.joinNode(ctx, n); err != nil {
			return err
		}
	}
	if err := c.apply(ctx, s, s.Objects); err != nil {
		return err
	}
	for i := range s.Workloads {
		w := &s.Workloads[i]
		objects := []*unstructured.Unstructured{w.object(s.Namespace)}
		if w.Service > 0 {
			objects = append(objects, w.service(s.Namespace))
		}
		for _, o := range objects {
			if err := c.create(ctx, workloadResources[o.GetKind()], o); err != nil {
				return fmt.Errorf("create %s %s: %w", o.GetKind(), o.GetName(), err)
			}
		}
	}
	return c.apply(ctx, s, s.After)
}
