package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

func modelFiles(mlmodel, platform string) fstest.MapFS {
	fs := fstest.MapFS{"MLmodel": {Data: []byte(mlmodel)}}
	if platform != "" {
		fs["platform.json"] = &fstest.MapFile{Data: []byte(platform)}
	}
	return fs
}

func withInputs(inputs string) fstest.MapFS {
	return modelFiles("flavors:\n  onnx: {data: m.onnx}\nsignature:\n  inputs: '"+inputs+"'\n", "")
}

func TestReadSignatures(t *testing.T) {
	t.Parallel()
	s, err := Read(withInputs(`[{"type":"double","name":"a"},{"type":"long","name":"b","required":true},{"type":"boolean","name":"c"},{"type":"string","name":"d"},{"type":"array","items":{"type":"float"},"name":"e"}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Kind{Number, Integer, Boolean, Category, Vector}
	for i, c := range s.Columns {
		if c.Kind != want[i] || c.Name != string(rune('a'+i)) {
			t.Errorf("column %d is %+v, want %s", i, c, want[i])
		}
	}
	if s.GraphFile != "m.onnx" || s.Tensors {
		t.Errorf(`%+v; want s.GraphFile == "m.onnx" && !s.Tensors`, s)
	}
	if err := s.Seal(); err == nil || !strings.Contains(err.Error(), `"e"`) {
		t.Errorf("a vector without length was sealed: %v; want an error && strings.Contains(err.Error(), `\"e\"`)", err)
	}
	s, err = Read(withInputs(`[{"type":"tensor","name":"x","tensor-spec":{"dtype":"float64","shape":[-1,4]}},{"type":"tensor","name":"y","tensor-spec":{"dtype":"int32","shape":[-1]}},{"type":"tensor","name":"z","tensor-spec":{"dtype":"str","shape":[-1,1]}}]`))
	if err != nil {
		t.Fatal(err)
	}
	if !s.Tensors || s.Columns[0].Length != 4 || s.Columns[0].Kind != Vector || s.Columns[1].Kind != Integer || s.Columns[2].Kind != Category {
		t.Errorf("%+v; want s.Tensors && s.Columns[0].Length == 4 && s.Columns[0].Kind == Vector && s.Columns[1].Kind == Integer && s.Columns[2].Kind == Category", s.Columns)
	}
	for inputs, want := range map[string]string{
		`[]`:                             "no inputs",
		`{}`:                             "signature.inputs",
		`[{"type":"double"}]`:            "no name",
		`[{"type":"object","name":"o"}]`: `type "object" is not served`,
		`[{"type":"array","name":"o"}]`:  "only arrays of numbers",
		`[{"type":"tensor","name":"x"}]`: "tensor-spec is missing",
		`[{"type":"tensor","tensor-spec":{"dtype":"float32","shape":[-1,2,2]}}]`:                           "shape [-1 2 2] is not served",
		`[{"type":"tensor","tensor-spec":{"dtype":"complex64","shape":[-1]}}]`:                             `dtype "complex64"`,
		`[{"type":"tensor","tensor-spec":{"dtype":"bool","shape":[-1]}},{"type":"double","name":"mixed"}]`: "",
	} {
		if _, err := Read(withInputs(inputs)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", inputs, err, want)
		}
	}
	if _, err := Read(modelFiles("flavors:\n  python_function: {}\n  xgboost: {}\n", "")); !errors.Is(err, ErrFlavor) || !strings.Contains(err.Error(), "xgboost") {
		t.Errorf(`another flavor: %v; want errors.Is(err, ErrFlavor) && strings.Contains(err.Error(), "xgboost")`, err)
	}
}

