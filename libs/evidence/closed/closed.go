// Package closed reads documents whose key sets are closed: every named key must be present, and no other may be. A
// [Reader] keeps the first fault, with a JSON pointer to it, and returns zero values after it, so that a validator
// reads top to bottom like the document it describes.
package closed

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// Fault is why a document was refused. It names places, never quotes values: a
// document may hold a secret.
type Fault struct {
	Code   string // one stable code of the document's own list
	Path   string // JSON pointer; "" is the whole document
	Detail string // one sentence
}

func (f *Fault) Error() string {
	path := f.Path
	if path == "" {
		path = "the document"
	}
	return fmt.Sprintf("%s at %.200s: %s", f.Code, path, f.Detail)
}

// Codes are the words a document's list has for the faults every closed document
// can have.
type Codes struct {
	Missing, Unknown string // a key that must be present; one that must not
	Root             string // the document is no object
	Shape            string // another type where an object or array is expected
	Type             string // another type where a scalar of one type is expected
	Value            string // right type, wrong value
}

// Reader holds the first fault of one document.
type Reader struct {
	codes Codes
	fault *Fault
}

// NewReader starts on a document.
func NewReader(c Codes) *Reader { return &Reader{codes: c} }

// Fault is the first fault, or nil.
func (r *Reader) Fault() *Fault { return r.fault }

// OK reports whether there is no fault yet.
func (r *Reader) OK() bool { return r.fault == nil }

// Fail records a fault unless there is one already.
func (r *Reader) Fail(code, path, format string, args ...any) {
	if r.fault == nil {
		r.fault = &Fault{Code: code, Path: path, Detail: fmt.Sprintf(format, args...)}
	}
}

// Object is one closed object. It is empty after a fault.
//
// Its methods build the pointer to a key only for a fault: otherwise a tenth of the allocations of reading a run would
// be unused pointers.
type Object struct {
	r    *Reader
	o    *canon.Object
	path string
}

// Root reads the document itself: an object of exactly these keys.
func (r *Reader) Root(v canon.Value, keys ...string) Object {
	return r.object(v, "", r.codes.Root, keys)
}

// Object reads v, the value at path, as an object with exactly these keys.
func (r *Reader) Object(v canon.Value, path string, keys ...string) Object {
	return r.object(v, path, r.codes.Shape, keys)
}

// ObjectWith reads v, the value at path, as an object with all keys of must and any of may. A missing optional key
// reads as the zero value; Has reports whether it is present.
func (r *Reader) ObjectWith(v canon.Value, path string, must, may []string) Object {
	wrong := r.codes.Shape
	if path == "" {
		wrong = r.codes.Root
	}
	return r.object(v, path, wrong, must, may...)
}

// Open reads v, the value at path, as an object that has these keys and may have others: for documents to which their
// writer may add keys.
func (r *Reader) Open(v canon.Value, path string, keys ...string) Object {
	wrong := r.codes.Shape
	if path == "" {
		wrong = r.codes.Root
	}
	return r.having(v, path, wrong, keys)
}

func (r *Reader) object(v canon.Value, path, wrong string, keys []string, may ...string) Object {
	obj := r.having(v, path, wrong, keys)
	if obj.o.Len() > len(keys) {
		have := obj.o.Keys()
		slices.Sort(have) // the fault must not depend on the order of keys
		for _, k := range have {
			if !slices.Contains(keys, k) && !slices.Contains(may, k) {
				r.Fail(r.codes.Unknown, canon.Pointer(path, k), "the key is not known here")
				return Object{r: r, path: path}
			}
		}
	}
	return obj
}

func (r *Reader) having(v canon.Value, path, wrong string, keys []string) Object {
	none := Object{r: r, path: path}
	if !r.OK() {
		return none
	}
	o, ok := v.(*canon.Object)
	if !ok || o == nil {
		r.Fail(wrong, path, "expected an object")
		return none
	}
	for _, k := range keys {
		if _, ok := o.Get(k); !ok {
			r.Fail(r.codes.Missing, canon.Pointer(path, k), "the key is missing")
			return none
		}
	}
	return Object{r: r, o: o, path: path}
}

// At is the JSON pointer of one key.
func (o Object) At(key string) string { return canon.Pointer(o.path, key) }

// Fail records a fault at one key.
func (o Object) Fail(code, key, format string, args ...any) {
	o.r.Fail(code, o.At(key), format, args...)
}

// get returns the value of a key of the closed set, or false after a fault.
func (o Object) get(key string) (canon.Value, bool) {
	if !o.r.OK() || o.o == nil {
		return nil, false
	}
	return o.o.Get(key)
}

// Has reports whether the key is present; it is for optional keys.
func (o Object) Has(key string) bool {
	_, ok := o.get(key)
	return ok
}

// Value returns the value of key, or nil after a fault.
func (o Object) Value(key string) canon.Value {
	v, _ := o.get(key)
	return v
}

// Null reports whether key holds null.
func (o Object) Null(key string) bool {
	v, ok := o.get(key)
	return ok && v == nil
}

