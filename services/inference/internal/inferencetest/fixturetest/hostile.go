package fixturetest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/mlp-platform/platform/libs/onnx/graph"
	"github.com/mlp-platform/platform/libs/onnx/onnxpb"
)

// onColumnX is an artifact in the platform's form with one numeric column x and the graph given.
func onColumnX(t testing.TB, name string, onnx []byte) map[string][]byte {
	t.Helper()
	files := Linear(t, name, 0, Column{Name: "x", Kind: "number", Weight: 1})
	files["model.onnx"] = onnx
	return files
}

// build is the graph that fill adds to, with an input x [N, 1]; fill names the output prediction.
func build(t testing.TB, fill func(b *graph.Builder, x string)) []byte {
	t.Helper()
	b := graph.New("hostile", "fixture", "1")
	fill(b, b.Input("x", graph.Float, -1, 1))
	b.Output("prediction", graph.Float, -1, 1)
	raw, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Edit decodes a graph, lets change have it, and encodes it again.
func Edit(t testing.TB, raw []byte, change func(m *onnxpb.ModelProto)) []byte {
	t.Helper()
	var m onnxpb.ModelProto
	if err := proto.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	change(&m)
	out, err := proto.MarshalOptions{Deterministic: true}.Marshal(&m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// EndlessLoop is a graph of some 300 bytes that never answers.
func EndlessLoop(t testing.TB, name string) map[string][]byte {
	t.Helper()
	value := func(name string, elem graph.Elem) *onnxpb.ValueInfoProto {
		return &onnxpb.ValueInfoProto{Name: &name, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
			TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(elem)), Shape: &onnxpb.TensorShapeProto{}}}}}
	}
	raw := build(t, func(b *graph.Builder, x string) { b.Node("Identity", "prediction", []string{x}) })
	raw = Edit(t, raw, func(m *onnxpb.ModelProto) {
		body := &onnxpb.GraphProto{
			Name:  proto.String("body"),
			Input: []*onnxpb.ValueInfoProto{value("i", graph.Int64), value("go", onnxpb.TensorProto_BOOL), value("v", graph.Float)},
			Node: []*onnxpb.NodeProto{
				{OpType: proto.String("Identity"), Input: []string{"go"}, Output: []string{"on"}},
				{OpType: proto.String("Identity"), Input: []string{"v"}, Output: []string{"w"}},
			},
			Output: []*onnxpb.ValueInfoProto{value("on", onnxpb.TensorProto_BOOL), value("w", graph.Float)},
		}
		body.Input[2].Type.GetTensorType().Shape, body.Output[1].Type.GetTensorType().Shape = nil, nil
		m.Graph.Initializer = append(m.Graph.Initializer, &onnxpb.TensorProto{Name: proto.String("yes"), DataType: proto.Int32(int32(onnxpb.TensorProto_BOOL)), Int32Data: []int32{1}})
		m.Graph.Node = []*onnxpb.NodeProto{{
			OpType: proto.String("Loop"), Input: []string{"", "yes", "x"}, Output: []string{"prediction"},
			Attribute: []*onnxpb.AttributeProto{{Name: proto.String("body"), Type: onnxpb.AttributeProto_GRAPH.Enum(), G: body}},
		}}
	})
	return onColumnX(t, name, raw)
}

// MemoryBomb is a graph of some 200 bytes that allocates gigabytes, by the operator given: ConstantOfShape, Expand or
// Tile.
func MemoryBomb(t testing.TB, name, op string, values int64) map[string][]byte {
	t.Helper()
	return onColumnX(t, name, build(t, func(b *graph.Builder, x string) {
		var huge string
		switch op {
		case "ConstantOfShape":
			huge = b.Node(op, "huge", []string{b.Int64s("shape", []int64{1, values})})
		case "Expand":
			huge = b.Node(op, "huge", []string{x, b.Int64s("shape", []int64{1, values})})
		default:
			huge = b.Node("Tile", "huge", []string{x, b.Int64s("repeats", []int64{1, values})})
		}
		sum := b.Node("ReduceMax", "sum", []string{huge}, graph.AttrInts("axes", []int64{1}))
		b.Node("Add", "prediction", []string{x, sum})
	}))
}

