package recorded

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// document is one document of a file: the objects of a list, or one object.
type document struct {
	objects []*unstructured.Unstructured
	// kind is that of a list, whose objects may omit theirs.
	kind schema.GroupVersionKind
	list bool
}

// looksLikeDocuments reports whether a file may contain objects, judged by its beginning.
func looksLikeDocuments(name string, data []byte) bool {
	trimmed := bytes.TrimLeft(data, " \t\r\n\ufeff")
	switch ext := path.Ext(name); {
	case ext == ".log" || ext == ".txt":
		return false
	case len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '['):
		return true
	}
	return bytes.HasPrefix(data, []byte("apiVersion:")) || bytes.HasPrefix(data, []byte("---")) ||
		bytes.HasPrefix(data, []byte("items:")) || bytes.HasPrefix(data, []byte("kind:")) || bytes.Contains(data, []byte("\napiVersion:"))
}

// countValues estimates how many values a document has by counting separators, in JSON and in YAML.
func countValues(data []byte) (n int) {
	for _, separator := range []string{",", ":", "[", "{", "\n"} {
		n += bytes.Count(data, []byte(separator))
	}
	return n
}

// parseDocuments reads the documents of a JSON or YAML file. Anything but objects and lists is skipped; an error means
// that the rest of the file could not be read.
func parseDocuments(name string, data []byte) ([]document, error) {
	var all []document
	add := func(text []byte) error {
		var value any
		if err := yaml.Unmarshal(text, &value); err != nil {
			return err
		}
		if d, ok := readDocument(name, value); ok {
			all = append(all, d)
		}
		return nil
	}
	if trimmed := bytes.TrimLeft(data, " \t\r\n\ufeff"); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		stream := json.NewDecoder(bytes.NewReader(trimmed))
		for {
			var value any
			err := stream.Decode(&value)
			if errors.Is(err, io.EOF) {
				return all, nil
			}
			if err != nil {
				return all, err
			}
			if d, ok := readDocument(name, normalize(value)); ok {
				all = append(all, d)
			}
		}
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err == nil {
			err = add(text)
		}
		if err != nil {
			return all, err
		}
	}
}

// normalize makes whole numbers int64, as the types of the API expect them.
func normalize(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = normalize(v[key])
		}
	case []any:
		for i := range v {
			v[i] = normalize(v[i])
		}
	case float64:
		if n := int64(v); float64(n) == v {
			return n
		}
	}
	return value
}

// readDocument reads an object, a list of the API, or a bare array of objects as some collectors write it.
func readDocument(name string, value any) (document, bool) {
	value = normalize(value)
	var items []any
	d := document{}
	switch v := value.(type) {
	case []any:
		items, d.list = v, true
	case map[string]any:
		apiVersion, _ := v["apiVersion"].(string)
		kind, _ := v["kind"].(string)
		var isList bool
		items, isList = v["items"].([]any)
		_, hasItems := v["items"]
		switch {
		case isList || hasItems && (kind == "" || strings.HasSuffix(kind, "List")):
			d.list = true
			if of, ok := strings.CutSuffix(kind, "List"); ok && of != "" {
				d.kind = schema.FromAPIVersionAndKind(apiVersion, of)
			}
		case apiVersion != "" && kind != "":
			items = []any{v}
		default:
			return d, false
		}
	default:
		return d, false
	}
	if d.list && d.kind.Kind == "" {
		d.kind = kindOfPath(name)
	}
	for _, item := range items {
		object, ok := item.(map[string]any)
		if !ok {
			continue
		}
		o := &unstructured.Unstructured{Object: object}
		if o.GetKind() == "" || o.GetAPIVersion() == "" {
			if d.kind.Kind == "" {
				continue
			}
			o.SetGroupVersionKind(d.kind)
		}
		if _, ok := object["metadata"].(map[string]any); ok && o.GetName() != "" {
			d.objects = append(d.objects, o)
		}
	}
	return d, len(d.objects) > 0 || d.list && d.kind.Kind != ""
}

// kindOfPath returns the kind of a list that does not state it, from the resource that a file or a folder is named for.
func kindOfPath(name string) schema.GroupVersionKind {
	parts := strings.Split(strings.TrimSuffix(name, path.Ext(name)), "/")
	for i := len(parts) - 1; i >= 0; i-- {
		plural := strings.ReplaceAll(strings.ToLower(parts[i]), "-", "")
		for _, r := range wellKnown {
			if plural == r.Name || plural == r.SingularName || plural == "pvs" && r.Name == "persistentvolumes" || plural == "pvcs" && r.Name == "persistentvolumeclaims" {
				return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
			}
		}
	}
	return schema.GroupVersionKind{}
}
