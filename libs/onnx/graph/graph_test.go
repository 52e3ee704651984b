package graph_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/onnx/graph"
)

func buildSum(extra func(b *graph.Builder)) ([]byte, error) {
	b := graph.New("sum", "test", "1")
	b.Describe("adds one")
	b.Meta("k", "v")
	b.Input("x", graph.Float, -1, 2)
	b.Node("Add", "y", []string{"x", b.Floats("one", []float32{1, 1})})
	b.Output("y", graph.Float, -1, 2)
	if extra != nil {
		extra(b)
	}
	return b.Bytes()
}

func TestSameCallsSameBytes(t *testing.T) {
	t.Parallel()
	one, err := buildSum(nil)
	if err != nil {
		t.Fatal(err)
	}
	two, err := buildSum(nil)
	if err != nil || !bytes.Equal(one, two) {
		t.Fatalf("%v, or the bytes differ", err)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for want, extra := range map[string]func(b *graph.Builder){
		`"x" is used twice`:        func(b *graph.Builder) { b.Input("x", graph.Float, -1, 1) },
		`reads "z", which nothing`: func(b *graph.Builder) { b.Node("Neg", "w", []string{"z"}) },
		`output "w" is made by no`: func(b *graph.Builder) { b.Output("w", graph.Float, -1) },
		"a value has no name":      func(b *graph.Builder) { b.Node("Neg", "", []string{"x"}) },
		"has 3 values, its":        func(b *graph.Builder) { b.Floats("c", make([]float32, 3), 2, 2) },
	} {
		if _, err := buildSum(extra); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
