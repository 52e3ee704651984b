package openinference

import (
	"testing"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
)

func TestDeclaredBytesOfARow(t *testing.T) {
	t.Parallel()
	out := func(elem string, dims ...int64) runtime.Info { return runtime.Info{Type: elem, Dims: dims} }
	for name, c := range map[string]struct {
		outs []runtime.Info
		want int
	}{
		"one value":     {[]runtime.Info{out(runtime.Float, -1, 1)}, 4},
		"several":       {[]runtime.Info{out(runtime.Int64, -1), out(runtime.Double, -1, 3, 2)}, 8 + 48},
		"open or texts": {[]runtime.Info{out(runtime.Float, -1, -1), out(runtime.String, -1, 9), out(runtime.Bool, -1, 5)}, 5},
		"no rank":       {[]runtime.Info{out(runtime.Float)}, 4},
		"beyond an int": {[]runtime.Info{out(runtime.Float, -1, 1<<40, 1<<40)}, 0},
	} {
		if got := declaredBytes(c.outs); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}
