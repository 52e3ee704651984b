// Package query reads the query string of a request as the contract words it: only
// "&" separates, a malformed escape stays as it is, and names are checked before values.
package query

import (
	"slices"
	"strings"
)

// Values are the query's values by name. Each name stands once.
type Values map[string]string

// Get gives the value of a name, or nil if the query does not have it.
func (v Values) Get(name string) *string {
	s, ok := v[name]
	if !ok {
		return nil
	}
	return &s
}

// Parse reads a raw query. It is false if a name is not allowed or stands twice; then
// no value matters. Empty parts between separators say nothing.
func Parse(raw string, allowed []string) (Values, bool) {
	var v Values
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		name = decodePercent(name)
		if _, twice := v[name]; twice || !slices.Contains(allowed, name) {
			return nil, false
		}
		if v == nil {
			v = Values{}
		}
		v[name] = decodePercent(value)
	}
	return v, true
}

// decodePercent undoes the escapes of a query: "+" is a space, and an escape that is none
// stays literal.
func decodePercent(s string) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '+':
			b = append(b, ' ')
		case '%':
			if d, ok := Escape(s[i:]); ok {
				b = append(b, d)
				i += 2
				continue
			}
			b = append(b, c)
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

// Escape reads the percent escape that s begins with.
func Escape(s string) (byte, bool) {
	if len(s) < 3 || s[0] != '%' {
		return 0, false
	}
	hi, ok1 := hexDigit(s[1])
	lo, ok2 := hexDigit(s[2])
	return hi<<4 | lo, ok1 && ok2
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// ParseDigits reads 1 to most ASCII digits; 18 fit into an int64.
func ParseDigits(s string, most int) (n int64, ok bool) {
	if s == "" || len(s) > most || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	for _, c := range s {
		n = n*10 + int64(c-'0')
	}
	return n, true
}
