package export

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/services/trainer/internal/frame"
)

// graphBatch is how many rows a foreign graph answers at once.
const graphBatch = 1000

// Graph is a model that something else exported. It takes one input per column and answers as our exports do: prediction,
// or label and probabilities.
type Graph struct {
	// File holds the graph.
	File     string
	pipeline *Pipeline
	session  *runtime.Session
	target   frame.Target
}

// OpenGraph opens the file for rows with the pipeline's columns.
func OpenGraph(file string, p *Pipeline, target frame.Target) (*Graph, error) {
	s, err := runtime.Open(file, runtime.Options{Threads: 2})
	if err != nil {
		return nil, fmt.Errorf("model.onnx: %w", err)
	}
	return &Graph{File: file, pipeline: p, session: s, target: target}, nil
}

// Close frees the session.
func (g *Graph) Close() error { return g.session.Close() }

// Answer predicts the rows: values in raw units, or classes with their probabilities.
func (g *Graph) Answer(t frame.Table) (values []float64, classes []int, proba [][]float64, err error) {
	for from := 0; from < t.Rows; from += graphBatch {
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
