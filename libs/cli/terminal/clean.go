package terminal

import (
	"strings"
	"unicode"
)

// Clean removes what would move the cursor or colour the terminal: text of others is shown, not obeyed.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.Is(unicode.Bidi_Control, r) || r == 0x2028 || r == 0x2029:
			return -1 // what follows would be shown in another order, or on another line
		case r < 0x20 || r == 0x7f || (r >= 0x80 && r < 0xa0):
			return -1
		}
		return r
	}, s)
}
