package service

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// checkKeys refuses objects that encoding/json accepts in a document that it
// has decoded into dst: one with a duplicate key, of which it would keep the
// last and another parser on the way the first, and, if strict, one with a key
// that is a field's name in another case. If not strict, only the outermost
// object counts.
func checkKeys(raw []byte, dst reflect.Type, strict bool) error {
	w := keyWalk{raw: raw, strict: strict}
	if w.value(dst, true) {
		return nil
	}
	w.loc = append(w.loc, "body")
	slices.Reverse(w.loc)
	return invalidField(w.loc, w.msg)
}

// keyWalk goes through a valid document once.
type keyWalk struct {
	raw    []byte
	i      int // the next byte
	strict bool

	loc []string // of the fault, innermost first
	msg string
}

// value checks the value at i, which is decoded into a t, and skips it; nil
// means that any names are allowed in it. It reports whether there was no
// fault.
func (w *keyWalk) value(t reflect.Type, outermost bool) bool {
	w.space()
	switch w.raw[w.i] {
	case '{':
		return w.object(shapeOf(t), w.strict || outermost)
	case '[':
		return w.array(shapeOf(t))
	case '"':
		w.i = stringEnd(w.raw, w.i) + 1
	default:
		for w.i < len(w.raw) && bytes.IndexByte([]byte(",]} \t\r\n"), w.raw[w.i]) < 0 {
			w.i++
		}
	}
	return true
}

func (w *keyWalk) object(s *shape, check bool) bool {
	var seen keySet
	for w.next('}') {
		key := w.key()
		if check && !seen.add(key) {
			w.msg = "is there twice"
			w.loc = append(w.loc, string(key))
			return false
		}
		t := s.elem
		if s.fields != nil {
			known := false
			if t, known = s.fields[string(key)]; !known && w.strict {
				w.msg = "unknown field"
				w.loc = append(w.loc, string(key))
				return false
			}
		}
		if !w.value(t, false) {
			w.loc = append(w.loc, string(key))
			return false
		}
	}
	return true
}

func (w *keyWalk) array(s *shape) bool {
	for n := 0; w.next(']'); n++ {
		if !w.value(s.elem, false) {
			w.loc = append(w.loc, strconv.Itoa(n))
			return false
		}
	}
	return true
}

// next passes the bracket or comma before a member; false passes the end.
func (w *keyWalk) next(end byte) bool {
	w.space()
	if w.raw[w.i] != end {
		w.i++
		w.space()
	}
	if w.raw[w.i] == end { // also of an empty one
		w.i++
		return false
	}
	return true
}

// key passes a key and its colon.
func (w *keyWalk) key() []byte {
	end := stringEnd(w.raw, w.i)
	key := w.raw[w.i+1 : end]
	if bytes.IndexByte(key, '\\') >= 0 || !utf8.Valid(key) {
		var s string
		_ = json.Unmarshal(w.raw[w.i:end+1], &s) // part of a document that parsed
		key = []byte(s)
	}
	w.i = end + 1
	w.space()
	w.i++
	return key
}

func (w *keyWalk) space() {
	for w.i < len(w.raw) && (w.raw[w.i] == ' ' || w.raw[w.i] == '\n' || w.raw[w.i] == '\t' || w.raw[w.i] == '\r') {
		w.i++
	}
}

// shape lists the fields that encoding/json looks for in a value of a type.
type shape struct {
	fields map[string]reflect.Type // of a struct; nil: any names
	elem   reflect.Type            // of a list or map; nil: anything
}

var (
	anything = new(shape)
	shapes   sync.Map // reflect.Type to *shape

	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func shapeOf(t reflect.Type) *shape {
	if t == nil {
		return anything
	}
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s, _ := shapes.LoadOrStore(t, newShape(t))
	return s.(*shape)
}

func newShape(t reflect.Type) *shape {
	for t.Kind() == reflect.Pointer && !t.Implements(jsonUnmarshaler) {
		t = t.Elem()
	}
	if p := reflect.PointerTo(t); t.Implements(jsonUnmarshaler) || p.Implements(jsonUnmarshaler) || p.Implements(textUnmarshaler) {
		return anything // the type reads it in its own way
	}
	switch t.Kind() {
	case reflect.Struct:
		return &shape{fields: fieldsOf(t)}
	case reflect.Map, reflect.Slice, reflect.Array:
		return &shape{elem: t.Elem()}
	}
	return anything
}

// fieldsOf has the names that encoding/json knows for a struct, those of
// embedded structs after its own.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	visited := map[reflect.Type]bool{t: true}
	for level := []reflect.Type{t}; len(level) > 0; {
		var deeper []reflect.Type
		found := map[string]reflect.Type{}
		for _, t := range level {
			for i := range t.NumField() {
				f := t.Field(i)
				tag := f.Tag.Get("json")
				name, _, _ := strings.Cut(tag, ",")
				inner := f.Type
				if inner.Kind() == reflect.Pointer {
					inner = inner.Elem()
				}
				switch {
				case tag == "-":
				case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
					if !visited[inner] {
						visited[inner] = true
						deeper = append(deeper, inner)
					}
				case f.IsExported():
					if name == "" {
						name = f.Name
					}
					found[name] = f.Type
				}
			}
		}
		for name, t := range found {
			if _, have := fields[name]; !have {
				fields[name] = t
			}
		}
		level = deeper
	}
	return fields
}
