package tool

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/table"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// usage is the API that reports resource usage.
var usage = schema.GroupVersion{Group: "metrics.k8s.io", Version: "v1beta1"}

// measured is one pod or node.
type measured struct {
	namespace, name string
	cpu, memory     resource.Quantity
	cells           []string
}

// top shows what pods or nodes use now, the greatest first.
func (c *call) top(ctx context.Context) (turn.Output, error) {
	r, err := c.Cluster.Resolve(ctx, c.op.Kind)
	if err != nil {
		return turn.Output{}, err
	}
	namespace := c.scope(r)
	if len(c.op.Names) > 0 && !c.exists(r, namespace, c.op.Names[0]) {
		return turn.Output{}, notFoundError(r, c.op.Names[0])
	}
	objects, err := c.measurements(ctx, usage.WithResource(r.Resource), namespace)
	if err != nil {
		return turn.Output{}, err
	}
	var capacity map[string]corev1.ResourceList
	if r.Resource == "nodes" {
		if capacity, err = c.allocatable(ctx); err != nil {
			return turn.Output{}, err
		}
	}
	rows := make([]measured, 0, len(objects))
	for i := range objects {
		if m := measureUsage(&objects[i], capacity); c.exists(r, m.namespace, m.name) {
			rows = append(rows, m)
		}
	}
	if len(rows) == 0 {
		return turn.Output{Text: fmt.Sprintf("The metrics API knows no %s in %s.\n", r.Resource, scopePhrase(r, namespace))}, nil
	}
	slices.SortStableFunc(rows, func(a, b measured) int { return cmp.Or(b.cpu.Cmp(a.cpu), b.memory.Cmp(a.memory)) })
	t := table.Table{Columns: newColumns("NAME", "CPU(cores)", "MEMORY(bytes)")}
	if r.Resource == "nodes" {
		t.Columns = newColumns("NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)")
	}
	for _, m := range rows {
		t.Rows = append(t.Rows, table.Row{Namespace: m.namespace, Name: m.name, Cells: append([]string{m.name}, m.cells...)})
	}
	text, cut := t.Text(table.View{Namespaces: r.Namespaced && namespace == "", Characters: maxCharacters})
	return turn.Output{Text: text, Truncated: cut}, nil
}

// measurements reads the metrics API.
func (c *call) measurements(ctx context.Context, kind schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	client := c.Cluster.Dynamic().Resource(kind).Namespace(namespace)
	missing := func(err error) error {
		if apierrors.IsServiceUnavailable(err) || apierrors.IsNotFound(err) && len(c.op.Names) == 0 {
			return operation.Refuse(operation.Unavailable, "", "The cluster has no metrics API (metrics.k8s.io), so usage is unknown; metrics-server provides it.")
		}
		return err
	}
	if len(c.op.Names) > 0 {
		one, err := client.Get(ctx, c.op.Names[0], metav1.GetOptions{})
		if err != nil {
			return nil, missing(err)
		}
		return []unstructured.Unstructured{*one}, nil
	}
	list, err := client.List(ctx, metav1.ListOptions{LabelSelector: c.op.LabelSelector}) // that API has no pages
	if err != nil {
		return nil, missing(err)
	}
	return list.Items, nil
}

func (c *call) allocatable(ctx context.Context) (map[string]corev1.ResourceList, error) {
	found := map[string]corev1.ResourceList{}
	o := metav1.ListOptions{Limit: pageSize}
	for range maxPages {
		list, err := c.Cluster.Typed().CoreV1().Nodes().List(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, n := range list.Items {
			found[n.Name] = n.Status.Allocatable
		}
		if o.Continue = list.Continue; o.Continue == "" {
			break
		}
	}
	return found, nil
}

// measureUsage sums the containers of a pod, or takes a node's own numbers.
func measureUsage(o *unstructured.Unstructured, capacity map[string]corev1.ResourceList) measured {
	m := measured{namespace: o.GetNamespace(), name: o.GetName()}
	parts, _, _ := unstructured.NestedSlice(o.Object, "containers")
	for _, part := range append(parts, o.Object) {
		if object, ok := part.(map[string]any); ok {
			m.cpu.Add(usageAmount(object, "cpu"))
			m.memory.Add(usageAmount(object, "memory"))
		}
	}
	cpu, memory := fmt.Sprintf("%dm", m.cpu.MilliValue()), fmt.Sprintf("%dMi", m.memory.Value()>>20)
	m.cells = []string{cpu, memory}
	if capacity != nil {
		all := capacity[m.name]
		m.cells = []string{cpu, formatPercent(m.cpu, all[corev1.ResourceCPU]), memory, formatPercent(m.memory, all[corev1.ResourceMemory])}
	}
	return m
}

func usageAmount(o map[string]any, name string) resource.Quantity {
	text, _, _ := unstructured.NestedString(o, "usage", name)
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{} // absent
	}
	return q
}

func formatPercent(used, of resource.Quantity) string {
	if of.IsZero() {
		return "<unknown>"
	}
	return fmt.Sprintf("%.0f%%", 100*used.AsApproximateFloat64()/of.AsApproximateFloat64())
}
