package runtime_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mlp-platform/platform/libs/onnx/graph"
	"github.com/mlp-platform/platform/libs/onnx/runtime"
)

// randomForest is a model of the size that serving sees: trees of depth 6 over the columns, and the function
// it computes.
func randomForest(tb testing.TB, columns, trees int, perColumn bool) ([]byte, func([]float32) float32) {
	tb.Helper()
	const depth = 6
	rng := rand.New(rand.NewPCG(1, 2))
	type node struct {
		feature   int
		threshold float32
		score     float32
	}
	all := make([][]node, trees)
	var t graph.Trees
	inner := 1<<depth - 1
	for i := range all {
		all[i] = make([]node, 2*inner+1)
		for j := range all[i] {
			n := node{rng.IntN(columns), rng.Float32(), rng.Float32()}
			all[i][j] = n
			if j < inner {
				t.Branch(i, j, n.feature, n.threshold, 2*j+1, 2*j+2)
			} else {
				t.Leaf(i, j)
				t.Score(i, j, 0, n.score)
			}
		}
	}
	b := graph.New("forest", "test", "1")
	in := "input"
	if perColumn {
		var ins []string
		for i := range columns {
			ins = append(ins, b.Input(fmt.Sprintf("c%d", i), graph.Float, -1, 1))
		}
		in = b.Node("Concat", "_x", ins, graph.AttrInt("axis", 1))
	} else {
		b.Input("input", graph.Float, -1, int64(columns))
	}
	b.TreeEnsemble("prediction", in, &t, []float32{0.5})
	b.Output("prediction", graph.Float, -1, 1)
	data, err := b.Bytes()
	if err != nil {
		tb.Fatal(err)
	}
	return data, func(x []float32) float32 {
		sum := float64(0.5)
		for _, tree := range all {
			j := 0
			for j < inner {
				if x[tree[j].feature] <= tree[j].threshold {
					j = 2*j + 1
				} else {
					j = 2*j + 2
				}
			}
			sum += float64(tree[j].score)
		}
		return float32(sum)
	}
}

