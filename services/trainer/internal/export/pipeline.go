// Package export turns a fitted model and the transforms before it into an ONNX graph with one input per column, and
// proves that ONNX Runtime gives the same answers as the Go evaluator.
//
// Transforms are part of the graph, so that servers pass the columns unchanged. The Go side computes each transform in
// float32 with the graph's own operations, in the same order.
package export

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer/internal/frame"
	"github.com/mlp-platform/platform/services/trainer/internal/learn"
)

// maxOneHot limits the columns of one category.
const maxOneHot = 1000

// Pipeline is the fitted transforms of a model's features.
type Pipeline struct {
	features []feature // in the order of the model file, which is that of the graph's inputs
	order    []int     // of features in the matrix: those that share graph nodes are adjacent
	cols     int       // of the matrix
}

// feature is a column and its transform.
type feature struct {
	modelrepo.Feature
	categories []string       // sorted; onehot and ordinal
	index      map[string]int // of categories
	mean, std  float64        // of a number column in the training rows, population
	offset     []float32      // standardize, per element
	scale      []float32      // standardize, per element
}

// width is the number of matrix columns the feature makes.
func (f *feature) width() int {
	switch {
	case f.Transform == modelrepo.TransformOneHot:
		return len(f.categories)
	case f.Kind == modelrepo.Vector:
		return f.Length
	}
	return 1
}

// FitTransforms learns the transforms from training rows.
func FitTransforms(features []modelrepo.Feature, t frame.Table) (*Pipeline, error) {
	if len(features) == 0 {
		return nil, errors.New("the model has no features")
	}
	if t.Rows == 0 {
		return nil, errors.New("there are no rows to fit the transforms on")
	}
	p := &Pipeline{}
	for _, spec := range features {
		if spec.Transform == "" {
			spec.Transform = modelrepo.TransformNone
		}
		if slices.ContainsFunc(p.features, func(f feature) bool { return f.Column == spec.Column }) {
			return nil, fmt.Errorf("feature %q is named twice", spec.Column)
		}
		f := feature{Feature: spec}
		c, err := f.find(t)
		if err == nil {
			err = f.fit(c)
		}
		if err != nil {
			return nil, fmt.Errorf("feature %q: %w", spec.Column, err)
		}
		p.features = append(p.features, f)
		p.order = append(p.order, len(p.order))
		p.cols += f.width()
	}
	slices.SortStableFunc(p.order, func(a, b int) int { return p.features[a].group() - p.features[b].group() })
	return p, nil
}

// group brings features together whose values go through the same nodes.
func (f *feature) group() int {
	switch f.Transform {
	case modelrepo.TransformLog1p:
		return 1
	case modelrepo.TransformOrdinal:
		return 2
	case modelrepo.TransformOneHot:
		return 3
	}
	return 0
}

// find takes the feature's column from the table and checks it.
func (f *feature) find(t frame.Table) (frame.Column, error) {
	c, ok := t.Column(f.Column)
	if !ok {
		return c, errors.New("the data has no such column")
	}
	if c.Kind != f.Kind {
		return c, fmt.Errorf("the data has it as %s, the model wants a %s", c.Kind, f.Kind)
	}
	var rows int
	switch f.Kind {
	case modelrepo.Number:
		rows = len(c.Num)
		for i, v := range c.Num {
			if !isFinite(v) {
				return c, fmt.Errorf("row %d is %v; drop or fill missing values first", i, v)
			}
		}
	case modelrepo.Category:
		rows = len(c.Cat)
	case modelrepo.Vector:
		rows = len(c.Vec)
		for i, v := range c.Vec {
			if len(v) != f.Length {
				return c, fmt.Errorf("row %d has %d elements, want %d", i, len(v), f.Length)
			}
			for _, e := range v {
				if !isFinite(e) {
					return c, fmt.Errorf("row %d has an element %v; drop or fill missing values first", i, e)
				}
			}
		}
	default:
		return c, fmt.Errorf("kind %q is unknown; known are number, category, vector", f.Kind)
	}
	if rows != t.Rows {
		return c, fmt.Errorf("it has %d rows, the table %d", rows, t.Rows)
	}
	return c, nil
}

