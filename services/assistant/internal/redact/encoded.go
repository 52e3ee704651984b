package redact

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

const (
	leastEncoded = 16       // shorter than any encoded name with a secret
	leastWrapped = 60       // the shortest line that may continue in the next one
	mostEncoded  = 64 << 10 // of longer texts only the beginning is examined
)

var inBase64 = func() (set [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_") {
		set[c] = true
	}
	return set
}()

var lineBreaks = strings.NewReplacer("\r", "", "\n", "")

// wrapLength returns the length of the line break at the start of s if base64 continues after it, or 0.
func wrapLength(s string) int {
	n := len(s) - len(strings.TrimPrefix(strings.TrimPrefix(s, "\r"), "\n"))
	if n == 0 || s[n-1] != '\n' || n == len(s) || !inBase64[s[n]] {
		return 0
	}
	return n
}

// findEncoded finds base64 of a text with a secret in it. It covers the whole code, since no part can be cut out of it.
func findEncoded(s string, encodings int, set *known, spans []span) []span {
	for i := 0; i < len(s); {
		if !inBase64[s[i]] {
			i++
			continue
		}
		from := i
		line := i
		for i < len(s) && inBase64[s[i]] {
			if i++; i < len(s) && i-line >= leastWrapped && (i-line)%4 == 0 {
				if next := wrapLength(s[i:]); next > 0 { // base64 and OpenSSL break their lines
					i += next
					line = i
				}
			}
		}
		to := i
		for i < len(s) && s[i] == '=' && i < to+2 {
			i++
		}
		if to-from < leastEncoded {
			continue
		}
		if text := decodeText(s[from:to]); text != "" && !isCertificate(text) && len(findSecrets(text, encodings, set)) > 0 {
			spans = append(spans, span{from: from, to: i})
		}
	}
	return spans
}

// decodeText returns the decoded text, or nothing if the code encodes none.
func decodeText(code string) string {
	code = lineBreaks.Replace(code)
	code = code[:min(len(code), mostEncoded)]
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(code, "-_") {
		encoding = base64.RawURLEncoding
	}
	var head [12]byte
	if _, err := encoding.Decode(head[:], []byte(code[:leastEncoded])); err != nil || !isText(head[:]) {
		return ""
	}
	if len(code)%4 == 1 {
		code = code[:len(code)-1]
	}
	text, err := encoding.DecodeString(code)
	if err != nil || !isText(text) {
		return ""
	}
	return string(text)
}

// isCertificate reports whether a text consists of public certificates, as in the API's authority bundles.
func isCertificate(text string) bool {
	return strings.HasPrefix(text, pemBegin+"CERT") && !strings.Contains(text, "PRIVATE")
}

// isText reports whether b is printable; a character may be truncated at its end.
func isText(b []byte) bool {
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			return !utf8.FullRune(b)
		}
		if r < ' ' && r != '\n' && r != '\r' && r != '\t' && r != 0x1b || r == 0x7f {
			return false
		}
		b = b[size:]
	}
	return true
}
