package schema

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Input is the part of a row that input drift keeps.
type Input struct {
	// Norm, Mean and Std (population) are of the row's first vector, else of its numbers and integers, each
	// scaled by the mean and deviation of the training rows where they are known. All are 0 for a row without
	// numbers.
	Norm, Mean, Std float64
	// Zeros is set if the row has numbers and each was 0 before scaling.
	Zeros    bool
	Features Features
}

// NonFinite is an input of which only that is known.
func NonFinite() Input {
	return Input{Norm: math.NaN(), Mean: math.NaN(), Std: math.NaN()}
}

// add takes one more number in, which was raw before it was scaled. close must follow the last.
func (in *Input) add(m *moments, raw, scaled float64) {
	in.Zeros = raw == 0 && (in.Zeros || m.n == 0)
	m.n++
	m.sum += scaled
	m.squares += scaled * scaled
}

type moments struct{ n, sum, squares float64 }

func (in *Input) close(m moments) {
	if m.n == 0 {
		return
	}
	in.Norm, in.Mean = math.Sqrt(m.squares), m.sum/m.n
	in.Std = math.Sqrt(max(0, m.squares/m.n-in.Mean*in.Mean))
}

// DescribeNumbers describes a row whose numbers belong to no columns.
func DescribeNumbers(values func(yield func(float64) bool)) (in Input) {
	var m moments
	for v := range values {
		in.add(&m, v, v)
	}
	in.close(m)
	return in
}

// Describe describes a row. It keeps no reference to the row.
func (s *Schema) Describe(r *Row) (in Input) {
	var m moments
	if i := s.Vector(); i >= 0 {
		for _, v := range s.Numbers(r, i) {
			if !s.Columns[i].Optional || !math.IsNaN(v) {
				in.add(&m, v, v)
			}
		}
	} else {
		for i := range s.Columns {
			switch c := &s.Columns[i]; c.Kind {
			case Number:
				if v := s.Numbers(r, i)[0]; !c.Optional || !math.IsNaN(v) { // a missing value is no fault
					in.add(&m, v, c.scale(v))
				}
			case Integer:
				v := float64(*s.Int(r, i))
				in.add(&m, v, c.scale(v))
			}
		}
	}
	in.close(m)
	in.Features = s.features(r)
	return in
}

const (
	// MaxFeatures limits the columns of a row whose values are kept.
	MaxFeatures = 64
	// maxText limits the kept bytes of a category.
	maxText = 64
	// maxNames limits the bytes of the names of the kept columns, which are written with each row.
	maxNames = 4 << 10
)

// Features are the values of a row's columns that are no vectors: the first MaxFeatures of them, or none where their
// names have more than maxNames bytes. They keep no reference to the row.
type Features struct {
	schema  *Schema
	numbers []float64
	texts   []string
}

func (s *Schema) features(r *Row) Features {
	names := 0
	for i := range s.scalars() {
		names += len(s.Columns[i].Name)
	}
	if names > maxNames {
		return Features{}
	}
	f := Features{schema: s, numbers: make([]float64, 0, min(s.numbers+s.ints, MaxFeatures))}
	for i := range s.scalars() {
		switch s.Columns[i].Kind {
		case Number, Boolean:
			f.numbers = append(f.numbers, s.Numbers(r, i)[0])
		case Integer:
			f.numbers = append(f.numbers, float64(*s.Int(r, i)))
		case Category:
			f.texts = append(f.texts, strings.Clone(cut(*s.Text(r, i)))) // a part would keep the whole alive while it is queued
		}
	}
	return f
}

// scalars are the positions of the columns that Features hold.
func (s *Schema) scalars() func(yield func(int) bool) {
	return func(yield func(int) bool) {
		left := MaxFeatures
		for i := range s.Columns {
			if s.Columns[i].Kind == Vector {
				continue
			}
			if left--; left < 0 || !yield(i) {
				return
			}
		}
	}
}

// JSON is an object of the columns' names and values, or nil if there is none.
func (f Features) JSON() []byte {
	if len(f.numbers)+len(f.texts) == 0 {
		return nil
	}
	out := []byte{'{'}
	numbers, texts := f.numbers, f.texts
	for i := range f.schema.scalars() {
		if len(out) > 1 {
			out = append(out, ',')
		}
		c := &f.schema.Columns[i]
		name, _ := json.Marshal(c.Name) // text always has a JSON form
		out = append(append(out, name...), ':')
		if c.Kind == Category {
			text, _ := json.Marshal(texts[0])
			out, texts = append(out, text...), texts[1:]
			continue
		}
		out, numbers = appendFinite(out, numbers[0]), numbers[1:]
	}
	return append(out, '}')
}

func appendFinite(out []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(out, "null"...)
	}
	return strconv.AppendFloat(out, v, 'g', -1, 64)
}

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	n := maxText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
