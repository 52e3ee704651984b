package runtime

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mlp-platform/platform/libs/onnx/onnxpb"
	"google.golang.org/protobuf/proto"
)

// Narrow is an element type that a file declares and that Go holds as a wider one: 16-bit floats, for which Go has no
// type, and integers other than int32 and int64. The graph casts its inputs and outputs, so that nothing else needs a
// case for them.
type Narrow struct {
	Name     string  // "uint8"
	Bytes    int     // of one value
	Min, Max float64 // the range of finite values
	wide     onnxpb.TensorProto_DataType
}

const (
	maxHalf  = 65504                   // of float16
	maxBrain = 0x1p127 * (2 - 1.0/128) // of bfloat16
	maxWide  = float64(math.MaxInt64)  // of an uint64: what an int64 holds
)

var narrows = map[onnxpb.TensorProto_DataType]*Narrow{
	onnxpb.TensorProto_FLOAT16:  {"float16", 2, -maxHalf, maxHalf, onnxpb.TensorProto_FLOAT},
	onnxpb.TensorProto_BFLOAT16: {"bfloat16", 2, -maxBrain, maxBrain, onnxpb.TensorProto_FLOAT},
	onnxpb.TensorProto_INT8:     {"int8", 1, math.MinInt8, math.MaxInt8, onnxpb.TensorProto_INT32},
	onnxpb.TensorProto_UINT8:    {"uint8", 1, 0, math.MaxUint8, onnxpb.TensorProto_INT32},
	onnxpb.TensorProto_INT16:    {"int16", 2, math.MinInt16, math.MaxInt16, onnxpb.TensorProto_INT32},
	onnxpb.TensorProto_UINT16:   {"uint16", 2, 0, math.MaxUint16, onnxpb.TensorProto_INT32},
	onnxpb.TensorProto_UINT32:   {"uint32", 4, 0, math.MaxUint32, onnxpb.TensorProto_INT64},
	onnxpb.TensorProto_UINT64:   {"uint64", 8, 0, maxWide, onnxpb.TensorProto_INT64},
}

// NarrowNamed returns the narrow type of that name, or nil.
func NarrowNamed(name string) *Narrow {
	for _, n := range narrows {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// Append appends a tensor's values in the narrow type, little-endian. They must be in its range.
func (n *Narrow) Append(dst []byte, t *Tensor) []byte {
	for _, v := range t.Floats {
		dst = binary.LittleEndian.AppendUint16(dst, n.bits(v))
	}
	put := func(v uint64) {
		for range n.Bytes {
			dst = append(dst, byte(v))
			v >>= 8
		}
	}
	for _, v := range t.Int32s {
		put(uint64(v))
	}
	for _, v := range t.Int64s {
		put(uint64(v))
	}
	return dst
}

// Decode fills t from values in the narrow type, of which raw has as many. An uint64 too large for int64 becomes negative.
func (n *Narrow) Decode(raw []byte, t *Tensor) {
	get := func(i int) (v uint64) {
		for k := n.Bytes - 1; k >= 0; k-- {
			v = v<<8 | uint64(raw[i*n.Bytes+k])
		}
		if n.Min < 0 { // the sign
			free := 64 - 8*n.Bytes
			return uint64(int64(v<<free) >> free)
		}
		return v
	}
	for i := range t.Floats {
		t.Floats[i] = n.float(binary.LittleEndian.Uint16(raw[2*i:]))
	}
	for i := range t.Int32s {
		t.Int32s[i] = int32(get(i))
	}
	for i := range t.Int64s {
		t.Int64s[i] = int64(get(i))
	}
}

// Beyond returns the place of the first value that the narrow type cannot hold, or −1. NaN is none.
func (n *Narrow) Beyond(t *Tensor) int {
	for i, v := range t.Floats {
		if math.Abs(float64(v)) > n.Max {
			return i
		}
	}
	for i, v := range t.Int32s {
		if float64(v) < n.Min || float64(v) > n.Max {
			return i
		}
	}
	for i, v := range t.Int64s {
		if float64(v) < n.Min || float64(v) > n.Max {
			return i
		}
	}
	return -1
}

// round rounds floats to the narrow type. The library leaves out casts between the two, and computes with more digits
// than the file states.
func (n *Narrow) round(t *Tensor) {
	out := make([]float32, len(t.Floats))
	for i, v := range t.Floats {
		out[i] = n.float(n.bits(v))
	}
	if t.Floats != nil {
		t.Floats = out
	}
}

// settle makes an output what the file declares.
func (n *Narrow) settle(t *Tensor) error {
	n.round(t)
	if n.wide == onnxpb.TensorProto_FLOAT { // infinite values are for the caller to judge
		return nil
	}
	if at := n.Beyond(t); at >= 0 {
		return fmt.Errorf("output %q: value %d of %s is larger than the largest int64", t.Name, at, n.Name)
	}
	return nil
}

func (n *Narrow) bits(v float32) uint16 {
	if n.Max > maxHalf {
		return FloatToBrain(v)
	}
	return FloatToHalf(v)
}

func (n *Narrow) float(bits uint16) float32 {
	if n.Max > maxHalf {
		return math.Float32frombits(uint32(bits) << 16)
	}
	return HalfToFloat(bits)
}

// castNarrows makes the inputs and outputs of narrow types wide ones, by casts within the graph. It returns their types by
// name.
func castNarrows(g *onnxpb.GraphProto) map[string]*Narrow {
	narrow, used := map[string]*Narrow{}, map[string]bool{}
	eachName(g, func(name *string) { used[*name] = true })
	rename := map[string]string{}
	cast := func(v *onnxpb.ValueInfoProto) (inside string, from onnxpb.TensorProto_DataType, ok bool) {
		t := v.GetType().GetTensorType()
		from = onnxpb.TensorProto_DataType(t.GetElemType())
		n := narrows[from]
		if n == nil {
			return "", from, false
		}
		t.ElemType = proto.Int32(int32(n.wide))
		narrow[v.GetName()] = n
		inside = v.GetName() + "_" + n.Name
		for used[inside] {
			inside += "_"
		}
		used[inside], rename[v.GetName()] = true, inside
		return inside, from, true
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
		if inside, elem, ok := cast(v); ok {
			first = append(first, castNode(v.GetName(), inside, elem))
		}
	}
	for _, v := range g.Output {
		if inside, elem, ok := cast(v); ok {
			last = append(last, castNode(inside, v.GetName(), narrows[elem].wide))
		}
	}
	if len(narrow) == 0 {
		return nil
	}
	eachName(g, func(name *string) {
		if to := rename[*name]; to != "" {
			*name = to
		}
	})
	g.Node = append(append(first, g.Node...), last...)
	return narrow
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

// FloatToBrain is the nearest bfloat16, of two the even one: the first 16 bits of a float.
func FloatToBrain(v float32) uint16 {
	bits := math.Float32bits(v)
	if math.IsNaN(float64(v)) {
		return uint16(bits>>16) | 0x40 // no number, whatever is cut off
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}
