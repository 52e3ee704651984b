package canon

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// From converts a Go value into a Value. The product builds its documents with it:
// plain structs with json tags, whose float64 fields stay floats (10 is written
// "10.0") and whose integers stay integers.
//
//   - struct: an object, keys in field order under their json names; `json:"-"`
//     and unexported fields are left out, `omitempty` leaves out nil, "", 0, false
//     and what is empty; an embedded struct without a name is spread in place
//   - map with string keys: an object, keys sorted
//   - slice and array: an array; a nil slice is [] (a missing list is a nil pointer)
//   - pointer and interface: what it points to, nil is null
//   - a Value inside: itself
//
// Anything else, a NaN, an infinity or a string that is not UTF-8 fails.
func From(x any) (Value, error) {
	v, err := convertValue(reflect.ValueOf(x), 0)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// MustFrom is From for documents whose type is fixed in the program; it panics on
// a fault of that type.
func MustFrom(x any) Value {
	v, err := From(x)
	if err != nil {
		panic(err)
	}
	return v
}

var (
	intType    = reflect.TypeFor[Int]()
	rawType    = reflect.TypeFor[Raw]()
	objectType = reflect.TypeFor[*Object]()
	bigType    = reflect.TypeFor[*big.Int]()
)

func convertValue(v reflect.Value, depth int) (Value, error) {
	if !v.IsValid() {
		return nil, nil
	}
	// The limit also ends a cycle of pointers, which add no nesting themselves.
	if depth > 2*MaxDepth {
		return nil, fmt.Errorf("canon: %s is nested too deeply", v.Type())
	}
	switch v.Type() {
	case intType, rawType:
		return v.Interface(), nil
	case bigType:
		if n, _ := v.Interface().(*big.Int); n != nil {
			return BigInt(n), nil
		}
		return nil, nil
	case objectType:
		if v.IsNil() {
			return nil, nil
		}
		return convertObject(v.Interface().(*Object), depth)
	}
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.String:
		return convertText(v.String())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return NewInt(v.Int()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return BigInt(new(big.Int).SetUint64(v.Uint())), nil
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return Float(f), nil
		}
		return nil, fmt.Errorf("canon: %v is no JSON number", v.Float())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil, nil
		}
		return convertValue(v.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		out := make(Array, v.Len())
		for i := range out {
			e, err := convertValue(v.Index(i), depth+1)
			if err != nil {
				return nil, err
			}
			out[i] = e
		}
		return out, nil
	case reflect.Map:
		return convertMap(v, depth)
	case reflect.Struct:
		out := &Object{members: make([]Member, 0, v.NumField())}
		return out, convertStruct(v, out, depth)
	}
	return nil, fmt.Errorf("canon: a document cannot contain a %s", v.Type())
}

// convertObject converts the values of a hand-built object, which may be Go values.
func convertObject(o *Object, depth int) (Value, error) {
	out := &Object{members: make([]Member, 0, o.Len())}
	for k, m := range o.All() {
		if _, err := convertText(k); err != nil {
			return nil, err
		}
		e, err := convertValue(reflect.ValueOf(m), depth+1)
		if err != nil {
			return nil, err
		}
		out.add(k, e)
	}
	return out, nil
}

func convertText(s string) (Value, error) {
	if !utf8.ValidString(s) {
		return nil, errors.New("canon: a string is not UTF-8")
	}
	return s, nil
}

func convertMap(v reflect.Value, depth int) (Value, error) {
	if v.Type().Key().Kind() != reflect.String {
		return nil, fmt.Errorf("canon: the keys of %s are no strings", v.Type())
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	out := &Object{}
	for _, k := range keys {
		if _, err := convertText(k.String()); err != nil {
			return nil, err
		}
		e, err := convertValue(v.MapIndex(k), depth+1)
		if err != nil {
			return nil, err
		}
		out.add(k.String(), e)
	}
	return out, nil
}

func convertStruct(v reflect.Value, out *Object, depth int) error {
	fields, err := fieldsOf(v.Type())
	if err != nil {
		return err
	}
	for _, f := range fields {
		fv := v.FieldByIndex(f.index)
		if f.omitEmpty && isEmpty(fv) {
			continue
		}
		e, err := convertValue(fv, depth+1)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		out.add(f.name, e)
	}
	return nil
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.Array:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

type field struct {
	name      string
	index     []int
	omitEmpty bool
}

var fieldCache sync.Map // reflect.Type -> []field

func fieldsOf(t reflect.Type) ([]field, error) {
	if f, ok := fieldCache.Load(t); ok {
		return f.([]field), nil
	}
	var out []field
	seen := map[string]bool{}
	if err := collectFields(t, nil, &out, seen); err != nil {
		return nil, err
	}
	fieldCache.Store(t, out)
	return out, nil
}

func collectFields(t reflect.Type, at []int, out *[]field, seen map[string]bool) error {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clone(at), i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct {
			if err := collectFields(f.Type, index, out, seen); err != nil {
				return err
			}
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		// A key twice would make a document that the parser refuses.
		if seen[name] {
			return fmt.Errorf("canon: %s names %q twice", t, name)
		}
		seen[name] = true
		*out = append(*out, field{name: name, index: index, omitEmpty: opts == "omitempty"})
	}
	return nil
}
