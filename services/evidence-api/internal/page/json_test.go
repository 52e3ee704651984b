package page_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"testing"
	"unicode/utf8"

	"github.com/dop251/goja"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/vectors/vectortest"
	"github.com/mlp-platform/platform/libs/loopback/localpage"
)

// reader runs the page's own JSON code, without a browser.
type reader struct {
	vm    *goja.Runtime
	c1    goja.Callable
	float goja.Callable
}

func newReader(t testing.TB) reader {
	t.Helper()
	vm := goja.New()
	_, err := vm.RunString(localpage.JSON + `
		function c1(text) {
			try { return { form: canonical(parseJSON(text)) }; }
			catch (err) { if (err instanceof JSONError) return { reason: err.reason, offset: err.offset }; throw err; }
		}`)
	if err != nil {
		t.Fatal(err)
	}
	call := func(name string) goja.Callable {
		f, ok := goja.AssertFunction(vm.Get(name))
		if !ok {
			t.Fatalf("json.js has no function %s; want ok", name)
		}
		return f
	}
	return reader{vm: vm, c1: call("c1"), float: call("floatText")}
}

// read gives the canonical form of a text, or the reason why it is refused.
func (r reader) read(t testing.TB, text string) (form, reason string) {
	t.Helper()
	v, err := r.c1(goja.Undefined(), r.vm.ToValue(text))
	if err != nil {
		t.Fatalf("json.js threw something else than a JSONError: %v", err)
	}
	var out struct{ Form, Reason string }
	r.vm.SetFieldNameMapper(goja.UncapFieldNameMapper())
	if err := r.vm.ExportTo(v, &out); err != nil {
		t.Fatal(err)
	}
	return out.Form, out.Reason
}

func TestVectorsCanon(t *testing.T) {
	t.Parallel()
	var all []struct {
		vectortest.Input
		C1     *string `json:"c1"`
		SHA256 string  `json:"sha256"`
	}
	vectortest.Load(t, "canon.json", &all)
	r := newReader(t)
	for _, v := range all {
		text := string(v.Bytes(t))
		want := text
		if v.C1 != nil {
			want = *v.C1
		}
		form, reason := r.read(t, text)
		if reason != "" || form != want {
			t.Errorf("%s: %s (%s), want %s", v.Name, clipText(form), reason, clipText(want))
		}
		if sum := sha256.Sum256([]byte(form)); hex.EncodeToString(sum[:]) != v.SHA256 {
			t.Errorf("%s: another digest; want hex.EncodeToString(sum[:]) == %v", v.Name, v.SHA256)
		}
	}
}

func TestVectorsRefused(t *testing.T) {
	t.Parallel()
	var all []struct {
		vectortest.Input
		Reason string `json:"reason"`
	}
	vectortest.Load(t, "refused.json", &all)
	r := newReader(t)
	tried := 0
	for _, v := range all {
		data := v.Bytes(t)
		if !utf8.Valid(data) {
			continue // the browser's strict decoder refuses these before any text exists
		}
		tried++
		if form, reason := r.read(t, string(data)); reason != v.Reason {
			t.Errorf("%s: reason %q (form %s), want %q", v.Name, reason, clipText(form), v.Reason)
		}
	}
	if tried == 0 {
		t.Error("no vector was tried")
	}
}

func TestVectorsFloats(t *testing.T) {
	t.Parallel()
	var all []struct {
		Bits string `json:"bits"`
		C1   string `json:"c1"`
	}
	vectortest.Load(t, "floats.json", &all)
	r := newReader(t)
	for _, v := range all {
		raw, err := hex.DecodeString(v.Bits)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.float(goja.Undefined(), r.vm.ToValue(math.Float64frombits(binary.BigEndian.Uint64(raw))))
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != v.C1 {
			t.Errorf("%s: %s, want %s", v.Bits, got, v.C1)
		}
	}
}

// FuzzSameForm: the page and the server accept the same texts and write the same form.
func FuzzSameForm(f *testing.F) {
	for _, seed := range []string{`{"a":[1,1.0,-0,1e400],"\u0061":2}`, `"\ud83d\ude00"`, `[1e-7,123456789012345678901]`, `{"__proto__":{"x":1}}`, "\ufeff[]", `[{},[],""]`} {
		f.Add(seed)
	}
	r := newReader(f)
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		form, reason := r.read(t, text)
		v, err := canon.Parse([]byte(text))
		if (err == nil) != (reason == "") {
			t.Fatalf(`%q: the page says %q, the server %v; want (err == nil) == (reason == "")`, text, reason, err)
		}
		if err != nil {
			return
		}
		want, err := canon.C1(v)
		if err != nil {
			t.Fatal(err)
		}
		if form != string(want) {
			t.Fatalf("%q: the page writes %s, the server %s", text, form, want)
		}
	})
}

func clipText(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}
