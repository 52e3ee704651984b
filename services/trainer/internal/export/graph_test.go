package export

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/onnx/graph"
	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/services/trainer/internal/frame"
)

// setupForeign is a file with a graph that answers its one column, and rows for it.
func setupForeign(t *testing.T) (file string, p *Pipeline, table frame.Table, target frame.Target) {
	t.Helper()
	b := graph.New("M", "test", "1")
	b.Node("Identity", Prediction, []string{b.Input("x", graph.Float, -1, 1)})
	b.Output(Prediction, graph.Float, -1, 1)
	data, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), ModelFile)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	table = frame.Table{Rows: 2, Columns: []frame.Column{{Name: "x", Kind: modelrepo.Number, Num: []float32{3, 4}}}}
	if p, err = FitTransforms([]modelrepo.Feature{{Column: "x", Kind: modelrepo.Number, Transform: modelrepo.TransformNone}}, table); err != nil {
		t.Fatal(err)
	}
	return file, p, table, frame.Target{Name: "run", Values: []float64{3, 4}}
}

// The graph written is the one that was judged, even if its file has changed since.
func TestTheGraphJudgedIsTheOneWritten(t *testing.T) {
	t.Parallel()
	file, p, table, target := setupForeign(t)
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	g, err := OpenGraph(file, GraphLimits{Bytes: 1 << 20}, p, target)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if values, _, _, err := g.Answer(t.Context(), table); err != nil || len(values) != 2 || values[1] != 4 {
		t.Errorf("%v, %v; want [3 4]", values, err)
	}
	if err := os.WriteFile(file, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := WriteGraph(dir, Meta{Model: "M"}, g); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, ModelFile)); err != nil || string(got) != string(want) {
		t.Errorf("%d bytes, %v; want the %d that were judged", len(got), err, len(want))
	}
}

// Links, pipes and files over the limit are no graphs.
func TestGraphFiles(t *testing.T) {
	t.Parallel()
	file, p, _, target := setupForeign(t)
	dir := t.TempDir()
	link, pipe := filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.Symlink(file, link), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]struct {
		file  string
		limit int64
	}{
		"too many levels of symbolic links": {link, 1 << 20},
		"it is no regular file":             {pipe, 1 << 20},
		"it is larger than 5 bytes":         {file, 5},
	} {
		if _, err := OpenGraph(c.file, GraphLimits{Bytes: c.limit}, p, target); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A graph that takes longer than its limit is ended, and none is asked once the training has been.
func TestGraphRunsEnd(t *testing.T) {
	t.Parallel()
	file, p, table, target := setupForeign(t)
	b := graph.New("M", "test", "1")
	shape := func(name string, dims ...int64) string {
		return b.Node("ConstantOfShape", name, []string{b.Int64s(name+"_shape", dims)})
	}
	x := b.Input("x", graph.Float, -1, 1)
	square, h := shape("square", 1024, 1024), b.Node("MatMul", "h", []string{x, shape("wide", 1, 1024)})
	for i := range 200 {
		h = b.Node("MatMul", fmt.Sprintf("h%d", i), []string{h, square})
	}
	b.Node("MatMul", Prediction, []string{h, shape("narrow", 1024, 1)})
	b.Output(Prediction, graph.Float, -1, 1)
	data, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := OpenGraph(file, GraphLimits{Bytes: 1 << 20, Run: time.Millisecond}, p, target)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if _, _, _, err := g.Answer(t.Context(), table); !errors.Is(err, runtime.ErrOverran) {
		t.Errorf("got %v, want %v", err, runtime.ErrOverran)
	}
	stopped := errors.New("stopped by the test")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if _, _, _, err := g.Answer(ctx, table); !errors.Is(err, stopped) {
		t.Errorf("got %v, want %v", err, stopped)
	}
}
