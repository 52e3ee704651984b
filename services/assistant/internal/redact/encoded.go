package redact

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

const (
	leastEncoded = 16       // shorter than any name with a secret
	mostEncoded  = 64 << 10 // what is longer is looked at in the beginning
)

var inBase64 = func() (set [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_") {
		set[c] = true
	}
	return set
}()

// findEncoded finds base64 of a text with a secret in it. All of the code is taken: there is no cutting out of it.
func findEncoded(s string, encodings int, spans []span) []span {
	for i := 0; i < len(s); {
		if !inBase64[s[i]] {
			i++
			continue
		}
		from := i
		for i < len(s) && inBase64[s[i]] {
			i++
		}
		to := i
		for i < len(s) && s[i] == '=' && i < to+2 {
			i++
		}
		if to-from < leastEncoded {
			continue
		}
		if text := decodeText(s[from:to]); text != "" && !isCertificate(text) && len(findSecrets(text, encodings)) > 0 {
			spans = append(spans, span{from: from, to: i})
		}
	}
	return spans
}

// decodeText returns the text that code stands for, or nothing if it stands for none.
func decodeText(code string) string {
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

// isCertificate reports whether a text is of public certificates, as the API gives those of authorities.
func isCertificate(text string) bool {
	return strings.HasPrefix(text, pemBegin+"CERT") && !strings.Contains(text, "PRIVATE")
}

// isText reports whether b is printable; a letter may be cut at its end.
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
