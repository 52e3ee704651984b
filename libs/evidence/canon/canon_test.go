package canon_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/vectors/vectortest"
)

func mustParse(t testing.TB, text string) canon.Value {
	t.Helper()
	v, err := canon.Parse([]byte(text))
	if err != nil {
		t.Fatalf("Parse(%.80q): %v", text, err)
	}
	return v
}

func TestVectorsOfTheForms(t *testing.T) {
	t.Parallel()
	var all []struct {
		vectortest.Input
		C1       *string `json:"c1"`
		SHA256   string  `json:"sha256"`
		C2       *string `json:"c2"`
		C2SHA256 string  `json:"c2_sha256"`
	}
	vectortest.Load(t, "canon.json", &all)
	for _, v := range all {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			input := v.Bytes(t)
			doc, err := canon.Parse(input)
			if err != nil {
				t.Fatal(err)
			}
			want1, want2 := string(input), string(input)
			if v.C1 != nil {
				want1, want2 = *v.C1, *v.C2
			}
			if got, err := canon.C1(doc); err != nil || string(got) != want1 {
				t.Errorf("C1 = %q, %v; want %q", got, err, want1)
			}
			if got, err := canon.C2(doc); err != nil || string(got) != want2 {
				t.Errorf("C2 = %q, %v; want %q", got, err, want2)
			}
			if got, err := canon.J(doc); err != nil || string(got) != want2+"\n" {
				t.Errorf("J = %q, %v; want %q and a newline", got, err, want2)
			}
			if got := canon.Digest(doc); got != "sha256:"+v.SHA256 {
				t.Errorf("Digest = %s; want %s", got, v.SHA256)
			}
			if got := canon.DigestBytes([]byte(want1)); got != "sha256:"+v.SHA256 {
				t.Errorf("DigestBytes = %s; want %s", got, v.SHA256)
			}
			if got := canon.DigestHexC2(doc); got != v.C2SHA256 {
				t.Errorf("DigestHexC2 = %s; want %s", got, v.C2SHA256)
			}
		})
	}
}

