package operation

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// Limits on a manifest, after aliases are resolved: a few lines of YAML can expand to billions of nodes.
const (
	MaxDocuments = 50
	maxNodes     = 20_000
	maxDepth     = 64
)

// Document is one object of a manifest.
type Document struct {
	APIVersion, Kind, Namespace, Name string
	// Object contains only maps, slices, strings, bools, int64, float64 and nil.
	Object map[string]any
}

// Documents splits a manifest: documents of a stream and items of lists, each an object with a kind and a name. It
// refuses ambiguous input (a duplicate key, a merge key, yes for true). The error is a *Fault.
func Documents(manifest string) ([]Document, error) {
	if len(manifest) > MaxManifest {
		return nil, Refuse(TooLarge, "manifest", "The manifest is over %d bytes.", MaxManifest)
	}
	if !cleanText(manifest) {
		return nil, Refuse(InvalidManifest, "manifest", "The manifest holds control characters or is not UTF-8.")
	}
	roots, err := decodeYAML("manifest", manifest)
	if err != nil {
		return nil, err
	}
	var docs []Document
	for _, root := range roots {
		if root == nil {
			continue // an empty document, as between two separators
		}
		object, ok := root.(map[string]any)
		if !ok {
			return nil, Refuse(InvalidManifest, "manifest", "Each document must be an object.")
		}
		if docs, err = appendObjects(docs, object, 0); err != nil {
			return nil, err
		}
	}
	if len(docs) == 0 {
		return nil, Refuse(InvalidManifest, "manifest", "The manifest has no objects.")
	}
	return docs, nil
}

func appendObjects(docs []Document, object map[string]any, depth int) ([]Document, error) {
	kind, _ := object["kind"].(string)
	version, _ := object["apiVersion"].(string)
	if items, ok := object["items"].([]any); ok && strings.HasSuffix(kind, "List") {
		if depth > 0 {
			return nil, Refuse(InvalidManifest, "manifest", "A list holds another list.")
		}
		for _, item := range items {
			inner, ok := item.(map[string]any)
			if !ok {
				return nil, Refuse(InvalidManifest, "manifest", "Each item of a list must be an object.")
			}
			var err error
			if docs, err = appendObjects(docs, inner, depth+1); err != nil {
				return nil, err
			}
		}
		return docs, nil
	}
	meta, _ := object["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	namespace, hasNamespace := meta["namespace"].(string)
	switch {
	case version == "" || kind == "":
		return nil, Refuse(InvalidManifest, "manifest", "Each object needs apiVersion and kind.")
	case !ValidName(name):
		return nil, Refuse(InvalidManifest, "manifest", "%s needs a valid metadata.name; a generated one could not be approved.", Quote(kind))
	case hasNamespace && !validLabel(namespace), meta["namespace"] != nil && !hasNamespace:
		return nil, Refuse(InvalidManifest, "manifest", "metadata.namespace of %s is no namespace name.", Quote(name))
	case len(docs) == MaxDocuments:
		return nil, Refuse(TooLarge, "manifest", "At most %d objects in one manifest.", MaxDocuments)
	}
	return append(docs, Document{version, kind, namespace, name, object}), nil
}

// CanonicalPatch parses a patch, YAML or JSON, and returns it as compact JSON with sorted keys. The error is a *Fault.
func CanonicalPatch(text string) (string, error) {
	object, err := PatchObject(text)
	if err != nil {
		return "", err
	}
	patch, err := encodeJSON(object)
	if err != nil {
		return "", Refuse(InvalidManifest, "patch", "The patch cannot be written as JSON.")
	}
	return patch, nil
}

// isCanonicalPatch reports whether a text certainly equals its CanonicalPatch, provided it is a patch. It is called
// several times for every patch, and YAML is slow to parse.
func isCanonicalPatch(text string) bool {
	if strings.Contains(text, "-0") { // the one number that differs in YAML
		return false
	}
	var value any
	if json.Unmarshal([]byte(text), &value) != nil {
		return false
	}
	again, err := encodeJSON(value)
	return err == nil && again == text
}

func encodeJSON(value any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// patchRoot parses the single document of a patch; what describes its required form.
func patchRoot(text, what string) (any, error) {
	if len(text) > MaxManifest {
		return nil, Refuse(TooLarge, "patch", "The patch is over %d bytes.", MaxManifest)
	}
	roots, err := decodeYAML("patch", text)
	if err != nil {
		return nil, err
	}
	if len(roots) != 1 {
		return nil, Refuse(InvalidManifest, "patch", "The patch must be one %s.", what)
	}
	return roots[0], nil
}

// PatchObject parses a patch into plain values, of the types listed at [Document]. The error is a *Fault.
func PatchObject(text string) (map[string]any, error) {
	root, err := patchRoot(text, "object")
	if err != nil {
		return nil, err
	}
	object, ok := root.(map[string]any)
	if !ok || len(object) == 0 {
		return nil, Refuse(InvalidManifest, "patch", "The patch must be an object that is not empty.")
	}
	return object, nil
}

// decodeYAML decodes a stream of documents. JSON is YAML, so it handles both.
func decodeYAML(field, text string) ([]any, error) {
	dec := yaml.NewDecoder(strings.NewReader(text))
	b := budget{field: field, nodes: maxNodes}
	var roots []any
	for {
		var node yaml.Node
		err := dec.Decode(&node)
		if errors.Is(err, io.EOF) {
			return roots, nil
		}
		if err != nil {
			return nil, Refuse(InvalidManifest, field, "The %s is no valid YAML: %s.", field, Quote(strings.TrimPrefix(err.Error(), "yaml: ")))
		}
		if len(roots) == 4*MaxDocuments {
			return nil, Refuse(TooLarge, field, "At most %d documents.", MaxDocuments)
		}
		value, err := b.value(&node, 0)
		if err != nil {
			return nil, err
		}
		roots = append(roots, value)
	}
}
