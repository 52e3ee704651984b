package canon

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits of the parser.
const (
	// MaxDepth limits the nesting of arrays and objects.
	MaxDepth = 512
	// MaxIntDigits limits the digits of an integer, without its sign.
	MaxIntDigits = 4300
	// MaxFile limits the bytes of a command's input file or a request body.
	MaxFile = 2 << 20
)

// Reason is a stable word for why a document was refused.
type Reason string

// The reasons of a SyntaxError.
const (
	InvalidJSON  Reason = "invalid_json"
	DuplicateKey Reason = "duplicate_key"
	TooDeep      Reason = "too_deep"
	InvalidUTF8  Reason = "invalid_utf8"
	TooLarge     Reason = "too_large"     // only with MaxBytes
	NotAnObject  Reason = "not_an_object" // only with ObjectRoot
)

// SyntaxError reports why and where a document was refused. It never quotes the document,
// which may hold a secret.
type SyntaxError struct {
	Reason Reason
	Offset int    // in bytes from the start of the input
	Path   string // JSON pointer of the value being read; "" is the whole document
	Detail string // one sentence

	inside []string // reference tokens, the innermost first
}

func (e *SyntaxError) Error() string {
	at := ""
	if e.Path != "" {
		at = " in " + clipPointer(e.Path)
	}
	return fmt.Sprintf("%s at byte %d%s: %s", e.Reason, e.Offset, at, e.Detail)
}

