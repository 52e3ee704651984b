package runtime_test

import (
	"math"
	"testing"

	"github.com/mlp-platform/platform/libs/onnx/graph"
	"github.com/mlp-platform/platform/libs/onnx/runtime"
)

// An input may have missing values if it leads to an operator with a rule for NaN, and not otherwise.
func TestInputsWithMissingValues(t *testing.T) {
	t.Parallel()
	ml := func(op string, attrs ...graph.Attr) func(*graph.Builder, string) {
		return func(b *graph.Builder, x string) { b.MLNode(op, "out", []string{x}, attrs...) }
	}
	replaced := func(v float32) graph.Attr { return graph.AttrFloat("replaced_value_float", v) }
	imputed := graph.AttrFloats("imputed_value_floats", []float32{1, 2})
	for _, c := range []struct {
		name string
		fill func(b *graph.Builder, x string)
		want bool
	}{
		{"imputer of NaN", ml("Imputer", imputed, replaced(float32(math.NaN()))), true},
		{"imputer of -1", ml("Imputer", imputed, replaced(-1)), false},
		{"scaled before the imputer", func(b *graph.Builder, x string) {
			scaled := b.Node("Mul", "scaled", []string{x, x})
			b.MLNode("Imputer", "out", []string{scaled}, imputed, replaced(float32(math.NaN())))
		}, true},
		{"rounded before the imputer", func(b *graph.Builder, x string) {
			rounded := b.Node("Relu", "rounded", []string{x})
			b.MLNode("Imputer", "out", []string{rounded}, imputed, replaced(float32(math.NaN())))
		}, false},
		{"no rule", func(b *graph.Builder, x string) { b.Node("Identity", "out", []string{x}) }, false},
	} {
		b := graph.New("g", "test", "1")
		c.fill(b, b.Input("x", graph.Float, -1, 2))
		b.Output("out", graph.Float, -1, 2)
		data, err := b.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		s, err := runtime.OpenBytes(data, runtime.Options{})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := s.Inputs()[0].Missing; got != c.want {
			t.Errorf("%s: missing values are %v, want %v", c.name, got, c.want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
