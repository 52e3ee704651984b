package samplecluster

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/apiserver"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/printing"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
)

// Resources returns the kinds that the sample cluster serves, with group and version: for others that answer the same API.
func Resources() []metav1.APIResource {
	var list []metav1.APIResource
	for _, k := range resource.All() {
		list = append(list, metav1.APIResource{
			Name: k.Plural, SingularName: k.Singular, Namespaced: k.Namespaced, Group: k.GroupVersionKind.Group,
			Version: k.GroupVersionKind.Version, Kind: k.GroupVersionKind.Kind, ShortNames: k.Short, Categories: k.Categories,
		})
	}
	return list
}

// WantsTable reports whether the Accept header of a request prefers a table to objects.
func WantsTable(accept string) bool { return printing.Wanted(accept) }

// Table shows objects of one kind as an API server does: a kind that the sample cluster does not serve by its age alone.
func Table(of metav1.APIResource, objects []*unstructured.Unstructured, list metav1.ListMeta, now time.Time) metav1.Table {
	kind, known := resource.Lookup(of.Group, of.Version, of.Name)
	rows := make([]resource.Object, 0, len(objects))
	for _, o := range objects {
		rows = append(rows, typed(kind, known, o))
	}
	return printing.Table(kind, rows, list, now)
}

// FieldSet returns the fields of an object that a field selector may name.
func FieldSet(of metav1.APIResource, o *unstructured.Unstructured) fields.Set {
	kind, known := resource.Lookup(of.Group, of.Version, of.Name)
	return apiserver.FieldSet(typed(kind, known, o))
}

// typed converts an object to the type of its kind; one that does not fit stays as it is.
func typed(kind resource.Kind, known bool, o *unstructured.Unstructured) resource.Object {
	if !known {
		return o
	}
	made := kind.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, made); err != nil {
		return o
	}
	made.GetObjectKind().SetGroupVersionKind(kind.GroupVersionKind)
	return made
}
