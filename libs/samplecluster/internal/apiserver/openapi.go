package apiserver

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
)

const openAPI = "/openapi/v3"

type object = map[string]any

// documents caches each group's document after the first request: it never changes.
var documents sync.Map // of schema.GroupVersion to func() object

// serveOpenAPI serves the documentation of the kinds' fields, which clients show for explain.
func serveOpenAPI(w http.ResponseWriter, r *http.Request) bool {
	rest, ok := strings.CutPrefix(strings.TrimSuffix(r.URL.Path, "/"), openAPI)
	if !ok || r.Method != http.MethodGet {
		return false
	}
	for _, k := range resource.All() {
		gv := k.GroupVersionKind.GroupVersion()
		if rest == apiPrefix(gv) {
			made, _ := documents.LoadOrStore(gv, sync.OnceValue(func() object { return buildDocument(gv) }))
			writeJSON(w, http.StatusOK, made.(func() object)())
			return true
		}
	}
	if rest != "" {
		return false
	}
	paths := object{}
	for _, k := range resource.All() {
		at := apiPrefix(k.GroupVersionKind.GroupVersion())
		paths[at[1:]] = object{"serverRelativeURL": openAPI + at + "?hash=" + Version.GitVersion}
	}
	writeJSON(w, http.StatusOK, object{"paths": paths})
	return true
}

func apiPrefix(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.String()
}

// buildDocument describes the kinds of a group by the Go types that hold them, with the descriptions that those carry.
func buildDocument(gv schema.GroupVersion) object {
	d := describer{object{}}
	paths := object{}
	for _, k := range resource.All() {
		if k.GroupVersionKind.GroupVersion() != gv {
			continue
		}
		gvk := object{"group": gv.Group, "version": gv.Version, "kind": k.GroupVersionKind.Kind}
		t := reflect.TypeOf(k.New()).Elem()
		d.schema(t)
		d.schemas[modelName(t)].(object)["x-kubernetes-group-version-kind"] = []any{gvk}
		at := apiPrefix(gv) + "/" + k.Plural
		if k.Namespaced {
			at = apiPrefix(gv) + "/namespaces/{namespace}/" + k.Plural
		}
		content := object{"application/json": object{"schema": object{"$ref": schemaReference(t)}}}
		paths[at+"/{name}"] = object{"get": object{
			"x-kubernetes-action": "get", "x-kubernetes-group-version-kind": gvk,
			"responses": object{"200": object{"description": "OK", "content": content}},
		}}
	}
	return object{
		"openapi": "3.0.0", "info": object{"title": "Kubernetes", "version": Version.GitVersion},
		"paths": paths, "components": object{"schemas": d.schemas},
	}
}

// describer collects schemas by name.
type describer struct{ schemas object }

func modelName(t reflect.Type) string {
	if named, ok := reflect.Zero(t).Interface().(interface{ OpenAPIModelName() string }); ok {
		return named.OpenAPIModelName()
	}
	return strings.ReplaceAll(t.PkgPath(), "/", ".") + "." + t.Name()
}

func schemaReference(t reflect.Type) string { return "#/components/schemas/" + modelName(t) }

// schema describes a type; that of a structure is a reference.
func (d describer) schema(t reflect.Type) object {
	if t.Kind() == reflect.Pointer {
		return d.schema(t.Elem())
	}
	if known, ok := reflect.New(t).Interface().(interface {
		OpenAPISchemaType() []string
		OpenAPISchemaFormat() string
	}); ok {
		return d.scalar(t, known.OpenAPISchemaType(), known.OpenAPISchemaFormat())
	}
	switch t.Kind() {
	case reflect.Struct:
		d.structure(t)
		return object{"$ref": schemaReference(t)}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "format": "byte"}
		}
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int32, reflect.Uint32:
		return object{"type": "integer", "format": "int32"}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return object{"type": "integer", "format": "int64"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number", "format": "double"}
	case reflect.Interface:
		return object{"type": "object"}
	}
	return object{"type": "string"}
}

// scalar describes a structure that JSON writes as one value, such as a time. One with a choice of types keeps its name.
func (d describer) scalar(t reflect.Type, types []string, format string) object {
	s := object{}
	if format != "" {
		s["format"] = format
	}
	choice, ok := reflect.New(t).Interface().(interface{ OpenAPIV3OneOfTypes() []string })
	if !ok {
		s["type"] = "object"
		if len(types) > 0 {
			s["type"] = types[0]
		}
		return s
	}
	var oneOf []any
	for _, name := range choice.OpenAPIV3OneOfTypes() {
		oneOf = append(oneOf, object{"type": name})
	}
	s["oneOf"] = oneOf
	d.schemas[modelName(t)] = s
	return object{"$ref": schemaReference(t)}
}

func (d describer) structure(t reflect.Type) {
	name := modelName(t)
	if _, done := d.schemas[name]; done {
		return
	}
	s := object{"type": "object"}
	d.schemas[name] = s // before its fields: some types hold themselves
	docs := docsOf(t)
	if docs[""] != "" {
		s["description"] = docs[""]
	}
	properties := object{}
	var required []any
	d.fields(t, properties, &required)
	if len(properties) > 0 {
		s["properties"] = properties
	}
	if len(required) > 0 {
		s["required"] = required
	}
}

// fields adds a structure's members and those of the structures that it embeds.
func (d describer) fields(t reflect.Type, properties object, required *[]any) {
	docs := docsOf(t)
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		options := strings.Split(rest, ",")
		switch {
		case name == "-" || !f.IsExported():
			continue
		case name == "" && f.Anonymous:
			embedded := f.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			d.fields(embedded, properties, required)
			continue
		case name == "":
			continue
		}
		p := d.schema(f.Type)
		if _, ref := p["$ref"]; ref {
			p = object{"allOf": []any{p}} // beside a reference there can be no description
		}
		if docs[name] != "" {
			p["description"] = docs[name]
		}
		properties[name] = p
		if !slices.Contains(options, "omitempty") && !slices.Contains(options, "omitzero") && t != reflect.TypeFor[metav1.ObjectMeta]() {
			*required = append(*required, name)
		}
	}
}

// docsOf are the descriptions of a type's fields by name, its own under the empty one.
func docsOf(t reflect.Type) map[string]string {
	if documented, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		return documented.SwaggerDoc()
	}
	return nil
}
