package runtime_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/onnx/graph"
	"github.com/mlp-platform/platform/libs/onnx/onnxpb"
	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"google.golang.org/protobuf/proto"
)

// openAndRun opens and runs bytes that need not be a model; the process must live.
func openAndRun(tb testing.TB, data []byte) error {
	tb.Helper()
	s, err := runtime.OpenBytes(data, runtime.Options{})
	if err != nil {
		return err
	}
	for _, n := range []int64{1, 40} {
		var in []runtime.Tensor
		for _, info := range s.Inputs() {
			dims := []int64{n}
			size := n
			for _, d := range info.Dims[min(1, len(info.Dims)):] {
				d = min(max(d, 1), 1<<10)
				dims, size = append(dims, d), size*d
			}
			in = append(in, runtime.Tensor{Floats: make([]float32, size), Dims: dims})
		}
		_, _ = s.Run(in) // an error is as good as an answer
	}
	return s.Close()
}

func TestCorruptFiles(t *testing.T) {
	t.Parallel()
	data, _ := randomForest(t, 5, 6, false)
	if err := openAndRun(t, nil); err == nil {
		t.Error("an empty file opened")
	}
	for n := 1; n < len(data); n += len(data) / 97 {
		if err := openAndRun(t, data[:n]); err == nil {
			t.Errorf("the first %d of %d bytes opened; want an error", n, len(data))
		}
	}
	rng := rand.New(rand.NewPCG(5, 5))
	for n := range 200 {
		junk := make([]byte, n*7)
		for i := range junk {
			junk[i] = byte(rng.Uint32())
		}
		if err := openAndRun(t, junk); err == nil {
			t.Errorf("%d random bytes opened; want an error", len(junk))
		}
	}
	opened := 0
	for range 600 {
		flipped := append([]byte(nil), data...)
		for range 1 + rng.IntN(3) {
			flipped[rng.IntN(len(flipped))] ^= 1 << rng.IntN(8)
		}
		if openAndRun(t, flipped) == nil {
			opened++ // a flipped threshold is still a model
		}
	}
	if opened == 600 {
		t.Error("no flipped file was refused")
	}
}

func FuzzOpen(f *testing.F) {
	data, _ := randomForest(f, 3, 2, false)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) { _ = openAndRun(t, data) })
}

// Numbers that ONNX Runtime 1.24 takes on trust and crashes on.
func TestDangerousModels(t *testing.T) {
	t.Parallel()
	ml := func(op string, attrs ...graph.Attr) []byte {
		b := graph.New("g", "test", "1")
		b.Input("input", graph.Float, -1, 5)
		b.MLNode(op, "out", []string{"input"}, attrs...)
		b.Output("out", graph.Float, -1, -1)
		data, err := b.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	tree := func(feature, target int, targets int) []byte {
		var trees graph.Trees
		trees.Branch(0, 0, feature, 0.5, 1, 2)
		trees.Leaf(0, 1)
		trees.Leaf(0, 2)
		trees.Score(0, 1, target, 1)
		trees.Score(0, 2, 0, 2)
		b := graph.New("g", "test", "1")
		b.Input("input", graph.Float, -1, 5)
		b.TreeEnsemble("out", "input", &trees, make([]float32, targets))
		b.Output("out", graph.Float, -1, int64(targets))
		data, err := b.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	external := func() []byte {
		b := graph.New("g", "test", "1")
		b.Input("input", graph.Float, -1, 5)
		b.Node("Add", "out", []string{"input", b.Floats("c", []float32{1})})
		b.Output("out", graph.Float, -1, 5)
		data, err := b.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		var m onnxpb.ModelProto
		if err := proto.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		c := m.Graph.Initializer[0]
		c.FloatData = nil
		c.DataLocation = onnxpb.TensorProto_EXTERNAL.Enum()
		c.ExternalData = []*onnxpb.StringStringEntryProto{{Key: proto.String("location"), Value: proto.String("/etc/passwd")}}
		if data, err = proto.Marshal(&m); err != nil {
			t.Fatal(err)
		}
		return data
	}
	if err := openAndRun(t, tree(4, 1, 2)); err != nil {
		t.Fatalf("the sound tree was refused: %v", err)
	}
	floats := func(name string, n int) graph.Attr { return graph.AttrFloats(name, make([]float32, n)) }
	for want, data := range map[string][]byte{
		"nodes_featureids has -1048576": tree(-1<<20, 0, 1),
		"target_ids has 268435456":      tree(0, 1<<28, 2),
		"coefficients do not make":      ml("LinearRegressor", floats("coefficients", 5), floats("intercepts", 1), graph.AttrInt("targets", 1<<25)),
		"2 coefficients do not make":    ml("LinearRegressor", floats("coefficients", 2)),
		"intercepts for":                ml("LinearRegressor", floats("coefficients", 10), floats("intercepts", 1), graph.AttrInt("targets", 2)),
		"n_supports is": ml("SVMRegressor", floats("coefficients", 3), floats("support_vectors", 7), graph.AttrInt("n_supports", 1<<20),
			floats("rho", 1), graph.AttrString("kernel_type", "RBF"), floats("kernel_params", 1)),
		"another file":           external(),
		"not an ONNX":            []byte("PK\x03\x04"),
		"is not a tensor":        sequenceModel(t),
		"element type COMPLEX64": complexInput(t),
	} {
		if err := openAndRun(t, data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func complexInput(t *testing.T) []byte {
	b := graph.New("g", "test", "1")
	b.Input("input", onnxpb.TensorProto_COMPLEX64, -1, 5)
	b.Output("input", onnxpb.TensorProto_COMPLEX64, -1, 5)
	data, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func sequenceModel(t *testing.T) []byte {
	var m onnxpb.ModelProto
	data, _ := randomForest(t, 2, 1, false)
	if err := proto.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	m.Graph.Output[0].Type = &onnxpb.TypeProto{Value: &onnxpb.TypeProto_SequenceType{SequenceType: &onnxpb.TypeProto_Sequence{}}}
	data, err := proto.Marshal(&m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