// The digests that the product's own description names, beside the vector file.
func TestNamedDigests(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`: "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
		`{"\ue000":1,"\ud83d\ude00":2,"z":3,"Z":4,"\u00e9":5}`:                                       "6a2d2162f704f56935a9359d7403e3d04382c610c1453c71e13fff39cc065685",
		`[1,1.0,-0,-0.0,1e5,1E-7,1e-5,0.0001,1e15,1e16,123456789.125,5e-324,1.7976931348623157e308]`: "de6a4a02dfe2ab8665073149e39a2724407f017f9b555e33a82471d582699240",
		`[9007199254740993,100000000000000000000000001,12345.0]`:                                     "2bf9520be7517ba9ac59dfb06dfb90618650a04ae6f3104f44997238378dce13",
		`"\u0000\u0008\u0009\u000a\u000b\u000c\u000d\u001f\"\\\/\u007f\u2028<>&"`:                    "b382b8334ed28dc86fc325bcf4c85cc1a1b147eb955ed8cf91a0cf5493acf9a4",
		`"caf\u00e9 \ud83d\ude00"`: "89fa4ccbaa53bc2ebec0726f73beccbe1618075d3ef9e740cf34ec284b07a66e",
		`{"request_digest":"sha256:` + strings.Repeat("4", 64) + `","state":"proposed"}`: "984579427c11005f30c9c70b0217984ae013ce80f40150af50d2ad9fe9218dd9",
	} {
		if got := canon.Digest(mustParse(t, text)); got != "sha256:"+want {
			t.Errorf("Digest(%s) = %s; want %s", text, got, want)
		}
	}
	if got := canon.DigestHexC2(mustParse(t, `"caf\u00e9 \ud83d\ude00"`)); !strings.HasPrefix(got, "312f3c27b74fe65d") {
		t.Errorf(`DigestHexC2 = %s; want strings.HasPrefix(got, "312f3c27b74fe65d")`, got)
	}
}

func TestVectorsOfRefusals(t *testing.T) {
	t.Parallel()
	var all []struct {
		vectortest.Input
		Reason canon.Reason `json:"reason"`
	}
	vectortest.Load(t, "refused.json", &all)
	for _, v := range all {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			got, err := canon.Parse(v.Bytes(t))
			var syntax *canon.SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("Parse = %v, %v; want a SyntaxError", got, err)
			}
			if syntax.Reason != v.Reason {
				t.Errorf("reason %s; want %s (%v)", syntax.Reason, v.Reason, err)
			}
			if got != nil {
				t.Errorf("a refused document gave a value: %v; want nil", got)
			}
		})
	}
}

func TestVectorsOfFloats(t *testing.T) {
	t.Parallel()
	var all []struct{ Bits, C1 string }
	vectortest.Load(t, "floats.json", &all)
	for _, v := range all {
		b, err := hex.DecodeString(v.Bits)
		if err != nil || len(b) != 8 {
			t.Fatal(v, err, "want len(b) == 8")
		}
		f := math.Float64frombits(new(big.Int).SetBytes(b).Uint64())
		if got, err := canon.C1(canon.Float(f)); err != nil || string(got) != v.C1 {
			t.Errorf("C1(%s) = %s, %v; want %s", v.Bits, got, err, v.C1)
		}
		if back := mustParse(t, v.C1); back != canon.Float(f) {
			t.Errorf("Parse(%s) = %v; want back == canon.Float(f)", v.C1, back)
		}
	}
}

func TestWhereADocumentWasRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text   string
		opts   []canon.Option
		reason canon.Reason
		offset int
		path   string
	}{
		{`[1, 2`, nil, canon.InvalidJSON, 5, ""},
		{`{"a/b":{"~":[0,{"k":1,"k":2}]}}`, nil, canon.DuplicateKey, 22, "/a~1b/~0/1/k"},
		{`{"a":[1,NaN]}`, nil, canon.InvalidJSON, 8, "/a/1"},
		{"\"ab\xff\"", nil, canon.InvalidUTF8, 3, ""},
		{`[1e999]`, nil, canon.InvalidJSON, 1, "/0"},
		{`"x\ud800y"`, nil, canon.InvalidJSON, 2, ""},
		{`{} x`, nil, canon.InvalidJSON, 3, ""},
		{` [1]`, []canon.Option{canon.ObjectRoot()}, canon.NotAnObject, 1, ""},
		{`null`, []canon.Option{canon.ObjectRoot()}, canon.NotAnObject, 0, ""},
		{`[1,2]`, []canon.Option{canon.MaxBytes(4)}, canon.TooLarge, 4, ""},
	} {
		_, err := canon.Parse([]byte(c.text), c.opts...)
		var e *canon.SyntaxError
		if !errors.As(err, &e) || e.Reason != c.reason || e.Offset != c.offset || e.Path != c.path {
			t.Errorf("Parse(%q) = %#v; want %s at %d in %q", c.text, err, c.reason, c.offset, c.path)
		}
	}
	for text, opt := range map[string]canon.Option{`{}`: canon.ObjectRoot(), `[1,2]`: canon.MaxBytes(5)} {
		if _, err := canon.Parse([]byte(text), opt); err != nil {
			t.Errorf("Parse(%q): %v", text, err)
		}
	}
}

func TestRefusalsNeverQuoteTheDocument(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"a":"hunter2" "b"}`, `["hunter2", hunter2]`, `hunter2`, `{"a":hunter2}`} {
		if _, err := canon.Parse([]byte(text)); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf(`Parse(%q): %v; want an error && !strings.Contains(err.Error(), "hunter2")`, text, err)
		}
	}
	key := strings.Repeat("é", 4000)
	if _, err := canon.Parse([]byte(`{"` + key + `":x}`)); err == nil || len(err.Error()) > 500 {
		t.Errorf("a long key makes a message of %d bytes; want an error && len(err.Error()) <= 500", len(err.Error()))
	}
}

