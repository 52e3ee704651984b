package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/services/trainer/internal/frame"
)

// graphBatch is how many rows a foreign graph answers at once.
const graphBatch = 1000

// Graph is a model that something else exported. It takes one input per column and answers as our exports do: prediction,
// or label and probabilities.
type Graph struct {
	data     []byte // of the file, so that the judged bytes are the ones written
	pipeline *Pipeline
	session  *runtime.Session
	target   frame.Target
}

// GraphLimits limits the resources of a foreign graph.
type GraphLimits struct {
	// Bytes of the file.
	Bytes int64
	// Run is the time that one batch of rows may take; 0 means no limit.
	Run time.Duration
}

// OpenGraph reads the file, which something else wrote and may change still, for rows with the pipeline's columns.
func OpenGraph(file string, limits GraphLimits, p *Pipeline, target frame.Target) (*Graph, error) {
	data, err := readRegular(file, limits.Bytes)
	if err != nil {
		return nil, fmt.Errorf("model.onnx: %w", err)
	}
	s, err := runtime.OpenBytes(data, runtime.Options{Threads: 2, RunLimit: limits.Run})
	if err != nil {
		return nil, fmt.Errorf("model.onnx: %w", err)
	}
	return &Graph{data: data, pipeline: p, session: s, target: target}, nil
}

// readRegular reads a regular file. It neither follows a link nor waits for the other end of a pipe.
func readRegular(name string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("it is larger than %d bytes", limit)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1)) // it may have grown since
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it is larger than %d bytes", limit)
	}
	return data, err
}

// Close frees the session.
func (g *Graph) Close() error { return g.session.Close() }

// Answer predicts the rows: values in raw units, or classes with their probabilities. A run is not ended by ctx, but by
// the limit that the graph was opened with; no further one begins once ctx has ended.
func (g *Graph) Answer(ctx context.Context, t frame.Table) (values []float64, classes []int, proba [][]float64, err error) {
	for from := 0; from < t.Rows; from += graphBatch {
		if err := ctx.Err(); err != nil {
			return nil, nil, nil, context.Cause(ctx)
		}
		rows := make([]int, min(graphBatch, t.Rows-from))
		for i := range rows {
			rows[i] = from + i
		}
		out, err := g.session.Run(g.pipeline.tensors(t.Select(rows)))
		if err != nil {
			return nil, nil, nil, fmt.Errorf("model.onnx on rows of the data set: %w", err)
		}
		got := map[string]runtime.Tensor{}
		for _, o := range out {
			got[o.Name] = o
		}
		if !g.target.Class {
			p, ok := got[Prediction]
			if !ok || len(p.Floats) != len(rows) {
				return nil, nil, nil, errors.New("model.onnx must answer prediction, one float a row")
			}
			for _, v := range p.Floats {
				values = append(values, float64(v))
			}
			continue
		}
		n := len(g.target.Labels)
		p, l := got[Probabilities], got[Label]
		if len(p.Floats) != n*len(rows) || max(len(l.Strings), len(l.Int64s)) != len(rows) {
			return nil, nil, nil, fmt.Errorf("model.onnx must answer label, one a row, and probabilities, %d floats a row", n)
		}
		for i := range rows {
			label := formatAnswer(l, i)
			class := slices.Index(g.target.Labels, label)
			if class < 0 {
				return nil, nil, nil, fmt.Errorf("model.onnx answers the label %.80q, which is not the target's", label)
			}
			row := make([]float64, n)
			for k, v := range p.Floats[i*n : (i+1)*n] {
				if row[k] = float64(v); math.IsNaN(row[k]) || row[k] < -1e-6 || row[k] > 1+1e-6 {
					return nil, nil, nil, fmt.Errorf("model.onnx answers the probability %v", v)
				}
			}
			classes, proba = append(classes, class), append(proba, row)
		}
	}
	return values, classes, proba, nil
}
