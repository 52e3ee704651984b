// Package model opens an artifact folder as a model that answers rows: it brings the declared signature
// and the graph together, once, so that a prediction is copying numbers in and out.
package model

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
)

// Model is an open model. It is safe for concurrent use; each concurrent user takes a Batch of his own.
type Model struct {
	schema  *schema.Schema
	session Graph
	inputs  []input
	output  output
	classes []string // names of the probabilities, in their order; nil without probabilities
	bounds  Bounds
	// tensorsOnly is why no row can be built from named columns, or no answer from the outputs; such a model has a
	// schema without columns.
	tensorsOnly string
}

// Graph computes a model's outputs: an ONNX session of this process, or a scoring server.
type Graph interface {
	// Inputs and Outputs are fixed; the first dimension of each is the rows.
	Inputs() []runtime.Info
	Outputs() []runtime.Info
	// Run answers the outputs for inputs in the order of Inputs. It is safe for concurrent use.
	Run(in []runtime.Tensor) ([]runtime.Tensor, error)
	// KnownTexts are the texts that the graph lists for an input, and ReadsSize whether it computes with the number of rows.
	KnownTexts(input string) []string
	ReadsSize() bool
	// Classes returns the names of the graph's classes, if it has any.
	Classes() []string
	// Close frees the graph after its last run.
	Close() error
}

// ServerError means that a scoring server did not answer a run. It is no verdict on the run's rows.
type ServerError struct {
	Late   bool // it did not answer in time
	Reason string
}

func (e *ServerError) Error() string { return e.Reason }

// concernsAll reports whether an error would meet each row of the run alone as well.
func concernsAll(err error) bool {
	var server *ServerError
	return errors.Is(err, runtime.ErrOverran) || errors.As(err, &server)
}

// Result is the answer for one row.
type Result struct {
	Number        float64 // of a Value, or of a label that is a number (Text is then "")
	Text          string  // of a text label
	Single        bool    // Number was computed as a float32, so further digits are meaningless
	Probabilities []float64
	// SingleProbabilities is Single for them.
	SingleProbabilities bool
	Err                 error // the model failed on this row
}

// Bounds are the largest run that a model was tried with.
type Bounds struct {
	Rows int
	// Length is the largest size of a row where the graph leaves sizes open; 0 if it leaves none.
	Length int
}

// MaxGraph limits the model file, in bytes: the maximum of protocol buffers.
const MaxGraph = 2<<30 - 1

// Options of an open model.
type Options struct {
	Threads int // of one run
	Engine  runtime.Engine
	Rows    int // of one run, at most
	// RunLimit ends a run that takes longer, warm-up included; 0 means no limit.
	RunLimit time.Duration
	// Clock measures RunLimit and Sweep, never faster than real time; nil: the system's clock.
	Clock func() time.Duration
	// Overran is called when a run takes longer than RunLimit, before it has ended. It must not block; nil: not called.
	Overran func()
	// Tried is set for a model that has passed a trial: its warm-up, which is known to end, may take its time.
	Tried bool
	// Length is the largest size known from that trial; 0 tries sizes.
	Length int
	// Sweep is how long Open may take to try every number of rows, if the graph computes with sizes, so that one
	// number's cost does not predict the next one's. Rows ends at the last number tried. 0 means that all are known to
	// be good.
	Sweep time.Duration
	// SweepLengths is how long Open may take to try the sizes of a row that the graph leaves open.
	SweepLengths time.Duration
}

// Open reads the artifact in dir, checks it and runs it with up to o.Rows rows (warm-up). Nothing in dir is needed
// afterwards.
func Open(dir fs.FS, o Options) (*Model, error) {
	s, err := schema.Read(dir)
	var columnless *schema.ColumnlessError
	if err != nil && !errors.As(err, &columnless) {
		return nil, err
	}
	noColumns := err
	data, err := readGraph(dir, s.GraphFile)
	if err != nil {
		return nil, err
	}
	warm := func() {}
	if o.Tried {
		o.Clock, warm = startLater()
	}
	session, err := runtime.OpenBytes(data, runtime.Options{Threads: o.Threads, Engine: o.Engine, RunLimit: o.RunLimit, Clock: o.Clock, Overran: o.Overran, ReadFile: func(name string) ([]byte, error) {
		return readGraph(dir, path.Join(path.Dir(s.GraphFile), name))
	}})
	if err != nil {
		return nil, err
	}
	m := &Model{schema: s, session: session, bounds: Bounds{Rows: max(o.Rows, 1)}}
	if noColumns != nil {
		m.tensorsOnly = noColumns.Error()
	}
	if err := m.settle(o); err != nil {
		return nil, errors.Join(err, session.Close())
	}
	warm()
	return m, nil
}

