package openinference

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
	"github.com/mlp-platform/platform/services/inference/internal/openinference/oippb"
	"github.com/mlp-platform/platform/services/inference/internal/request"
)

// FuzzMessage: a message that passes the checks before decoding takes memory in proportion to its bytes once it is decoded
// and read; it gives as many tensors as it has, or up to fifty faults.
func FuzzMessage(f *testing.F) {
	for _, m := range []*oippb.ModelInferRequest{
		{},
		{ModelName: "m", Id: "1", Inputs: []*oippb.ModelInferRequest_InferInputTensor{{Name: "x", Datatype: "FP32", Shape: []int64{1, 2}, Contents: &oippb.InferTensorContents{Fp32Contents: []float32{1, 2}}}}},
		{Inputs: []*oippb.ModelInferRequest_InferInputTensor{{Name: "x", Datatype: "INT64", Shape: []int64{-1, 1 << 62}}}, RawInputContents: [][]byte{make([]byte, 8)}},
		{Inputs: []*oippb.ModelInferRequest_InferInputTensor{{Datatype: "BYTES", Contents: &oippb.InferTensorContents{BytesContents: [][]byte{nil, {0}}}}, {Datatype: "BOOL", Contents: &oippb.InferTensorContents{BoolContents: []bool{true}}}}},
		{Outputs: []*oippb.ModelInferRequest_InferRequestedOutputTensor{{Parameters: map[string]*oippb.InferParameter{request.SharedMemory: {}}}}, Parameters: map[string]*oippb.InferParameter{"alias": {ParameterChoice: &oippb.InferParameter_BoolParam{BoolParam: true}}, "timeout": nil}},
	} {
		wire, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
	}
	f.Add([]byte("\x2a\x80\x80\x80\x80\x08"))
	f.Fuzz(func(t *testing.T, wire []byte) {
		hostiletest.CheckAllocation(t, uint64(1<<20+512*len(wire)), func() {
			in := &oippb.ModelInferRequest{}
			if err := CheckMessage(wire, in); err != nil {
				var fault *problem.Error
				if !errors.As(err, &fault) || fault.Kind.Status < 400 || fault.Kind.Status >= 500 {
					t.Errorf("got %v; want a problem of 4xx", err)
				}
				return
			}
			if proto.Unmarshal(wire, in) != nil {
				return
			}
			if len(in.Inputs) > request.MaxTensors || len(in.Outputs) > request.MaxTensors || len(in.RawInputContents) > request.MaxTensors {
				t.Errorf("%d inputs, %d outputs and %d raw contents passed; want at most %d", len(in.Inputs), len(in.Outputs), len(in.RawInputContents), request.MaxTensors)
			}
			q, faults := readMessage(in)
			if len(faults) > 50 || len(faults) == 0 && (len(q.tensors) != len(in.Inputs) || len(q.Outputs) != len(in.Outputs)) {
				t.Errorf("%d faults, %d of %d tensors, %d of %d outputs; want up to 50 faults, or all", len(faults), len(q.tensors), len(in.Inputs), len(q.Outputs), len(in.Outputs))
			}
		})
	})
}
