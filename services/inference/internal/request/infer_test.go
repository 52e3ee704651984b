package request

import (
	"encoding/json"
	"testing"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
)

// FuzzInfer: an inference request is refused with its faults or is JSON whose tensors can be read, and reading them
// never goes beyond the bytes sent.
func FuzzInfer(f *testing.F) {
	f.Add([]byte(`{"id": "1", "inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 1], "data": [[1], [2e3]]}], "outputs": [{"name": "y", "parameters": {"binary_data": true}}]}`))
	f.Add([]byte(`{"parameters": {"alias": "Canary", "timeout": 5, "binary_data_output": true}, "inputs": [{"name": "x", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 5}}]}`))
	f.Add([]byte(`{"inputs": [{"name": "x", "datatype": "INT64", "shape": [0], "data": []}, [], {"shape": [-1, 1e3]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, faults := ParseInfer(body)
		if faults != nil {
			return
		}
		if !json.Valid(body) || len(p.Inputs) == 0 {
			t.Fatalf("%q is accepted with %d tensors; want JSON with at least one", body, len(p.Inputs))
		}
		for _, in := range p.Inputs {
			n := int64(1)
			for _, d := range in.Shape {
				if n *= d; n > int64(len(body)) {
					return
				}
			}
			raw := body[:min(max(in.BinarySize, 0), len(body))]
			for _, tensor := range []runtime.Tensor{
				{Floats: make([]float32, n)}, {Doubles: make([]float64, n)}, {Int64s: make([]int64, n)}, {Int32s: make([]int32, n)}, {Bools: make([]bool, n)}, {Strings: make([]string, n)},
			} {
				if in.Data != nil {
					FillJSON(in.Data, in.Shape, &tensor, true)
				} else {
					FillBinary(raw, &tensor, true)
				}
			}
		}
	})
}
