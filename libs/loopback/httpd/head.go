package httpd

import (
	"bytes"
	"strings"
)

// The limits of a head. Line terminators count.
const (
	MaxRequestLine = 65536
	MaxHeaderLine  = 65536
	MaxFields      = 99
)

// The sentences of the parser's own answers.
var refusals = map[int]string{
	400: "The request is not a well-formed HTTP/1.x request.\n",
	414: "The request line is longer than 65536 bytes.\n",
	431: "The request has a header line longer than 65536 bytes or more than 99 header fields.\n",
	505: "This server speaks HTTP/1.0 and HTTP/1.1 only.\n",
}

// span holds the offsets of a field in the head.
type span struct{ name, colon, value, end int }

// head parses a request head line by line out of a buffer that grows, so that
// each fault is answered at its line and no byte is read twice. It holds offsets,
// as the buffer may move.
type head struct {
	line    int // where the current line starts
	scanned int // there is no line feed before this
	spans   []span

	started                 bool // the request line is parsed
	method, target, target2 int  // method is [0:method], target is [target:target2]
	minor                   byte // of the version
}

// next parses the content of the buffer. It is done when the empty line was read,
// which ends at h.line; a status other than 0 refuses the request.
func (h *head) next(buf []byte) (done bool, status int) {
	for {
		i := bytes.IndexByte(buf[h.scanned:], '\n')
		end := h.scanned + i + 1
		if i < 0 {
			end = len(buf)
		}
		limit, tooLong := MaxHeaderLine, 431
		if !h.started {
			limit, tooLong = MaxRequestLine, 414
		}
		// A line of limit bytes that has not ended is longer.
		if size := end - h.line; size > limit || i < 0 && size == limit {
			return false, tooLong
		}
		h.scanned = end
		if i < 0 {
			return false, 0
		}
		last := end - 1
		if last > h.line && buf[last-1] == '\r' {
			last--
		}
		line := buf[h.line:last]
		switch {
		case !h.started:
			if status := h.requestLine(line); status != 0 {
				return false, status
			}
			h.started = true
		case len(line) == 0:
			h.line = end
			return true, 0
		case len(h.spans) == MaxFields:
			return false, 431
		case !h.field(line):
			return false, 400
		}
		h.line = end
	}
}

// requestLine parses the line, which is at the buffer's start.
func (h *head) requestLine(line []byte) (status int) {
	method := bytes.IndexByte(line, ' ')
	version := bytes.LastIndexByte(line, ' ')
	if method <= 0 || version <= method+1 || !isToken(line[:method]) {
		return 400
	}
	h.method, h.target, h.target2 = method, method+1, version
	for _, c := range line[h.target:h.target2] {
		if c <= ' ' || c == 0x7f {
			return 400
		}
	}
	v := line[version+1:]
	if len(v) != len("HTTP/1.1") || string(v[:5]) != "HTTP/" || !isDigit(v[5]) || v[6] != '.' || !isDigit(v[7]) {
		return 400
	}
	if v[5] != '1' {
		return 505
	}
	h.minor = v[7]
	return 0
}

// field notes one field. A line that starts with white space is folded, and its
// name no token.
func (h *head) field(line []byte) bool {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 || !isToken(line[:colon]) {
		return false
	}
	value := line[colon+1:]
	for _, c := range value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	at := h.line + colon + 1
	if len(value) > 0 && value[0] == ' ' {
		at++
	}
	h.spans = append(h.spans, span{name: h.line, colon: h.line + colon, value: at, end: h.line + len(line)})
	return true
}

// fill makes the request from a complete head. The head becomes one string, of
// which all others are substrings.
func (h *head) fill(buf []byte, r *Request) {
	text := string(buf[:h.line])
	r.Method, r.Target = text[:h.method], text[h.target:h.target2]
	r.Proto = "HTTP/1.1" // a later minor version is answered as this one
	if h.minor == '0' {
		r.Proto = "HTTP/1.0"
	}
	if cap(r.Header) < len(h.spans) {
		r.Header = make(Header, 0, len(h.spans))
	}
	for _, s := range h.spans {
		r.Header = append(r.Header, Field{text[s.name:s.colon], text[s.value:s.end]})
	}
	rest := r.Target
	if n := schemeLen(rest); n > 0 {
		r.Absolute = true
		rest = rest[n+len("://"):]
		end := strings.IndexAny(rest, "/?#")
		if end < 0 {
			end = len(rest)
		}
		r.Authority, rest = rest[:end], rest[end:]
	}
	r.Path, r.RawQuery, r.HasQuery = strings.Cut(rest, "?")
	if r.Absolute && r.Path == "" {
		r.Path = "/"
	}
}

// schemeLen is the length of the scheme of an absolute-form target, 0 for other
// forms.
func schemeLen(target string) int {
	if target[0] == '/' {
		return 0
	}
	n := strings.Index(target, "://")
	if n <= 0 {
		return 0
	}
	for i := range n {
		c := target[i] | 0x20
		if (c < 'a' || c > 'z') && (i == 0 || !isDigit(target[i]) && strings.IndexByte("+-.", target[i]) < 0) {
			return 0
		}
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// tokenChars are the characters of methods and field names (RFC 9110, 5.6.2).
var tokenChars = func() (set [256]bool) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") {
		set[c] = true
	}
	return set
}()

func isToken(b []byte) bool {
	for _, c := range b {
		if !tokenChars[c] {
			return false
		}
	}
	return len(b) > 0
}
