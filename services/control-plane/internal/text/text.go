// Package text makes what strangers wrote fit to be stored and shown: Postgres
// takes neither bytes that are no UTF-8 nor U+0000.
package text

import (
	"strings"
	"unicode/utf8"
)

// Storable says whether s can be stored as it is.
func Storable(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// Clean is s with U+FFFD in the place of what cannot be stored.
func Clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// Cut is Clean of s, cut between two characters to at most that many bytes.
func Cut(s string, most int) string {
	s = Clean(s)
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
