package model

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
	"github.com/mlp-platform/platform/services/inference/internal/request"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
)

func openModel(t testing.TB, dir string) *Model {
	t.Helper()
	m, err := Open(os.DirFS(dir), Options{Threads: 1, Rows: 32})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func parseRow(t testing.TB, m *Model, features string) *schema.Row {
	t.Helper()
	r := &schema.Row{}
	var o request.Object
	if faults := request.Parse([]byte(features), &o); faults != nil {
		t.Fatal(faults, "want nil")
	}
	if f := request.Fill([]byte(features), m.Schema(), r); f.Invalid != nil || f.Mismatch != nil {
		t.Fatalf("%s: %+v; want f.Invalid == nil && f.Mismatch == nil", features, f)
	}
	return r
}

// Models made by scikit-learn, converted by skl2onnx, saved by mlflow.onnx (testdata/make.py) give the same answers as
// in ONNX Runtime's own Python package.
func TestServesForeignModels(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("testdata/*/MLmodel")
	if err != nil || len(dirs) < 10 {
		t.Fatalf("%d artifacts found, %v; want len(dirs) >= 10", len(dirs), err)
	}
	for _, dir := range dirs {
		dir = filepath.Dir(dir)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(filepath.Join(dir, "expected.json"))
			if err != nil {
				t.Fatal(err)
			}
			var cases []struct {
				Features      json.RawMessage
				Prediction    any
				Probabilities any
			}
			if err := json.Unmarshal(raw, &cases); err != nil {
				t.Fatal(err)
			}
			m := openModel(t, dir)
			var rows []*schema.Row
			for _, c := range cases {
				rows = append(rows, parseRow(t, m, string(c.Features)))
			}
			results := make([]Result, len(rows))
			m.NewBatch().Run(rows, results)
			for i, c := range cases {
				r := results[i]
				if r.Err != nil {
					t.Fatal(r.Err)
				}
				var got any = r.Number
				if m.TextLabels() {
					got = r.Text
				}
				if !sameValue(got, unwrapValue(c.Prediction)) {
					t.Errorf("row %d: %v, want %v", i, got, c.Prediction)
				}
				if c.Probabilities == nil {
					continue
				}
				probabilities := map[string]any{}
				for k, p := range r.Probabilities {
					probabilities[m.Classes()[k]] = p
				}
				want, named := c.Probabilities.(map[string]any)
				if !named {
					want = map[string]any{}
					for k, p := range c.Probabilities.([]any) {
						want[m.Classes()[k]] = p
					}
				}
				if !maps.EqualFunc(probabilities, want, sameValue) {
					t.Errorf("row %d: probabilities %v, want %v", i, probabilities, want)
				}
			}
		})
	}
}

// unwrapValue takes a value out of the list that NumPy makes of a column.
func unwrapValue(v any) any {
	if l, ok := v.([]any); ok && len(l) == 1 {
		return unwrapValue(l[0])
	}
	return v
}

func sameValue(a, b any) bool {
	x, ok := a.(float64)
	y, ok2 := b.(float64)
	if ok && ok2 {
		return math.Abs(x-y) <= 1e-6*max(1, math.Abs(y))
	}
	return a == b
}

