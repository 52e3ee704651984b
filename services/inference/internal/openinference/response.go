package openinference

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/model"
	"github.com/mlp-platform/platform/services/inference/internal/request"
	"github.com/mlp-platform/platform/services/inference/internal/serving"
)

// wantedOutput is an output of the graph as the response has it.
type wantedOutput struct {
	index  int
	binary bool
}

// chooseOutputs are the outputs that a request wants, in its order; all if it names none.
func chooseOutputs(m *model.Model, p *request.Infer) (out []wantedOutput, faults []problem.Field) {
	graph := m.Outputs()
	if len(p.Outputs) == 0 {
		for i := range graph {
			out = append(out, wantedOutput{i, p.BinaryOutput})
		}
		return out, nil
	}
	names := make([]string, len(graph))
	for i := range graph {
		names[i] = graph[i].Name
	}
	for i, o := range p.Outputs {
		at := slices.Index(names, o.Name)
		twice := at >= 0 && slices.ContainsFunc(out, func(w wantedOutput) bool { return w.index == at })
		switch {
		case at < 0:
			faults = append(faults, problem.Field{Loc: []string{"body", "outputs", strconv.Itoa(i), "name"},
				Msg: "there is no output " + strconv.Quote(problem.Shorten(o.Name)) + "; the outputs are " + listNames(names)})
		case twice:
			faults = append(faults, problem.Field{Loc: []string{"body", "outputs", strconv.Itoa(i), "name"}, Msg: "this output is wanted twice"})
		default:
			out = append(out, wantedOutput{at, o.Binary})
		}
	}
	return out, faults
}

// appendResponse appends the JSON of a response and then the data of its binary outputs; json is the length of the
// first part.
func appendResponse(dst []byte, slot *catalog.Slot, id string, outs []runtime.Tensor, wanted []wantedOutput) (all []byte, json int) {
	dst = append(dst, `{"model_name":`...)
	dst = serving.AppendString(dst, slot.Name)
	dst = append(dst, `,"model_version":`...)
	dst = serving.AppendString(dst, slot.Version)
	if id != "" {
		dst = serving.AppendString(append(dst, `,"id":`...), id)
	}
	dst = appendParameters(dst, slot, wanted)
	dst = append(dst, `,"outputs":[`...)
	for i, w := range wanted {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendTensor(dst, &outs[w.index], slot.Model.Outputs()[w.index], w.binary)
	}
	dst = append(dst, "]}"...)
	json = len(dst)
	for _, w := range wanted {
		if w.binary {
			dst = appendBinary(dst, &outs[w.index], slot.Model.Outputs()[w.index].Narrow)
		}
	}
	return dst, json
}

// appendParameters appends the alias chosen and the name of the output with the model's answer: a client that wants one
// prediction a row cannot distinguish it from scores or probabilities.
func appendParameters(dst []byte, slot *catalog.Slot, wanted []wantedOutput) []byte {
	sep := `,"parameters":{`
	if slot.Alias != "" {
		dst = append(append(dst, sep...), `"alias":`...)
		dst = serving.AppendString(dst, slot.Alias)
		sep = ","
	}
	if name, ok := wantedAnswer(slot, wanted); ok {
		dst = append(append(dst, sep...), `"answer":`...)
		dst = serving.AppendString(dst, name)
		sep = ","
	}
	if sep == "," {
		dst = append(dst, '}')
	}
	return dst
}

// wantedAnswer is the output that is the model's answer, if it is wanted.
func wantedAnswer(slot *catalog.Slot, wanted []wantedOutput) (name string, ok bool) {
	answer := slot.Model.Answer()
	if !slices.ContainsFunc(wanted, func(w wantedOutput) bool { return w.index == answer }) {
		return "", false
	}
	return slot.Model.Outputs()[answer].Name, true
}

// appendTensor appends a tensor of the type of info, which cannot be seen from the slices of a tensor without values.
func appendTensor(dst []byte, t *runtime.Tensor, info runtime.Info, binary bool) []byte {
	dst = append(dst, `{"name":`...)
	dst = serving.AppendString(dst, t.Name)
	dst = append(dst, `,"datatype":"`...)
	dst = append(dst, datatypeOf(info)...)
	dst = append(dst, `","shape":[`...)
	for i, d := range t.Dims {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, d, 10)
	}
	dst = append(dst, ']')
	if binary {
		dst = append(dst, `,"parameters":{"binary_data_size":`...)
		dst = strconv.AppendInt(dst, int64(binarySize(t, info.Narrow)), 10)
		return append(dst, "}}"...)
	}
	dst = append(dst, `,"data":[`...)
	switch {
	case t.Floats != nil:
		dst = appendList(dst, t.Floats, func(dst []byte, v float32) []byte { return serving.AppendNumber(dst, float64(v), true) })
	case t.Doubles != nil:
		dst = appendList(dst, t.Doubles, func(dst []byte, v float64) []byte { return serving.AppendNumber(dst, v, false) })
	case t.Int64s != nil:
		dst = appendList(dst, t.Int64s, func(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) })
	case t.Int32s != nil:
		dst = appendList(dst, t.Int32s, func(dst []byte, v int32) []byte { return strconv.AppendInt(dst, int64(v), 10) })
	case t.Bools != nil:
		dst = appendList(dst, t.Bools, strconv.AppendBool)
	default:
		dst = appendList(dst, t.Strings, serving.AppendString)
	}
	return append(dst, "]}"...)
}

func appendList[T any](dst []byte, values []T, each func([]byte, T) []byte) []byte {
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = each(dst, v)
	}
	return dst
}

// binarySize returns the number of bytes that appendBinary appends.
func binarySize(t *runtime.Tensor, narrow *runtime.Narrow) int {
	if narrow != nil {
		return narrow.Bytes * (len(t.Floats) + len(t.Int32s) + len(t.Int64s))
	}
	n := 4*len(t.Floats) + 8*len(t.Doubles) + 8*len(t.Int64s) + 4*len(t.Int32s) + len(t.Bools) + 4*len(t.Strings)
	for _, s := range t.Strings {
		n += len(s)
	}
	return n
}

// appendBinary appends a tensor's values, little-endian and in row-major order; a text follows its length. narrow
// is the type in which the file declares them, if it is another.
func appendBinary(dst []byte, t *runtime.Tensor, narrow *runtime.Narrow) []byte {
	if narrow != nil {
		return narrow.Append(dst, t)
	}
	for _, v := range t.Floats {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
	}
	for _, v := range t.Doubles {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
	}
	for _, v := range t.Int64s {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
	}
	for _, v := range t.Int32s {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
	}
	for _, v := range t.Bools {
		b := byte(0)
		if v {
			b = 1
		}
		dst = append(dst, b)
	}
	for _, s := range t.Strings {
		dst = append(binary.LittleEndian.AppendUint32(dst, uint32(len(s))), s...)
	}
	return dst
}
