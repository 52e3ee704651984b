package registry

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// ClusterArgument is the argument, and the member of results, that names a cluster where clusters are configured by name. A
// caller of [Registry.Call] takes the argument out and chooses the toolbox by it.
const ClusterArgument = "cluster"

// ForClusters returns the tools as they are offered for clusters that are configured by name, the default first.
func (r *Registry) ForClusters(names []string) (*Registry, error) {
	out := &Registry{byName: map[string]*Tool{}}
	for _, t := range r.tools {
		schema := map[string]any{}
		if err := json.Unmarshal(t.Arguments, &schema); err != nil {
			return nil, fmt.Errorf("the arguments of the tool %s: %w", t.Name, err)
		}
		properties, _ := schema["properties"].(map[string]any)
		if properties == nil {
			properties = map[string]any{}
		}
		properties[ClusterArgument] = map[string]any{"type": "string", "enum": names, "description": ClusterAbout(names)}
		schema["properties"] = properties
		raw, err := json.Marshal(schema)
		if err != nil {
			return nil, fmt.Errorf("the arguments of the tool %s: %w", t.Name, err)
		}
		t.Arguments, t.Structured = raw, encode(t.result)
		out.add(t)
	}
	return out, nil
}

// ClusterAbout describes the argument.
func ClusterAbout(names []string) string { return "The cluster; left out: " + names[0] + "." }

// WithoutCluster is the schema of a result as it is where clusters have no names.
func WithoutCluster(s *jsonschema.Schema) *jsonschema.Schema {
	s = s.CloneSchemas()
	dropCluster(s)
	return s
}

func dropCluster(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	delete(s.Properties, ClusterArgument)
	s.PropertyOrder = slices.DeleteFunc(slices.Clone(s.PropertyOrder), func(name string) bool { return name == ClusterArgument })
	for _, p := range s.Properties {
		dropCluster(p)
	}
	dropCluster(s.Items)
	dropCluster(s.AdditionalProperties)
}

// In names the cluster in every reference of the result; the empty name changes nothing.
func (r Result) In(cluster string) Result {
	if cluster == "" {
		return r
	}
	r.References = slices.Clone(r.References)
	data := reflect.New(reflect.TypeFor[Result]())
	data.Elem().Set(reflect.ValueOf(r))
	nameCluster(data.Elem(), cluster)
	return data.Elem().Interface().(Result)
}

var referenceType = reflect.TypeFor[operation.Reference]()

// nameCluster sets the cluster of all references below v. The data of a result is made for one call, so that it may be changed.
func nameCluster(v reflect.Value, cluster string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			nameCluster(v.Elem(), cluster)
		}
	case reflect.Interface:
		if v.IsNil() {
			return
		}
		inner := reflect.New(v.Elem().Type()).Elem() // what an interface holds cannot be set in it
		inner.Set(v.Elem())
		nameCluster(inner, cluster)
		v.Set(inner)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			nameCluster(v.Index(i), cluster)
		}
	case reflect.Struct:
		if v.Type() == referenceType {
			v.FieldByName("Cluster").SetString(cluster)
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				nameCluster(v.Field(i), cluster)
			}
		}
	}
}
