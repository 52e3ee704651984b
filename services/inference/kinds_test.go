package inference_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/libs/onnx/graph"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

// foreign is an artifact saved by mlflow.onnx, with the answers of ONNX Runtime's own Python package.
func foreign(t *testing.T, name string) (files map[string][]byte, expected []struct {
	Features   map[string]any
	Prediction any
}) {
	t.Helper()
	dir := filepath.Join("internal", "model", "testdata", name)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files = map[string][]byte{}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	if err := json.Unmarshal(files["expected.json"], &expected); err != nil {
		t.Fatal(err)
	}
	return files, expected
}

func serveForeign(t *testing.T, names ...string) *instance {
	t.Helper()
	reg := fixturetest.NewRegistry(t)
	for _, name := range names {
		files, _ := foreign(t, name)
		reg.Alias(name, "Production", reg.Register(name, files, nil))
	}
	return start(t, reg)
}

// The service gives Python's answers for each kind of model, through its trial and on the wire.
func TestServesForeignKinds(t *testing.T) {
	t.Parallel()
	kinds := []string{"boosted", "perceptron_halves", "renamed", "external", "missing", "half"}
	i := serveForeign(t, kinds...)
	for _, name := range kinds {
		_, expected := foreign(t, name)
		for _, c := range expected {
			var got struct {
				Prediction    any                `json:"prediction"`
				Probabilities map[string]float64 `json:"probabilities"`
			}
			i.OK("/predict/"+name, map[string]any{"features": c.Features, "probabilities": true}, &got)
			want := c.Prediction
			a, _ := got.Prediction.(float64)
			b, number := want.(float64)
			if number && math.Abs(a-b) > 1e-6*max(1, math.Abs(b)) || !number && got.Prediction != want {
				t.Errorf("%s: %v, want %v", name, got.Prediction, want)
			}
			if classifier := strings.Contains("boosted perceptron_halves renamed", name); classifier != (len(got.Probabilities) > 0) {
				t.Errorf("%s: the probabilities are %v", name, got.Probabilities)
			}
		}
	}
}

// A number may be missing where the signature does not require it: null in JSON, NaN in binary tensors. Nowhere else.
func TestMissingValues(t *testing.T) {
	t.Parallel()
	i := serveForeign(t, "missing")
	_, expected := foreign(t, "missing")
	row := expected[0].Features
	want := expected[0].Prediction.(float64)
	refused := map[string]any{"width": nil, "height": row["height"], "age": row["age"]}
	if s, out := i.Post("/predict/missing", map[string]any{"features": refused}); s != http.StatusUnprocessableEntity || !strings.Contains(out, "expected a number, got null") {
		t.Errorf("a number that is required: %d %s, want 422", s, out)
	}
	binaryRow := func(values ...any) string {
		var raw []byte
		for _, v := range values {
			f, ok := v.(float64)
			if !ok {
				f = math.NaN()
			}
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(f)))
		}
		return `{"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 3], "parameters": {"binary_data_size": 12}}]}` + string(raw)
	}
	length := strconv.Itoa(len(binaryRow()))
	encode := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	columns := func(width any) string {
		var inputs []string
		for name, v := range map[string]any{"width": width, "height": nil, "age": row["age"]} {
			inputs = append(inputs, fmt.Sprintf(`{"name": %q, "datatype": "FP32", "shape": [1], "data": [%s]}`, name, encode(v)))
		}
		return `{"inputs": [` + strings.Join(inputs, ", ") + `]}`
	}
	matrix := func(width any) string {
		return fmt.Sprintf(`{"inputs": [{"name": "input", "datatype": "FP64", "shape": [1, 3], "data": [%s, null, %s]}]}`, encode(width), encode(row["age"]))
	}
	for name, body := range map[string]func(width any) string{
		"binary": func(width any) string { return binaryRow(width, nil, row["age"]) }, "columns": columns, "matrix": matrix,
	} {
		var header []string
		if name == "binary" {
			header = []string{"Inference-Header-Content-Length", length}
		}
		got := i.infer("/v2/models/missing/infer", body(row["width"]), header...)
		if v := got.Outputs[0].Data[0].(float64); math.Abs(v-want) > 1e-5 {
			t.Errorf("%s: %v, want %v", name, v, want)
		}
		if s, _, out := i.Do(http.MethodPost, "/v2/models/missing/infer", body(nil), header...); s != http.StatusBadRequest && s != http.StatusUnprocessableEntity {
			t.Errorf("%s: without a number that is required: %d %s, want a refusal", name, s, out)
		}
	}
	var models []struct {
		Inputs []struct {
			Name     string
			Optional bool
		}
	}
	if s, out := i.Get("/models"); s != http.StatusOK || json.Unmarshal([]byte(out), &models) != nil {
		t.Fatalf("GET /models: %d %s", s, out)
	}
	if in := models[0].Inputs; in[0].Optional || !in[1].Optional {
		t.Errorf("the columns are %+v; want height alone optional", in)
	}
}

