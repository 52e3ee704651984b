package runtime_test

import (
	"bytes"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mlp-platform/platform/libs/onnx/graph"
	"github.com/mlp-platform/platform/libs/onnx/runtime"
)

func buildGraph(tb testing.TB, fill func(b *graph.Builder, x string)) []byte {
	tb.Helper()
	b := graph.New("g", "test", "1")
	fill(b, b.Input("x", graph.Float, -1, 1))
	b.Output("out", graph.Float, -1, 1)
	data, err := b.Bytes()
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// What must not reach the library is refused by name.
func TestHostileGraphs(t *testing.T) {
	t.Parallel()
	sized := func(op string) []byte { // the size of the result is a request's value
		return buildGraph(t, func(b *graph.Builder, x string) {
			n := b.Node("Cast", "n", []string{b.Node("Reshape", "flat", []string{x, b.Int64s("one", []int64{-1})})}, graph.AttrInt("to", int64(graph.Int64)))
			switch op {
			case "ConstantOfShape":
				b.Node(op, "out", []string{n})
			case "Range":
				b.Node(op, "out", []string{b.Int64s("from", []int64{0}), n, b.Int64s("step", []int64{1})})
			default:
				b.Node(op, "out", []string{x, n})
			}
		})
	}
	trees := func(change func(t *graph.Trees)) []byte {
		return buildGraph(t, func(b *graph.Builder, x string) {
			var forest graph.Trees
			change(&forest)
			b.TreeEnsemble("out", x, &forest, []float32{0})
		})
	}
	for want, data := range map[string][]byte{
		"the operator Loop is not served":         buildGraph(t, func(b *graph.Builder, x string) { b.Node("Loop", "out", []string{x}) }),
		"the operator RandomNormal is not served": buildGraph(t, func(b *graph.Builder, x string) { b.Node("RandomNormal", "out", []string{x}) }),
		"(ConstantOfShape): how much it computes": sized("ConstantOfShape"),
		"(Range): how much it computes":           sized("Range"),
		"(Tile): how much it computes":            sized("Tile"),
		"(Expand): how much it computes":          sized("Expand"),
		"leads back to where it came from": trees(func(f *graph.Trees) {
			f.Branch(0, 0, 0, 0.5, 0, 1)
			f.Leaf(0, 1)
			f.Score(0, 1, 0, 1)
		}),
		"a branch to a node that is not there": trees(func(f *graph.Trees) {
			f.Branch(0, 0, 0, 0.5, 1, 9)
			f.Leaf(0, 1)
			f.Score(0, 1, 0, 1)
		}),
	} {
		if err := runtime.Check(data, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A run ends soon after its limit with ErrOverran, and leaves the session as it was.
func TestRunEndsAtItsLimit(t *testing.T) {
	t.Parallel()
	// Without an end the run would take seconds, which is long enough for a timer on any machine.
	const rows, width, rounds = 32, 1024, 2000
	data := buildGraph(t, func(b *graph.Builder, x string) {
		shape := func(name string, dims ...int64) string {
			return b.Node("ConstantOfShape", name, []string{b.Int64s(name+"_shape", dims)})
		}
		wide, square, narrow := shape("wide", 1, width), shape("square", width, width), shape("narrow", width, 1)
		h := b.Node("MatMul", "h", []string{x, wide})
		for i := range rounds {
			h = b.Node("MatMul", fmt.Sprintf("h%d", i), []string{h, square})
		}
		b.Node("Add", "out", []string{x, b.Node("MatMul", "zero", []string{h, narrow})})
	})
	var called atomic.Int64
	s, err := runtime.OpenBytes(data, runtime.Options{RunLimit: time.Millisecond, Overran: func() { called.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for n := range 3 {
		if _, err := s.Run([]runtime.Tensor{{Floats: make([]float32, rows), Dims: []int64{rows, 1}}}); !errors.Is(err, runtime.ErrOverran) {
			t.Fatalf("run %d: got %v, want it ended at its limit", n, err)
		}
		if got := called.Load(); got != int64(n)+1 {
			t.Errorf("Overran was called %d times after %d runs", got, n+1)
		}
	}
}

// Making ready for a run counts as none of its time, however short the limit and slow the machine.
func TestNoRunNoOverrun(t *testing.T) {
	t.Parallel()
	data := buildGraph(t, func(b *graph.Builder, x string) { b.Node("Identity", "out", []string{x}) })
	var called atomic.Int64
	s, err := runtime.OpenBytes(data, runtime.Options{RunLimit: time.Nanosecond, Overran: func() { called.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var overran int64
	for range 200 {
		switch _, err := s.Run([]runtime.Tensor{{Floats: []float32{1}, Dims: []int64{1, 1}}}); {
		case errors.Is(err, runtime.ErrOverran):
			overran++
		case err != nil:
			t.Fatal(err)
		}
	}
	if got := called.Load(); got != overran {
		t.Errorf("Overran was called %d times; want it for each of %d runs that were ended", got, overran)
	}
}

// Check's allocations for a file are limited by the file's own size.
func FuzzCheckMemory(f *testing.F) {
	data, _ := randomForest(f, 3, 2, false)
	f.Add(data)
	f.Add(protowire.AppendBytes(protowire.AppendTag(nil, 7, protowire.BytesType), bytes.Repeat([]byte{1<<3 | 2, 0}, 200_000)))
	nested := []byte{}
	for range 3000 {
		nested = protowire.AppendBytes(protowire.AppendTag(nil, 7, protowire.BytesType), nested)
	}
	f.Add(nested)
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		err := runtime.Check(data, nil)
		goruntime.ReadMemStats(&after)
		const base, times = 96 << 20, 64
		if took, most := after.TotalAlloc-before.TotalAlloc, uint64(base+times*len(data)); took > most {
			t.Errorf("%d bytes made Check allocate %d, want at most %d (%v)", len(data), took, most, err)
		}
	})
}
