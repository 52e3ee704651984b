package wire

import (
	"strings"
	"unicode/utf8"
)

// Storable says whether s can be stored as it is.
func Storable(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// CleanText is s with U+FFFD in the place of what cannot be stored.
func CleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// TruncateText is Clean of s, cut between two characters to at most that many bytes.
func TruncateText(s string, most int) string {
	s = CleanText(s)
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
