package inference_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

// tensor is one of a V2 response.
type tensor struct {
	Name       string         `json:"name"`
	Datatype   string         `json:"datatype"`
	Shape      []int64        `json:"shape"`
	Data       []any          `json:"data"`
	Parameters map[string]any `json:"parameters"`
}

type inferResponse struct {
	ModelName    string         `json:"model_name"`
	ModelVersion string         `json:"model_version"`
	ID           string         `json:"id"`
	Parameters   map[string]any `json:"parameters"`
	Outputs      []tensor       `json:"outputs"`
}

// v2Registry has rows of a number a, a vector v of two and a number b: prediction = 1 + a + 10 (v0 + v1) + 100 b. Other
// models: a pair of outputs without a signature, and an image of 2x2 pixels.
func v2Registry(t testing.TB) *fixturetest.Registry {
	t.Helper()
	reg := fixturetest.NewRegistry(t)
	files := fixturetest.Linear(t, "rows", 1, fixturetest.Column{Name: "a", Kind: "number", Weight: 1},
		fixturetest.Column{Name: "v", Kind: "vector", Length: 2, Weight: 10}, fixturetest.Column{Name: "b", Kind: "number", Weight: 100})
	reg.Alias("rows", "Production", reg.Register("rows", files, nil))
	pair := maps.Clone(fixturetest.TwoOutputs(t, "pair"))
	delete(pair, "platform.json")
	reg.Alias("pair", "Production", reg.Register("pair", pair, nil))
	reg.Alias("image", "Production", reg.Register("image", fixturetest.Image(t, "image"), nil))
	return reg
}

func (i *instance) infer(path string, body any, header ...string) inferResponse {
	i.T.Helper()
	s, _, out := i.Do(http.MethodPost, path, body, header...)
	var r inferResponse
	if err := json.Unmarshal([]byte(out), &r); err != nil || s != http.StatusOK {
		i.T.Fatalf("POST %s: %d %s, want 200", path, s, out)
	}
	return r
}

func TestV2TakesTensorsByGraphColumnsAndMatrix(t *testing.T) {
	t.Parallel()
	i := start(t, v2Registry(t))
	want := inferResponse{
		ModelName: "ROWS", ModelVersion: "1", ID: "r-1", Parameters: map[string]any{"alias": "Production", "answer": "prediction"},
		Outputs: []tensor{{Name: "prediction", Datatype: "FP32", Shape: []int64{3, 1}, Data: []any{1.0, 332.0, 663.0}}},
	}
	for name, inputs := range map[string]string{
		"flat":   `{"name": "a", "datatype": "FP32", "shape": [3, 1], "data": [0, 1, 2]}, {"name": "b", "datatype": "FP32", "shape": [3, 1], "data": [0, 3, 6]}, {"name": "v", "datatype": "FP32", "shape": [3, 2], "data": [0, 0, 1, 2, 2, 4]}`,
		"nested": `{"name": "v", "datatype": "FP32", "shape": [3, 2], "data": [[0, 0], [1, 2], [2, 4]]}, {"name": "a", "datatype": "FP32", "shape": [3], "data": [0, 1, 2]}, {"name": "b", "datatype": "FP32", "shape": [3, 1], "data": [[0], [3], [6]]}`,
		"matrix": `{"name": "input", "datatype": "FP32", "shape": [3, 4], "data": [[0, 0, 0, 0], [1, 1, 2, 3], [2, 2, 4, 6]]}`,
		"wide":   `{"name": "input", "datatype": "FP64", "shape": [3, 4], "data": [[0, 0, 0, 0], [1, 1, 2, 3], [2, 2, 4, 6]]}`,
	} {
		got := i.infer("/v2/models/rows/infer", `{"id": "r-1", "inputs": [`+inputs+`]}`)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: answer differs from want:\n%s", name, diff)
		}
	}
	byVersion := i.infer("/v2/models/Rows/versions/1/infer", `{"inputs": [{"name": "input", "datatype": "FP32", "shape": [1, 4], "data": [0, 0, 0, 0]}]}`)
	if diff := cmp.Diff(map[string]any{"answer": "prediction"}, byVersion.Parameters); byVersion.ModelVersion != "1" || diff != "" {
		t.Errorf("by version: %+v, want version 1 and no alias; parameters differ from want:\n%s", byVersion, diff)
	}
}

