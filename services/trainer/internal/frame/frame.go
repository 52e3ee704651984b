// Package frame stores rows as columns, the form in which the steps of training exchange data.
package frame

import "github.com/mlp-platform/platform/libs/modelrepo"

// Column is one named column. Only the slice of its kind is set.
type Column struct {
	Name string
	Kind modelrepo.Kind
	Num  []float32
	Cat  []string
	Vec  [][]float32
	// Length of each vector; 0 for other kinds.
	Length int
}

// Table is columns of equal length.
type Table struct {
	Columns []Column
	Rows    int
}

// Target is the value to predict.
type Target struct {
	Name  string
	Class bool
	// Values in raw units (regression).
	Values []float64
	// Anomaly is set if the second of two classes is outliers, which a model finds without labels.
	Anomaly bool
	// Labels name the classes; Y holds an index into them (classification).
	Labels []string
	Y      []int
	// Transform the learner sees the values through: none or log1p.
	Transform string
	Unit      string
}

// Column returns the column of that name.
func (t Table) Column(name string) (Column, bool) {
	for _, c := range t.Columns {
		if c.Name == name {
			return c, true
		}
	}
	return Column{}, false
}

// Select copies the given rows, in that order. Vectors are shared with the receiver.
func (t Table) Select(rows []int) Table {
	out := Table{Columns: make([]Column, len(t.Columns)), Rows: len(rows)}
	for i, c := range t.Columns {
		out.Columns[i] = c
		out.Columns[i].Num = pickRows(c.Num, rows)
		out.Columns[i].Cat = pickRows(c.Cat, rows)
		out.Columns[i].Vec = pickRows(c.Vec, rows)
	}
	return out
}

// Select copies the given rows, in that order.
func (t Target) Select(rows []int) Target {
	t.Values = pickRows(t.Values, rows)
	t.Y = pickRows(t.Y, rows)
	return t
}

func pickRows[T any](all []T, rows []int) []T {
	if all == nil {
		return nil
	}
	out := make([]T, len(rows))
	for i, r := range rows {
		out[i] = all[r]
	}
	return out
}
