package model

import (
	"fmt"
	"math"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
)

// Batch holds the tensors for runs of a model, reused from run to run. One goroutine at a time uses it.
type Batch struct {
	m       *Model
	tensors []runtime.Tensor
	full    []runtime.Tensor // with the data slices at full length
	dims    [][]int64
}

// NewBatch returns tensors for up to Rows rows.
func (m *Model) NewBatch() *Batch {
	b := &Batch{m: m, tensors: make([]runtime.Tensor, len(m.inputs)), full: make([]runtime.Tensor, len(m.inputs))}
	for i, in := range m.inputs {
		n := m.bounds.Rows * in.width
		t := &b.full[i]
		switch in.info.Type {
		case runtime.Float:
			t.Floats = make([]float32, n)
		case runtime.Double:
			t.Doubles = make([]float64, n)
		case runtime.Int64:
			t.Int64s = make([]int64, n)
		case runtime.Int32:
			t.Int32s = make([]int32, n)
		case runtime.Bool:
			t.Bools = make([]bool, n)
		case runtime.String:
			t.Strings = make([]string, n)
		}
		dims := []int64{0, int64(in.width)}
		if len(in.info.Dims) == 1 {
			dims = dims[:1]
		}
		b.dims = append(b.dims, dims)
	}
	return b
}

// Run answers each row, at most Rows of them. When the run fails, the rows run alone, so that a bad row
// fails alone; when it took too long, or there was no answer, they all do.
func (b *Batch) Run(rows []*schema.Row, results []Result) {
	err := b.try(rows, results)
	if err == nil {
		return
	}
	alone := len(rows) > 1
	for i := range rows {
		if alone && !concernsAll(err) {
			err = b.try(rows[i:i+1], results[i:i+1])
		}
		if err != nil {
			results[i] = Result{Err: err}
		}
	}
}

func (b *Batch) try(rows []*schema.Row, results []Result) error {
	outs, err := b.run(rows)
	if err != nil {
		return err
	}
	return b.m.read(outs, results[:len(rows)])
}

func (b *Batch) run(rows []*schema.Row) ([]runtime.Tensor, error) {
	for i := range b.m.inputs {
		b.fill(i, rows)
	}
	return b.m.session.Run(b.tensors)
}

// fill lays the rows' columns side by side into graph input i.
func (b *Batch) fill(i int, rows []*schema.Row) {
	in := &b.m.inputs[i]
	n := len(rows) * in.width
	b.dims[i][0] = int64(len(rows))
	full, t := &b.full[i], &b.tensors[i]
	t.Dims = b.dims[i]
	switch in.info.Type {
	case runtime.Float:
		t.Floats = full.Floats[:n]
		fillNumbers(b.m.schema, in, rows, t.Floats)
	case runtime.Double:
		t.Doubles = full.Doubles[:n]
		fillNumbers(b.m.schema, in, rows, t.Doubles)
	case runtime.Int64:
		t.Int64s = full.Int64s[:n]
		fillNumbers(b.m.schema, in, rows, t.Int64s)
	case runtime.Int32:
		t.Int32s = full.Int32s[:n]
		fillNumbers(b.m.schema, in, rows, t.Int32s)
	case runtime.Bool:
		t.Bools = full.Bools[:n]
		at := 0
		for _, row := range rows {
			for _, c := range in.columns {
				t.Bools[at] = b.m.schema.Numbers(row, c)[0] != 0
				at++
			}
		}
	case runtime.String:
		t.Strings = full.Strings[:n]
		at := 0
		for _, row := range rows {
			for _, c := range in.columns {
				t.Strings[at] = *b.m.schema.Text(row, c)
				at++
			}
		}
	}
}

func fillNumbers[T float32 | float64 | int64 | int32](s *schema.Schema, in *input, rows []*schema.Row, dst []T) {
	at := 0
	for _, row := range rows {
		for _, c := range in.columns {
			if s.Columns[c].Kind == schema.Integer {
				dst[at] = T(*s.Int(row, c))
				at++
				continue
			}
			for _, v := range s.Numbers(row, c) {
				dst[at] = T(v)
				at++
			}
		}
	}
}

// read extracts the answers from a run's outputs. Its error concerns the whole run; the fault of one row is in that
// row's result.
func (m *Model) read(outs []runtime.Tensor, results []Result) error {
	answer := &outs[m.output.answer]
	if have := max(len(answer.Floats), len(answer.Doubles), len(answer.Int64s), len(answer.Int32s), len(answer.Strings)); have > len(results) && have%len(results) == 0 {
		return &unansweredError{fmt.Sprintf("its output %s has %d values a row, whatever the graph declares; an answer is one value a row", answer.Name, have/len(results))}
	} else if have != len(results) {
		return fmt.Errorf("output %q has %d values for %d rows", answer.Name, have, len(results))
	}
	var probabilities []float64
	if m.output.probabilities >= 0 {
		p := &outs[m.output.probabilities]
		if want := len(results) * len(m.classes); max(len(p.Floats), len(p.Doubles)) != want {
			return fmt.Errorf("output %q has %d values for %d rows of %d classes", p.Name, max(len(p.Floats), len(p.Doubles)), len(results), len(m.classes))
		}
		probabilities = p.Doubles
		if probabilities == nil {
			probabilities = make([]float64, len(p.Floats))
			for i, v := range p.Floats {
				probabilities[i] = float64(v)
			}
		}
	}
	for i := range results {
		r := Result{}
		switch {
		case answer.Strings != nil:
			r.Text = answer.Strings[i]
		case answer.Int64s != nil:
			r.Number = float64(answer.Int64s[i])
		case answer.Int32s != nil:
			r.Number = float64(answer.Int32s[i])
		case answer.Floats != nil:
			r.Number, r.Single = float64(answer.Floats[i]), true
		default:
			r.Number = answer.Doubles[i]
		}
		if probabilities != nil {
			k := len(m.classes)
			r.Probabilities = probabilities[i*k : (i+1)*k : (i+1)*k]
			r.SingleProbabilities = outs[m.output.probabilities].Floats != nil
		}
		if !allFinite(r.Number, r.Probabilities) {
			r = Result{Err: errNonFinite}
		}
		results[i] = r
	}
	return nil
}

var errNonFinite = fmt.Errorf("the model answered a value that is not finite")

func allFinite(v float64, more []float64) bool {
	for _, p := range more {
		if math.IsNaN(p) || math.IsInf(p, 0) {
			return false
		}
	}
	return !math.IsNaN(v) && !math.IsInf(v, 0)
}
