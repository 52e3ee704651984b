package canon

import (
	"iter"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Value is one JSON value: nil, bool, string, [Int], [Float], [Array] or *[Object].
// [Parse] returns no other types. The writers also take any Go value that [From] can
// convert.
type Value any

// Array is a JSON array.
type Array []Value

// Raw is a document in form C1 inside another document: a checked part is written again
// without being decoded. The writers trust that it is valid C1; [Parse] never returns
// one.
type Raw []byte

// Float is a JSON number that was written with a point or an exponent.
type Float float64

// Int is an exact integer of any size; the zero Int is 0, and two equal
// integers are equal under ==.
type Int struct {
	text string // canonical decimal digits; "" is zero
}

// NewInt makes an Int.
func NewInt(n int64) Int { return intOf(strconv.FormatInt(n, 10)) }

// BigInt makes an Int of any size.
func BigInt(n *big.Int) Int { return intOf(n.String()) }

func intOf(text string) Int {
	if text == "0" || text == "-0" {
		return Int{}
	}
	return Int{text: text}
}

// String returns the decimal digits.
func (i Int) String() string {
	if i.text == "" {
		return "0"
	}
	return i.text
}

// Int64 returns the integer, or false if it needs more than 64 bits.
func (i Int) Int64() (int64, bool) {
	n, err := strconv.ParseInt(i.String(), 10, 64)
	return n, err == nil
}

// Big returns the integer at full size.
func (i Int) Big() *big.Int {
	n, _ := new(big.Int).SetString(i.String(), 10)
	return n
}

// Sign is -1, 0 or 1.
func (i Int) Sign() int {
	switch {
	case i.text == "":
		return 0
	case strings.HasPrefix(i.text, "-"):
		return -1
	}
	return 1
}

// Member is one name of an object and its value.
type Member struct {
	Key   string
	Value Value
}

// Object is a JSON object. It keeps its keys in the order in which they were added, which
// only the forms R and RPretty show; each key occurs once. The zero Object is empty and
// ready to use. It is not safe for concurrent use if one goroutine writes.
type Object struct {
	members []Member
	index   map[string]int // only past indexFrom members: most objects are small
}

const indexFrom = 16

// NewObject makes an object of members in their order; a repeated key replaces.
func NewObject(members ...Member) *Object {
	o := &Object{members: make([]Member, 0, len(members))}
	for _, m := range members {
		o.Set(m.Key, m.Value)
	}
	return o
}

func (o *Object) find(key string) (int, bool) {
	if o == nil {
		return 0, false
	}
	if o.index != nil {
		i, ok := o.index[key]
		return i, ok
	}
	for i := range o.members {
		if o.members[i].Key == key {
			return i, true
		}
	}
	return 0, false
}

// Get returns the value of key and whether it is there. A nil Object is empty.
func (o *Object) Get(key string) (Value, bool) {
	i, ok := o.find(key)
	if !ok {
		return nil, false
	}
	return o.members[i].Value, true
}

// Set replaces the value of key in place, or adds key at the end.
func (o *Object) Set(key string, v Value) {
	if i, ok := o.find(key); ok {
		o.members[i].Value = v
		return
	}
	o.add(key, v)
}

// add appends a key that is known to be new.
func (o *Object) add(key string, v Value) {
	o.members = append(o.members, Member{key, v})
	o.indexLast()
}

// indexLast keeps the index up with the newest member.
func (o *Object) indexLast() {
	switch last := len(o.members) - 1; {
	case o.index != nil:
		o.index[o.members[last].Key] = last
	case last >= indexFrom:
		o.reindex()
	}
}

func (o *Object) reindex() {
	o.index = nil
	if len(o.members) > indexFrom {
		o.index = make(map[string]int, 2*len(o.members))
		for i, m := range o.members {
			o.index[m.Key] = i
		}
	}
}

// Delete removes key and reports whether it was there.
func (o *Object) Delete(key string) bool {
	i, ok := o.find(key)
	if !ok {
		return false
	}
	o.members = slices.Delete(o.members, i, i+1)
	o.reindex()
	return true
}

// Len is the number of keys.
func (o *Object) Len() int {
	if o == nil {
		return 0
	}
	return len(o.members)
}

// Keys lists the keys in their order.
func (o *Object) Keys() []string {
	keys := make([]string, 0, o.Len())
	for k := range o.All() {
		keys = append(keys, k)
	}
	return keys
}

// All walks the members in their order.
func (o *Object) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if o == nil {
			return
		}
		for _, m := range o.members {
			if !yield(m.Key, m.Value) {
				return
			}
		}
	}
}

// Clone copies a tree of values, so that a change to the copy leaves v alone.
func Clone(v Value) Value {
	switch v := v.(type) {
	case Array:
		out := make(Array, len(v))
		for i := range v {
			out[i] = Clone(v[i])
		}
		return out
	case *Object:
		out := &Object{members: make([]Member, v.Len())}
		for i, m := range v.members {
			out.members[i] = Member{m.Key, Clone(m.Value)}
		}
		out.reindex()
		return out
	}
	return v
}

// Pointer appends one reference token to a JSON pointer (RFC 6901).
func Pointer(path, token string) string {
	if strings.IndexByte(token, '~') < 0 && strings.IndexByte(token, '/') < 0 {
		return path + "/" + token
	}
	return path + "/" + pointerEscaper.Replace(token)
}

// Element appends an array index to a JSON pointer.
func Element(path string, i int) string { return path + "/" + strconv.Itoa(i) }

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// UnmarshalJSON decodes a field of this type for encoding/json; the strict rules of
// [Parse] apply inside it.
func (o *Object) UnmarshalJSON(data []byte) error {
	v, err := Parse(data, ObjectRoot())
	if err != nil {
		return err
	}
	*o = *v.(*Object) // ObjectRoot has seen to it
	return nil
}