// SizedByRows is a graph that is small for every number of rows but one, for which it allocates gigabytes: neither a
// run of one row nor one of many reveals that.
func SizedByRows(t testing.TB, name string, rows, values int64) map[string][]byte {
	t.Helper()
	return onColumnX(t, name, build(t, func(b *graph.Builder, x string) {
		n := b.Node("Gather", "n", []string{b.Node("Shape", "shape", []string{x}), b.Int64s("first", []int64{0})})
		hit := b.Node("Equal", "hit", []string{n, b.Int64s("bad", []int64{rows})})
		size := b.Node("Where", "size", []string{hit, b.Int64s("large", []int64{values}), b.Int64s("small", []int64{1})})
		huge := b.Node("ConstantOfShape", "huge", []string{size})
		b.Node("Add", "prediction", []string{x, b.Node("ReduceMax", "most", []string{huge}, graph.AttrInts("axes", []int64{0}))})
	}))
}

// SlowOnLarge answers 0 at once for x = 0, and after many seconds for x = 1e300: the remainder of a division takes as
// long as the exponents differ.
func SlowOnLarge(t testing.TB, name string) map[string][]byte {
	t.Helper()
	const width, rounds = 1 << 17, 60
	b := graph.New("slow", "fixture", "1")
	x := b.Input("x", onnxpb.TensorProto_DOUBLE, -1, 1)
	double := graph.AttrInt("to", int64(onnxpb.TensorProto_DOUBLE))
	zeros := b.Node("Cast", "zeros", []string{b.Node("ConstantOfShape", "zeros32", []string{b.Int64s("shape", []int64{1, width})})}, double)
	tiny := b.Node("Cast", "tiny", []string{b.Floats("tiny32", []float32{1e-44})}, double)
	h := b.Node("Add", "wide", []string{x, zeros})
	for i := range rounds {
		rest := b.Node("Mod", fmt.Sprintf("rest%d", i), []string{h, tiny}, graph.AttrInt("fmod", 1))
		h = b.Node("Add", fmt.Sprintf("h%d", i), []string{x, rest})
	}
	b.Node("ReduceMin", "prediction", []string{b.Node("Mod", "rest", []string{h, tiny}, graph.AttrInt("fmod", 1))}, graph.AttrInts("axes", []int64{1}))
	b.Output("prediction", onnxpb.TensorProto_DOUBLE, -1, 1)
	raw, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return onColumnX(t, name, raw)
}

// NestedGraphs is a graph within a graph, depth times, without an If that ORT would ever run.
func NestedGraphs(depth int) []byte {
	var inner []byte
	for range depth {
		attr := protowire.AppendBytes(protowire.AppendTag(nil, 6, protowire.BytesType), inner) // AttributeProto.g
		node := protowire.AppendBytes(protowire.AppendTag(nil, 5, protowire.BytesType), attr)  // NodeProto.attribute
		inner = protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), node)  // GraphProto.node
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, 7, protowire.BytesType), inner) // ModelProto.graph
}

// EmptyNodes is a graph of n nodes of two bytes each, which become a hundred times as much once decoded.
func EmptyNodes(n int) []byte {
	var g []byte
	for range n {
		g = append(g, 1<<3|2, 0) // GraphProto.node, of no bytes
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, 7, protowire.BytesType), g)
}

// Hostile is one file of Hostiles.
type Hostile struct {
	Kind  string
	Files map[string][]byte
}

