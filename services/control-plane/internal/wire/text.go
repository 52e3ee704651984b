package wire

import (
	"strings"
	"unicode/utf8"
)

// Storable reports whether Postgres can store s as is: it accepts neither invalid UTF-8 nor U+0000.
func Storable(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// CleanText replaces what cannot be stored by U+FFFD.
func CleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// TruncateText cleans s and cuts it, between two characters, to at most limit bytes.
func TruncateText(s string, limit int) string {
	s = CleanText(s)
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
