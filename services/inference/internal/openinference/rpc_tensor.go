package openinference

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/openinference/oippb"
	"github.com/mlp-platform/platform/services/inference/internal/request"
)

// message reads an inference request and collects its faults.
type message struct {
	query
	faults []problem.Field
}

func (m *message) fault(msg string, loc ...string) {
	const most = 50
	if len(m.faults) < most {
		m.faults = append(m.faults, problem.Field{Loc: append([]string{"body"}, loc...), Msg: msg})
	}
}

// readMessage reads a gRPC message. Outputs take the form of the inputs, raw or typed, unless the parameter
// binary_data_output overrides it.
func readMessage(in *oippb.ModelInferRequest) (query, []problem.Field) {
	m := &message{query: query{version: in.ModelVersion}}
	m.ID, m.BinaryOutput = in.Id, len(in.RawInputContents) > 0
	if msg := request.CheckJobID(in.Id); msg != "" {
		m.fault(msg, "id")
	}
	m.parameters(in.Parameters)
	switch {
	case len(in.Inputs) == 0:
		m.fault("there must be at least one tensor", "inputs")
	case len(in.Inputs) > request.MaxTensors || len(in.Outputs) > request.MaxTensors:
		m.fault("there are more than "+strconv.Itoa(request.MaxTensors), "inputs")
	case len(in.RawInputContents) > 0 && len(in.RawInputContents) != len(in.Inputs):
		m.fault(fmt.Sprintf("there are %d raw contents for %d tensors; send one for each tensor, or none", len(in.RawInputContents), len(in.Inputs)), "raw_input_contents")
	}
	if m.faults != nil {
		return m.query, m.faults
	}
	for i, t := range in.Inputs {
		var raw []byte
		if len(in.RawInputContents) > 0 {
			if raw = in.RawInputContents[i]; raw == nil {
				raw = []byte{}
			}
		}
		m.input(i, t, raw)
	}
	for i, o := range in.Outputs {
		m.output(i, o)
	}
	return m.query, m.faults
}

func (m *message) parameters(params map[string]*oippb.InferParameter) {
	for name, p := range params {
		switch choice := p.GetParameterChoice().(type) {
		case *oippb.InferParameter_StringParam:
			if name == "alias" {
				m.Alias = choice.StringParam
				continue
			}
		case *oippb.InferParameter_Int64Param:
			if name == "timeout" && choice.Int64Param >= 0 {
				m.Timeout = choice.Int64Param
				continue
			}
		case *oippb.InferParameter_BoolParam:
			if name == "binary_data_output" {
				m.BinaryOutput = choice.BoolParam
				continue
			}
		}
		switch name {
		case "alias":
			m.fault("expected a string", "parameters", name)
		case "timeout":
			m.fault("expected a number of microseconds, at least 0", "parameters", name)
		case "binary_data_output":
			m.fault("expected true or false", "parameters", name)
		}
		// Other parameters select features that this service does not have, such as priorities and sequences of
		// requests.
	}
}

func (m *message) input(i int, t *oippb.ModelInferRequest_InferInputTensor, raw []byte) {
	at := strconv.Itoa(i)
	if msg := request.CheckShape(t.GetShape()); msg != "" {
		m.fault(msg, "inputs", at, "shape")
	}
	if t.GetParameters()[request.SharedMemory] != nil {
		m.fault(request.NoSharedInput, "inputs", at, "parameters", request.SharedMemory)
		return
	}
	switch contents := t.GetContents(); {
	case raw == nil && contents == nil:
		m.fault("this member is missing", "inputs", at, "contents")
		return
	case raw != nil && contents != nil:
		m.fault("a tensor has either contents or raw contents", "inputs", at, "contents")
		return
	case raw == nil:
		var msg string
		if raw, msg = encodeContents(t.GetDatatype(), contents); msg != "" {
			m.fault(msg, "inputs", at, "contents")
			return
		}
	}
	m.tensors = append(m.tensors, sent{request.InferInput{Name: t.GetName(), Datatype: t.GetDatatype(), Shape: t.GetShape(), BinarySize: -1}, i, raw})
}

func (m *message) output(i int, o *oippb.ModelInferRequest_InferRequestedOutputTensor) {
	at := strconv.Itoa(i)
	out := request.InferOutput{Name: o.GetName(), Binary: m.BinaryOutput}
	for name, p := range o.GetParameters() {
		switch {
		case name == "classification" && p.GetInt64Param() != 0:
			m.fault(request.NoClassification, "outputs", at, "parameters", name)
		case name == request.SharedMemory:
			m.fault(request.NoSharedOutput, "outputs", at, "parameters", name)
		}
	}
	if out.Name == "" {
		m.fault("this member is missing", "outputs", at, "name")
	}
	m.Outputs = append(m.Outputs, out)
}

