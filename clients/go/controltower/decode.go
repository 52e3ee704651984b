package controltower

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
)

func decodeResult[T any](a *documentReply) (Result[T], error) {
	r := Result[T]{Document: a.doc, Metadata: a.meta}
	if err := a.into(&r.Value, a.doc, a.c1); err != nil {
		return Result[T]{}, err
	}
	return r, nil
}

// into fills a value from a part of the answer, given with its canonical form.
func (a *documentReply) into(target any, part *canon.Object, c1 []byte) error {
	if key := foldedKey(reflect.TypeOf(target), part); key != "" {
		return a.broken("the answer holds the key %q, which differs from a known one in case alone", key)
	}
	if err := json.Unmarshal(c1, target); err != nil {
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && e.Field != "" {
			return a.broken("the answer does not have the fields of its kind: %s", e.Field)
		}
		return a.broken("the answer does not have the fields of its kind")
	}
	return nil
}

var exact = reflect.TypeFor[canon.Object]()

// foldedKey finds a key that encoding/json would take for another, since it matches
// names in any case: with both in one object, the value would hold what no check
// has seen.
func foldedKey(t reflect.Type, v canon.Value) string {
	switch o, _ := v.(*canon.Object); t.Kind() {
	case reflect.Pointer:
		return foldedKey(t.Elem(), v)
	case reflect.Slice:
		elements, _ := v.(canon.Array)
		for _, element := range elements {
			if key := foldedKey(t.Elem(), element); key != "" {
				return key
			}
		}
	case reflect.Map:
		for _, value := range o.All() {
			if key := foldedKey(t.Elem(), value); key != "" {
				return key
			}
		}
	case reflect.Struct:
		if t == exact {
			return ""
		}
		known := map[string]reflect.Type{}
		for _, f := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				known[name] = f.Type
			}
		}
		for key, value := range o.All() {
			if inner, ok := known[key]; ok {
				if key := foldedKey(inner, value); key != "" {
					return key
				}
				continue
			}
			for name := range known {
				if strings.EqualFold(name, key) {
					return key
				}
			}
		}
	}
	return ""
}