// Files that are expensive for a YAML reader must be refused first.
func TestRefusesCostlyFiles(t *testing.T) {
	t.Parallel()
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 8), i)
	}
	for name, c := range map[string]struct{ mlmodel, want string }{
		"aliases": {bomb + "flavors: {onnx: {data: *a9}}\n", "anchors and aliases"},
		"itself":  {"flavors: &a {onnx: *a}\n", "anchors and aliases"},
		"deep":    {"flavors: " + strings.Repeat("[", 100_000), "nested more than"},
		"large":   {strings.Repeat("k: v\n", 100_000), "larger than"},
		"empty":   {"", "empty"},
		"nothing": {"---\n---\n", "empty"},
	} {
		began := time.Now()
		_, err := Read(modelFiles(c.mlmodel, ""))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("%s took %v; want took <= 15 * time.Second", name, took)
		}
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	vector := &Schema{Columns: []Column{{Name: "n", Kind: Number}, {Name: "v", Kind: Vector, Length: 2}}}
	scaled := &Schema{Columns: []Column{
		{Name: "a", Kind: Number, Mean: 10, Std: 5, Known: true}, {Name: "b", Kind: Integer, Mean: 1, Known: true}, {Name: "c", Kind: Category}, {Name: "d", Kind: Boolean},
	}}
	if err := errors.Join(vector.Seal(), scaled.Seal()); err != nil {
		t.Fatal(err)
	}
	var r Row
	vector.Fit(&r)
	vector.Numbers(&r, 0)[0] = 99
	copy(vector.Numbers(&r, 1), []float64{3, 4})
	if in := vector.Describe(&r); in.Norm != 5 || in.Mean != 3.5 || in.Std != 0.5 || in.Zeros || string(in.Features.JSON()) != `{"n":99}` {
		t.Errorf(`vector: %+v, features %s; want norm 5, mean 3.5, std 0.5, no zeros, {"n":99}`, in, in.Features.JSON())
	}
	scaled.Fit(&r)
	scaled.Numbers(&r, 0)[0], *scaled.Int(&r, 1), *scaled.Text(&r, 2), scaled.Numbers(&r, 3)[0] = 25, 5, "x", 1
	if in := scaled.Describe(&r); in.Norm != 5 || in.Mean != 3.5 || math.Abs(in.Std-0.5) > 1e-12 || in.Zeros || string(in.Features.JSON()) != `{"a":25,"b":5,"c":"x","d":1}` {
		t.Errorf(`columns: %+v, features %s; want norm 5, mean 3.5, std 0.5, no zeros, {"a":25,"b":5,"c":"x","d":1}`, in, in.Features.JSON())
	}
	scaled.Numbers(&r, 0)[0], *scaled.Int(&r, 1) = 0, 0
	if in := scaled.Describe(&r); !in.Zeros || in.Norm == 0 {
		t.Errorf("zeros: %+v; want zeros, and the norm of the scaled values", in)
	}
}

