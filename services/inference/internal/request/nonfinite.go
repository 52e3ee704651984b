package request

import (
	"bytes"
	"strings"
)

// nonFinite are the names that producers write for numbers that JSON has no form for: Python's json module among them.
var nonFinite = []string{"NaN", "Infinity"}

// FillNonFinite reports whether body holds NaN or Infinity outside of its strings, and returns it with 0 in their
// place: if the result is JSON, they were the only fault.
func FillNonFinite(body []byte) (filled []byte, found bool) {
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			for i++; i < len(body) && body[i] != '"'; i++ {
				if body[i] == '\\' {
					i++
				}
			}
		case 'N', 'I':
			for _, name := range nonFinite {
				if !bytes.HasPrefix(body[i:], []byte(name)) {
					continue
				}
				if !found {
					filled, found = bytes.Clone(body), true
				}
				filled[i] = '0'
				copy(filled[i+1:], bytes.Repeat([]byte(" "), len(name)-1))
				i += len(name) - 1
				break
			}
		}
	}
	return filled, found
}

// Faults of a value that is not finite, or would not be in the model.
const (
	notFinite = " is not finite"
	beyond    = "the number is too large for "
)

// SaysNonFinite reports whether the fault of a tensor's data is that a value is not finite.
func SaysNonFinite(msg string) bool {
	return strings.HasSuffix(msg, notFinite) || strings.Contains(msg, beyond)
}