// Object reads key as a closed object.
func (o Object) Object(key string, keys ...string) Object {
	return o.r.Object(o.Value(key), o.At(key), keys...)
}

// ObjectWith reads key as an object of required and optional keys.
func (o Object) ObjectWith(key string, must, may []string) Object {
	return o.r.ObjectWith(o.Value(key), o.At(key), must, may)
}

// Array reads key as an array of at least least elements and calls each with the
// pointer of every one, up to the first fault.
func (o Object) Array(key string, least int, each func(v canon.Value, path string)) {
	v, ok := o.get(key)
	if !ok {
		return
	}
	a, ok := v.(canon.Array)
	if !ok {
		o.Fail(o.r.codes.Shape, key, "expected an array")
		return
	}
	if len(a) < least {
		o.Fail(o.r.codes.Value, key, "the array needs %d or more elements", least)
	}
	for i, e := range a {
		if !o.r.OK() {
			return
		}
		each(e, canon.Element(o.At(key), i))
	}
}

// String reads a string of any content.
func (o Object) String(key string) string {
	v, ok := o.get(key)
	if s, fits := v.(string); fits || !ok {
		return s
	}
	return o.r.String(v, o.At(key))
}

// String reads v as a string of any content.
func (r *Reader) String(v canon.Value, path string) string {
	s, ok := v.(string)
	if !ok {
		r.Fail(r.codes.Type, path, "expected a string")
	}
	return s
}

// Text reads a string that is not empty.
func (o Object) Text(key string) string {
	v, ok := o.get(key)
	if s, _ := v.(string); s != "" || !ok {
		return s
	}
	return o.r.Text(v, o.At(key))
}

// Text reads v as a string that is not empty.
func (r *Reader) Text(v canon.Value, path string) string {
	s := r.String(v, path)
	if s == "" {
		r.Fail(r.codes.Value, path, "the string must not be empty")
	}
	return s
}

// Match reads a string that ok accepts; another is refused with code.
func (o Object) Match(key, code, what string, accept func(string) bool) string {
	v, ok := o.get(key)
	if !ok {
		return ""
	}
	if s, fits := v.(string); fits && accept(s) {
		return s
	}
	return o.r.Match(v, o.At(key), code, what, accept)
}

// Match reads v as a string that accept takes; another is refused with code.
func (r *Reader) Match(v canon.Value, path, code, what string, accept func(string) bool) string {
	s := r.String(v, path)
	if r.OK() && !accept(s) {
		r.Fail(code, path, "expected %s", what)
	}
	return s
}

// MatchOrNull is Match for a value that may be null.
func (o Object) MatchOrNull(key, code, what string, accept func(string) bool) *string {
	if v, ok := o.get(key); !ok || v == nil {
		return nil
	}
	s := o.Match(key, code, what, accept)
	return &s
}

// OneOf reads one of these strings; another is refused with code.
func (o Object) OneOf(key, code string, allowed ...string) string {
	if _, ok := o.get(key); !ok {
		return ""
	}
	s := o.String(key)
	if o.r.OK() && !slices.Contains(allowed, s) {
		o.Fail(code, key, "expected one of %s", strings.Join(allowed, ", "))
	}
	return s
}

// Bool reads true or false.
func (o Object) Bool(key string) bool {
	v, ok := o.get(key)
	if !ok {
		return false
	}
	b, ok := v.(bool)
	if !ok {
		o.Fail(o.r.codes.Type, key, "expected true or false")
	}
	return b
}

// False reads a flag that must be false; true is refused with code.
func (o Object) False(key, code string) {
	if o.Bool(key) {
		o.Fail(code, key, "expected false")
	}
}

// Int reads an integer from least to the largest of 64 bits. A number written with a point is no integer, whatever its
// value.
func (o Object) Int(key string, least int64) int64 {
	v, ok := o.get(key)
	if !ok {
		return 0
	}
	i, ok := v.(canon.Int)
	if !ok {
		o.Fail(o.r.codes.Type, key, "expected an integer")
		return 0
	}
	n, ok := i.Int64()
	if !ok || n < least {
		o.Fail(o.r.codes.Value, key, "expected a 64-bit integer of %d or more", least)
	}
	return n
}

// Number reads a number of either kind as a float. An integer beyond binary64 is refused.
func (o Object) Number(key string) float64 {
	v, ok := o.get(key)
	if !ok {
		return 0
	}
	switch v := v.(type) {
	case canon.Float:
		return float64(v)
	case canon.Int:
		f, err := strconv.ParseFloat(v.String(), 64)
		if err != nil {
			o.Fail(o.r.codes.Value, key, "the number is beyond binary64")
			return 0
		}
		return f
	}
	o.Fail(o.r.codes.Type, key, "expected a number")
	return 0
}

// Exact reads an integer of any size.
func (o Object) Exact(key string) canon.Int {
	v, ok := o.get(key)
	if !ok {
		return canon.Int{}
	}
	i, ok := v.(canon.Int)
	if !ok {
		o.Fail(o.r.codes.Type, key, "expected an integer")
	}
	return i
}