// Tensors of half precision are FP16 on the wire: numbers in JSON, two bytes in binary.
func TestHalfPrecision(t *testing.T) {
	t.Parallel()
	i := serveForeign(t, "half")
	_, expected := foreign(t, "half")
	var meta struct{ Inputs, Outputs []tensor }
	s, out := i.Get("/v2/models/half")
	if err := json.Unmarshal([]byte(out), &meta); err != nil || s != http.StatusOK || meta.Inputs[0].Datatype != "FP16" || meta.Outputs[0].Datatype != "FP16" {
		t.Errorf("metadata: %d %s; want FP16", s, out)
	}
	row := expected[0].Features
	want := []any{expected[0].Prediction}
	got := i.infer("/v2/models/half/infer", fmt.Sprintf(`{"inputs": [{"name": "X", "datatype": "FP16", "shape": [1, 3], "data": [%v, %v, %v]}]}`, row["width"], row["height"], row["age"]))
	single := cmp.Comparer(func(a, b float64) bool { return float32(a) == float32(b) }) // as many digits as tell halves apart
	if diff := cmp.Diff([]tensor{{Name: "prediction", Datatype: "FP16", Shape: []int64{1, 1}, Data: want}}, got.Outputs, single); diff != "" {
		t.Errorf("JSON: the answer differs:\n%s", diff)
	}
	text := `{"inputs": [{"name": "X", "datatype": "FP16", "shape": [2, 3], "parameters": {"binary_data_size": 12}}], "parameters": {"binary_data_output": true}}`
	ones := strings.Repeat("\x00\x3c", 3) + strings.Repeat("\x00\x00", 3)
	s, header, out := i.Do(http.MethodPost, "/v2/models/half/infer", text+ones, "Inference-Header-Content-Length", strconv.Itoa(len(text)))
	at, _ := strconv.Atoi(header.Get("Inference-Header-Content-Length"))
	if s != http.StatusOK || len(out)-at != 4 || out[len(out)-2:] != "\x00\x00" || !strings.Contains(out, `"binary_data_size":4`) {
		t.Errorf("binary: %d %q; want two numbers of two bytes, the second 0", s, out)
	}
	for says, body := range map[string]string{
		"the number is too large for FP16": `{"inputs": [{"name": "X", "datatype": "FP16", "shape": [1, 3], "data": [1, 70000, 1]}]}`,
		"the model takes FP16":             `{"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 3], "data": [1, 1, 1]}]}`,
	} {
		if s, out := i.Post("/v2/models/half/infer", body); s < 400 || s >= 500 || !strings.Contains(out, says) {
			t.Errorf("%d %s; want a refusal with %q", s, out, says)
		}
	}
	if s, out := i.Post("/predict/half", `{"features": {"width": 70000, "height": 0, "age": 0}}`); s != http.StatusUnprocessableEntity {
		t.Errorf("too large a number: %d %s, want 422", s, out)
	}
}

// Ten thousand columns, as the signature names them.
func TestServesWideModels(t *testing.T) {
	t.Parallel()
	const width = 10_000
	b := graph.New("wide", "fixture", "1")
	ones, features, columns := make([]float32, width), map[string]any{}, make([]string, width)
	for k := range ones {
		ones[k] = 1
		name := fmt.Sprintf("column_%05d", k)
		features[name] = k
		columns[k] = fmt.Sprintf(`{"type": "double", "name": %q, "required": true}`, name)
	}
	b.Node("MatMul", "prediction", []string{b.Input("X", graph.Float, -1, width), b.Floats("ones", ones, width, 1)})
	b.Output("prediction", graph.Float, -1, 1)
	onnx, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	reg := fixturetest.NewRegistry(t)
	reg.Alias("wide", "Production", reg.Register("wide", map[string][]byte{
		"model.onnx": onnx,
		"MLmodel":    []byte("flavors:\n  onnx:\n    data: model.onnx\nsignature:\n  inputs: '[" + strings.Join(columns, ",\n    ") + "]'\n"),
	}, nil))
	i := start(t, reg)
	var got struct{ Prediction float64 }
	i.OK("/predict/wide", map[string]any{"features": features}, &got)
	if want := float64(width * (width - 1) / 2); math.Abs(got.Prediction-want) > want*1e-6 {
		t.Errorf("the sum of the columns is %v, want %v", got.Prediction, want)
	}
}