// A batch that takes many runs has its rows in their order.
func TestV2BatchesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	i := start(t, v2Registry(t))
	for _, rows := range []int{1, 31, 32, 33, 64, 1000, 1024} {
		data, want := make([]float32, rows), make([]any, rows)
		for r := range data {
			data[r], want[r] = float32(r), float64(r)
		}
		got := i.infer("/v2/models/pair/infer", map[string]any{"inputs": []any{map[string]any{"name": "x", "datatype": "FP32", "shape": []int{rows, 1}, "data": data}}})
		if diff := cmp.Diff(want, got.Outputs[0].Data); diff != "" || len(got.Outputs) != 2 {
			t.Fatalf("%d rows: %d outputs, data differ from want:\n%s", rows, len(got.Outputs), diff)
		}
	}
}

// Clients of Triton compress the whole body, binary tensors included; the header's length is that of the JSON before.
func TestV2TakesCompressedBodies(t *testing.T) {
	t.Parallel()
	i := start(t, v2Registry(t))
	text := `{"inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 1], "parameters": {"binary_data_size": 8}}]}`
	body := append([]byte(text), 0, 0, 128, 63, 0, 0, 0, 64) // 1 and 2
	packers := map[string]func(io.Writer) io.WriteCloser{
		"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	}
	for coding, packer := range packers {
		packed := pack(t, packer, body)
		got := i.infer("/v2/models/pair/infer", packed, "Content-Encoding", coding, "Inference-Header-Content-Length", strconv.Itoa(len(text)))
		if diff := cmp.Diff([]any{1.0, 2.0}, got.Outputs[0].Data); diff != "" {
			t.Errorf("%s: the answer differs:\n%s", coding, diff)
		}
		if s, _, out := i.Do(http.MethodPost, "/v2/models/pair/infer", pack(t, packer, make([]byte, 9<<20)), "Content-Encoding", coding); s != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: 9 MiB of zeros: %d %s, want 413", coding, s, out)
		}
		row := pack(t, packer, []byte(`{"features": {"a": 1, "v": [0, 0], "b": 0}}`))
		if s, _, out := i.Do(http.MethodPost, "/predict/rows", row, "Content-Encoding", coding); s != http.StatusOK {
			t.Errorf("%s at /predict: %d %s, want 200", coding, s, out)
		}
	}
	s, header, out := i.Do(http.MethodPost, "/v2/models/pair/infer", text, "Content-Encoding", "br")
	if s != http.StatusUnsupportedMediaType || header.Get("Accept-Encoding") != "gzip, deflate, identity" || !strings.Contains(out, `"error":`) {
		t.Errorf("br: %d %v %s, want 415, the codings that are read, and the protocol's error", s, header, out)
	}
}

