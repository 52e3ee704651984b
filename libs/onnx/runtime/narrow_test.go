package runtime_test

import (
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/mlp-platform/platform/libs/onnx/graph"
	"github.com/mlp-platform/platform/libs/onnx/onnxpb"
	"github.com/mlp-platform/platform/libs/onnx/runtime"
)

// Every number of half precision is a float, and the nearest half of that float; between two, the even one is nearest.
func TestHalves(t *testing.T) {
	t.Parallel()
	for h := range 1 << 16 {
		f := runtime.HalfToFloat(uint16(h))
		if math.IsNaN(float64(f)) {
			if h&0x7c00 != 0x7c00 || h&0x3ff == 0 || !math.IsNaN(float64(runtime.HalfToFloat(runtime.FloatToHalf(f)))) {
				t.Fatalf("%#x is %v; want a number", h, f)
			}
			continue
		}
		if back := runtime.FloatToHalf(f); back != uint16(h) {
			t.Fatalf("%#x is %v, whose half is %#x", h, f, back)
		}
		if next := runtime.HalfToFloat(uint16(h + 1)); h&0x7fff < 0x7bff {
			even := uint16(h + h&1)
			if got := runtime.FloatToHalf((f + next) / 2); got != even {
				t.Fatalf("between %v and %v: %#x, want %#x", f, next, got, even)
			}
		}
	}
	for f, want := range map[float32]uint16{0: 0, 1: 0x3c00, -2: 0xc000, 65504: 0x7bff, 65519: 0x7bff, 65520: 0x7c00, 0.1: 0x2e66, 6e-8: 1, 1e-9: 0} {
		if got := runtime.FloatToHalf(f); got != want {
			t.Errorf("%v: %#x, want %#x", f, got, want)
		}
	}
}

// A graph of half precision accepts and returns floats, rounded as the file declares, in whatever way it uses its
// input.
func TestSessionOfHalfPrecision(t *testing.T) {
	t.Parallel()
	b := graph.New("g", "test", "1")
	x := b.Input("x", graph.Float, -1, 1)
	b.Node("Add", "twice", []string{x, x})
	b.Node("Identity", "same", []string{x})
	b.Output("twice", graph.Float, -1, 1)
	b.Output("same", graph.Float, -1, 1)
	data, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	var m onnxpb.ModelProto
	if err := proto.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	for _, v := range append(m.Graph.Input, m.Graph.Output...) {
		v.Type.GetTensorType().ElemType = proto.Int32(int32(onnxpb.TensorProto_FLOAT16))
	}
	if data, err = proto.Marshal(&m); err != nil {
		t.Fatal(err)
	}
	s, err := runtime.OpenBytes(data, runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if in, out := s.Inputs()[0], s.Outputs()[1]; in.Narrow == nil || in.Narrow.Name != "float16" || in.Name != "x" || in.Type != runtime.Float || out.Narrow == nil || out.Name != "same" {
		t.Errorf("the input is %+v, the output %+v; want floats of half precision under their own names", in, out)
	}
	given := []float32{0.1, 3}
	out, err := s.Run([]runtime.Tensor{{Floats: given, Dims: []int64{2, 1}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := []float32{out[0].Floats[0], out[0].Floats[1], out[1].Floats[0], out[1].Floats[1], given[0]}; got[0] != 0.19995117 || got[1] != 6 || got[2] != 0.099975586 || got[3] != 3 || got[4] != 0.1 {
		t.Errorf("got %v; want 0.1 rounded to half precision, twice that, and what was given as it was", got)
	}
}

// An answer of uint64 that no int64 holds is an error, not a negative number.
func TestSessionRefusesLargeUnsignedAnswers(t *testing.T) {
	t.Parallel()
	b := graph.New("g", "test", "1")
	x := b.Input("x", onnxpb.TensorProto_UINT64, -1)
	twice := b.Node("Add", "twice", []string{x, x})
	b.Node("Sub", "below", []string{x, twice})
	b.Output("below", onnxpb.TensorProto_UINT64, -1)
	data, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	s, err := runtime.OpenBytes(data, runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if out, err := s.Run([]runtime.Tensor{{Int64s: []int64{0}, Dims: []int64{1}}}); err != nil || out[0].Int64s[0] != 0 {
		t.Errorf("0 - 0: %v, %v; want 0", out, err)
	}
	if out, err := s.Run([]runtime.Tensor{{Int64s: []int64{0, 1}, Dims: []int64{2}}}); err == nil || !strings.Contains(err.Error(), "value 1 of uint64 is larger") {
		t.Errorf("1 - 2: %v, %v; want an error that names value 1", out, err)
	}
}

// A bfloat16 is the first half of a float: every one is itself again, and between two the even one is nearest.
func TestBrainFloats(t *testing.T) {
	t.Parallel()
	for h := range 1 << 16 {
		f := math.Float32frombits(uint32(h) << 16)
		if back := runtime.FloatToBrain(f); !math.IsNaN(float64(f)) && back != uint16(h) {
			t.Fatalf("%v: %#x, want %#x", f, back, h)
		} else if math.IsNaN(float64(f)) && back&0x7f == 0 {
			t.Fatalf("%#x became the number %#x", h, back)
		}
	}
	for f, want := range map[float32]uint16{1.00390625: 0x3f80, 1.01171875: 0x3f82, 1.005: 0x3f81} {
		if got := runtime.FloatToBrain(f); got != want {
			t.Errorf("%v: %#x, want %#x", f, got, want)
		}
	}
}
