package proxy

import (
	"bytes"
	"encoding/json"
	"strings"
)

// rewriteJSON translates the string values that begin with the address of a service. Keys, other values and root-relative
// strings stay: in data a path is as likely to be something else. Bytes that it does not change stay as they are, so
// numbers keep their digits.
func rewriteJSON(body []byte, links *linkMap) []byte {
	if !links.mayOccur(body) {
		return body
	}
	var out bytes.Buffer
	out.Grow(len(body) + len(body)/16)
	copied := 0
	for i := 0; i < len(body); i++ {
		if body[i] != '"' {
			continue
		}
		end := stringEnd(body, i)
		if end >= len(body) {
			break // cut off: no value
		}
		literal := body[i : end+1]
		if !isKey(body, end+1) {
			if translated, ok := links.translateValue(literal); ok {
				out.Write(body[copied:i])
				out.Write(translated)
				copied = end + 1
			}
		}
		i = end
	}
	out.Write(body[copied:])
	return out.Bytes()
}

// mayOccur quickly checks for any of the services' hosts.
func (l *linkMap) mayOccur(body []byte) bool {
	return bytes.Contains(body, []byte("://")) || bytes.Contains(body, []byte(`:\/\/`)) || bytes.Contains(body, []byte(`\u00`))
}

// stringEnd returns the index of the quote that ends the string beginning at i.
func stringEnd(raw []byte, i int) int {
	for i++; i < len(raw) && raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i
}

// isKey reports whether the string before i is a member's name.
func isKey(raw []byte, i int) bool {
	for ; i < len(raw); i++ {
		switch raw[i] {
		case ' ', '\t', '\n', '\r':
		default:
			return raw[i] == ':'
		}
	}
	return false
}

// translateValue translates a JSON string literal.
func (l *linkMap) translateValue(literal []byte) ([]byte, bool) {
	if len(literal) < len(`"ws://x"`) || literal[1] != 'h' && literal[1] != 'H' && literal[1] != 'w' && literal[1] != 'W' && literal[1] != '\\' {
		return nil, false
	}
	var text string
	if json.Unmarshal(literal, &text) != nil || strings.TrimSpace(text) != text {
		return nil, false
	}
	translated, ok := l.fromOrigin(text)
	if !ok {
		return nil, false
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(translated) != nil {
		return nil, false
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), true
}