func pack(t *testing.T, packer func(io.Writer) io.WriteCloser, body []byte) string {
	t.Helper()
	var b bytes.Buffer
	w := packer(&b)
	if _, err := w.Write(body); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestV2ServesModelsWithoutColumns(t *testing.T) {
	t.Parallel()
	i := start(t, v2Registry(t))
	got := i.infer("/v2/models/pair/infer", `{"inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 1], "data": [1, 2]}], "outputs": [{"name": "spread"}]}`)
	if diff := cmp.Diff([]tensor{{Name: "spread", Datatype: "FP32", Shape: []int64{2, 1}, Data: []any{2.0, 4.0}}}, got.Outputs); diff != "" {
		t.Errorf("the output that was wanted differs:\n%s", diff)
	}
	if _, ok := got.Parameters["answer"]; ok {
		t.Errorf("parameters %v, want no answer where the output is not wanted", got.Parameters)
	}
	got = i.infer("/v2/models/pair/infer", `{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}`)
	if diff := cmp.Diff(map[string]any{"alias": "Production", "answer": "mean"}, got.Parameters); diff != "" {
		t.Errorf("parameters of two outputs differ from want:\n%s", diff)
	}
	got = i.infer("/v2/models/image/infer", `{"inputs": [{"name": "pixels", "datatype": "FP32", "shape": [1, 2, 2], "data": [[[1, 2], [3, 4]]]}]}`)
	if diff := cmp.Diff([]tensor{{Name: "flipped", Datatype: "FP32", Shape: []int64{1, 2, 2}, Data: []any{-1.0, -2.0, -3.0, -4.0}}}, got.Outputs); diff != "" {
		t.Errorf("image: outputs differ:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"alias": "Production"}, got.Parameters); diff != "" {
		t.Errorf("parameters of a graph that answers no single value differ from want:\n%s", diff)
	}
	s, body := i.Post("/predict/pair", `{"features": {"x": 1}}`)
	if p := inferencetest.ProblemOf(t, s, body); s != http.StatusNotFound || p.Code != "model_not_loaded" || !strings.Contains(p.Detail, "/v2/models/PAIR/infer: MLmodel has no signature") {
		t.Errorf("/predict: %d %s, want 404 model_not_loaded that names /v2 and the reason", s, body)
	}
	if s, body := i.Get("/models"); s != http.StatusOK || !strings.Contains(body, `"tensors_only":"MLmodel has no signature`) {
		t.Errorf("/models: %d %s, want tensors_only", s, body)
	}
}

func TestV2DescribesServerAndModels(t *testing.T) {
	t.Parallel()
	i := start(t, v2Registry(t))
	for path, want := range map[string]string{
		"/v2":                              `{"name":"inference","version":"1","extensions":["binary_tensor_data","model_repository"]}`,
		"/v2/health/live":                  `{"live":true}`,
		"/v2/health/ready":                 `{"ready":true}`,
		"/v2/models/rows/ready":            `{"name":"ROWS","ready":true}`,
		"/v2/models/rows/versions/1/ready": `{"name":"ROWS","ready":true}`,
		"/v2/models/rows":                  `{"name":"ROWS","versions":["1"],"platform":"onnx_onnxv1","inputs":[{"name":"a","datatype":"FP32","shape":[-1,1]},{"name":"v","datatype":"FP32","shape":[-1,2]},{"name":"b","datatype":"FP32","shape":[-1,1]}],"outputs":[{"name":"prediction","datatype":"FP32","shape":[-1,1]}]}`,
		"/v2/models/image/versions/1":      `{"name":"IMAGE","versions":["1"],"platform":"onnx_onnxv1","inputs":[{"name":"pixels","datatype":"FP32","shape":[-1,2,2]}],"outputs":[{"name":"flipped","datatype":"FP32","shape":[-1,2,2]}]}`,
	} {
		s, body := i.Get(path)
		var got, wanted any
		if err := json.Unmarshal([]byte(body), &got); err != nil || s != http.StatusOK {
			t.Errorf("%s: %d %s, want 200", path, s, body)
			continue
		}
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("%s differs from want:\n%s", path, diff)
		}
	}
	var index []map[string]any
	i.OK("/v2/repository/index", `{"ready": true}`, &index)
	want := []map[string]any{}
	for _, name := range []string{"IMAGE", "PAIR", "ROWS"} {
		want = append(want, map[string]any{"name": name, "version": "1", "alias": "Production", "state": "READY", "reason": ""})
	}
	if diff := cmp.Diff(want, index); diff != "" {
		t.Errorf("index differs from want:\n%s", diff)
	}
	i.Registry.Alias("rows", "Canary", "9")
	i.Post("/reload", nil)
	i.OK("/v2/repository/index", nil, &index)
	if got := index[len(index)-1]; got["state"] != "UNAVAILABLE" || got["alias"] != "Canary" || got["reason"] == "" {
		t.Errorf("a version that does not load: %v, want it unavailable with a reason", got)
	}
}

// binaryBody is a request whose tensors are binary, as tritonclient sends it.
func binaryBody(header string, tensors ...[]byte) (body string, length string) {
	return header + string(bytes.Join(tensors, nil)), strconv.Itoa(len(header))
}

func floatBytes(values ...float32) (out []byte) {
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

func TestV2BinaryTensors(t *testing.T) {
	t.Parallel()
	i := start(t, v2Registry(t))
	body, length := binaryBody(`{"parameters": {"binary_data_output": true}, "inputs": [`+
		`{"name": "v", "datatype": "FP32", "shape": [2, 2], "parameters": {"binary_data_size": 16}},`+
		`{"name": "a", "datatype": "FP32", "shape": [2, 1], "parameters": {"binary_data_size": 8}},`+
		`{"name": "b", "datatype": "FP32", "shape": [2, 1], "data": [0, 3]}]}`, floatBytes(0, 0, 1, 2), floatBytes(0, 1))
	s, h, out := i.Do(http.MethodPost, "/v2/models/rows/infer", body, "Inference-Header-Content-Length", length, "Content-Type", "application/octet-stream")
	n, err := strconv.Atoi(h.Get("Inference-Header-Content-Length"))
	if s != http.StatusOK || err != nil {
		t.Fatalf("%d %s, %v; want 200 and the length of the JSON part", s, out, err)
	}
	var r inferResponse
	if err := json.Unmarshal([]byte(out[:n]), &r); err != nil {
		t.Fatal(err)
	}
	want := []tensor{{Name: "prediction", Datatype: "FP32", Shape: []int64{2, 1}, Parameters: map[string]any{"binary_data_size": 8.0}}}
	if diff := cmp.Diff(want, r.Outputs); diff != "" {
		t.Errorf("outputs differ from want:\n%s", diff)
	}
	if got, want := out[n:], string(floatBytes(1, 332)); got != want {
		t.Errorf("binary output %x, want %x", got, want)
	}
	if ct := h.Get("Content-Type"); ct != "application/octet-stream" {
		t.Errorf("content type %q, want application/octet-stream", ct)
	}
}

// Each request that the model does not accept gets an answer that names the fault and its place.
func TestV2RefusesWhatTheModelDoesNotTake(t *testing.T) {
	t.Parallel()
	i := start(t, v2Registry(t))
	x := func(rest string) string { return `{"inputs": [{"name": "x", ` + rest + `}]}` }
	many := `"datatype": "FP32", "shape": [10000, 1], "data": [` + strings.Repeat("1,", 9999) + `1]`
	for _, c := range []struct {
		name, model, body string
		status            int
		want              string
	}{
		{"name", "pair", `{"inputs": [{"name": "y", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}`, 400, `the tensor "x" is missing`},
		{"column missing", "rows", `{"inputs": [{"name": "a", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}`, 400, `the tensor "v" is missing`},
		{"twice", "pair", `{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}, {"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}`, 400, "is there twice"},
		{"datatype", "pair", x(`"datatype": "FP64", "shape": [1, 1], "data": [1]`), 400, `has the datatype "FP64", the model takes FP32`},
		{"no such datatype", "pair", x(`"datatype": "FP13", "shape": [1, 1], "data": [1]`), 400, "the model takes FP32"},
		{"width", "pair", x(`"datatype": "FP32", "shape": [1, 2], "data": [1, 2]`), 400, "has the shape [1 2], the model takes [-1 1]"},
		{"rank", "image", `{"inputs": [{"name": "pixels", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}`, 400, "has the shape [1 4], the model takes [-1 2 2]"},
		{"no dimensions", "pair", x(`"datatype": "FP32", "shape": [], "data": [1]`), 400, "has the shape []"},
		{"negative size", "pair", x(`"datatype": "FP32", "shape": [-1, 1], "data": [1]`), 400, "a size must be at least 0"},
		{"huge size", "pair", x(`"datatype": "FP32", "shape": [9007199254740993, 1], "data": [1]`), 400, "rows; a request has at most 1024"},
		{"rows", "pair", x(many), 400, "10000 rows; a request has at most 1024"},
		{"no rows", "pair", x(`"datatype": "FP32", "shape": [0, 1], "data": []`), 400, "has no rows"},
		{"rows differ", "rows", `{"inputs": [{"name": "a", "datatype": "FP32", "shape": [1, 1], "data": [1]}, {"name": "v", "datatype": "FP32", "shape": [2, 2], "data": [1, 2, 3, 4]}, {"name": "b", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}`, 400, "2 rows, the ones before it have 1"},
		{"too few values", "pair", x(`"datatype": "FP32", "shape": [2, 1], "data": [1]`), 400, "a list has 1 values, the shape says 2"},
		{"too many values", "pair", x(`"datatype": "FP32", "shape": [1, 1], "data": [1, 2]`), 400, "more than the 1 values"},
		{"ragged", "rows", `{"inputs": [{"name": "input", "datatype": "FP32", "shape": [2, 4], "data": [[1, 2, 3], [4, 5, 6, 7, 8]]}]}`, 400, "a list has 3 values, the shape says 4"},
		{"too deep", "pair", x(`"datatype": "FP32", "shape": [1, 1], "data": [[[1]]]`), 400, "nested deeper"},
		{"text", "pair", x(`"datatype": "FP32", "shape": [1, 1], "data": ["1"]`), 400, "value 0: expected a number, got a string"},
		{"null", "pair", x(`"datatype": "FP32", "shape": [1, 1], "data": [null]`), 400, "expected a number, got null"},
		{"too large for the type", "pair", x(`"datatype": "FP32", "shape": [1, 1], "data": [1e39]`), 400, "too large for FP32"},
		{"matrix of integers", "rows", `{"inputs": [{"name": "input", "datatype": "INT64", "shape": [1, 4], "data": [1, 2, 3, 4]}]}`, 400, `has the datatype "INT64", the model takes FP32`},
		{"matrix beyond the type", "rows", `{"inputs": [{"name": "input", "datatype": "FP64", "shape": [1, 4], "data": [1, 2, -1e39, 4]}]}`, 400, "body.inputs.0.data: value 2: the number is too large for FP32"},
		{"no data", "pair", x(`"datatype": "FP32", "shape": [1, 1]`), 400, "body.inputs.0.data: this member is missing"},
		{"no inputs", "pair", `{"inputs": []}`, 400, "there must be at least one tensor"},
		{"empty object", "pair", `{}`, 400, "body.inputs: this member is missing"},
		{"empty body", "pair", ``, 400, "the body is empty"},
		{"no JSON", "pair", `{"inputs": [`, 400, "ends too early"},
		{"unknown member", "pair", `{"inputz": []}`, 400, "body.inputz: this member is unknown"},
		{"unknown output", "pair", `{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}], "outputs": [{"name": "median"}]}`, 400, `no output \"median\"; the outputs are mean, spread`},
		{"classification", "pair", `{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}], "outputs": [{"name": "mean", "parameters": {"classification": 3}}]}`, 400, "classifications are not served"},
		{"shared memory", "pair", x(`"datatype": "FP32", "shape": [1, 1], "parameters": {"shared_memory_region": "r"}`), 400, "shared memory is not served"},
		{"bytes that never came", "pair", x(`"datatype": "FP32", "shape": [1, 1], "parameters": {"binary_data_size": 4}`), 400, "only 0 of the 0 bytes"},
		{"no such alias", "pair", `{"parameters": {"alias": "Canary"}, "inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}`, 404, "it has no version with the alias Canary"},
		{"no such model", "nosuch", x(`"datatype": "FP32", "shape": [1, 1], "data": [1]`), 404, "NOSUCH is not loaded"},
		{"too large", "pair", strings.Repeat(" ", 8<<20) + "{}", 413, "larger than 8388608 bytes"},
		{"a row fails", "rows", `{"inputs": [{"name": "input", "datatype": "FP32", "shape": [3, 4], "data": [0, 0, 0, 0, 3e38, 3e38, 3e38, 3e38, 1, 1, 1, 1]}]}`, 500, "body.row.1: "},
	} {
		s, _, body := i.Do(http.MethodPost, "/v2/models/"+c.model+"/infer", c.body)
		p := inferencetest.ProblemOf(t, s, body)
		var withError struct {
			Error string `json:"error"`
		}
		_ = json.Unmarshal([]byte(body), &withError)
		if s != c.status || !strings.Contains(strings.ReplaceAll(p.Detail+" "+p.ErrorList(), `"`, `\"`), strings.ReplaceAll(strings.ReplaceAll(c.want, `\"`, `"`), `"`, `\"`)) {
			t.Errorf("%s: %d %.400s, want %d with %s", c.name, s, body, c.status, c.want)
		}
		if withError.Error != p.Detail {
			t.Errorf("%s: error %q, want the detail %q", c.name, withError.Error, p.Detail)
		}
	}
}

func TestV2RefusesBinaryThatDoesNotFit(t *testing.T) {
	t.Parallel()
	i := start(t, v2Registry(t))
	header := func(size int) string {
		return fmt.Sprintf(`{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "parameters": {"binary_data_size": %d}}]}`, size)
	}
	for _, c := range []struct {
		name, json string
		data       []byte
		length     string
		want       string
	}{
		{"too few bytes", header(3), []byte{1, 2, 3}, "", "has 3 bytes of data, its shape needs 4"},
		{"bytes left over", header(4), []byte{1, 2, 3, 4, 5}, "", "1 bytes after the JSON part belong to no tensor"},
		{"more announced than sent", header(8), []byte{1, 2, 3, 4}, "", "is 8, and only 4 of the 4 bytes"},
		{"not a number", header(4), floatBytes(float32(math.NaN())), "", "value 0 is not finite"},
		{"a length beyond the body", header(4), nil, "1000000", "at most the"},
		{"a length that is no number", header(4), nil, "ten", `it must be the length`},
	} {
		body, length := binaryBody(c.json, c.data)
		if c.length != "" {
			length = c.length
		}
		s, _, out := i.Do(http.MethodPost, "/v2/models/pair/infer", body, "Inference-Header-Content-Length", length)
		if p := inferencetest.ProblemOf(t, s, out); s != http.StatusBadRequest || p.Code != "invalid_tensors" || !strings.Contains(p.Detail, c.want) {
			t.Errorf("%s: %d %s, want 400 invalid_tensors with %q", c.name, s, out, c.want)
		}
	}
}

// A readiness check of a version does not load it; a metadata request does, within the call's time limit.
func TestV2ReadyLoadsNothing(t *testing.T) {
	t.Parallel()
	reg := v2Registry(t)
	second := reg.Register("rows", fixturetest.Linear(t, "rows", 2, fixturetest.Column{Name: "a", Kind: "number", Weight: 1}), nil)
	i := start(t, reg)
	before := reg.Downloads("rows")
	path := "/v2/models/rows/versions/" + second
	s, out := i.Get(path + "/ready")
	if p := inferencetest.ProblemOf(t, s, out); s != http.StatusNotFound || p.Code != "model_not_loaded" || reg.Downloads("rows") != before {
		t.Errorf("ready: %d %s after %d downloads, want 404 model_not_loaded and none", s, out, reg.Downloads("rows")-before)
	}
	s, _, out = i.Do(http.MethodGet, path, nil, "X-Request-Timeout-Ms", "1")
	if p := inferencetest.ProblemOf(t, s, out); s != http.StatusGatewayTimeout || p.Code != "deadline_exceeded" {
		t.Errorf("metadata within 1 ms: %d %s, want 504 deadline_exceeded", s, out)
	}
	for _, p := range []string{path, path + "/ready"} {
		if s, out := i.Get(p); s != http.StatusOK {
			t.Errorf("%s: %d %s, want 200 once it is loaded", p, s, out)
		}
	}
}

func TestV2NeedsTheScopeOfPredictions(t *testing.T) {
	t.Parallel()
	i := start(t, v2Registry(t), func(c *inference.Config) {
		c.Credentials = service.Secret(`{"secret-of-the-application": {"principal": "app", "tenant": "default", "scopes": ["predict"]}}`)
	})
	const body = `{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}`
	for _, r := range []struct{ method, path string }{
		{http.MethodGet, "/v2"}, {http.MethodGet, "/v2/models/pair"}, {http.MethodGet, "/v2/models/pair/ready"}, {http.MethodPost, "/v2/models/pair/infer"}, {http.MethodPost, "/v2/repository/index"},
	} {
		s, _, out := i.Do(r.method, r.path, nil)
		if p := inferencetest.ProblemOf(t, s, out); s != http.StatusUnauthorized || p.Code != "missing_credential" || !strings.Contains(out, `"error":`) {
			t.Errorf("%s %s: %d %s, want 401 missing_credential with error", r.method, r.path, s, out)
		}
	}
	for _, path := range []string{"/v2/health/live", "/v2/health/ready"} {
		if s, out := i.Get(path); s != http.StatusOK {
			t.Errorf("%s: %d %s, want 200", path, s, out)
		}
	}
	i.Bearer = "secret-of-the-application"
	i.infer("/v2/models/pair/infer", body)
}

// Rows that came through V2 are followed for drift and counted as those of /predict; those of probes are not.
func TestV2RowsAreCountedAndRecorded(t *testing.T) {
	t.Parallel()
	i := start(t, v2Registry(t))
	const matrix = `{"id": "job-7", "inputs": [{"name": "input", "datatype": "FP32", "shape": [2, 4], "data": [0, 3, 4, 0, 1, 1, 2, 3]}]}`
	i.infer("/v2/models/rows/infer", matrix)
	i.infer("/v2/models/rows/infer", matrix, "X-Platform-Probe", "1")
	i.Do(http.MethodPost, "/v2/models/rows/infer", `{"inputs": [{"name": "input", "datatype": "INT64", "shape": [1, 4], "data": [1, 2, 3, 4]}]}`)
	_, text := i.Get("/metrics")
	for _, want := range []string{
		`predict_requests_total{alias="Production",model="ROWS",status="success"} 1`,
		`predict_requests_total{alias="Production",model="ROWS",status="mismatch"} 1`,
		`predict_probes_total{alias="Production",model="ROWS",status="success"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("metrics do not have %s", want)
		}
	}
	testenv.Eventually(t, testWait, func() error {
		var got []string
		for _, s := range i.snapshots("ROWS") {
			got = append(got, fmt.Sprintf("%s %s %v %s norm %.3g", s.source, s.alias, s.prediction, s.job, s.norm))
		}
		if diff := cmp.Diff([]string{"v2 Production 71 job-7 norm 5", "v2 Production 332 job-7 norm 2.24"}, got); diff != "" {
			return fmt.Errorf("snapshots differ from want:\n%s", diff)
		}
		return nil
	})
}
