package model

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
)

// Inputs are the graph's own, in the order that RunTensors takes them. Do not change the result.
func (m *Model) Inputs() []runtime.Info { return m.session.Inputs() }

// Outputs are the graph's own, in the order that RunTensors returns them. Do not change the result.
func (m *Model) Outputs() []runtime.Info { return m.session.Outputs() }

// Answer is the index in Outputs of the output with the prediction of a row, which /predict returns and drift follows;
// −1 if there is none.
func (m *Model) Answer() int { return m.output.answer }

// TensorsOnly is why the model takes tensors and no named columns; empty if it takes both.
func (m *Model) TensorsOnly() string { return m.tensorsOnly }

// RowErrors are the rows of a run that failed, by their position.
type RowErrors map[int]error

func (e RowErrors) Error() string {
	first := math.MaxInt
	for i := range e {
		first = min(first, i)
	}
	text := fmt.Sprintf("row %d: %v", first, e[first])
	if more := len(e) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more rows)", more)
	}
	return text
}

// RunTensors returns the graph's outputs for inputs of n rows, at most Rows, in the order of Inputs. When the run
// fails, each row runs alone, and RowErrors reports those that fail; a timeout is returned without RowErrors.
func (m *Model) RunTensors(in []runtime.Tensor, n int) ([]runtime.Tensor, error) {
	outs, err := m.tryTensors(in, n)
	if err == nil || concernsAll(err) || errors.Is(err, runtime.ErrClosed) {
		return outs, err
	}
	if n == 1 {
		return nil, RowErrors{0: err}
	}
	bad := RowErrors{}
	var parts [][]runtime.Tensor
	for i := range n {
		part, err := m.tryTensors(SliceRows(in, i, i+1), 1)
		if concernsAll(err) {
			return nil, err
		}
		if err != nil {
			bad[i] = err
		}
		parts = append(parts, part)
	}
	if len(bad) > 0 {
		return nil, bad
	}
	return JoinRows(parts)
}

func (m *Model) tryTensors(in []runtime.Tensor, n int) ([]runtime.Tensor, error) {
	outs, err := m.session.Run(in)
	if err != nil {
		return nil, err
	}
	for i := range outs {
		t := &outs[i]
		if len(t.Dims) == 0 || t.Dims[0] != int64(n) {
			return nil, fmt.Errorf("output %q has shape %v for %d rows; its first dimension must be the rows", t.Name, t.Dims, n)
		}
		if !allFinite(0, t.Doubles) || slices.ContainsFunc(t.Floats, isNonFinite32) {
			return nil, errNonFinite
		}
	}
	return outs, nil
}

func isNonFinite32(v float32) bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) }

// width is how many values one row of a tensor has.
func width(dims []int64) int {
	n := int64(1)
	for _, d := range dims[1:] {
		n *= d
	}
	return int(n)
}

// SliceRows returns the rows from (inclusive) to (exclusive) of tensors, without a copy.
func SliceRows(in []runtime.Tensor, from, to int) []runtime.Tensor {
	out := make([]runtime.Tensor, len(in))
	for i, t := range in {
		w := width(t.Dims)
		a, b := from*w, to*w
		dims := slices.Clone(t.Dims)
		dims[0] = int64(to - from)
		out[i] = runtime.Tensor{Name: t.Name, Dims: dims}
		switch {
		case t.Floats != nil:
			out[i].Floats = t.Floats[a:b:b]
		case t.Doubles != nil:
			out[i].Doubles = t.Doubles[a:b:b]
		case t.Int64s != nil:
			out[i].Int64s = t.Int64s[a:b:b]
		case t.Int32s != nil:
			out[i].Int32s = t.Int32s[a:b:b]
		case t.Bools != nil:
			out[i].Bools = t.Bools[a:b:b]
		default:
			out[i].Strings = t.Strings[a:b:b]
		}
	}
	return out
}

// JoinRows puts the outputs of runs over consecutive rows together. Outputs whose rows differ in shape from run to run,
// such as a distance of each row to each, are an error: they belong to their run and make no whole.
func JoinRows(parts [][]runtime.Tensor) ([]runtime.Tensor, error) {
	if len(parts) == 1 {
		return parts[0], nil
	}
	out := make([]runtime.Tensor, len(parts[0]))
	for i := range out {
		first := &parts[0][i]
		t := runtime.Tensor{Name: first.Name, Dims: slices.Clone(first.Dims)}
		t.Dims[0] = 0
		for _, part := range parts {
			if dims := part[i].Dims; !slices.Equal(dims[1:], first.Dims[1:]) {
				return nil, fmt.Errorf("output %q has shape %v in one run of the rows and %v in another; a row must have one shape, whatever rows run with it", t.Name, first.Dims, dims)
			}
			t.Dims[0] += part[i].Dims[0]
		}
		t.Floats = joinValues(parts, i, func(t *runtime.Tensor) []float32 { return t.Floats })
		t.Doubles = joinValues(parts, i, func(t *runtime.Tensor) []float64 { return t.Doubles })
		t.Int64s = joinValues(parts, i, func(t *runtime.Tensor) []int64 { return t.Int64s })
		t.Int32s = joinValues(parts, i, func(t *runtime.Tensor) []int32 { return t.Int32s })
		t.Bools = joinValues(parts, i, func(t *runtime.Tensor) []bool { return t.Bools })
		t.Strings = joinValues(parts, i, func(t *runtime.Tensor) []string { return t.Strings })
		out[i] = t
	}
	return out, nil
}

