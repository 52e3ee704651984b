package redact

import (
	"strings"
	"unicode/utf8"
)

// plainText is a text without the notations that obscure it: terminal escape sequences, zero-width characters, percent
// encoding, Unicode escapes, XML entities, full-width letters, the doubled quotes of a CSV field. It knows the origin
// of each byte.
type plainText struct {
	text        string
	starts, end []int32 // for each byte of text, the start and end of its notation in the original
}

// maxNesting limits the nested encodings that are decoded.
const maxNesting = 3

// decodeNotations returns nil if s has none of these notations.
func decodeNotations(s string) *plainText {
	var p *plainText
	for range maxNesting {
		from := s
		if p != nil {
			from = p.text
		}
		next := decodeOnce(from)
		if next == nil {
			break
		}
		if p != nil {
			for i := range next.starts {
				next.starts[i], next.end[i] = p.starts[next.starts[i]], p.end[next.end[i]-1]
			}
		}
		p = next
	}
	return p
}

// original maps a span of the text to its position in the original.
func (p *plainText) original(sp span) span {
	return span{int(p.starts[sp.from]), int(p.end[sp.to-1]), sp.quoted}
}

func decodeOnce(s string) *plainText {
	at := 0
	fields := findDoubledFields(s)
	for at < len(s) && (len(fields) == 0 || at < fields[0].from) {
		if mayBeNotation[s[at]] {
			if _, n := decodeAt(s[at:]); n > 0 {
				break
			}
		}
		at++
	}
	if at == len(s) {
		return nil
	}
	var text strings.Builder
	text.Grow(len(s))
	p := &plainText{starts: make([]int32, 0, len(s)), end: make([]int32, 0, len(s))}
	for i := 0; i < len(s); {
		n, meaning := 0, ""
		for len(fields) > 0 && i >= fields[0].to {
			fields = fields[1:]
		}
		if len(fields) > 0 && i >= fields[0].from && strings.HasPrefix(s[i:], `""`) {
			meaning, n = `"`, 2
		} else if i >= at && mayBeNotation[s[i]] {
			meaning, n = decodeAt(s[i:])
		}
		if n == 0 {
			meaning, n = s[i:i+1], 1
		}
		text.WriteString(meaning)
		for range len(meaning) {
			p.starts, p.end = append(p.starts, int32(i)), append(p.end, int32(i+n))
		}
		i += n
	}
	p.text = text.String()
	return p
}

var mayBeNotation = func() (set [256]bool) {
	for _, c := range []byte("\x1b\x00\b\x7f%\\&\xc2\xe2\xef\xcd\xe1\xf3") {
		set[c] = true
	}
	return set
}()

// decodeAt decodes the notation at the start of s, and returns its length, or 0 if there is none.
func decodeAt(s string) (meaning string, n int) {
	switch s[0] {
	case 0x1b:
		return "", escapeLength(s)
	case 0, '\b', 0x7f:
		return "", 1
	case '%':
		if len(s) > 2 && isHex(s[1]) && isHex(s[2]) {
			if c := unhex(s[1])<<4 | unhex(s[2]); c >= ' ' || c == '\n' || c == '\t' {
				return string([]byte{c}), 3
			}
		}
	case '\\':
		return decodeBackslash(s)
	case '&':
		return decodeEntity(s)
	default:
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case isInvisible(r):
			return "", size
		case r >= 0xff01 && r <= 0xff5e: // full width
			return string(r - 0xff01 + '!'), size
		}
	}
	return "", 0
}

func isInvisible(r rune) bool {
	switch {
	case r == 0xad, r == 0x34f, r == 0x61c, r == 0x180e, r == 0xfeff, r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x2069,
		r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return false
}

// escapeLength returns the length of an escape sequence: CSI up to its letter, OSC up to its bell, others of two bytes.
func escapeLength(s string) int {
	if len(s) == 1 {
		return 1
	}
	switch s[1] {
	case '[':
		for i := 2; i < len(s) && i < 64; i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x3f {
				return i
			}
		}
		return 2
	case ']', 'P', '_', '^':
		for i := 2; i < len(s) && i < 512; i++ {
			if s[i] == '\a' {
				return i + 1
			}
			if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
			if s[i] == '\n' {
				break
			}
		}
		return 2
	}
	if s[1] < 0x20 || s[1] > 0x7e {
		return 1
	}
	return 2
}

// decodeBackslash decodes \u0041, \u{41}, \x41, \U00000041 and the octal \101; an escaped line feed or quote stays as
// it is.
func decodeBackslash(s string) (string, int) {
	if len(s) < 4 {
		return "", 0
	}
	digits := 0
	switch s[1] {
	case 'x':
		digits = 2
	case 'u':
		digits = 4
		if s[2] == '{' {
			end := strings.IndexByte(s[:min(len(s), 11)], '}')
			if end < 4 || !allHex(s[3:end]) {
				return "", 0
			}
			return visible(parseHex(s[3:end])), end + 1
		}
	case 'U':
		digits = 8
	case '0', '1':
		if s[2] >= '0' && s[2] <= '7' && s[3] >= '0' && s[3] <= '7' {
			r := rune(s[1]-'0')<<6 | rune(s[2]-'0')<<3 | rune(s[3]-'0')
			if r == 0x1b {
				return "\x1b", 4
			}
			if r >= ' ' {
				return string(r), 4
			}
		}
		return "", 0
	}
	if digits == 0 || len(s) < 2+digits || !allHex(s[2:2+digits]) {
		return "", 0
	}
	r := parseHex(s[2 : 2+digits])
	if r == 0x1b { // the next round decodes the whole sequence
		return "\x1b", 2 + digits
	}
	if r < ' ' && r != '\n' && r != '\t' {
		return "", 0
	}
	return visible(r), 2 + digits
}

var entities = []struct{ name, meaning string }{{"quot;", `"`}, {"apos;", "'"}, {"amp;", "&"}, {"lt;", "<"}, {"gt;", ">"}}

func decodeEntity(s string) (string, int) {
	for _, e := range entities {
		if strings.HasPrefix(s[1:], e.name) {
			return e.meaning, 1 + len(e.name)
		}
	}
	if len(s) < 4 || s[1] != '#' {
		return "", 0
	}
	end := strings.IndexByte(s[:min(len(s), 11)], ';')
	if end < 0 {
		return "", 0
	}
	digits, r := s[2:end], rune(0)
	if len(digits) > 1 && (digits[0] == 'x' || digits[0] == 'X') {
		if !allHex(digits[1:]) {
			return "", 0
		}
		r = parseHex(digits[1:])
	} else {
		for i := range len(digits) {
			if digits[i] < '0' || digits[i] > '9' {
				return "", 0
			}
			r = r*10 + rune(digits[i]-'0')
		}
	}
	if r < ' ' && r != '\n' && r != '\t' {
		return "", 0
	}
	return visible(r), end + 1
}

func visible(r rune) string {
	if isInvisible(r) {
		return ""
	}
	return string(r)
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func allHex(s string) bool {
	for i := range len(s) {
		if !isHex(s[i]) {
			return false
		}
	}
	return s != ""
}

func unhex(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	if c >= 'A' {
		return c - 'A' + 10
	}
	return c - '0'
}

func parseHex(s string) (r rune) {
	for i := range len(s) {
		r = r<<4 | rune(unhex(s[i]))
	}
	return r
}