// clipPointer keeps a pointer, whose parts the document chose, short enough for one line.
func clipPointer(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	cut := most
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// Option restricts the input of Parse.
type Option func(*parser)

// MaxBytes refuses a document longer than n bytes with reason too_large.
func MaxBytes(n int) Option { return func(p *parser) { p.maxBytes = n } }

// ObjectRoot refuses a document that is no object with reason not_an_object.
func ObjectRoot() Option { return func(p *parser) { p.objectRoot = true } }

// Parse reads one JSON document (RFC 8259): UTF-8 with at most one byte order mark before
// it, nothing after it. It refuses, with a *SyntaxError, everything that two readers could
// read differently: duplicate keys, NaN and Infinity, a float that overflows binary64, an
// integer over MaxIntDigits, half a surrogate pair, nesting over MaxDepth.
func Parse(data []byte, opts ...Option) (Value, error) {
	p := &parser{data: data}
	for _, o := range opts {
		o(p)
	}
	if p.maxBytes > 0 && len(data) > p.maxBytes {
		return nil, p.fail(TooLarge, p.maxBytes, "the document is larger than %d bytes", p.maxBytes)
	}
	if !utf8.Valid(data) {
		return nil, p.fail(InvalidUTF8, firstInvalid(data), "the bytes are not UTF-8")
	}
	if bytes.HasPrefix(data, bom) {
		p.pos = len(bom)
	}
	p.space()
	start := p.pos
	v, err := p.value(0)
	if err != nil {
		return nil, err.seal()
	}
	p.space()
	if p.pos < len(data) {
		return nil, p.fail(InvalidJSON, p.pos, "there is more after the end of the document")
	}
	if _, ok := v.(*Object); p.objectRoot && !ok {
		return nil, p.fail(NotAnObject, start, "the document must be an object")
	}
	return v, nil
}

var bom = []byte("\uFEFF")

func firstInvalid(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(data)
}

type parser struct {
	data       []byte
	pos        int
	maxBytes   int
	objectRoot bool
	buf        []byte   // of the string being unescaped
	members    []Member // of the objects being read, so that each takes no more room than it needs
}

func (p *parser) fail(r Reason, at int, format string, args ...any) *SyntaxError {
	return &SyntaxError{Reason: r, Offset: at, Detail: fmt.Sprintf(format, args...)}
}

func (p *parser) bad(format string, args ...any) *SyntaxError {
	return p.fail(InvalidJSON, p.pos, format, args...)
}

// prefixPointer records, on the way out, the value in which a failure lies. The pointer is
// built once at the end: at every level it would copy a long key 512 times.
func prefixPointer(token string, err *SyntaxError) *SyntaxError {
	err.inside = append(err.inside, token)
	return err
}

func (e *SyntaxError) seal() *SyntaxError {
	var path strings.Builder
	for _, token := range slices.Backward(e.inside) {
		path.WriteString(Pointer("", token))
	}
	e.Path, e.inside = path.String(), nil
	return e
}

func (p *parser) space() {
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end (no JSON text holds a bare NUL).
func (p *parser) peek() byte {
	if p.pos < len(p.data) {
		return p.data[p.pos]
	}
	return 0
}

// value parses one value that is nested inside depth arrays and objects.
func (p *parser) value(depth int) (Value, *SyntaxError) {
	switch c := p.peek(); {
	case c == '{':
		return p.object(depth + 1)
	case c == '[':
		return p.array(depth + 1)
	case c == '"':
		s, err := p.str()
		if err != nil {
			return nil, err
		}
		return s, nil
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	case c == 't':
		return true, p.word("true")
	case c == 'f':
		return false, p.word("false")
	case c == 'n':
		return nil, p.word("null")
	case p.pos >= len(p.data):
		return nil, p.bad("the document ends where a value is expected")
	}
	return nil, p.bad("no JSON value starts here")
}

func (p *parser) word(w string) *SyntaxError {
	if !bytes.HasPrefix(p.data[p.pos:], []byte(w)) {
		return p.bad("no JSON value starts here")
	}
	p.pos += len(w)
	return nil
}

func (p *parser) enter(depth int) *SyntaxError {
	if depth > MaxDepth {
		return p.fail(TooDeep, p.pos, "arrays and objects are nested more than %d deep", MaxDepth)
	}
	p.pos++ // the opening bracket
	p.space()
	return nil
}

// emptyArray is every empty array: it has no element that two could share.
var emptyArray Value = Array{}

func (p *parser) array(depth int) (Value, *SyntaxError) {
	if err := p.enter(depth); err != nil {
		return nil, err
	}
	if p.peek() == ']' {
		p.pos++
		return emptyArray, nil
	}
	var out Array
	for {
		v, err := p.value(depth)
		if err != nil {
			return nil, prefixPointer(strconv.Itoa(len(out)), err)
		}
		out = append(out, v)
		p.space()
		switch p.peek() {
		case ',':
			p.pos++
			p.space()
		case ']':
			p.pos++
			return out, nil
		default:
			return nil, p.bad("an array element must be followed by a comma or ]")
		}
	}
}

func (p *parser) object(depth int) (Value, *SyntaxError) {
	if err := p.enter(depth); err != nil {
		return nil, err
	}
	if p.peek() == '}' {
		p.pos++
		return &Object{}, nil
	}
	if p.members == nil {
		p.members = make([]Member, 0, indexFrom)
	}
	first := len(p.members)
	var out Object // its members stay in p.members until it is complete
	for {
		if p.peek() != '"' {
			return nil, p.bad("an object key must be a string")
		}
		at := p.pos
		key, err := p.str()
		if err != nil {
			return nil, err
		}
		if _, dup := out.find(key); dup {
			return nil, prefixPointer(key, p.fail(DuplicateKey, at, "the object names this key twice"))
		}
		p.space()
		if p.peek() != ':' {
			return nil, p.bad("an object key must be followed by a colon")
		}
		p.pos++
		p.space()
		v, err := p.value(depth)
		if err != nil {
			return nil, prefixPointer(key, err)
		}
		p.members = append(p.members, Member{key, v})
		out.members = p.members[first:]
		out.indexLast()
		p.space()
		switch p.peek() {
		case ',':
			p.pos++
			p.space()
		case '}':
			p.pos++
			complete := &Object{members: slices.Clone(out.members), index: out.index}
			clear(out.members)
			p.members = p.members[:first]
			return complete, nil
		default:
			return nil, p.bad("an object member must be followed by a comma or }")
		}
	}
}

func (p *parser) digits() int {
	start := p.pos
	for c := p.peek(); '0' <= c && c <= '9'; c = p.peek() {
		p.pos++
	}
	return p.pos - start
}

func (p *parser) number() (Value, *SyntaxError) {
	start := p.pos
	if p.peek() == '-' {
		p.pos++
	}
	lead := p.pos
	whole := p.digits()
	switch {
	case whole == 0:
		return nil, p.bad("a number needs a digit here")
	case whole > 1 && p.data[lead] == '0':
		return nil, p.fail(InvalidJSON, lead, "a number must not start with a zero")
	}
	float := false
	if p.peek() == '.' {
		float = true
		p.pos++
		if p.digits() == 0 {
			return nil, p.bad("a number needs a digit after its point")
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		float = true
		p.pos++
		if c := p.peek(); c == '+' || c == '-' {
			p.pos++
		}
		if p.digits() == 0 {
			return nil, p.bad("a number needs a digit in its exponent")
		}
	}
	text := string(p.data[start:p.pos])
	if !float {
		if whole > MaxIntDigits {
			return nil, p.fail(InvalidJSON, start, "the integer has more than %d digits", MaxIntDigits)
		}
		return intOf(text), nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil { // the grammar holds, so only the range is left
		return nil, p.fail(InvalidJSON, start, "the number is beyond binary64")
	}
	return Float(f), nil
}

// str reads a string. The input is known to be UTF-8, so only escapes and bare
// control characters need a look.
func (p *parser) str() (string, *SyntaxError) {
	p.pos++
	start := p.pos
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; {
		case c == '"':
			s := string(p.data[start:p.pos])
			p.pos++
			return s, nil
		case c == '\\':
			return p.escaped(start)
		case c < 0x20:
			return "", p.bad("a control character in a string must be escaped")
		}
		p.pos++
	}
	return "", p.bad("the document ends inside a string")
}

func (p *parser) escaped(start int) (string, *SyntaxError) {
	p.buf = append(p.buf[:0], p.data[start:p.pos]...)
	for p.pos < len(p.data) {
		c := p.data[p.pos]
		switch {
		case c == '"':
			p.pos++
			return string(p.buf), nil
		case c < 0x20:
			return "", p.bad("a control character in a string must be escaped")
		case c != '\\':
			p.buf = append(p.buf, c)
			p.pos++
			continue
		}
		p.pos++
		switch e := p.peek(); e {
		case '"', '\\', '/':
			p.buf = append(p.buf, e)
		case 'b':
			p.buf = append(p.buf, '\b')
		case 'f':
			p.buf = append(p.buf, '\f')
		case 'n':
			p.buf = append(p.buf, '\n')
		case 'r':
			p.buf = append(p.buf, '\r')
		case 't':
			p.buf = append(p.buf, '\t')
		case 'u':
			r, err := p.unicode()
			if err != nil {
				return "", err
			}
			p.buf = utf8.AppendRune(p.buf, r)
			continue
		default:
			return "", p.bad("a backslash must be followed by one of \" \\ / b f n r t u")
		}
		p.pos++
	}
	return "", p.bad("the document ends inside a string")
}

// unicode reads from the u of an escape, and the second half of a surrogate pair.
func (p *parser) unicode() (rune, *SyntaxError) {
	at := p.pos - 1
	r, err := p.hex4()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if r < 0xDC00 && bytes.HasPrefix(p.data[p.pos:], []byte(`\u`)) {
		p.pos++
		low, err := p.hex4()
		if err != nil {
			return 0, err
		}
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, nil
		}
	}
	return 0, p.fail(InvalidJSON, at, "half a surrogate pair is no character")
}

func (p *parser) hex4() (rune, *SyntaxError) {
	p.pos++ // the u
	var r rune
	for range 4 {
		c := p.peek()
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, p.bad("\\u must be followed by four hexadecimal digits")
		}
		r = r<<4 | rune(c)
		p.pos++
	}
	return r, nil
}
