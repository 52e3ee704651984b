package model

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
)

func TestJoinRows(t *testing.T) {
	t.Parallel()
	run := func(tensors ...runtime.Tensor) []runtime.Tensor { return tensors }
	floats := func(dims []int64, v ...float32) runtime.Tensor {
		return runtime.Tensor{Name: "y", Dims: dims, Floats: v}
	}
	for _, c := range []struct {
		name  string
		parts [][]runtime.Tensor
		want  []runtime.Tensor
		err   string
	}{
		{"rows", [][]runtime.Tensor{run(floats([]int64{2, 1}, 1, 2)), run(floats([]int64{1, 1}, 3))}, run(floats([]int64{3, 1}, 1, 2, 3)), ""},
		{"no values a row", [][]runtime.Tensor{run(floats([]int64{2, 0}, []float32{}...)), run(floats([]int64{1, 0}, []float32{}...))}, run(floats([]int64{3, 0}, []float32{}...)), ""},
		{"each row to each", [][]runtime.Tensor{run(floats([]int64{2, 2}, 1, 2, 3, 4)), run(floats([]int64{1, 1}, 5))}, nil, `output "y" has shape [2 2] in one run of the rows and [1 1] in another`},
	} {
		got, err := JoinRows(c.parts)
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: tensors differ from want:\n%s", c.name, diff)
		}
	}
}