// Memory is taken by lengths and numbers of columns that outsiders write.
func TestSealRefusesRowsWithoutBound(t *testing.T) {
	t.Parallel()
	scalars := func(n int) (out []Column) {
		for i := range n {
			out = append(out, Column{Name: strconv.Itoa(i), Kind: Number})
		}
		return out
	}
	vectors := func(lengths ...int) (out []Column) {
		for i, n := range lengths {
			out = append(out, Column{Name: strconv.Itoa(i), Kind: Vector, Length: n})
		}
		return out
	}
	for name, c := range map[string]struct {
		columns []Column
		want    string // "": sealed
	}{
		"as many as may be":  {vectors(maxValues-1, 1), ""},
		"columns, as many":   {scalars(maxValues), ""},
		"one too many":       {vectors(maxValues, 1), "more than 65536 values"},
		"columns, one more":  {scalars(maxValues + 1), "more than 65536 values"},
		"long":               {vectors(4_000_000_000), "more than 65536 values"},
		"longest":            {vectors(math.MaxInt), "more than 65536 values"},
		"their sum overflow": {vectors(math.MaxInt, math.MaxInt, 3), "more than 65536 values"},
		"negative":           {vectors(8, -7), `vector "1" has length -7`},
		"of no vector":       {[]Column{{Name: "a", Kind: Number, Length: math.MaxInt}}, "only vectors have one"},
		"stated nowhere":     {vectors(0), "stated nowhere"},
	} {
		s := &Schema{Columns: c.columns}
		switch err := s.Seal(); {
		case c.want == "" && err != nil:
			t.Errorf("%s: got %v, want it sealed", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// FuzzRead holds that files of outsiders give a schema that rows fit, or an error.
func FuzzRead(f *testing.F) {
	f.Add("flavors:\n  onnx:\n    data: model.onnx\n", `{"format":1,"inputs":[{"name":"a","kind":"number"},{"name":"v","kind":"vector","length":3}],"output":{"kind":"number"}}`)
	f.Add("flavors:\n  onnx: {data: ../x}\nsignature: {inputs: '[{\"type\":\"tensor\",\"tensor-spec\":{\"dtype\":\"float32\",\"shape\":[-1,4]}}]'}\n", "")
	f.Add("a: &a [*a]\n", "{")
	f.Fuzz(func(t *testing.T, mlmodel, platform string) {
		s, err := Read(modelFiles(mlmodel, platform))
		if err != nil {
			return
		}
		if s.Seal() != nil {
			return
		}
		var r Row
		s.Fit(&r)
		for i, c := range s.Columns {
			switch c.Kind {
			case Integer:
				*s.Int(&r, i) = 1
			case Category:
				*s.Text(&r, i) = "x"
			default:
				s.Numbers(&r, i)[0] = 1
			}
		}
		if f := s.Describe(&r).Features.JSON(); f != nil && !json.Valid(f) {
			t.Errorf("features %s; want JSON", f)
		}
	})
}

// foldYAML writes a text in single quotes as PyYAML does: lines of 80 characters, broken at spaces.
func foldYAML(text string) string {
	var out strings.Builder
	width := 0
	for i, word := range strings.Split(strings.ReplaceAll(text, "'", "''"), " ") {
		if i > 0 && width+len(word) > 80 {
			out.WriteString("\n    ")
			width = 4
		} else if i > 0 {
			out.WriteByte(' ')
		}
		width += len(word) + 1
		out.WriteString(word)
	}
	return "'" + out.String() + "'"
}

// A model may have as many columns as a row has values; the files that describe them are read whole.
func TestReadsAsManyColumnsAsARowMayHave(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10_000, maxValues} {
		var inputs, columns, stats []string
		for i := range n {
			name := fmt.Sprintf("the operator's column %d", i)
			inputs = append(inputs, fmt.Sprintf(`{"type": "double", "name": %q, "required": true}`, name))
			columns = append(columns, fmt.Sprintf(`{"name": %q, "kind": "number"}`, name))
			stats = append(stats, fmt.Sprintf(`%q: {"mean": -1.2345678901234567, "std": 1.2345678901234567e-10}`, name))
		}
		mlmodel := "flavors:\n  onnx: {data: m.onnx}\nsignature:\n  inputs: " + foldYAML("["+strings.Join(inputs, ", ")+"]") +
			"\n  outputs: '[{\"type\": \"double\"}]'\n  params: null\nutc_time_created: '2026-11-28'\n"
		platform := `{"format": 1, "inputs": [` + strings.Join(columns, ", ") + `], "output": {"kind": "number"}, "training_stats": {` + strings.Join(stats, ", ") + `}}`
		for _, files := range []fstest.MapFS{modelFiles(mlmodel, ""), modelFiles("flavors: {onnx: {data: m.onnx}}\n", platform)} {
			s, err := Read(files)
			if err != nil {
				t.Fatalf("%d columns: %v", n, err)
			}
			if got := s.Columns[n-1].Name; len(s.Columns) != n || got != fmt.Sprintf("the operator's column %d", n-1) || s.Seal() != nil {
				t.Errorf("%d columns were read, the last one %q; want %d, sealed", len(s.Columns), got, n)
			}
		}
	}
}

// The part cut out of MLmodel reads as YAML would have read it.
func TestCutSignatureReadsAsYAML(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"folded":         "signature:\n  inputs: '[{\"a\":\n    1}]'\n  outputs: 'x'\nflavors: {onnx: {}}\n",
		"quotes":         "signature:\n  inputs: 'it''s ''here'''\n",
		"empty lines":    "signature:\n  inputs: 'a\n\n\n    b'\n\n  outputs: 'c'\n",
		"double quotes":  "signature:\n  inputs: \"a\\n'b'\"\n",
		"plain":          "signature:\n  inputs: abc\n",
		"block":          "signature:\n  inputs: |\n    outputs: 'b'\n",
		"a comment":      "signature:\n  inputs: 'a' # b\n",
		"not closed":     "signature:\n  outputs: x\nflavors: {a: {b: 'c'}}\n",
		"another key":    "flavors:\n  inputs: {a: 'b'}\nsignature:\n    inputs: 'x'\n    outputs: ''\n",
		"no end of line": "signature:\n  inputs: 'a'",
	} {
		var want mlmodel
		if err := yaml.Unmarshal([]byte(file), &want); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := readMLmodel(modelFiles(file, ""))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v; differs from YAML:\n%s", name, err, diff)
		}
	}
}

// Entries that describe nothing are cheap to write and dear to keep.
func TestRefusesDescriptionsWithoutEnd(t *testing.T) {
	t.Parallel()
	var many, members strings.Builder
	for i := range 70_000 {
		fmt.Fprintf(&many, "{},")
		fmt.Fprintf(&members, "%q:{},", strconv.Itoa(i))
	}
	list, object := "["+many.String()+"{}]", "{"+members.String()+`"":{}}`
	for name, files := range map[string]fstest.MapFS{
		"signature": withInputs(list),
		"inputs":    modelFiles("flavors: {onnx: {}}\n", `{"format": 1, "inputs": `+list+`}`),
		"labels":    modelFiles("flavors: {onnx: {}}\n", `{"format": 1, "output": {"kind": "label", "labels": `+list+`}}`),
		"stats":     modelFiles("flavors: {onnx: {}}\n", `{"format": 1, "training_stats": `+object+`}`),
	} {
		if _, err := Read(files); err == nil || !strings.Contains(err.Error(), "more than 65536") {
			t.Errorf("%s: %v, want more than 65536", name, err)
		}
	}
}

// A missing value does not affect the row's other numbers, and is no fault of its producer.
func TestMissingValuesAreLeftOutOfTheInput(t *testing.T) {
	t.Parallel()
	s, err := Read(withInputs(`[{"type":"double","name":"a","required":true},{"type":"double","name":"b","required":false},{"type":"long","name":"c","required":false},{"type":"string","name":"d","required":false}]`))
	if err != nil || s.Seal() != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true, false, false} { // a whole number or a text has no missing value
		if s.Columns[i].Optional != want {
			t.Errorf("column %s: optional is %v, want %v", s.Columns[i].Name, s.Columns[i].Optional, want)
		}
	}
	var r Row
	s.Fit(&r)
	s.Numbers(&r, 0)[0], s.Numbers(&r, 1)[0], *s.Int(&r, 2) = 3, math.NaN(), 4
	if in := s.Describe(&r); in.Norm != 5 || in.Mean != 3.5 || string(in.Features.JSON()) != `{"a":3,"b":null,"c":4,"d":""}` {
		t.Errorf("%+v, features %s; want the norm and mean of 3 and 4, and null", in, in.Features.JSON())
	}
	s.Numbers(&r, 0)[0] = math.NaN()
	if in := s.Describe(&r); !math.IsNaN(in.Norm) {
		t.Errorf("a required number that is none: %+v; want it to show", in)
	}
}
