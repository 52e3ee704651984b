package wire

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxLabel limits a label, in bytes.
const MaxLabel = 128

// LabelRule describes what Label accepts.
const LabelRule = "must be 1 to 128 bytes of printable text without spaces around it"

// Label reports whether s can name something named outside the platform, such as a project, a cluster or a scheduler's
// job. U+FFFD is Text's replacement for bytes that are not text.
func Label(s string) bool {
	return s != "" && len(s) <= MaxLabel && utf8.ValidString(s) && s == strings.TrimSpace(s) &&
		strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) < 0
}
