package openinference

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
)

func TestMatrixBecomesTheGraphsType(t *testing.T) {
	t.Parallel()
	dims := []int64{2, 1}
	doubles := func(v ...float64) runtime.Tensor { return runtime.Tensor{Dims: dims, Doubles: v} }
	for _, c := range []struct {
		name string
		in   runtime.Tensor
		elem string
		want runtime.Tensor
		msg  string
	}{
		{"doubles to floats", doubles(0.1, -3e38), runtime.Float, runtime.Tensor{Dims: dims, Floats: []float32{0.1, -3e38}}, ""},
		{"beyond a float", doubles(0, 3.5e38), runtime.Float, runtime.Tensor{}, "value 1: the number is too large for FP32"},
		{"floats to doubles", runtime.Tensor{Dims: dims, Floats: []float32{0.5, 2}}, runtime.Double, doubles(0.5, 2), ""},
		{"whole numbers", doubles(-7, 1<<52), runtime.Int64, runtime.Tensor{Dims: dims, Int64s: []int64{-7, 1 << 52}}, ""},
		{"a fraction", doubles(1, 1.5), runtime.Int64, runtime.Tensor{}, "value 1: expected a whole number: the model takes INT64"},
		{"no exact integer", doubles(1<<53, 0), runtime.Int64, runtime.Tensor{}, "value 0: the number is too large for INT64"},
		{"small integers", doubles(-1<<31, 1<<31-1), runtime.Int32, runtime.Tensor{Dims: dims, Int32s: []int32{-1 << 31, 1<<31 - 1}}, ""},
		{"beyond an integer", doubles(0, 1<<31), runtime.Int32, runtime.Tensor{}, "value 1: the number is too large for INT32"},
	} {
		got, msg := convertFloats(&c.in, c.elem)
		if msg != c.msg {
			t.Errorf("%s: %q, want %q", c.name, msg, c.msg)
		}
		if diff := cmp.Diff(c.want, got); msg == "" && diff != "" {
			t.Errorf("%s: tensor differs from want:\n%s", c.name, diff)
		}
	}
}

// The tensor `input` is converted however it is named by the model; any other must be of the graph's type.
func TestOnlyTheMatrixIsConverted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ datatype, elem, want string }{
		{"FP64", runtime.Float, runtime.Double}, {"FP32", runtime.Int64, runtime.Float}, {"FP32", runtime.Float, runtime.Float},
		{"FP64", runtime.String, runtime.String}, {"FP64", runtime.Bool, runtime.Bool}, {"INT32", runtime.Int64, runtime.Int64},
	} {
		if got := matrixElem(c.datatype, c.elem); got != c.want {
			t.Errorf("%s for %s: read as %s, want %s", c.datatype, c.elem, got, c.want)
		}
	}
}
