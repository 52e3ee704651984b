package chat

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// stopSign must not occur in text: terminal clients take it as the mark of an approval prompt, so a log line containing
// it could fake a prompt.
const (
	stopSign     = '\U0001F6D1'
	stopSignText = "[stop sign]"
)

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. Besides what JSON requires, it escapes DEL, the C1 controls, U+2028 and
// U+2029, which some line splitters treat as line ends; invalid UTF-8 becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		b := s[i]
		if b >= ' ' && b < 0x7f && b != '"' && b != '\\' {
			i++
			continue
		}
		if b < utf8.RuneSelf {
			dst = appendEscape(append(dst, s[start:i]...), b)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(append(dst, s[start:i]...), "\uFFFD"...)
		case r <= 0x9f:
			dst = append(append(dst, s[start:i]...), `\u00`...)
			dst = append(dst, hexDigits[r>>4], hexDigits[r&15])
		case r == '\u2028':
			dst = append(append(dst, s[start:i]...), `\u2028`...)
		case r == '\u2029':
			dst = append(append(dst, s[start:i]...), `\u2029`...)
		default:
			i += size
			continue
		}
		i += size
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// appendEscape appends the escape of one ASCII character.
func appendEscape(dst []byte, b byte) []byte {
	switch b {
	case '"', '\\':
		return append(dst, '\\', b)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&15])
}

// appendText is appendString for prose, in which the stop sign is replaced by its name.
func appendText(dst []byte, s string) []byte { return appendString(dst, Prose(s)) }

// Prose returns text as frames contain it: without stop signs.
func Prose(s string) string {
	if !strings.ContainsRune(s, stopSign) {
		return s
	}
	return strings.ReplaceAll(s, string(stopSign), stopSignText)
}

// Visible returns text for approval: invisible characters, and those that change the direction of text, are shown by
// their code.
func Visible(s string) string {
	if strings.IndexFunc(s, operation.Hidden) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !operation.Hidden(r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

// cutText shortens s to at most limit code points.
func cutText(s string, limit int) (short string, was bool) {
	if len(s) <= limit {
		return s, false
	}
	n := 0
	for i := range s {
		if n == limit {
			return s[:i], true
		}
		n++
	}
	return s, false
}
