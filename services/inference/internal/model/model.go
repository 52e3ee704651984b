// Package model opens an artifact folder as a model that answers rows: it brings the declared signature
// and the graph together, once, so that a prediction is copying numbers in and out.
package model

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
)

// Model is an open model. It is safe for concurrent use; each concurrent user takes a Batch of his own.
type Model struct {
	schema  *schema.Schema
	session *runtime.Session
	inputs  []input
	output  output
	classes []string // names of the probabilities, in their order; nil without probabilities
	rows    int      // the most rows the graph takes at once
}

// Result is the answer for one row.
type Result struct {
	Number        float64 // of a Value, or of a label that is a number (Text is then "")
	Text          string  // of a text label
	Single        bool    // Number was computed as a float32, so more digits than its own say nothing
	Probabilities []float64
	// SingleProbabilities is Single for them.
	SingleProbabilities bool
	Err                 error // the model failed on this row
}

// maxGraph limits the model file, in bytes: the maximum of protocol buffers.
const maxGraph = 2<<30 - 1

// Open reads the artifact in dir, checks it and runs it once with up to rows rows (warm-up). Nothing in
// dir is needed afterwards. threads limits the threads of one run.
func Open(dir string, threads, rows int) (*Model, error) {
	s, err := schema.Read(os.DirFS(dir))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, filepath.FromSlash(s.GraphFile))
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the artifact has no model file %s", s.GraphFile)
	case st.Size() > maxGraph:
		return nil, fmt.Errorf("the model file has %d bytes, at most %d are served", st.Size(), maxGraph)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the model file: %w", err)
	}
	data, classes, err := stripZipMap(data)
	if err != nil {
		return nil, err
	}
	session, err := runtime.OpenBytes(data, runtime.Options{Threads: threads})
	if err != nil {
		return nil, err
	}
	m := &Model{schema: s, session: session, rows: max(rows, 1)}
	if err := m.settle(classes); err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return m, nil
}

func (m *Model) settle(classes []string) (err error) {
	if m.inputs, err = bindInputs(m.schema, m.session.Inputs()); err != nil {
		return fmt.Errorf("signature and graph differ: %w", err)
	}
	if m.output, err = findOutputs(m.schema, m.session.Outputs()); err != nil {
		return fmt.Errorf("signature and graph differ: %w", err)
	}
	m.schema.Output.Kind = m.output.kind
	for _, in := range m.inputs {
		if len(in.info.Dims) > 0 && in.info.Dims[0] == 1 {
			m.rows = 1
		}
	}
	if declared := m.schema.Output.Labels; len(declared) > 0 {
		classes = nil
		for _, l := range declared {
			classes = append(classes, labelText(l))
		}
	}
	if m.output.probabilities >= 0 {
		if n := m.session.Outputs()[m.output.probabilities].Dims[1]; n > 0 && int(n) != len(classes) {
			classes = nil
			for i := range n {
				classes = append(classes, strconv.FormatInt(i, 10))
			}
		}
		m.classes = classes
	}
	if m.output.kind == schema.Label && m.schema.Output.Labels == nil {
		for _, c := range classes {
			m.schema.Output.Labels = append(m.schema.Output.Labels, c)
		}
	}
	return m.warmUp()
}

// labelText is a label of platform.json as the probabilities name it.
func labelText(l any) string {
	if f, ok := l.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(l)
}

// warmUp runs the mean row alone and in the largest batch, so that the first callers do not pay for the
// library's lazy set-up, and learns whether the graph takes batches at all. A text column's valid values
// are unknown here, so a graph with one may refuse the row and still be good.
func (m *Model) warmUp() error {
	row := &schema.Row{}
	m.schema.Fit(row)
	texts := false
	for i := range m.schema.Columns {
		c := &m.schema.Columns[i]
		switch c.Kind {
		case schema.Category:
			texts = true
		case schema.Integer:
			*m.schema.Int(row, i) = int64(math.Round(c.Mean))
		default:
			for j := range m.schema.Numbers(row, i) {
				m.schema.Numbers(row, i)[j] = c.Mean
			}
		}
	}
	try := func(n int) error {
		rows, results := make([]*schema.Row, n), make([]Result, n)
		for i := range rows {
			rows[i] = row
		}
		b := m.NewBatch()
		outs, err := b.run(rows)
		if err != nil {
			return err
		}
		return m.read(outs, results)
	}
	if err := try(1); err != nil {
		if texts {
			return nil
		}
		return fmt.Errorf("the model fails on the mean of its columns: %w", err)
	}
	for _, n := range []int{2, m.rows} {
		if n <= m.rows && try(n) != nil {
			m.rows = 1
		}
	}
	return nil
}

// Schema are the model's columns and answer. Do not change it.
func (m *Model) Schema() *schema.Schema { return m.schema }

// Classes names the probabilities in the order of Result.Probabilities; nil when the model has none.
func (m *Model) Classes() []string { return m.classes }

// TextLabels reports whether the model's labels are strings.
func (m *Model) TextLabels() bool {
	return m.output.kind == schema.Label && m.session.Outputs()[m.output.answer].Type == runtime.String
}

// Rows is how many rows one run takes at most.
func (m *Model) Rows() int { return m.rows }

// Close frees the model after its last run.
func (m *Model) Close() error { return m.session.Close() }
