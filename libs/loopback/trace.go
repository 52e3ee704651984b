package loopback

import (
	"strings"

	"github.com/mlp-platform/platform/libs/loopback/httpd"
)

// RequestID is the id of the answer: the caller's, if there is one and it is safe
// to repeat, or a new one.
func RequestID(r *httpd.Request) string {
	if id, ok := r.Header.Sole("X-Request-ID"); ok && safeID(id) {
		return id
	}
	return httpd.NewID()
}

// safeID is ^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$.
func safeID(s string) bool {
	for i, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == ':' || c == '-'):
		default:
			return false
		}
	}
	return 0 < len(s) && len(s) <= 128
}

// Traceparent returns the W3C trace context that the answer repeats: version 00,
// lower-case hex, ids that are not zero, nothing around it. Another is dropped.
func Traceparent(r *httpd.Request) (string, bool) {
	s, ok := r.Header.Sole("traceparent")
	if !ok || len(s) != 55 || s[:3] != "00-" || s[35] != '-' || s[52] != '-' {
		return "", false
	}
	trace, parent, flags := s[3:35], s[36:52], s[53:]
	if !lowerHex(trace) || !lowerHex(parent) || !lowerHex(flags) || strings.Trim(trace, "0") == "" || strings.Trim(parent, "0") == "" {
		return "", false
	}
	return s, true
}

func lowerHex(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