func openSession(tb testing.TB, data []byte) *runtime.Session {
	tb.Helper()
	s, err := runtime.OpenBytes(data, runtime.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func randomRows(rng *rand.Rand, n, columns int) []float32 {
	x := make([]float32, n*columns)
	for i := range x {
		x[i] = rng.Float32()
	}
	return x
}

func nearlyEqual(a, b float32) bool { return a-b < 1e-4 && b-a < 1e-4 }

// Many goroutines, batches below and above the pooled sizes, each answer checked against the trees.
func TestRunConcurrent(t *testing.T) {
	t.Parallel()
	data, want := randomForest(t, 7, 20, false)
	s := openSession(t, data)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 0))
			for range 100 {
				n := 1 + rng.IntN(40)
				x := randomRows(rng, n, 7)
				out, err := s.Run([]runtime.Tensor{{Floats: x, Dims: []int64{int64(n), 7}}})
				if err != nil {
					t.Error(err)
					return
				}
				if out[0].Name != "prediction" || len(out[0].Floats) != n || len(out[0].Dims) != 2 || out[0].Dims[0] != int64(n) {
					t.Errorf(`shape of %+v for %d rows; want out[0].Name == "prediction" && len(out[0].Floats) == n && len(out[0].Dims) == 2 && out[0].Dims[0] == int64(n)`, out[0], n)
					return
				}
				for i := range n {
					if w := want(x[i*7 : i*7+7]); !nearlyEqual(out[0].Floats[i], w) {
						t.Errorf("row %d: %v, want %v", i, out[0].Floats[i], w)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestInfoAndNamedInputs(t *testing.T) {
	t.Parallel()
	data, want := randomForest(t, 3, 4, true)
	s := openSession(t, data)
	if got := fmt.Sprint(s.Inputs(), s.Outputs()); got != "[{c0 float [-1 1] <nil> false []} {c1 float [-1 1] <nil> false []} {c2 float [-1 1] <nil> false []}] [{prediction float [-1 1] <nil> false []}]" {
		t.Fatal(got, `want "[{c0 float [-1 1] <nil> false []} {c1 float [-1 1] <nil> false []} {c2 float [-1 1] <nil> false []}] [{prediction float [-1 1] <nil> false []}]"`)
	}
	col := func(name string, v float32) runtime.Tensor {
		return runtime.Tensor{Name: name, Floats: []float32{v}, Dims: []int64{1, 1}}
	}
	in := []runtime.Tensor{col("c2", 0.9), col("c0", 0.1), col("c1", 0.5)}
	out, err := s.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	if w := want([]float32{0.1, 0.5, 0.9}); !nearlyEqual(out[0].Floats[0], w) {
		t.Fatalf("%v, want %v", out[0].Floats[0], w)
	}
	if in[0].Name != "c2" {
		t.Fatal("Run reordered the caller's inputs")
	}
}

func TestWrongInputs(t *testing.T) {
	t.Parallel()
	data, _ := randomForest(t, 3, 2, false)
	s := openSession(t, data)
	for _, c := range []struct {
		want string
		in   []runtime.Tensor
	}{
		{"0 inputs given", nil},
		{"the model wants [-1 3]", []runtime.Tensor{{Floats: make([]float32, 4), Dims: []int64{1, 4}}}},
		{"has 1 dimensions", []runtime.Tensor{{Floats: make([]float32, 3), Dims: []int64{3}}}},
		{"has 2 values", []runtime.Tensor{{Floats: make([]float32, 2), Dims: []int64{1, 3}}}},
		{"impossible dimensions", []runtime.Tensor{{Dims: []int64{-1, 3}}}},
		{"impossible dimensions", []runtime.Tensor{{Dims: []int64{1 << 40, 3}}}},
		{`input "input" is missing`, []runtime.Tensor{{Name: "x", Floats: make([]float32, 3), Dims: []int64{1, 3}}}},
		{"(float) has 0 values", []runtime.Tensor{{Int64s: make([]int64, 3), Dims: []int64{1, 3}}}},
	} {
		if _, err := s.Run(c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.want, err)
		}
	}
	out, err := s.Run([]runtime.Tensor{{Floats: []float32{}, Dims: []int64{0, 3}}})
	if err == nil && len(out[0].Floats) != 0 {
		t.Errorf("no rows answered %v; want (an error || len(out[0].Floats) == 0)", out)
	}
}

func TestTextInAndOut(t *testing.T) {
	t.Parallel()
	b := graph.New("colours", "test", "1")
	b.Input("colour", graph.String, -1, 1)
	b.MLNode("LabelEncoder", "upper", []string{"colour"}, graph.AttrStrings("keys_strings", []string{"red", "blé"}),
		graph.AttrStrings("values_strings", []string{"RED", "BLÉ"}), graph.AttrString("default_string", ""))
	b.Output("upper", graph.String, -1, 1)
	b.MLNode("LabelEncoder", "code", []string{"colour"}, graph.AttrStrings("keys_strings", []string{"red", "blé"}),
		graph.AttrInts("values_int64s", []int64{7, 8}), graph.AttrInt("default_int64", -1))
	b.Output("code", graph.Int64, -1, 1)
	data, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	s := openSession(t, data)
	for range 3 { // the second run reuses the first one's tensors
		out, err := s.Run([]runtime.Tensor{{Strings: []string{"red", "grey", "blé"}, Dims: []int64{3, 1}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%q %v", out[0].Strings, out[1].Int64s); got != `["RED" "" "BLÉ"] [7 -1 8]` {
			t.Fatal(got, "want `[\"RED\" \"\" \"BLÉ\"] [7 -1 8]`")
		}
	}
	if _, err := s.Run([]runtime.Tensor{{Strings: []string{"red\x00"}, Dims: []int64{1, 1}}}); err == nil {
		t.Fatal("a NUL character was accepted")
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	data, _ := randomForest(t, 7, 50, false)
	s, err := runtime.OpenBytes(data, runtime.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	started := make(chan struct{}, 4)
	for range 4 {
		wg.Go(func() {
			x := randomRows(rand.New(rand.NewPCG(3, 3)), 64, 7)
			for first := true; ; first = false {
				_, err := s.Run([]runtime.Tensor{{Floats: x, Dims: []int64{64, 7}}})
				if first {
					started <- struct{}{}
				}
				if errors.Is(err, runtime.ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 4 {
		<-started
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

func TestOpenFile(t *testing.T) {
	t.Parallel()
	data, _ := randomForest(t, 2, 2, false)
	path := filepath.Join(t.TempDir(), "model.onnx")
	if _, err := runtime.Open(path, runtime.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err, "want errors.Is(err, os.ErrNotExist)")
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := runtime.Open(path, runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// testdata/zipmap.onnx is a scikit-learn classifier as skl2onnx converts it by default: class 1 when the
// first of three features is above a half.
func TestZipMapIsTakenOff(t *testing.T) {
	t.Parallel()
	s, err := runtime.Open("testdata/zipmap.onnx", runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := fmt.Sprint(s.Outputs()); got != "[{output_label int64 [-1] <nil> false []} {probabilities float [-1 2] <nil> false [0 1]}]" {
		t.Fatal(got, `want "[{output_label int64 [-1] <nil> false []} {probabilities float [-1 2] <nil> false [0 1]}]"`)
	}
	out, err := s.Run([]runtime.Tensor{{Floats: []float32{0.9, 0, 0, 0.1, 0, 0}, Dims: []int64{2, 3}}})
	if err != nil {
		t.Fatal(err)
	}
	p := out[1].Floats
	if fmt.Sprint(out[0].Int64s) != "[1 0]" || len(p) != 4 || !(p[1] > 0.5 && p[2] > 0.5) || !nearlyEqual(p[0]+p[1], 1) {
		t.Fatalf(`%v %v; want fmt.Sprint(out[0].Int64s) == "[1 0]" && len(p) == 4 && p[1] > 0.5 && p[2] > 0.5 && nearlyEqual(p[0]+p[1], 1)`, out[0].Int64s, p)
	}
}