// joinValues returns nil only if the parts hold no values of this type: a non-nil empty slice marks the type of an
// output without values.
func joinValues[T any](parts [][]runtime.Tensor, i int, values func(*runtime.Tensor) []T) []T {
	if values(&parts[0][i]) == nil {
		return nil
	}
	n := 0
	for _, part := range parts {
		n += len(values(&part[i]))
	}
	out := make([]T, 0, n)
	for _, part := range parts {
		out = append(out, values(&part[i])...)
	}
	return out
}

// Answers returns the predictions among the outputs of RunTensors, one a row, for drift. It is nil if the graph has no
// output with one value a row.
func (m *Model) Answers(outs []runtime.Tensor, n int) []Result {
	if m.output.answer < 0 {
		return nil
	}
	results := make([]Result, n)
	if m.read(outs, results) != nil {
		return nil
	}
	return results
}

// DescribeTensors describes row i of the graph's inputs for input drift, as Schema.Describe does.
func (m *Model) DescribeTensors(in []runtime.Tensor, i int, scratch *schema.Row) schema.Input {
	if m.tensorsOnly != "" {
		return schema.DescribeNumbers(numbersOf(m.session.Inputs(), in, i))
	}
	m.schema.Fit(scratch)
	for k := range m.inputs {
		t := &in[k]
		at := i * m.inputs[k].width
		for _, c := range m.inputs[k].columns {
			switch m.schema.Columns[c].Kind {
			case schema.Category:
				*m.schema.Text(scratch, c) = t.Strings[at]
				at++
			case schema.Integer:
				*m.schema.Int(scratch, c) = int64(valueAt(t, at))
				at++
			default:
				for j := range m.schema.Numbers(scratch, c) {
					m.schema.Numbers(scratch, c)[j] = valueAt(t, at)
					at++
				}
			}
		}
	}
	return m.schema.Describe(scratch)
}

// valueAt is a value of a tensor that holds no text.
func valueAt(t *runtime.Tensor, i int) float64 {
	switch {
	case t.Floats != nil:
		return float64(t.Floats[i])
	case t.Doubles != nil:
		return t.Doubles[i]
	case t.Int64s != nil:
		return float64(t.Int64s[i])
	case t.Int32s != nil:
		return float64(t.Int32s[i])
	case t.Bools != nil && t.Bools[i]:
		return 1
	}
	return 0
}

// numbersOf yields all numbers of the row but missing ones, where no columns name them.
func numbersOf(infos []runtime.Info, in []runtime.Tensor, i int) func(yield func(float64) bool) {
	return func(yield func(float64) bool) {
		for k := range in {
			t := &in[k]
			if t.Strings != nil || t.Bools != nil {
				continue
			}
			w := width(t.Dims)
			for j := i * w; j < (i+1)*w; j++ {
				v := valueAt(t, j)
				if infos[k].Missing && math.IsNaN(v) {
					continue
				}
				if !yield(v) {
					return
				}
			}
		}
	}
}

// NewTensor is a tensor of zeros.
func NewTensor(elem string, dims []int64) runtime.Tensor {
	n := int(dims[0]) * width(dims)
	t := runtime.Tensor{Dims: dims}
	switch elem {
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
	return t
}

// Feeds returns the columns, by position in the schema, that are concatenated in the graph's input i.
func (m *Model) Feeds(i int) []int { return m.inputs[i].columns }

// InputDims is the shape of the graph's input i, with -1 for the rows, and with the width of the signature where the
// graph leaves it open.
func (m *Model) InputDims(i int) []int64 {
	dims := slices.Clone(m.session.Inputs()[i].Dims)
	if len(dims) > 0 {
		dims[0] = -1 // a graph of one row gets the rows one by one
	}
	if m.tensorsOnly == "" && len(dims) != 1 { // the graph may leave its rank open, too
		return []int64{-1, int64(m.inputs[i].width)}
	}
	return dims
}
