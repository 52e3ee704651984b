// Package graph builds ONNX models node by node: opset 17 and ai.onnx.ml 3, which ONNX Runtime has served
// since 1.12 and every converter knows.
package graph

import (
	"fmt"

	"github.com/mlp-platform/platform/libs/onnx/onnxpb"
	"google.golang.org/protobuf/proto"
)

// Versions that a built model declares.
const (
	Opset   = 17
	MLOpset = 3
	ir      = 8 // the IR version of opset 17's time
)

// ML is the domain of the classical machine-learning operators.
const ML = "ai.onnx.ml"

// Elem is an element type.
type Elem = onnxpb.TensorProto_DataType

// The element types that tables need.
const (
	Float  = onnxpb.TensorProto_FLOAT
	Int64  = onnxpb.TensorProto_INT64
	String = onnxpb.TensorProto_STRING
)

// Builder collects a graph. Values are referred to by name; nodes are to be added in the order they run.
type Builder struct {
	model *onnxpb.ModelProto
	graph *onnxpb.GraphProto
	taken map[string]bool
	err   error // the first fault, reported by Bytes
}

// New starts a model with that graph name.
func New(name, producer, version string) *Builder {
	g := &onnxpb.GraphProto{Name: proto.String(name)}
	return &Builder{
		graph: g,
		taken: map[string]bool{},
		model: &onnxpb.ModelProto{
			IrVersion:       proto.Int64(ir),
			ProducerName:    proto.String(producer),
			ProducerVersion: proto.String(version),
			Graph:           g,
			OpsetImport: []*onnxpb.OperatorSetIdProto{
				{Domain: proto.String(""), Version: proto.Int64(Opset)},
				{Domain: proto.String(ML), Version: proto.Int64(MLOpset)},
			},
		},
	}
}

// Describe sets the model's documentation text.
func (b *Builder) Describe(doc string) { b.model.DocString = proto.String(doc) }

// Meta adds an entry to the model's metadata.
func (b *Builder) Meta(key, value string) {
	b.model.MetadataProps = append(b.model.MetadataProps, &onnxpb.StringStringEntryProto{Key: proto.String(key), Value: proto.String(value)})
}

// Input declares a graph input; a dimension of −1 is the number of rows.
func (b *Builder) Input(name string, elem Elem, dims ...int64) string {
	b.take(name)
	b.graph.Input = append(b.graph.Input, valueInfo(name, elem, dims))
	return name
}

// Output declares that the graph answers the value of that name.
func (b *Builder) Output(name string, elem Elem, dims ...int64) {
	b.graph.Output = append(b.graph.Output, valueInfo(name, elem, dims))
}

func valueInfo(name string, elem Elem, dims []int64) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range dims {
		dim := &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d}}
		if d < 0 {
			dim.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: "N"}
		}
		shape.Dim = append(shape.Dim, dim)
	}
	return &onnxpb.ValueInfoProto{
		Name: proto.String(name),
		Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{
			ElemType: proto.Int32(int32(elem)), Shape: shape,
		}}},
	}
}

// Floats adds a constant; without dims it is a vector.
func (b *Builder) Floats(name string, values []float32, dims ...int64) string {
	t := b.constant(name, Float, len(values), dims)
	t.FloatData = values
	return name
}

// Int64s adds a constant vector.
func (b *Builder) Int64s(name string, values []int64) string {
	t := b.constant(name, Int64, len(values), nil)
	t.Int64Data = values
	return name
}

// Strings adds a constant vector.
func (b *Builder) Strings(name string, values []string) string {
	t := b.constant(name, String, len(values), nil)
	for _, v := range values {
		t.StringData = append(t.StringData, []byte(v))
	}
	return name
}

func (b *Builder) constant(name string, elem Elem, n int, dims []int64) *onnxpb.TensorProto {
	b.take(name)
	if dims == nil {
		dims = []int64{int64(n)}
	}
	size := int64(1)
	for _, d := range dims {
		size *= d
	}
	if size != int64(n) {
		b.fail("constant %q has %d values, its dimensions %v require %d", name, n, dims, size)
	}
	t := &onnxpb.TensorProto{Name: proto.String(name), DataType: proto.Int32(int32(elem)), Dims: dims}
	b.graph.Initializer = append(b.graph.Initializer, t)
	return t
}

// Node adds an operator of the default domain with one result, named out, and returns that name.
func (b *Builder) Node(op, out string, inputs []string, attrs ...Attr) string {
	b.add("", op, out, inputs, attrs)
	return out
}

// MLNode is Node for an operator of ai.onnx.ml.
func (b *Builder) MLNode(op, out string, inputs []string, attrs ...Attr) string {
	b.add(ML, op, out, inputs, attrs)
	return out
}

func (b *Builder) add(domain, op, out string, inputs []string, attrs []Attr) {
	for _, in := range inputs {
		if !b.taken[in] {
			b.fail("node %s reads %q, which nothing before it makes", op, in)
		}
	}
	b.take(out)
	n := &onnxpb.NodeProto{Name: proto.String(op + ":" + out), OpType: proto.String(op), Input: inputs, Output: []string{out}}
	if domain != "" {
		n.Domain = proto.String(domain)
	}
	for _, a := range attrs {
		n.Attribute = append(n.Attribute, a.proto)
	}
	b.graph.Node = append(b.graph.Node, n)
}

func (b *Builder) take(name string) {
	switch {
	case name == "":
		b.fail("a value has no name")
	case b.taken[name]:
		b.fail("the name %q is used twice", name)
	}
	b.taken[name] = true
}

func (b *Builder) fail(format string, a ...any) {
	if b.err == nil {
		b.err = fmt.Errorf("building graph: "+format, a...)
	}
}

// Bytes is the encoded model, the same for the same calls.
func (b *Builder) Bytes() ([]byte, error) {
	for _, out := range b.graph.Output {
		if !b.taken[out.GetName()] {
			b.fail("output %q is made by no node", out.GetName())
		}
	}
	if b.err != nil {
		return nil, b.err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(b.model)
}

// Attr is an attribute of a node.
type Attr struct{ proto *onnxpb.AttributeProto }

func newAttr(name string, typ onnxpb.AttributeProto_AttributeType) Attr {
	return Attr{&onnxpb.AttributeProto{Name: proto.String(name), Type: typ.Enum()}}
}

// AttrInt is a whole-number attribute.
func AttrInt(name string, v int64) Attr {
	a := newAttr(name, onnxpb.AttributeProto_INT)
	a.proto.I = proto.Int64(v)
	return a
}

// AttrFloat is a floating-point attribute.
func AttrFloat(name string, v float32) Attr {
	a := newAttr(name, onnxpb.AttributeProto_FLOAT)
	a.proto.F = proto.Float32(v)
	return a
}

// AttrString is a text attribute.
func AttrString(name, v string) Attr {
	a := newAttr(name, onnxpb.AttributeProto_STRING)
	a.proto.S = []byte(v)
	return a
}

// AttrInts is a list of whole numbers.
func AttrInts(name string, v []int64) Attr {
	a := newAttr(name, onnxpb.AttributeProto_INTS)
	a.proto.Ints = v
	return a
}

// AttrFloats is a list of floating-point numbers.
func AttrFloats(name string, v []float32) Attr {
	a := newAttr(name, onnxpb.AttributeProto_FLOATS)
	a.proto.Floats = v
	return a
}

// AttrStrings is a list of texts.
func AttrStrings(name string, v []string) Attr {
	a := newAttr(name, onnxpb.AttributeProto_STRINGS)
	for _, s := range v {
		a.proto.Strings = append(a.proto.Strings, []byte(s))
	}
	return a
}
