package runtime_test

import (
	"math"
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
	if in, out := s.Inputs()[0], s.Outputs()[1]; !in.Half || in.Name != "x" || in.Type != runtime.Float || !out.Half || out.Name != "same" {
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
