package request

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
)

// Faults list why features do not fit the model. Invalid: a value of the wrong type. Mismatch: names or lengths that
// differ from training.
type Faults struct {
	Invalid, Mismatch []problem.Field
	// Infinite is set if a value is too large for the model's element type: it would be infinite there.
	Infinite bool
}

func (f *Faults) invalid(msg string, loc ...string) {
	f.Infinite = f.Infinite || msg == tooLarge
	if len(f.Invalid) < maxFaults {
		f.Invalid = append(f.Invalid, problem.Field{Loc: append([]string{"body", "features"}, loc...), Msg: msg})
	}
}

func (f *Faults) mismatch(msg string, loc ...string) {
	if len(f.Mismatch) < maxFaults {
		f.Mismatch = append(f.Mismatch, problem.Field{Loc: append([]string{"body", "features"}, loc...), Msg: msg})
	}
}

func lengthFault(have, want int) string { return fmt.Sprintf("length %d, want %d", have, want) }

// Fill writes features, a JSON object that Parse has checked, into row by the columns of s. The order
// of the names does not matter.
func Fill(features []byte, s *schema.Schema, row *schema.Row) (f Faults) {
	s.Fit(row)
	sc := scanner{b: features, i: 1}
	seen := 0
	for sc.next() != '}' {
		name := sc.value()
		key := name[1 : len(name)-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			key, _ = jsontext.AppendUnquote(nil, name) // Parse has read it before
		}
		sc.next() // the colon
		sc.i++
		start := sc.next()
		i, ok := s.Lookup(key)
		if !ok {
			sc.value()
			f.mismatch("unexpected", problem.Shorten(string(key)))
			continue
		}
		row.Seen[i] = true
		seen++
		col := &s.Columns[i]
		if col.Kind == schema.Vector {
			if start != '[' {
				f.invalid(fmt.Sprintf("expected a list of %d numbers, got %s", col.Length, kindName(start)), col.Name)
				sc.value()
				continue
			}
			fillVector(&sc, col, s.Numbers(row, i), &f)
			continue
		}
		if msg := fillScalar(sc.value(), col, i, s, row); msg != "" {
			f.invalid(msg, col.Name)
		}
	}
	if seen < len(s.Columns) {
		for i := range s.Columns {
			if !row.Seen[i] {
				f.mismatch("missing", s.Columns[i].Name)
			}
		}
	}
	return f
}

func fillVector(sc *scanner, col *schema.Column, dst []float64, f *Faults) {
	sc.i++ // [
	n := 0
	for ; sc.next() != ']'; n++ {
		raw := sc.value()
		v, msg := math.NaN(), ""
		if raw[0] != 'n' || !col.Optional {
			v, msg = parseNumber(raw, col.Range)
		}
		if msg == "" && col.Whole && v != math.Trunc(v) {
			msg = "expected a whole number"
		}
		if msg != "" {
			f.invalid(msg, col.Name, strconv.Itoa(n))
		}
		if n < len(dst) {
			dst[n] = v
		}
	}
	sc.i++
	if n != len(dst) {
		f.mismatch(lengthFault(n, len(dst)), col.Name)
	}
}

// fillScalar returns the fault of a value, or "".
func fillScalar(raw []byte, col *schema.Column, i int, s *schema.Schema, row *schema.Row) string {
	switch col.Kind {
	case schema.Number:
		if raw[0] == 'n' && col.Optional {
			s.Numbers(row, i)[0] = math.NaN()
			return ""
		}
		v, msg := parseNumber(raw, col.Range)
		s.Numbers(row, i)[0] = v
		return msg
	case schema.Integer:
		v, msg := parseInteger(raw, col.Range)
		*s.Int(row, i) = v
		return msg
	case schema.Boolean:
		if raw[0] != 't' && raw[0] != 'f' {
			return "expected true or false, got " + kindName(raw[0])
		}
		s.Numbers(row, i)[0] = 0
		if raw[0] == 't' {
			s.Numbers(row, i)[0] = 1
		}
	case schema.Category:
		if raw[0] != '"' {
			return "expected a string, got " + kindName(raw[0])
		}
		v, err := unquoteJSON(raw)
		if err != nil {
			return err.Error()
		}
		for _, c := range []byte(v) {
			if c == 0 {
				return "a text must not contain a NUL character"
			}
		}
		*s.Text(row, i) = v
	}
	return ""
}

// viewString is b as a string without a copy, for functions that do not keep it.
func viewString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

const tooLarge = beyond + "the model"

func parseNumber(raw []byte, in schema.Range) (float64, string) {
	if c := raw[0]; c != '-' && (c < '0' || c > '9') {
		return 0, "expected a number, got " + kindName(c)
	}
	v, err := strconv.ParseFloat(viewString(raw), 64)
	if err != nil {
		return 0, tooLarge
	}
	return v, checkRange(v, in)
}

// maxExact is the largest magnitude below which every integer is a float64.
const maxExact = 1 << 53

func parseInteger(raw []byte, in schema.Range) (int64, string) {
	if c := raw[0]; c != '-' && (c < '0' || c > '9') {
		return 0, "expected a whole number, got " + kindName(c)
	}
	v, err := strconv.ParseInt(viewString(raw), 10, 64)
	if err != nil { // 3.0 and 3e2 are whole numbers too
		f, ferr := strconv.ParseFloat(viewString(raw), 64)
		switch {
		case ferr != nil || math.Abs(f) >= maxExact:
			return 0, tooLarge
		case f != math.Trunc(f):
			return 0, "expected a whole number"
		}
		v = int64(f)
	}
	return v, checkRange(float64(v), in)
}

// checkRange returns the fault of a value, or "". Below the range of an unsigned type is no number that is too large.
func checkRange(v float64, in schema.Range) string {
	switch {
	case in.Has(v):
		return ""
	case v < 0 && in.Min == 0:
		return "the model takes no number below 0"
	}
	return tooLarge
}

// scanner walks JSON that is known to be valid.
type scanner struct {
	b []byte
	i int
}

// next skips space and commas and returns the byte it stops at.
func (s *scanner) next() byte {
	for {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\n', '\r', ',':
			s.i++
		default:
			return c
		}
	}
}

// value takes the value that next stopped at.
func (s *scanner) value() []byte {
	start := s.i
	switch s.b[s.i] {
	case '"':
		s.text()
	case '{', '[':
		depth := 0
		for {
			switch s.b[s.i] {
			case '"':
				s.text()
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					s.i++
					return s.b[start:s.i]
				}
			}
			s.i++
		}
	default:
		for s.i < len(s.b) && !ends[s.b[s.i]] {
			s.i++
		}
	}
	return s.b[start:s.i]
}

// ends are the bytes that end a number or literal.
var ends = [256]bool{' ': true, '\t': true, '\n': true, '\r': true, ',': true, '}': true, ']': true, ':': true}

func (s *scanner) text() {
	for s.i++; s.b[s.i] != '"'; s.i++ {
		if s.b[s.i] == '\\' {
			s.i++
		}
	}
	s.i++
}
