// Package request names a request: the id that its answer carries, and the trace that
// it belongs to.
package request

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// NewID makes an id for a request that brought none.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return "req_" + hex.EncodeToString(b[:])
}

// ID is the id of a request: the caller's, if it sent one that is safe to repeat.
func ID(values []string) string {
	if len(values) == 1 && ValidID(values[0]) {
		return values[0]
	}
	return NewID()
}

// ValidID says that an id is 1 to 128 letters, digits and ._:- and begins with a
// letter or digit.
func ValidID(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alnum && (i == 0 || !strings.ContainsRune("._:-", rune(c))) {
			return false
		}
	}
	return true
}

// TraceParent is the caller's traceparent, if it sent a single valid one, else "".
func TraceParent(values []string) string {
	if len(values) == 1 && validTrace(values[0]) {
		return values[0]
	}
	return ""
}

// validTrace reads W3C Trace Context, version 00: 00-<32 hex>-<16 hex>-<2 hex>, lower
// case, neither id zero.
func validTrace(s string) bool {
	if len(s) != 55 || s[:3] != "00-" || s[35] != '-' || s[52] != '-' {
		return false
	}
	trace, parent, flags := s[3:35], s[36:52], s[53:]
	return lowerHex(trace) && lowerHex(parent) && lowerHex(flags) &&
		strings.Trim(trace, "0") != "" && strings.Trim(parent, "0") != ""
}

func lowerHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
