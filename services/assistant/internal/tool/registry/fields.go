package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/client-go/util/jsonpath"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/table"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

type fieldsArguments struct {
	Kind          string   `json:"kind" jsonschema:"Kind: plural, singular, short name or kind.group."`
	Name          string   `json:"name,omitempty" jsonschema:"Name; left out: all of the kind."`
	Namespace     string   `json:"namespace,omitempty" jsonschema:"Namespace; left out: that of the session, and for a list all."`
	LabelSelector string   `json:"label_selector,omitempty" jsonschema:"Label selector, such as app=api."`
	Paths         []string `json:"paths" jsonschema:"Paths of fields, such as .spec.replicas or .spec.containers[*].image; 1 to 20."`
}

// Fields are fields of objects by path.
type Fields struct {
	Objects []ObjectFields `json:"objects"`
}

// ObjectFields are those of one object. A field that the object does not have is not in it.
type ObjectFields struct {
	Object operation.Reference `json:"object"`
	Fields map[string][]any    `json:"fields" jsonschema:"The values at each path: one, or several where the path has a wildcard."`
}

const maxPaths = 20

func fields(ctx context.Context, box turn.Toolbox, a fieldsArguments) (Result, error) {
	if len(a.Paths) == 0 || len(a.Paths) > maxPaths {
		return Result{}, operation.Refuse(operation.InvalidArgument, "paths", "Give 1 to %d paths.", maxPaths)
	}
	parsed := make([]*jsonpath.JSONPath, len(a.Paths))
	for i, path := range a.Paths {
		parsed[i] = jsonpath.New(path).AllowMissingKeys(true)
		if err := parsed[i].Parse(operation.RelaxPath(path)); err != nil {
			return Result{}, operation.Refuse(operation.InvalidArgument, "paths", "%s is no path of a field; write it such as .spec.replicas.", operation.Quote(path))
		}
	}
	op := operation.Operation{Verb: operation.List, Kind: a.Kind, Namespace: a.Namespace, AllNamespaces: a.Namespace == "", LabelSelector: a.LabelSelector, Output: "json"}
	if a.Name != "" {
		op = operation.Operation{Verb: operation.Get, Kind: a.Kind, Names: []string{a.Name}, Namespace: a.Namespace, Output: "json"}
	}
	op = operation.Normalize(op)
	if err := op.Validate(); err != nil {
		return Result{}, err
	}
	out, err := box.Call(ctx, op)
	if err != nil {
		return Result{}, err
	}
	objects, err := decodeObjects(out.Whole)
	if err != nil || len(objects) > len(out.References) {
		return Result{}, operation.Refuse(operation.Unavailable, "", "The objects could not be parsed after redaction; get them as YAML.")
	}
	list := &Fields{Objects: []ObjectFields{}}
	lines := []string{}
	for i, object := range objects {
		of := ObjectFields{out.References[i], map[string][]any{}}
		for j, path := range a.Paths {
			values := valuesAt(parsed[j], object)
			if len(values) > 0 {
				of.Fields[path] = values
			}
			lines = append(lines, fmt.Sprintf("%s/%s %s: %s", of.Object.Kind, of.Object.Name, path, describeValues(values)))
		}
		list.Objects = append(list.Objects, of)
	}
	if len(objects) == 0 {
		lines = []string{"There are no such objects."}
	}
	if out.WholeTruncated {
		lines = append(lines, "[not all objects: narrow it by name, namespace or selector]")
	}
	result := shown(joinLines(lines...), list, out.References...)
	result.Truncated = result.Truncated || out.WholeTruncated
	return result, nil
}

// decodeObjects reads objects that follow one another.
func decodeObjects(text string) ([]map[string]any, error) {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return nil, nil // a sentence that there are none
	}
	var objects []map[string]any
	dec := json.NewDecoder(strings.NewReader(text))
	for {
		var o map[string]any
		if err := dec.Decode(&o); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
}

// valuesAt evaluates a path. The library may panic on one that fits no value; then there is none.
func valuesAt(path *jsonpath.JSONPath, object map[string]any) (values []any) {
	defer func() {
		if recover() != nil {
			values = nil
		}
	}()
	found, err := path.FindResults(object)
	if err != nil {
		return nil
	}
	for _, group := range found {
		for _, v := range group {
			if v.IsValid() && v.CanInterface() {
				values = append(values, v.Interface())
			}
		}
	}
	return slices.DeleteFunc(values, func(v any) bool { return v == nil })
}

func describeValues(values []any) string {
	if len(values) == 0 {
		return "not set"
	}
	texts := make([]string, len(values))
	for i, v := range values {
		if text, ok := v.(string); ok {
			texts[i] = table.Line(text, maxExample)
			continue
		}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err == nil {
			texts[i] = table.Line(strings.TrimSpace(b.String()), maxExample)
		}
	}
	return strings.Join(texts, ", ")
}