// startLater returns a clock that is stopped until start is called.
func startLater() (clock func() time.Duration, start func()) {
	var began atomic.Pointer[time.Time]
	clock = func() time.Duration {
		if at := began.Load(); at != nil {
			return time.Since(*at)
		}
		return 0
	}
	return clock, func() {
		now := time.Now()
		began.Store(&now)
	}
}

// FromGraph is a model of named columns that graph computes, tried on a row. Where columns are texts, of which a graph may
// know none, it may refuse that row.
func FromGraph(s *schema.Schema, graph Graph, rows int) (*Model, error) {
	m := &Model{schema: s, session: graph, bounds: Bounds{Rows: max(rows, 1)}}
	if err := m.bind(); err != nil {
		return nil, err
	}
	err := m.warmUp(Options{})
	texts := slices.ContainsFunc(s.Columns, func(c schema.Column) bool { return c.Kind == schema.Category })
	if err != nil && (concernsAll(err) || !texts) {
		return nil, err
	}
	return m, nil
}

// Fault is why the loaded model cannot answer now; empty if no fault is known.
func (m *Model) Fault() string {
	if g, ok := m.session.(interface{ Fault() string }); ok {
		return g.Fault()
	}
	return ""
}

// readGraph reads a model file, or one with constants of it.
func readGraph(dir fs.FS, name string) ([]byte, error) {
	st, err := fs.Stat(dir, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the artifact has no model file %s", name)
	case st.Size() > MaxGraph:
		return nil, fmt.Errorf("the model file has %d bytes, at most %d are served", st.Size(), MaxGraph)
	}
	data, err := fs.ReadFile(dir, name)
	if err != nil {
		return nil, fmt.Errorf("reading the model file: %w", err)
	}
	return data, nil
}

func (m *Model) settle(o Options) (err error) {
	if err := m.bind(); err != nil {
		return err
	}
	err = m.warmUp(o)
	var unanswered *unansweredError
	if errors.As(err, &unanswered) && m.tensorsOnly == "" { // the graph declares other outputs than it has
		m.tensorsOnly = unanswered.Error()
		if err := m.bind(); err != nil {
			return err
		}
		m.output.answer, m.output.probabilities, m.classes = -1, -1, nil
		return m.warmUp(o)
	}
	return err
}

// bind brings the schema and the graph together.
func (m *Model) bind() (err error) {
	if m.tensorsOnly == "" {
		m.inputs, err = bindInputs(m.schema, m.session.Inputs())
		var open *openLengthError
		switch {
		case errors.As(err, &open):
			m.tensorsOnly = open.Error()
		case err != nil:
			return fmt.Errorf("signature and graph differ: %w", err)
		}
	}
	m.output, err = findOutputs(m.schema, m.session.Outputs())
	var unanswered *unansweredError
	switch {
	case errors.As(err, &unanswered):
		m.tensorsOnly = cmp.Or(m.tensorsOnly, unanswered.Error())
	case err != nil:
		return fmt.Errorf("signature and graph differ: %w", err)
	}
	m.schema.Output.Kind = m.output.kind
	if m.tensorsOnly != "" {
		if err := checkTensors(m.session.Inputs()); err != nil {
			return err
		}
		m.schema, m.inputs = &schema.Schema{Output: m.schema.Output}, nil
	}
	for _, in := range m.session.Inputs() {
		if len(in.Dims) > 0 && in.Dims[0] == 1 {
			m.bounds.Rows = 1
		}
	}
	if m.opensSizes() {
		m.bounds.Rows = 1 // the trial tries each size on one row
	}
	m.nameClasses()
	return nil
}

// nameClasses settles the names of the probabilities and labels: those that the files declare, else the graph's.
func (m *Model) nameClasses() {
	classes := m.session.Classes()
	if m.output.probabilities >= 0 {
		if mapped := m.session.Outputs()[m.output.probabilities].Labels; mapped != nil {
			classes = mapped
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
}

// labelText is a label of platform.json as the probabilities name it.
func labelText(l any) string {
	if f, ok := l.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(l)
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
func (m *Model) Rows() int { return m.bounds.Rows }

// Bounds are the largest run that the model was tried with.
func (m *Model) Bounds() Bounds { return m.bounds }

// Close frees the model after its last run.
func (m *Model) Close() error { return m.session.Close() }
