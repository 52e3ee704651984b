package schematest

import (
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// Mutants calls each with the document after one change at one place: every value
// replaced by values of every type and by values just out of bounds, or by more of the
// caller's, every key taken away, a key added to every object, every array doubled and
// emptied. The change is undone afterwards.
func Mutants(doc *canon.Object, each func(what string), more ...canon.Value) {
	digest := "sha256:" + strings.Repeat("c", 64)
	huge := canon.BigInt(canon.NewInt(1).Big().Lsh(canon.NewInt(1).Big(), 64))
	values := append([]canon.Value{
		nil, true, false, canon.NewInt(0), canon.NewInt(1), canon.NewInt(-1), canon.Float(0.5), canon.Float(-0.5), "", "x", " ", "x y", "x\n",
		"main", strings.Repeat("a", 40), strings.Repeat("A", 40), strings.Repeat("x", 193), digest, digest + "\n",
		"2026-01-02T03:04:05Z", "verified", "cancelled", "decided", canon.Array{}, canon.Array{"x"}, canon.Array{"x", "x"}, canon.NewObject(),
		huge,
	}, more...)
	var walk func(v canon.Value, path string)
	replace := func(path string, old canon.Value, set func(canon.Value)) {
		for _, v := range values {
			set(v)
			each(path)
		}
		if a, ok := old.(canon.Array); ok {
			set(append(append(canon.Array{}, a...), a...))
			each(path + " doubled")
		}
		set(old)
		walk(old, path)
	}
	walk = func(v canon.Value, path string) {
		switch v := v.(type) {
		case *canon.Object:
			for _, k := range v.Keys() {
				old, _ := v.Get(k)
				replace(canon.Pointer(path, k), old, func(n canon.Value) { v.Set(k, n) })
				v.Delete(k)
				each(path + " without " + k)
				v.Set(k, old)
			}
			v.Set("unknown_key", nil)
			each(path + " with a key more")
			v.Delete("unknown_key")
		case canon.Array:
			if len(v) > 0 { // the other elements have the same shape
				replace(canon.Element(path, 0), v[0], func(n canon.Value) { v[0] = n })
			}
		}
	}
	walk(doc, "")
}
