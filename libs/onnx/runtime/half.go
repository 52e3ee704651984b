package runtime

import (
	"math"

	"github.com/mlp-platform/platform/libs/onnx/onnxpb"
	"google.golang.org/protobuf/proto"
)

// MaxHalf is the largest number of half precision.
const MaxHalf = 65504

// castHalves turns the inputs and outputs of half precision into single ones: the graph casts its inputs and outputs.
// Go has no 16-bit floats, so each value is a float32. It returns their names.
func castHalves(g *onnxpb.GraphProto) map[string]bool {
	halves, used := map[string]bool{}, map[string]bool{}
	eachName(g, func(name *string) { used[*name] = true })
	rename := map[string]string{}
	cast := func(v *onnxpb.ValueInfoProto) (inside string, ok bool) {
		t := v.GetType().GetTensorType()
		if t.GetElemType() != int32(onnxpb.TensorProto_FLOAT16) {
			return "", false
		}
		t.ElemType = proto.Int32(int32(onnxpb.TensorProto_FLOAT))
		halves[v.GetName()] = true
		inside = v.GetName() + "_fp16"
		for used[inside] {
			inside += "_"
		}
		used[inside], rename[v.GetName()] = true, inside
		return inside, true
	}
	constants := map[string]bool{}
	for _, t := range g.Initializer {
		constants[t.GetName()] = true
	}
	var first, last []*onnxpb.NodeProto
	for _, v := range g.Input {
		if constants[v.GetName()] { // a default value, not an input to be given
			continue
		}
		if inside, ok := cast(v); ok {
			first = append(first, castNode(v.GetName(), inside, onnxpb.TensorProto_FLOAT16))
		}
	}
	for _, v := range g.Output {
		if inside, ok := cast(v); ok {
			last = append(last, castNode(inside, v.GetName(), onnxpb.TensorProto_FLOAT))
		}
	}
	if len(halves) == 0 {
		return nil
	}
	eachName(g, func(name *string) {
		if to := rename[*name]; to != "" {
			*name = to
		}
	})
	g.Node = append(append(first, g.Node...), last...)
	return halves
}

func castNode(from, to string, elem onnxpb.TensorProto_DataType) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{
		OpType: proto.String("Cast"), Input: []string{from}, Output: []string{to},
		Attribute: []*onnxpb.AttributeProto{{Name: proto.String("to"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(int64(elem))}},
	}
}

// eachName calls f for the name of each value within a graph, also in graphs within it. The inputs and outputs that it
// declares itself are left out.
func eachName(g *onnxpb.GraphProto, f func(name *string)) {
	for _, t := range g.Initializer {
		if t.Name != nil {
			f(t.Name)
		}
	}
	for _, v := range g.ValueInfo {
		if v.Name != nil {
			f(v.Name)
		}
	}
	for _, n := range g.Node {
		for i := range n.Input {
			f(&n.Input[i])
		}
		for i := range n.Output {
			f(&n.Output[i])
		}
		for _, sub := range graphsOf(n) {
			for _, v := range append(append([]*onnxpb.ValueInfoProto{}, sub.Input...), sub.Output...) {
				if v.Name != nil {
					f(v.Name)
				}
			}
			eachName(sub, f)
		}
	}
}

// roundHalves rounds single floats to half precision. The library leaves out casts between the two, and computes with
// more digits than the file states.
func roundHalves(values []float32) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = HalfToFloat(FloatToHalf(v))
	}
	return out
}

// HalfToFloat converts 16 bits: a sign, 5 bits of exponent and 10 of fraction (IEEE 754 binary16).
func HalfToFloat(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exponent {
	case 0: // zero, and values below 2^-14
		return math.Float32frombits(sign | math.Float32bits(float32(math.Ldexp(float64(fraction), -24))))
	case 0x1f: // infinite, or no number
		exponent = 0xff - 112
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// FloatToHalf is the nearest number of half precision, of two the even one; infinite from 65520 on.
func FloatToHalf(v float32) uint16 {
	bits := math.Float32bits(v)
	sign, size := uint16(bits>>16)&0x8000, bits&0x7fffffff
	switch {
	case size > 0xff<<23:
		return sign | 0x7e00 // no number
	case size >= math.Float32bits(65520):
		return sign | 0x7c00
	case size < 113<<23: // below 2^-14
		return sign | uint16(math.RoundToEven(math.Ldexp(float64(math.Float32frombits(size)), 24)))
	}
	size += 0xfff + size>>13&1
	return sign | uint16((size-112<<23)>>13)
}
