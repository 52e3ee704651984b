package request

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
)

// FillJSON writes the JSON data of a tensor, flat or nested by its shape, into t, whose slice of the element type has
// as many values as the shape. Where values may be missing, null is NaN. It returns the fault, or "".
func FillJSON(raw []byte, shape []int64, t *runtime.Tensor, missing bool) string {
	switch {
	case t.Floats != nil:
		return fillData(raw, shape, t.Floats, orMissing(missing, parseFloat32))
	case t.Doubles != nil:
		return fillData(raw, shape, t.Doubles, orMissing(missing, func(v []byte) (float64, string) { return parseNumber(v, schema.Range{}) }))
	case t.Int64s != nil:
		return fillData(raw, shape, t.Int64s, func(v []byte) (int64, string) { return parseInteger(v, schema.Range{}) })
	case t.Int32s != nil:
		return fillData(raw, shape, t.Int32s, parseInt32)
	case t.Bools != nil:
		return fillData(raw, shape, t.Bools, parseBool)
	}
	return fillData(raw, shape, t.Strings, parseString)
}

// orMissing is parse, to which null is a missing value if there may be any.
func orMissing[T float32 | float64](missing bool, parse func([]byte) (T, string)) func([]byte) (T, string) {
	if !missing {
		return parse
	}
	return func(v []byte) (T, string) {
		if v[0] == 'n' {
			return T(math.NaN()), ""
		}
		return parse(v)
	}
}

func parseFloat32(raw []byte) (float32, string) {
	if c := raw[0]; c != '-' && (c < '0' || c > '9') {
		return 0, "expected a number, got " + kindName(c)
	}
	v, err := strconv.ParseFloat(viewString(raw), 32)
	if err != nil {
		return 0, beyond + "FP32"
	}
	return float32(v), ""
}

func parseInt32(raw []byte) (int32, string) {
	v, msg := parseInteger(raw, schema.Range{})
	if msg == "" && int64(int32(v)) != v {
		msg = beyond + "INT32"
	}
	return int32(v), msg
}

func parseBool(raw []byte) (bool, string) {
	if raw[0] != 't' && raw[0] != 'f' {
		return false, "expected true or false, got " + kindName(raw[0])
	}
	return raw[0] == 't', ""
}

func parseString(raw []byte) (string, string) {
	if raw[0] != '"' {
		return "", "expected a string, got " + kindName(raw[0])
	}
	v, err := unquoteJSON(raw)
	if err != nil {
		return "", err.Error()
	}
	return v, checkText(v)
}

func checkText(v string) string {
	switch {
	case strings.IndexByte(v, 0) >= 0:
		return "a text must not contain a NUL character"
	case !utf8.ValidString(v):
		return "a text must be valid UTF-8"
	}
	return ""
}

// dataFiller walks the lists of one tensor's data.
type dataFiller[T any] struct {
	s     scanner
	dst   []T
	n     int
	parse func([]byte) (T, string)
}

func fillData[T any](raw []byte, shape []int64, dst []T, parse func([]byte) (T, string)) string {
	f := dataFiller[T]{s: scanner{b: raw, i: 1}, dst: dst, parse: parse}
	sizes := shape
	if f.s.next() != '[' { // flat
		sizes = []int64{int64(len(dst))}
	}
	f.s.i = 0
	return f.level(sizes)
}

// level reads one list, whose length is the first of sizes.
func (f *dataFiller[T]) level(sizes []int64) string {
	if len(sizes) == 0 {
		return "the lists are nested deeper than the shape"
	}
	f.s.i++
	n := int64(0)
	for ; f.s.next() != ']'; n++ {
		if n == sizes[0] {
			return fmt.Sprintf("a list has more than the %d values that the shape says", sizes[0])
		}
		if f.s.b[f.s.i] == '[' {
			if msg := f.level(sizes[1:]); msg != "" {
				return msg
			}
			continue
		}
		if len(sizes) > 1 {
			return "expected a list, got " + kindName(f.s.b[f.s.i]) + "; data is flat, or nested by the shape"
		}
		v, msg := f.parse(f.s.value())
		if msg != "" {
			return fmt.Sprintf("value %d: %s", f.n, msg)
		}
		f.dst[f.n] = v
		f.n++
	}
	f.s.i++
	if n != sizes[0] {
		return fmt.Sprintf("a list has %d values, the shape says %d", n, sizes[0])
	}
	return ""
}

