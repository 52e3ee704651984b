// Package schema reads a model's columns and answer, as the model's own files declare them: platform.json for models
// this platform trained, else the MLflow signature.
package schema

import (
	"fmt"
	"slices"

	"github.com/mlp-platform/platform/libs/problem"
)

// Kind is the type of value that a caller sends for a column.
type Kind string

// The kinds of columns. Their JSON forms: number, number without fraction, true or false, string,
// list of numbers of a fixed length.
const (
	Number   Kind = "number"
	Integer  Kind = "integer"
	Boolean  Kind = "boolean"
	Category Kind = "category"
	Vector   Kind = "vector"
)

// Column is one named feature.
type Column struct {
	Name string
	Kind Kind
	// Length of a vector; 0 means that the files do not declare it, and the graph must.
	Length int
	// Range is that of the model's element type; the zero value is that of float64 (Number, Vector) or int64 (Integer).
	Range Range
	// Whole is set for a vector that takes only integers.
	Whole bool
	// Optional is set for a number that a row may lack, and for a vector whose values it may lack: they are NaN then.
	Optional bool
	// Unstated is set if the files do not say whether it is Optional, and the graph may.
	Unstated bool
	// Mean and Std are those of the training rows; Known is set if the files have them.
	Mean, Std float64
	Known     bool
}

// Range holds the smallest and largest number of a column.
type Range struct{ Min, Max float64 }

// Magnitude is the range from −limit to limit.
func Magnitude(limit float64) Range { return Range{-limit, limit} }

// Has reports whether the range holds v; the zero value holds every number.
func (r Range) Has(v float64) bool { return r == Range{} || v >= r.Min && v <= r.Max }

// OutputKind is the kind of a model's answer.
type OutputKind string

// The kinds of answers; Unstated leaves it to the graph.
const (
	Unstated OutputKind = ""
	Value    OutputKind = "number"
	Label    OutputKind = "label"
)

// Output describes a model's answer.
type Output struct {
	Kind   OutputKind
	Unit   string
	Labels []any // class labels in the order of the probabilities, if the files name them
}

// Schema is a model's declared columns, in the order of training, and its answer.
type Schema struct {
	Columns []Column
	Output  Output
	// GraphFile is the model file, relative to the folder of the MLmodel file.
	GraphFile string
	// Tensors is set if the signature names tensors, not table columns: a tensor without a name is the graph's only
	// input.
	Tensors bool

	index   map[string]int
	slots   []int // of each column in its row's slice
	numbers int
	ints    int
	texts   int
}

// Lookup is the position of the column with that name; the bytes are not kept.
func (s *Schema) Lookup(name []byte) (int, bool) {
	i, ok := s.index[string(name)]
	return i, ok
}

// maxValues limits the values of a row. Outsiders write the lengths of vectors, and memory is taken by them: for every
// row, and for every row that a run may have.
const maxValues = 1 << 16

// Seal fixes the columns: names become searchable and rows get their layout. The lengths of vectors must be set before.
func (s *Schema) Seal() error {
	if len(s.Columns) == 0 {
		return fmt.Errorf("the signature names no inputs")
	}
	if err := checkSize(s.Columns); err != nil {
		return err
	}
	s.index = make(map[string]int, len(s.Columns))
	s.slots = make([]int, len(s.Columns))
	s.numbers, s.ints, s.texts = 0, 0, 0
	for i, c := range s.Columns {
		if c.Name == "" {
			return fmt.Errorf("input %d of the signature has no name", i+1)
		}
		if _, twice := s.index[c.Name]; twice {
			return fmt.Errorf("the signature names %q twice", c.Name)
		}
		s.index[c.Name] = i
		switch c.Kind {
		case Number, Boolean:
			s.slots[i] = s.numbers
			s.numbers++
		case Vector:
			if c.Length < 1 {
				return fmt.Errorf("the length of vector %q is stated nowhere", c.Name)
			}
			s.slots[i] = s.numbers
			s.numbers += c.Length
		case Integer:
			s.slots[i] = s.ints
			s.ints++
		case Category:
			s.slots[i] = s.texts
			s.texts++
		default:
			return fmt.Errorf("column %q is of kind %q, which is not served", c.Name, c.Kind)
		}
	}
	return nil
}

// checkSize refuses lengths that no row should have. Each is compared before it is added, so that no sum overflows.
func checkSize(columns []Column) error {
	left := maxValues
	for _, c := range columns {
		n := 1
		switch {
		case c.Kind == Vector && c.Length != 0: // 0 is stated nowhere
			n = c.Length
		case c.Length != 0 && c.Length != 1:
			return fmt.Errorf("column %q is a %s and has length %d; only vectors have one", problem.Shorten(c.Name), c.Kind, c.Length)
		}
		if n < 1 {
			return fmt.Errorf("vector %q has length %d; it must be at least 1", problem.Shorten(c.Name), n)
		}
		if n > left {
			return fmt.Errorf("a row has more than %d values, which is not served", maxValues)
		}
		left -= n
	}
	return nil
}

// Names are the columns in order.
func (s *Schema) Names() []string {
	out := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		out[i] = c.Name
	}
	return out
}

// Vector is the position of the first vector, or −1.
func (s *Schema) Vector() int {
	return slices.IndexFunc(s.Columns, func(c Column) bool { return c.Kind == Vector })
}

// Row is the values of one request in the layout of its schema. It is reused: nothing in it outlives
// the request.
type Row struct {
	numbers []float64 // numbers, booleans as 0 and 1, vectors one after the other
	ints    []int64
	texts   []string
	// Seen marks the columns that the request gave.
	Seen []bool
}

// Fit makes r suit s, without values.
func (s *Schema) Fit(r *Row) {
	r.numbers = resizeSlice(r.numbers, s.numbers)
	r.ints = resizeSlice(r.ints, s.ints)
	r.texts = resizeSlice(r.texts, s.texts)
	r.Seen = resizeSlice(r.Seen, len(s.Columns))
	clear(r.texts)
	clear(r.Seen)
}

func resizeSlice[T any](v []T, n int) []T {
	if cap(v) < n {
		return make([]T, n)
	}
	return v[:n]
}

// Numbers is where the values of column i live: one, or a vector's length.
func (s *Schema) Numbers(r *Row, i int) []float64 {
	n := 1
	if s.Columns[i].Kind == Vector {
		n = s.Columns[i].Length
	}
	return r.numbers[s.slots[i] : s.slots[i]+n : s.slots[i]+n]
}

// Int is where the value of integer column i lives.
func (s *Schema) Int(r *Row, i int) *int64 { return &r.ints[s.slots[i]] }

// Text is where the value of category column i lives.
func (s *Schema) Text(r *Row, i int) *string { return &r.texts[s.slots[i]] }

func (c *Column) scale(v float64) float64 {
	if !c.Known {
		return v
	}
	if c.Std > 0 {
		return (v - c.Mean) / c.Std
	}
	return v - c.Mean
}
