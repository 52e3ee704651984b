// Package printing makes the tables that an API server answers to kubectl: a row of
// cells for each object, under columns that its kind has.
package printing

import (
	"mime"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
)

// Wanted reports whether a client would rather have a table than objects.
func Wanted(accept string) bool {
	first, _, _ := strings.Cut(accept, ",")
	_, parameters, err := mime.ParseMediaType(first)
	return err == nil && parameters["as"] == "Table" && parameters["g"] == metav1.GroupName && parameters["v"] == "v1"
}

// printer defines how one kind is shown. A column that begins with a plus sign is for
// wide output. All kinds begin with NAME.
type printer struct {
	columns []string
	cells   func(o resource.Object, now time.Time) []any
}

// newPrinter makes a printer of a kind's own type.
func newPrinter[T resource.Object](columns string, cells func(o T, now time.Time) []any) printer {
	return printer{strings.Split(columns, ","), func(o resource.Object, now time.Time) []any {
		typed, ok := o.(T)
		if !ok { // no object of the store has another type than its kind
			return nil
		}
		return cells(typed, now)
	}}
}

// plain shows kinds without a printer, as a real server does.
var plain = printer{[]string{"Created At"}, func(o resource.Object, _ time.Time) []any {
	return []any{o.GetCreationTimestamp().UTC().Format(time.RFC3339)}
}}

// Table shows objects of a kind.
func Table(kind resource.Kind, objects []resource.Object, list metav1.ListMeta, now time.Time) metav1.Table {
	p, known := printers[kind.GroupVersionKind.GroupKind()]
	if !known {
		p = plain
	}
	t := metav1.Table{
		TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: metav1.SchemeGroupVersion.String()}, ListMeta: list,
		ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name"}}, Rows: []metav1.TableRow{},
	}
	for _, c := range p.columns {
		name, wide := strings.CutPrefix(c, "+")
		column := metav1.TableColumnDefinition{Name: name, Type: "string"}
		if wide {
			column.Priority = 1
		}
		t.ColumnDefinitions = append(t.ColumnDefinitions, column)
	}
	for _, o := range objects {
		meta := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: metav1.SchemeGroupVersion.String()}}
		meta.ObjectMeta = metav1.ObjectMeta{
			Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), Generation: o.GetGeneration(),
			CreationTimestamp: o.GetCreationTimestamp(), DeletionTimestamp: o.GetDeletionTimestamp(), Labels: o.GetLabels(), Annotations: o.GetAnnotations(),
			OwnerReferences: o.GetOwnerReferences(), Finalizers: o.GetFinalizers(),
		}
		t.Rows = append(t.Rows, metav1.TableRow{Cells: append([]any{o.GetName()}, p.cells(o, now)...), Object: runtime.RawExtension{Object: meta}})
	}
	return t
}

func formatAge(at metav1.Time, now time.Time) string {
	if at.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(at.Time))
}