// withColumns is an artifact of the graph as the MLflow client saves it, with a signature of numbers.
func withColumns(t *testing.T, b *graph.Builder, columns ...string) map[string][]byte {
	t.Helper()
	onnx, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	signature := ""
	for _, name := range columns {
		signature += fmt.Sprintf(`{"type": "double", "name": %q, "required": true}, `, name)
	}
	mlmodel := "flavors:\n  onnx:\n    data: model.onnx\n"
	if len(columns) > 0 {
		mlmodel += "signature:\n  inputs: '[" + strings.TrimSuffix(signature, ", ") + "]'\n"
	}
	return map[string][]byte{"model.onnx": onnx, "MLmodel": []byte(mlmodel)}
}

// Where the files do not say whether values may be missing, the graph does: it has a rule for them, or it has none.
func TestMissingValuesByTheGraph(t *testing.T) {
	t.Parallel()
	build := func(rule bool) *graph.Builder {
		b := graph.New("m", "fixture", "1")
		x := b.Input("x", graph.Float, -1, 2)
		if rule {
			x = b.Node("Where", "filled", []string{b.Node("IsNaN", "missing", []string{x}), b.Floats("seven", []float32{7}, 1), x})
		}
		b.Node("Identity", "y", []string{x})
		b.Output("y", graph.Float, -1, 2)
		return b
	}
	reg := fixturetest.NewRegistry(t)
	reg.Alias("rule", "Production", reg.Register("rule", withColumns(t, build(true)), nil))
	reg.Alias("none", "Production", reg.Register("none", withColumns(t, build(false)), nil))
	i := start(t, reg)
	body := `{"inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 2], "data": [1, null, null, 2]}]}`
	if got := i.infer("/v2/models/rule/infer", body).Outputs[0].Data; !cmp.Equal(got, []any{1.0, 7.0, 7.0, 2.0}) {
		t.Errorf("null where the graph has a rule: %v, want 1 7 7 2", got)
	}
	if s, out := i.Post("/v2/models/none/infer", body); s != http.StatusBadRequest || !strings.Contains(out, "value 1: expected a number, got null") {
		t.Errorf("null where the graph has none: %d %s, want 400", s, out)
	}
	head := `{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "parameters": {"binary_data_size": 8}}]}`
	raw := head + string(floatBytes(float32(math.NaN()), 2))
	for name, want := range map[string]int{"rule": http.StatusOK, "none": http.StatusBadRequest} {
		if s, _, out := i.Do(http.MethodPost, "/v2/models/"+name+"/infer", raw, "Inference-Header-Content-Length", strconv.Itoa(len(head))); s != want {
			t.Errorf("NaN, %s: %d %s, want %d", name, s, out, want)
		}
	}
}

// A converter may declare one value a row for a regressor of several targets. The rows say what it is: tensors alone are
// served, and wherever the model is listed it says why.
func TestOutputWiderThanDeclared(t *testing.T) {
	t.Parallel()
	b := graph.New("m", "fixture", "1")
	b.Node("MatMul", "variable", []string{b.Input("X", graph.Float, -1, 2), b.Floats("w", []float32{1, 2, 3, 4, 5, 6}, 2, 3)})
	b.Output("variable", graph.Float, -1, 1)
	reg := fixturetest.NewRegistry(t)
	reg.Alias("targets", "Production", reg.Register("targets", withColumns(t, b, "a", "b"), nil))
	i := start(t, reg)
	got := i.infer("/v2/models/targets/infer", `{"inputs": [{"name": "X", "datatype": "FP32", "shape": [2, 2], "data": [1, 0, 0, 1]}]}`)
	want := []tensor{{Name: "variable", Datatype: "FP32", Shape: []int64{2, 3}, Data: []any{1.0, 2.0, 3.0, 4.0, 5.0, 6.0}}}
	if diff := cmp.Diff(want, got.Outputs); diff != "" {
		t.Errorf("the answer differs:\n%s", diff)
	}
	const says = "its output variable has 3 values a row"
	if s, out := i.Get("/models"); s != http.StatusOK || !strings.Contains(out, says) {
		t.Errorf("GET /models: %d %s, want %q", s, out, says)
	}
	if s, out := i.Post("/predict/targets", `{"features": {"a": 1, "b": 0}}`); s != http.StatusNotFound || !strings.Contains(out, says) {
		t.Errorf("/predict: %d %s, want 404 with %q", s, out, says)
	}
}