func TestFormsForPeople(t *testing.T) {
	t.Parallel()
	doc := mustParse(t, `{"b":[1,[],{},{"x":"é\u007f😀"}],"a":10.0}`)
	for name, c := range map[string]struct {
		form func(canon.Value) ([]byte, error)
		want string
	}{
		"R": {canon.R, `{"b":[1,[],{},{"x":"\u00e9` + "\x7f" + `\ud83d\ude00"}],"a":10.0}` + "\n"},
		"RPretty": {canon.RPretty, `{
  "b": [
    1,
    [],
    {},
    {
      "x": "\u00e9` + "\x7f" + `\ud83d\ude00"
    }
  ],
  "a": 10.0
}
`},
		"P": {canon.P, `{
  "a": 10.0,
  "b": [
    1,
    [],
    {},
    {
      "x": "é` + "\x7f" + `😀"
    }
  ]
}
`},
	} {
		if got, err := c.form(doc); err != nil || string(got) != c.want {
			t.Errorf("%s = %s, %v; want %s", name, got, err, c.want)
		}
	}
}

func TestWhatCannotBeWritten(t *testing.T) {
	t.Parallel()
	deep := canon.Value(canon.Array{})
	for range canon.MaxDepth {
		deep = canon.Array{deep}
	}
	type twice struct {
		head
		V int `json:"version"`
	}
	type ring struct{ Next *ring }
	loop := &ring{}
	loop.Next = loop
	for name, v := range map[string]any{
		"NaN": canon.Float(math.NaN()), "infinity": math.Inf(1), "bytes that are no text": "\xff",
		"a key that is no text": canon.NewObject(canon.Member{Key: "\xff"}), "nesting of 513": deep,
		"a channel": make(chan int), "a function inside": []any{func() {}}, "a map of ints": map[int]string{1: "a"},
		"a key twice": twice{}, "a ring": loop, "a fault inside an object": canon.NewObject(canon.Member{Key: "k", Value: make(chan int)}),
		"a map's key that is no text": map[string]int{"\xff": 1}, "a fault inside a map": map[string]any{"k": math.NaN()},
	} {
		if got, err := canon.C1(v); err == nil {
			t.Errorf("%s was written: %.40q; want an error", name, got)
		}
		if got, err := canon.From(v); err == nil && name != "nesting of 513" {
			t.Errorf(`%s was converted: %v; want (an error || name == "nesting of 513")`, name, got)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("Digest of NaN did not panic")
		}
	}()
	canon.Digest(canon.Float(math.NaN()))
}

type head struct {
	Version string `json:"version"`
	OK      bool   `json:"ok"`
}

type inner struct {
	N *int64 `json:"n"`
}

type document struct {
	head
	Seconds  float64            `json:"seconds"`
	Count    int                `json:"count"`
	Big      *big.Int           `json:"big"`
	Huge     uint64             `json:"huge"`
	None     *string            `json:"none"`
	List     []inner            `json:"list"`
	Missing  []string           `json:"missing"`
	Map      map[string]float32 `json:"map"`
	Any      any                `json:"any"`
	Raw      *canon.Object      `json:"raw"`
	Omitted  []string           `json:"omitted,omitempty"`
	Kept     inner              `json:"kept,omitempty"`
	Hidden   string             `json:"-"`
	Unnamed  canon.Int
	internal string
}

func TestDocumentsFromStructs(t *testing.T) {
	t.Parallel()
	n := int64(-7)
	big10, _ := new(big.Int).SetString("100000000000000000000000001", 10)
	d := document{
		head: head{"v1", true}, Seconds: 10, Count: 3, Big: big10, Huge: math.MaxUint64,
		List: []inner{{&n}, {nil}}, Map: map[string]float32{"b": 0.5, "a": 1}, Any: []any{1, 1.0, "x", nil, true},
		Raw: canon.NewObject(canon.Member{Key: "z", Value: 1}, canon.Member{Key: "y", Value: canon.NewInt(2)}), Hidden: "h", internal: "i",
	}
	got, err := canon.R(d)
	want := `{"version":"v1","ok":true,"seconds":10.0,"count":3,"big":100000000000000000000000001,"huge":18446744073709551615,` +
		`"none":null,"list":[{"n":-7},{"n":null}],"missing":[],"map":{"a":1.0,"b":0.5},"any":[1,1.0,"x",null,true],` +
		`"raw":{"z":1,"y":2},"kept":{"n":null},"Unnamed":0}` + "\n"
	if err != nil || string(got) != want {
		t.Fatalf("R = %s, %v\nwant %s", got, err, want)
	}
	direct, err := canon.C1(d)
	if err != nil {
		t.Fatal(err)
	}
	if v := canon.MustFrom(&d); canon.Digest(v) != canon.DigestBytes(direct) {
		t.Error("a document and the value made of it have two digests")
	}
	if v, err := canon.From(nil); v != nil || err != nil {
		t.Error("From(nil)", v, err, "want v == nil")
	}
}

