package runtime_test

import (
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/onnx/graph"
	"github.com/mlp-platform/platform/libs/onnx/runtime"
)

// A model gives the same answer with each setting of the engine. A name that is none, and a provider that the library
// lacks, is an error of one sentence.
func TestEngine(t *testing.T) {
	t.Parallel()
	b := graph.New("g", "test", "1")
	b.Node("Relu", "y", []string{b.Node("Neg", "n", []string{b.Input("x", graph.Float, -1, 1)})})
	b.Output("y", graph.Float, -1, 1)
	data, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []runtime.Engine{{}, {NoArena: true}, {Optimization: "off"}, {Optimization: "basic"}, {Optimization: "extended", Providers: []string{"cpu"}}, {Optimization: "all"}} {
		s, err := runtime.OpenBytes(data, runtime.Options{Engine: e})
		if err != nil {
			t.Fatalf("%+v: %v", e, err)
		}
		if out, err := s.Run([]runtime.Tensor{{Floats: []float32{-3, 2}, Dims: []int64{2, 1}}}); err != nil || out[0].Floats[0] != 3 || out[0].Floats[1] != 0 {
			t.Errorf("%+v: %v, %v; want 3 and 0", e, out, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	for says, e := range map[string]runtime.Engine{
		"cannot use the execution provider cuda":      {Providers: []string{"cuda", "cpu"}}, // the library that the tests fetch is for the CPU
		"cannot use the execution provider openvino":  {Providers: []string{"openvino"}},
		`the execution provider "gpu" is not known`:   {Providers: []string{"gpu"}},
		`the graph optimization "fast" is not known;`: {Optimization: "fast"},
	} {
		err := e.CheckLibrary()
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v; want one line with %q", e, err, says)
		}
		if _, opened := runtime.OpenBytes(data, runtime.Options{Engine: e}); opened == nil {
			t.Errorf("%+v: a model was opened", e)
		}
		t.Log(err)
	}
}