func writeFiles(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func readFiles(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, name := range []string{"MLmodel", "model.onnx"} {
		b, err := os.ReadFile(filepath.Join("testdata", dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = b
	}
	return files
}

func TestClassNames(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string][]string{"zipmap": {"high", "low", "mid"}, "no_zipmap": {"high", "low", "mid"}, "int_labels": {"0", "10"}} {
		if got := openModel(t, filepath.Join("testdata", dir)).Classes(); !slices.Equal(got, want) {
			t.Errorf("%s: classes %v, want %v", dir, got, want)
		}
	}
}

func TestRefusesArtifacts(t *testing.T) {
	t.Parallel()
	linear := fixturetest.Linear(t, "m", 1, fixturetest.Column{Name: "a", Kind: "number", Weight: 1}, fixturetest.Column{Name: "b", Kind: "vector", Length: 2, Weight: 1})
	with := func(files map[string][]byte, name, old, replacement string) map[string][]byte {
		out := maps.Clone(files)
		if !strings.Contains(string(out[name]), old) {
			t.Fatalf("%s has no %q; want strings.Contains(string(out[name]), old)", name, old)
		}
		out[name] = []byte(strings.Replace(string(out[name]), old, replacement, 1))
		return out
	}
	for _, c := range []struct {
		name  string
		files map[string][]byte
		want  string
	}{
		{"no MLmodel", map[string][]byte{"model.onnx": {}}, "no readable MLmodel"},
		{"another flavor", map[string][]byte{"MLmodel": []byte("flavors:\n  sklearn:\n    pickled_model: model.pkl\n")}, "flavor not served"},
		{"no model file", with(linear, "MLmodel", "data: model.onnx", "data: other.onnx"), "no model file other.onnx"},
		{"a file outside", with(linear, "MLmodel", "data: model.onnx", "data: ../../etc/passwd"), "outside the artifact"},
		{"damaged model", with(linear, "model.onnx", "\x06MatMul", "\x06MatMux"), "MatMux"},
		{"cut model", map[string][]byte{"MLmodel": linear["MLmodel"], "platform.json": linear["platform.json"], "model.onnx": linear["model.onnx"][:40]}, "not an ONNX"},
		{"column renamed", with(linear, "platform.json", `"a"`, `"c"`), `no input of that name; it has a, b`},
		{"vector too long", with(linear, "platform.json", `"length":2`, `"length":3`), "takes 2 values a row, the signature has 3"},
		{"kind", with(linear, "platform.json", `"name":"a","kind":"number"`, `"name":"a","kind":"category"`), `column "a" is a category`},
		{"column missing", with(linear, "platform.json", `{"name":"a","kind":"number"},`, ""), `the graph has an input "a"`},
		{"newer format", with(linear, "platform.json", `"format":1`, `"format":2`), "format 2"},
		{"no label", with(linear, "platform.json", `"kind":"number","unit"`, `"kind":"label","unit"`), "no label output"},
		{"too few columns", with(readFiles(t, "one_tensor"), "MLmodel", `{"type": "double", "name": "width", "required": true}, `, ""), "takes 3 values a row, the signature has 2"},
		{"a date", with(readFiles(t, "one_tensor"), "MLmodel", `"double"`, `"datetime"`), `type "datetime" is not served`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, err := Open(os.DirFS(writeFiles(t, c.files)), Options{Threads: 1, Rows: 8})
			if err == nil {
				t.Fatal(errors.Join(errors.New("opened"), m.Close()), "want an error")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q in it", err, c.want)
			}
		})
	}
}

// A model without rows of columns, or without an answer of one value, is served by tensors alone; one with a size that
// a request would choose is not served at all, since the trial could not try it.
func TestModelsThatTakeTensorsAlone(t *testing.T) {
	t.Parallel()
	two := fixturetest.TwoOutputs(t, "m")
	unsigned := maps.Clone(two)
	delete(unsigned, "platform.json")
	for _, c := range []struct {
		name  string
		files map[string][]byte
		want  string
	}{
		{"two outputs", two, "the graph has 2 outputs (mean, spread), and an answer would lack spread"},
		{"no signature", unsigned, "no signature"},
		{"an image", fixturetest.Image(t, "m"), "no signature"},
	} {
		m := openModel(t, writeFiles(t, c.files))
		if got := m.TensorsOnly(); !strings.Contains(got, c.want) || len(m.Schema().Columns) != 0 || m.Rows() != 32 {
			t.Errorf("%s: tensors only because %q, %d columns, %d rows a run; want %q, none and 32", c.name, got, len(m.Schema().Columns), m.Rows(), c.want)
		}
	}
}

// A row of tensors with an answer that is not finite is named; the others of its run are not.
func TestBadRowOfTensorsIsNamed(t *testing.T) {
	t.Parallel()
	m := openModel(t, writeFiles(t, fixturetest.Linear(t, "m", 0, fixturetest.Column{Name: "a", Kind: "number", Weight: 1e30})))
	in := NewTensor(m.Inputs()[0].Type, []int64{3, 1})
	copy(in.Floats, []float32{1, 1e30, 2})
	_, err := m.RunTensors([]runtime.Tensor{in}, 3)
	var bad RowErrors
	if !errors.As(err, &bad) || len(bad) != 1 || bad[1] == nil {
		t.Errorf("%v, want an error of row 1 alone", err)
	}
}

func TestIntegerColumnsTakeNoFractions(t *testing.T) {
	t.Parallel()
	m := openModel(t, "testdata/columns")
	f := request.Fill([]byte(`{"procs": 1.5, "queue": "long", "hour": 1}`), m.Schema(), &schema.Row{})
	if len(f.Invalid) != 1 || f.Invalid[0].Msg != "expected a whole number" {
		t.Errorf(`%+v; want len(f.Invalid) == 1 && f.Invalid[0].Msg == "expected a whole number"`, f)
	}
}

// A row on which the model fails, or whose answer is not finite, fails alone.
func TestBadRowFailsAlone(t *testing.T) {
	t.Parallel()
	m := openModel(t, writeFiles(t, fixturetest.Linear(t, "m", 0, fixturetest.Column{Name: "a", Kind: "number", Weight: 1e30})))
	rows := []*schema.Row{parseRow(t, m, `{"a": 1}`), parseRow(t, m, `{"a": 1e30}`), parseRow(t, m, `{"a": 2}`)}
	results := make([]Result, 3)
	m.NewBatch().Run(rows, results)
	if results[0].Err != nil || results[2].Err != nil || results[1].Err == nil {
		t.Errorf("results %+v; want an error", results)
	}
}

func BenchmarkBatch(b *testing.B) {
	m := openModel(b, writeFiles(b, fixturetest.Trees(b, "m", 18, 100, 6)))
	var rows []*schema.Row
	for i := range 32 {
		r := &schema.Row{}
		m.Schema().Fit(r)
		for c := range m.Schema().Columns {
			m.Schema().Numbers(r, c)[0] = float64((i*31 + c*17) % 100)
		}
		rows = append(rows, r)
	}
	results := make([]Result, 32)
	batch := m.NewBatch()
	for _, n := range []int{1, 2, 3, 4, 8, 16, 31, 32} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				batch.Run(rows[:n], results)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/row")
		})
	}
}

// The limit of a run applies to a model that has passed its trial once it is open, not while it warms up: there, a
// machine under load would make it fail.
func TestTriedModelsWarmUpWithoutALimit(t *testing.T) {
	t.Parallel()
	files := Files(fixturetest.Slow(t, "m"))
	o := Options{Threads: 1, Rows: 1, RunLimit: time.Millisecond}
	if _, err := Open(files, o); !errors.Is(err, runtime.ErrOverran) {
		t.Fatalf("not tried: %v, want %v", err, runtime.ErrOverran)
	}
	o.Tried = true
	m, err := Open(files, o)
	if err != nil {
		t.Fatalf("tried: %v", err)
	}
	defer m.Close()
	results := make([]Result, 1)
	m.NewBatch().Run([]*schema.Row{parseRow(t, m, `{"x": 1}`)}, results)
	if !errors.Is(results[0].Err, runtime.ErrOverran) {
		t.Errorf("a run of the open model: %v, want %v", results[0].Err, runtime.ErrOverran)
	}
}