// FillBinary writes the binary data of a tensor, little-endian and in row-major order, into t. Where values may be
// missing, NaN is one. It returns the fault, or "".
func FillBinary(raw []byte, t *runtime.Tensor, missing bool) string {
	size := func(n, width int) string {
		if len(raw) != n*width {
			return fmt.Sprintf("has %d bytes of data, its shape needs %d", len(raw), n*width)
		}
		return ""
	}
	switch {
	case t.Floats != nil:
		if msg := size(len(t.Floats), 4); msg != "" {
			return msg
		}
		for i := range t.Floats {
			t.Floats[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
			if !isFinite(float64(t.Floats[i]), missing) {
				return fmt.Sprintf("value %d%s", i, notFinite)
			}
		}
	case t.Doubles != nil:
		if msg := size(len(t.Doubles), 8); msg != "" {
			return msg
		}
		for i := range t.Doubles {
			t.Doubles[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
			if !isFinite(t.Doubles[i], missing) {
				return fmt.Sprintf("value %d%s", i, notFinite)
			}
		}
	case t.Int64s != nil:
		if msg := size(len(t.Int64s), 8); msg != "" {
			return msg
		}
		for i := range t.Int64s {
			t.Int64s[i] = int64(binary.LittleEndian.Uint64(raw[8*i:]))
		}
	case t.Int32s != nil:
		if msg := size(len(t.Int32s), 4); msg != "" {
			return msg
		}
		for i := range t.Int32s {
			t.Int32s[i] = int32(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	case t.Bools != nil:
		if msg := size(len(t.Bools), 1); msg != "" {
			return msg
		}
		for i := range t.Bools {
			if raw[i] > 1 {
				return fmt.Sprintf("value %d is %d, not 0 or 1", i, raw[i])
			}
			t.Bools[i] = raw[i] == 1
		}
	default:
		return fillBinaryTexts(raw, t.Strings)
	}
	return ""
}

func isFinite(v float64, missing bool) bool {
	return !math.IsInf(v, 0) && (missing || !math.IsNaN(v))
}

// FillNarrow is FillBinary for values of a narrow type, which t holds as wide ones.
func FillNarrow(raw []byte, n *runtime.Narrow, t *runtime.Tensor, missing bool) string {
	if values := len(t.Floats) + len(t.Int32s) + len(t.Int64s); len(raw) != n.Bytes*values {
		return fmt.Sprintf("has %d bytes of data, its shape needs %d", len(raw), n.Bytes*values)
	}
	n.Decode(raw, t)
	for i, v := range t.Floats {
		if !isFinite(float64(v), missing) {
			return fmt.Sprintf("value %d%s", i, notFinite)
		}
	}
	return ""
}

// CheckNarrow returns why the values do not fit the narrow type, or "".
func CheckNarrow(n *runtime.Narrow, datatype string, t *runtime.Tensor) string {
	at := n.Beyond(t)
	switch {
	case at < 0:
		return ""
	case t.Floats == nil:
		return fmt.Sprintf("value %d: the number is outside the range of %s", at, datatype)
	}
	return fmt.Sprintf("value %d: %s%s", at, beyond, datatype)
}

// fillBinaryTexts reads texts that each follow their length, a little-endian uint32.
func fillBinaryTexts(raw []byte, dst []string) string {
	for i := range dst {
		if len(raw) < 4 {
			return fmt.Sprintf("its data ends before value %d", i)
		}
		n := int64(binary.LittleEndian.Uint32(raw))
		if raw = raw[4:]; n > int64(len(raw)) {
			return fmt.Sprintf("value %d has %d bytes, its data ends after %d", i, n, len(raw))
		}
		if dst[i] = string(raw[:n]); checkText(dst[i]) != "" {
			return fmt.Sprintf("value %d: %s", i, checkText(dst[i]))
		}
		raw = raw[n:]
	}
	if len(raw) > 0 {
		return fmt.Sprintf("has %d bytes more than its shape needs", len(raw))
	}
	return ""
}