func TestIntegersAreExact(t *testing.T) {
	t.Parallel()
	huge := mustParse(t, "-100000000000000000000000001").(canon.Int)
	if _, fits := huge.Int64(); fits || huge.Sign() != -1 || huge.Big().String() != huge.String() {
		t.Errorf("huge: %v; want !fits && huge.Sign() == -1 && huge.Big().String() == huge.String()", huge)
	}
	if canon.BigInt(huge.Big()) != huge {
		t.Error("BigInt(Big()) differs")
	}
	for _, zero := range []canon.Int{{}, canon.NewInt(0), mustParse(t, "0").(canon.Int), mustParse(t, "-0").(canon.Int), canon.BigInt(new(big.Int))} {
		if zero != (canon.Int{}) || zero.Sign() != 0 || zero.String() != "0" || zero.Big().Sign() != 0 {
			t.Errorf(`zero: %#v; want zero == (canon.Int{}) && zero.Sign() == 0 && zero.String() == "0" && zero.Big().Sign() == 0`, zero)
		}
	}
	if n, ok := mustParse(t, "9007199254740993").(canon.Int).Int64(); !ok || n != 9007199254740993 || canon.NewInt(5).Sign() != 1 {
		t.Error(n, ok, "want ok && n == 9007199254740993 && canon.NewInt(5).Sign() == 1")
	}
}

func TestObjectKeepsOrderAndFindsKeys(t *testing.T) {
	t.Parallel()
	for _, size := range []int{3, 16, 17, 300} {
		o := &canon.Object{}
		for i := range size {
			o.Set(strings.Repeat("k", i+1), canon.NewInt(int64(i)))
		}
		o.Set("k", "first")
		if v, ok := o.Get("k"); !ok || v != "first" || o.Len() != size || o.Keys()[0] != "k" {
			t.Errorf(`size %d: Get = %v, %v; want ok && v == "first" && o.Len() == size && o.Keys()[0] == "k"`, size, v, ok)
		}
		if !o.Delete("kk") || o.Delete("kk") || o.Len() != size-1 {
			t.Errorf(`size %d: Delete; want o.Delete("kk") && !o.Delete("kk") && o.Len() == size - 1`, size)
		}
		last := strings.Repeat("k", size)
		if v, ok := o.Get(last); !ok || v != canon.NewInt(int64(size-1)) {
			t.Errorf("size %d: last is %v, %v; want ok && v == canon.NewInt(int64(size - 1))", size, v, ok)
		}
		c := canon.Clone(canon.Array{o}).(canon.Array)[0].(*canon.Object)
		c.Set(last, nil)
		if v, _ := o.Get(last); v == nil {
			t.Error("a clone shares its members")
		}
		for range o.All() {
			break
		}
	}
	var none *canon.Object
	if _, ok := none.Get("a"); ok || none.Len() != 0 || len(none.Keys()) != 0 {
		t.Error("a nil object is not empty")
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{}`, `[1,-0.0,1e5,"\ud83d\ude00",{"a":null,"b":[true,false]}]`, "\uFEFF 1", `{"a":1,"a":2}`, `"\u0000"`, `[`, `-`, "\"\xff\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := canon.Parse(data)
		if err != nil {
			var e *canon.SyntaxError
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(data) || e.Reason == "" || v != nil {
				t.Fatalf(`Parse = %v, %#v; want errors.As(err, &e) && e.Offset >= 0 && e.Offset <= len(data) && e.Reason != "" && v == nil`, v, err)
			}
			return
		}
		one, err := canon.C1(v)
		if err != nil {
			t.Fatal(err)
		}
		for name, form := range map[string]func(canon.Value) ([]byte, error){"C1": canon.C1, "C2": canon.C2, "J": canon.J, "R": canon.R, "RPretty": canon.RPretty, "P": canon.P} {
			text, err := form(v)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			back, err := canon.Parse(text)
			if err != nil {
				t.Fatalf("%s(%q) = %q does not parse: %v", name, data, text, err)
			}
			if again, err := canon.C1(back); err != nil || string(again) != string(one) {
				t.Fatalf("%s of %q changed the document: %q, then %q (%v); want string(again) == string(one)", name, data, one, again, err)
			}
		}
	})
}