func isFinite(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

func (f *feature) fit(c frame.Column) error {
	if f.Kind == modelrepo.Number {
		f.mean, f.std = meanAndStd(len(c.Num), func(i int) float32 { return c.Num[i] })
	}
	if f.Kind == modelrepo.Vector && f.Length < 1 {
		return errors.New("a vector needs a length of at least 1")
	}
	switch f.Transform {
	case modelrepo.TransformNone:
		if f.Kind == modelrepo.Category {
			return errors.New("a category needs the transform onehot or ordinal")
		}
	case modelrepo.TransformLog1p, modelrepo.TransformStandardize:
		if f.Kind == modelrepo.Category {
			return fmt.Errorf("transform %s is for numbers and vectors; use onehot or ordinal", f.Transform)
		}
		if f.Transform == modelrepo.TransformLog1p {
			return f.checkLog(c)
		}
		for e := range f.width() {
			mean, std := f.mean, f.std
			if f.Kind == modelrepo.Vector {
				mean, std = meanAndStd(len(c.Vec), func(i int) float32 { return c.Vec[i][e] })
			}
			scale := float32(1 / std)
			if std == 0 || !isFinite(scale) {
				scale = 1 // a constant has no influence
			}
			f.offset, f.scale = append(f.offset, float32(mean)), append(f.scale, scale)
		}
	case modelrepo.TransformOneHot, modelrepo.TransformOrdinal:
		if f.Kind != modelrepo.Category {
			return fmt.Errorf("transform %s is for categories; declare the column as kind category, or use none, log1p or standardize", f.Transform)
		}
		f.categories = slices.Clone(c.Cat)
		slices.Sort(f.categories)
		f.categories = slices.Compact(f.categories)
		if f.Transform == modelrepo.TransformOneHot && len(f.categories) > maxOneHot {
			return fmt.Errorf("onehot would make %d columns, at most %d are allowed; use ordinal", len(f.categories), maxOneHot)
		}
		f.index = make(map[string]int, len(f.categories))
		for i, v := range f.categories {
			f.index[v] = i
		}
	default:
		return fmt.Errorf("transform %q is unknown; known are none, log1p, standardize, onehot, ordinal", f.Transform)
	}
	return nil
}

func (f *feature) checkLog(c frame.Column) error {
	for i := range max(len(c.Num), len(c.Vec)) {
		values := c.Num
		if f.Kind == modelrepo.Vector {
			values = c.Vec[i]
		} else {
			values = values[i : i+1]
		}
		for _, v := range values {
			if v <= -1 {
				return fmt.Errorf("row %d is %v; log1p is for numbers above -1", i, v)
			}
		}
	}
	return nil
}

// meanAndStd are the mean and the population deviation.
func meanAndStd(n int, at func(int) float32) (mean, std float64) {
	for i := range n {
		mean += float64(at(i))
	}
	mean /= float64(n)
	for i := range n {
		d := float64(at(i)) - mean
		std += d * d
	}
	return mean, math.Sqrt(std / float64(n))
}

// Apply makes the learner's matrix of a table with the pipeline's columns.
func (p *Pipeline) Apply(t frame.Table) (learn.Matrix, error) {
	m := learn.Matrix{Rows: t.Rows, Cols: p.cols, Data: make([]float32, t.Rows*p.cols)}
	at := 0
	for _, i := range p.order {
		f := &p.features[i]
		c, err := f.find(t)
		if err != nil {
			return learn.Matrix{}, fmt.Errorf("feature %q: %w", f.Column, err)
		}
		for row := range t.Rows {
			f.put(c, row, m.Data[row*p.cols+at:][:f.width()])
		}
		at += f.width()
	}
	return m, nil
}

// put writes the feature's values of a row.
func (f *feature) put(c frame.Column, row int, out []float32) {
	switch f.Kind {
	case modelrepo.Category:
		i, known := f.index[c.Cat[row]]
		switch {
		case f.Transform == modelrepo.TransformOneHot && known:
			out[i] = 1
		case f.Transform == modelrepo.TransformOrdinal && known:
			out[0] = float32(i)
		case f.Transform == modelrepo.TransformOrdinal:
			out[0] = unknownOrdinal
		}
		return
	case modelrepo.Number:
		out[0] = c.Num[row]
	case modelrepo.Vector:
		copy(out, c.Vec[row])
	}
	switch f.Transform {
	case modelrepo.TransformLog1p:
		for i, v := range out {
			out[i] = float32(math.Log(float64(v + 1)))
		}
	case modelrepo.TransformStandardize:
		for i, v := range out {
			out[i] = (v - f.offset[i]) * f.scale[i]
		}
	}
}

// unknownOrdinal encodes a category that training did not see. With onehot it is all zeros.
const unknownOrdinal = -1
