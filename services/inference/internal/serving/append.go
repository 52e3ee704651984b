package serving

import (
	"encoding/json"
	"math"
	"strconv"
)

// AppendString appends s as JSON.
func AppendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			b, _ := json.Marshal(s) // strings always have a JSON form
			return append(dst, b...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// AppendNumber appends a finite number with just enough digits to distinguish it from its neighbours of the same
// precision, in the form of encoding/json (ECMA-262, 6.1.6.1.20).
func AppendNumber(dst []byte, v float64, single bool) []byte {
	bits := 64
	if single {
		bits = 32
	}
	format := byte('f')
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, v, format, -1, bits)
}
