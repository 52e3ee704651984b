// Package printable makes external text safe to print. A model name, a commit message, a server's error or a line of a
// log can contain sequences that a terminal obeys: they move the cursor, colour or clear the screen, and characters
// that reverse the following text or are invisible. All of it is shown, as \x1b or \u202e, and none of it obeyed.
package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns s as one line: line breaks and tabs become spaces, so that no text can add a line, or a cell.
func Line(s string) string {
	return lineBreaks.Replace(Text(s))
}

var lineBreaks = strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ")

// Text returns s in printable form, with its line breaks and tabs.
func Text(s string) string {
	if isPrintable(s) {
		return s
	}
	b, _ := appendText(make([]byte, 0, len(s)+16), []byte(s), false, true)
	return string(b)
}

// isPrintable reports whether s holds only ASCII letters, line breaks and tabs: most texts.
func isPrintable[T string | []byte](s T) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < 0x20 && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// appendText appends s in printable form and returns how much of it was read: all, or with more to come all but an
// incomplete last character.
func appendText(b, s []byte, colors, last bool) (text []byte, read int) {
	for i := 0; i < len(s); {
		if !last && !utf8.FullRune(s[i:]) {
			return b, i
		}
		r, n := utf8.DecodeRune(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b = fmt.Appendf(b, `\x%02x`, s[i])
		case r == '\n' || r == '\t':
			b = append(b, byte(r))
		case r == '\r' && !last && i+1 == len(s):
			return b, i // a line feed may follow in the next write
		case r == '\r' && i+1 < len(s) && s[i+1] == '\n':
			b = append(b, '\r')
		case r == 0x1b && colors:
			if c := ownColor(s[i:]); c != "" {
				b, n = append(b, c...), len(c)
				break
			}
			b = appendEscape(b, r)
		case isObeyed(r):
			b = appendEscape(b, r)
		default:
			b = append(b, s[i:i+n]...)
		}
		i += n
	}
	return b, len(s)
}

// isObeyed reports whether a terminal acts on r, or does not show it: control characters of both sets, line and
// paragraph separators, and the format characters, which are the bidirectional controls, those of no width, the byte
// order mark and tags. Those of them that are drawn, the number signs of Arabic scripts, are text.
func isObeyed(r rune) bool {
	return unicode.IsControl(r) || r == 0x2028 || r == 0x2029 || unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// appendEscape writes r as JSON does, apart from ASCII control characters, which no JSON document contains unescaped.
// So a JSON document stays the same document.
func appendEscape(b []byte, r rune) []byte {
	switch {
	case r < 0x20:
		return fmt.Appendf(b, `\x%02x`, r)
	case r > 0xffff:
		high, low := utf16.EncodeRune(r)
		return fmt.Appendf(b, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(b, `\u%04x`, r)
}

// ownColors are the colours that the command line tools use. None of them hides text or moves the cursor.
var ownColors = []string{"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[35m", "\x1b[36m"}

func ownColor(s []byte) string {
	for _, c := range ownColors {
		if len(s) >= len(c) && string(s[:len(c)]) == c {
			return c
		}
	}
	return ""
}
