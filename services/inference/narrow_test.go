package inference_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/mlp-platform/platform/libs/onnx/onnxpb"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
	"github.com/mlp-platform/platform/services/inference/internal/openinference/oippb"
)

// Element types for which Go has no tensor, or that a graph casts, keep their names, ranges and bytes on the wire, in all
// three forms.
func TestNarrowElementTypes(t *testing.T) {
	t.Parallel()
	cases := []struct {
		datatype  string
		elem      onnxpb.TensorProto_DataType
		low, high string // the ends of the range, which are answered as they are
		raw       string // of both
		beyond    string // refused
		typed     *oippb.InferTensorContents
	}{
		{"UINT8", onnxpb.TensorProto_UINT8, "0", "255", "\x00\xff", "256", &oippb.InferTensorContents{UintContents: []uint32{0, 255}}},
		{"INT8", onnxpb.TensorProto_INT8, "-128", "127", "\x80\x7f", "128", &oippb.InferTensorContents{IntContents: []int32{-128, 127}}},
		{"UINT16", onnxpb.TensorProto_UINT16, "0", "65535", "\x00\x00\xff\xff", "-1", &oippb.InferTensorContents{UintContents: []uint32{0, 65535}}},
		{"INT16", onnxpb.TensorProto_INT16, "-32768", "32767", "\x00\x80\xff\x7f", "-32769", &oippb.InferTensorContents{IntContents: []int32{-32768, 32767}}},
		{"UINT32", onnxpb.TensorProto_UINT32, "0", "4294967295", "\x00\x00\x00\x00\xff\xff\xff\xff", "4294967296", &oippb.InferTensorContents{UintContents: []uint32{0, 4294967295}}},
		{"UINT64", onnxpb.TensorProto_UINT64, "0", "9223372036854775807", "\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\x7f", "9223372036854775808", &oippb.InferTensorContents{Uint64Contents: []uint64{0, 9223372036854775807}}},
		{"FP16", onnxpb.TensorProto_FLOAT16, "-65504", "0.25", "\xff\xfb\x00\x34", "65536", nil},
		{"BF16", onnxpb.TensorProto_BFLOAT16, "-1.5", "256", "\xc0\xbf\x80\x43", "3.4e38", nil},
	}
	reg := fixturetest.NewRegistry(t)
	for _, c := range cases {
		reg.Alias(c.datatype, "Production", reg.Register(c.datatype, fixturetest.Echo(t, c.datatype, c.elem), nil))
	}
	i, client := startGRPC(t, reg)
	for _, c := range cases {
		t.Run(c.datatype, func(t *testing.T) {
			path := "/v2/models/" + c.datatype
			if s, out := i.Get(path); s != http.StatusOK || strings.Count(out, `"datatype":"`+c.datatype+`"`) != 2 {
				t.Errorf("metadata: %d %s, want two tensors of %s", s, out, c.datatype)
			}
			body := func(low, high string) string {
				return fmt.Sprintf(`{"inputs": [{"name": "x", "datatype": %q, "shape": [1, 2], "data": [%s, %s]}]}`, c.datatype, low, high)
			}
			if s, out := i.Post(path+"/infer", body(c.low, c.high)); s != http.StatusOK || !strings.Contains(out, fmt.Sprintf(`"data":[%s,%s]`, c.low, c.high)) {
				t.Errorf("JSON: %d %s, want %s and %s", s, out, c.low, c.high)
			}
			if s, out := i.Post(path+"/infer", body(c.beyond, "0")); s != http.StatusBadRequest || !strings.Contains(out, "inputs") {
				t.Errorf("JSON: %s: %d %s, want 400", c.beyond, s, out)
			}
			head := fmt.Sprintf(`{"inputs": [{"name": "x", "datatype": %q, "shape": [1, 2], "parameters": {"binary_data_size": %d}}], "parameters": {"binary_data_output": true}}`, c.datatype, len(c.raw))
			if s, _, out := i.Do(http.MethodPost, path+"/infer", head+c.raw, "Inference-Header-Content-Length", strconv.Itoa(len(head))); s != http.StatusOK || !strings.HasSuffix(out, c.raw) {
				t.Errorf("binary: %d %q, want the bytes %q", s, out, c.raw)
			}
			tensor := &oippb.ModelInferRequest_InferInputTensor{Name: "x", Datatype: c.datatype, Shape: []int64{1, 2}}
			ask := infer(c.datatype, tensor)
			ask.RawInputContents = [][]byte{[]byte(c.raw)}
			if got, err := client.ModelInfer(t.Context(), ask); err != nil || string(got.RawOutputContents[0]) != c.raw {
				t.Errorf("gRPC, raw: %v, %v, want the bytes %q", got, err, c.raw)
			}
			if c.typed == nil {
				return
			}
			tensor.Contents, ask.RawInputContents = c.typed, nil
			got, err := client.ModelInfer(t.Context(), ask)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.typed, got.Outputs[0].Contents, protocmp.Transform()); diff != "" {
				t.Errorf("gRPC, typed: the answer differs:\n%s", diff)
			}
		})
	}
}
