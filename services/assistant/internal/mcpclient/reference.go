package mcpclient

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// maxParts limits the parts of a schema, counted once for each reference to them. A check of arguments visits them all:
// infinite recursion would crash the process, and a few references that double each time would take hours.
const maxParts = 2000

var (
	errReference = errors.New("its schema refers to what is not in it")
	errEndless   = errors.New("its schema refers to itself, or to too much")
)

// references follows the references in a schema.
type references struct {
	root map[string]any
	left int
}

// checkReferences refuses a schema with external or infinitely recursive references.
func checkReferences(root map[string]any) error {
	r := &references{root, maxParts}
	return r.follow(root, 0)
}

func (r *references) follow(v any, depth int) error {
	if r.left--; r.left < 0 || depth > 4*maxDepth {
		return errEndless
	}
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			if err := r.follow(one, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, one := range v {
			switch name {
			case "$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$id", "id":
				if _, isText := one.(string); isText {
					return errReference
				}
			case "$ref":
				if text, isText := one.(string); isText {
					to, ok := r.find(text)
					if !ok {
						return errReference
					}
					one = to
				}
			}
			if err := r.follow(one, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// find returns the part of the schema that a reference such as #/$defs/page names.
func (r *references) find(reference string) (any, bool) {
	pointer, ok := strings.CutPrefix(reference, "#")
	if !ok {
		return nil, false
	}
	pointer, err := url.PathUnescape(pointer)
	if err != nil {
		return nil, false
	}
	var at any = r.root
	if pointer == "" {
		return at, true
	}
	if pointer, ok = strings.CutPrefix(pointer, "/"); !ok {
		return nil, false // an anchor
	}
	for step := range strings.SplitSeq(pointer, "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch here := at.(type) {
		case map[string]any:
			if at, ok = here[step]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(here) {
				return nil, false
			}
			at = here[i]
		default:
			return nil, false
		}
	}
	return at, true
}