// encoding/json accepts every text that the strict parser accepts, and reads the same;
// the strict parser refuses every text that encoding/json refuses.
func FuzzAgreesWithEncodingJSON(f *testing.F) {
	for _, seed := range []string{`{"b":[1,2.5e3,"x"],"a":{"é":null}}`, `[true,false,null,"\u2028<>&"]`, `1e400`, `"\ud800"`, `01`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := canon.Parse(data)
		text := strings.TrimPrefix(string(data), "\uFEFF")
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		var std any
		stdErr := dec.Decode(&std)
		if stdErr == nil && !json.Valid([]byte(text)) {
			stdErr = errors.New("trailing data")
		}
		if err != nil {
			var e *canon.SyntaxError
			if errors.As(err, &e) && stdErr == nil && e.Reason == canon.InvalidJSON && !strictOnly(e) {
				t.Fatalf("%q: refused as %v, encoding/json takes it; want (((!errors.As(err, &e) || an error) || e.Reason != canon.InvalidJSON) || strictOnly(e))", data, err)
			}
			return
		}
		if stdErr != nil {
			t.Fatalf("%q: taken, encoding/json says %v", data, stdErr)
		}
		if !sameAsStd(v, std) {
			t.Fatalf("%q: %v, encoding/json reads %v; want sameAsStd(v, std)", data, v, std)
		}
	})
}

// strictOnly reports whether a refusal is one of those that encoding/json does not know.
func strictOnly(e *canon.SyntaxError) bool {
	for _, s := range []string{"beyond binary64", "more than 4300 digits", "half a surrogate pair"} {
		if strings.Contains(e.Detail, s) {
			return true
		}
	}
	return false
}

func sameAsStd(v canon.Value, std any) bool {
	switch v := v.(type) {
	case canon.Int:
		n, ok := std.(json.Number)
		want, fits := new(big.Int).SetString(n.String(), 10)
		return ok && fits && v.Big().Cmp(want) == 0
	case canon.Float:
		n, ok := std.(json.Number)
		want, err := n.Float64()
		return ok && err == nil && math.Float64bits(want) == math.Float64bits(float64(v))
	case canon.Array:
		a, ok := std.([]any)
		if !ok || len(a) != len(v) {
			return false
		}
		for i := range a {
			if !sameAsStd(v[i], a[i]) {
				return false
			}
		}
		return true
	case *canon.Object:
		o, ok := std.(map[string]any)
		if !ok || len(o) != v.Len() {
			return false
		}
		for k, e := range v.All() {
			if s, ok := o[k]; !ok || !sameAsStd(e, s) {
				return false
			}
		}
		return true
	}
	return v == std
}

func TestObjectInsideAStructOfEncodingJSON(t *testing.T) {
	t.Parallel()
	var doc struct {
		Payload *canon.Object `json:"payload"`
		Details *canon.Object `json:"details"`
	}
	if err := json.Unmarshal([]byte(`{"payload":{"n":12345678901234567890,"f":1.0},"details":null}`), &doc); err != nil {
		t.Fatal(err)
	}
	if got, err := canon.C1(doc.Payload); err != nil || string(got) != `{"f":1.0,"n":12345678901234567890}` || doc.Details != nil {
		t.Fatalf("payload %s, details %v, %v; want string(got) == `{\"f\":1.0,\"n\":12345678901234567890}` && doc.Details == nil", got, doc.Details, err)
	}
	for _, bad := range []string{`{"payload":[]}`, `{"payload":{"a":1,"a":2}}`} {
		if err := json.Unmarshal([]byte(bad), &doc); err == nil {
			t.Errorf("%s was taken; want an error", bad)
		}
	}
}