// encodeContents returns the raw form of typed contents, so that both are checked alike; or the fault.
func encodeContents(datatype string, c *oippb.InferTensorContents) (raw []byte, msg string) {
	t := runtime.Tensor{}
	field, n := "", 0
	switch datatype {
	case "FP32":
		field, n, t.Floats = "fp32_contents", len(c.Fp32Contents), c.Fp32Contents
	case "FP64":
		field, n, t.Doubles = "fp64_contents", len(c.Fp64Contents), c.Fp64Contents
	case "INT64":
		field, n, t.Int64s = "int64_contents", len(c.Int64Contents), c.Int64Contents
	case "INT32", "INT16", "INT8":
		field, n, t.Int32s = "int_contents", len(c.IntContents), c.IntContents
	case "UINT8", "UINT16", "UINT32":
		field, n, t.Int64s = "uint_contents", len(c.UintContents), convertSlice[int64](c.UintContents)
	case "UINT64":
		field, n, t.Int64s = "uint64_contents", len(c.Uint64Contents), convertSlice[int64](c.Uint64Contents)
	case "BOOL":
		field, n, t.Bools = "bool_contents", len(c.BoolContents), c.BoolContents
	case "BYTES":
		field, n = "bytes_contents", len(c.BytesContents)
	case "FP16", "BF16":
		return nil, "the protocol has no contents of " + datatype + "; send raw_input_contents"
	default:
		return []byte{}, "" // the model's check reports the datatype it takes
	}
	all := len(c.BoolContents) + len(c.IntContents) + len(c.Int64Contents) + len(c.UintContents) + len(c.Uint64Contents) + len(c.Fp32Contents) + len(c.Fp64Contents) + len(c.BytesContents)
	if all != n {
		return nil, fmt.Sprintf("%d values are in other members than %s, which is that of %s", all-n, field, datatype)
	}
	narrow := runtime.NarrowNamed(strings.ToLower(datatype))
	if narrow != nil {
		if msg := request.CheckNarrow(narrow, datatype, &t); msg != "" {
			return nil, msg
		}
	}
	if datatype != "BYTES" {
		return appendBinary(make([]byte, 0, binarySize(&t, narrow)), &t, narrow), ""
	}
	raw = []byte{}
	for _, v := range c.BytesContents {
		if len(v) > math.MaxInt32 {
			return nil, "a text is too long"
		}
		raw = append(binary.LittleEndian.AppendUint32(raw, uint32(len(v))), v...)
	}
	return raw, ""
}

// makeMessage is the response. Raw contents are for all outputs or none, as clients find them by their place.
func makeMessage(slot *catalog.Slot, id string, outs []runtime.Tensor, wanted []wantedOutput) *oippb.ModelInferResponse {
	out := &oippb.ModelInferResponse{ModelName: slot.Name, ModelVersion: slot.Version, Id: id, Parameters: map[string]*oippb.InferParameter{}}
	text := func(name, value string) {
		out.Parameters[name] = &oippb.InferParameter{ParameterChoice: &oippb.InferParameter_StringParam{StringParam: value}}
	}
	if slot.Alias != "" {
		text("alias", slot.Alias)
	}
	if name, ok := wantedAnswer(slot, wanted); ok {
		text("answer", name)
	}
	// 16-bit floats have no contents.
	raw := slices.ContainsFunc(wanted, func(w wantedOutput) bool { return isRawOnly(datatypeOf(slot.Model.Outputs()[w.index])) })
	for _, w := range wanted {
		t, info := &outs[w.index], slot.Model.Outputs()[w.index]
		o := &oippb.ModelInferResponse_InferOutputTensor{Name: info.Name, Datatype: datatypeOf(info), Shape: t.Dims}
		if w.binary || raw {
			out.RawOutputContents = append(out.RawOutputContents, appendBinary(make([]byte, 0, binarySize(t, info.Narrow)), t, info.Narrow))
		} else {
			o.Contents = contentsOf(t, o.Datatype)
		}
		out.Outputs = append(out.Outputs, o)
	}
	return out
}

// isRawOnly reports whether the protocol has no typed contents of a data type.
func isRawOnly(datatype string) bool { return datatype == "FP16" || datatype == "BF16" }

func contentsOf(t *runtime.Tensor, datatype string) *oippb.InferTensorContents {
	switch datatype {
	case "UINT8", "UINT16", "UINT32":
		return &oippb.InferTensorContents{UintContents: append(convertSlice[uint32](t.Int32s), convertSlice[uint32](t.Int64s)...)}
	case "UINT64":
		return &oippb.InferTensorContents{Uint64Contents: convertSlice[uint64](t.Int64s)}
	}
	c := &oippb.InferTensorContents{BoolContents: t.Bools, IntContents: t.Int32s, Int64Contents: t.Int64s, Fp32Contents: t.Floats, Fp64Contents: t.Doubles}
	for _, s := range t.Strings {
		c.BytesContents = append(c.BytesContents, []byte(s))
	}
	return c
}

// convertSlice returns the integers as another type, which must hold them.
func convertSlice[To, From int32 | int64 | uint32 | uint64](values []From) []To {
	out := make([]To, len(values))
	for i, v := range values {
		out[i] = To(v)
	}
	return out
}