// Hostiles generates n artifacts that must not be served, the same ones for a seed: by construction, each is damaged or
// requests more than there is.
func Hostiles(t testing.TB, n int, seed uint64) []Hostile {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, seed))
	good := Trees(t, "hostile", 4, 3, 3)["model.onnx"]
	linear := build(t, func(b *graph.Builder, x string) {
		b.Node("Add", "prediction", []string{b.Node("Mul", "twice", []string{x, b.Floats("two", []float32{2})}), b.Floats("one", []float32{1})})
	})
	edit := func(change func(m *onnxpb.ModelProto)) []byte { return Edit(t, linear, change) }
	kinds := []struct {
		name string
		make func() []byte
	}{
		{"truncated", func() []byte { return good[:1+r.IntN(len(good)-len(good)/4)] }},
		{"random bytes", func() []byte {
			b := make([]byte, 1+r.IntN(4096))
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			b[0] = 0xff // no tag of any message
			return b
		}},
		{"huge dimension", func() []byte {
			return edit(func(m *onnxpb.ModelProto) {
				m.Graph.Initializer[r.IntN(2)].Dims = []int64{1 << (20 + r.IntN(42))}
			})
		}},
		{"negative dimension", func() []byte {
			return edit(func(m *onnxpb.ModelProto) { m.Graph.Initializer[r.IntN(2)].Dims = []int64{-1 - r.Int64N(1<<40)} })
		}},
		{"huge input", func() []byte {
			return edit(func(m *onnxpb.ModelProto) {
				m.Graph.Input[0].Type.GetTensorType().Shape.Dim[1].Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: 1 << (21 + r.IntN(40))}
			})
		}},
		{"cycle", func() []byte {
			return edit(func(m *onnxpb.ModelProto) { m.Graph.Node[0].Input[0] = "prediction" })
		}},
		{"missing initializer", func() []byte {
			return edit(func(m *onnxpb.ModelProto) {
				at := r.IntN(2)
				m.Graph.Initializer = append(m.Graph.Initializer[:at:at], m.Graph.Initializer[at+1:]...)
			})
		}},
		{"nested graphs", func() []byte { return NestedGraphs(16 + r.IntN(4000)) }},
		{"empty nodes", func() []byte { return EmptyNodes(150_000 + r.IntN(400_000)) }},
		{"foreign operator", func() []byte {
			return edit(func(m *onnxpb.ModelProto) {
				m.Graph.Node[0].OpType = proto.String([]string{"Loop", "RandomNormal", "PyOp", "StringConcat", "SequenceEmpty", "ImageDecoder", "NoSuch"}[r.IntN(7)])
			})
		}},
		{"foreign domain", func() []byte {
			return edit(func(m *onnxpb.ModelProto) {
				m.Graph.Node[0].Domain = proto.String(fmt.Sprintf("com.evil%d", r.IntN(99)))
			})
		}},
		{"file outside", func() []byte {
			return edit(func(m *onnxpb.ModelProto) {
				c := m.Graph.Initializer[r.IntN(2)]
				c.FloatData, c.DataLocation = nil, onnxpb.TensorProto_EXTERNAL.Enum()
				c.ExternalData = []*onnxpb.StringStringEntryProto{{Key: proto.String("location"), Value: proto.String("/proc/self/environ")}}
			})
		}},
		{"tree that leads back", func() []byte {
			return Edit(t, good, func(m *onnxpb.ModelProto) {
				for _, n := range m.Graph.Node {
					for _, a := range n.Attribute {
						if a.GetName() == "nodes_truenodeids" {
							a.Ints[0] = 0
						}
					}
				}
			})
		}},
		{"memory", func() []byte {
			op := []string{"ConstantOfShape", "Expand", "Tile"}[r.IntN(3)]
			return MemoryBomb(t, "hostile", op, 1<<(28+r.IntN(8)))["model.onnx"]
		}},
		{"size by rows", func() []byte { return SizedByRows(t, "hostile", 1+r.Int64N(8), 1<<34)["model.onnx"] }},
		{"no graph", func() []byte { return edit(func(m *onnxpb.ModelProto) { m.Graph = nil }) }},
		{"no outputs", func() []byte { return edit(func(m *onnxpb.ModelProto) { m.Graph.Output = nil }) }},
		{"wrong types", func() []byte {
			return edit(func(m *onnxpb.ModelProto) {
				m.Graph.Initializer[0].DataType = proto.Int32(int32([]graph.Elem{graph.Int64, graph.String, onnxpb.TensorProto_COMPLEX64}[r.IntN(3)]))
			})
		}},
		{"function", func() []byte {
			return edit(func(m *onnxpb.ModelProto) {
				m.Functions = []*onnxpb.FunctionProto{{Name: proto.String("f"), Domain: proto.String("")}}
			})
		}},
		{"endless loop", func() []byte { return EndlessLoop(t, "hostile")["model.onnx"] }},
	}
	out := make([]Hostile, n)
	for i := range out {
		k := kinds[i%len(kinds)]
		files := onColumnX(t, "hostile", k.make())
		if k.name == "truncated" || k.name == "tree that leads back" {
			files = Trees(t, "hostile", 4, 1, 1)
			files["model.onnx"] = k.make()
		}
		out[i] = Hostile{k.name, files}
	}
	return out
}
