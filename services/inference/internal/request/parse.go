// Package request parses the bodies of prediction requests: strict about JSON, exact about the place of each fault, and
// without allocations for valid requests.
package request

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mlp-platform/platform/libs/problem"
)

// maxFaults limits the faults reported for one body.
const maxFaults = 50

// Object is a checked JSON object: its members by name. The values are slices of the body and valid as
// long as it is.
type Object struct {
	members []Member
}

// Member is one member of an Object.
type Member struct {
	Name  []byte // unescaped
	Value []byte // JSON, without surrounding space
}

// Members in the order of the body.
func (o *Object) Members() []Member { return o.members }

// decoder reads from a bytes.Buffer, which the library parses in place.
type decoder struct {
	dec *jsontext.Decoder
	buf bytes.Buffer
}

var decoders = sync.Pool{New: func() any { return &decoder{dec: new(jsontext.Decoder)} }}

// read takes the next value as a slice of body: what the library returns is valid only until its next call.
func (d *decoder) read(body []byte) ([]byte, error) {
	v, err := d.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := d.dec.InputOffset()
	return body[end-int64(len(v)) : end : end], nil
}

// Parse checks body by RFC 8259, with duplicate names at any depth, invalid UTF-8 and trailing data
// refused, and splits its top-level object into members, reusing into. body must not change while the
// result is in use.
func Parse(body []byte, into *Object) []problem.Field {
	into.members = into.members[:0]
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	d.buf = *bytes.NewBuffer(body)
	d.dec.Reset(&d.buf)
	defer func() { d.buf = bytes.Buffer{} }()
	tok, err := d.dec.ReadToken()
	if err != nil {
		return syntaxFault(err, len(body))
	}
	if tok.Kind() != '{' {
		return []problem.Field{{Loc: []string{"body"}, Msg: "expected a JSON object, got " + kindName(byte(tok.Kind()))}}
	}
	for d.dec.PeekKind() != '}' {
		name, err := d.read(body)
		if err != nil {
			return syntaxFault(err, len(body))
		}
		key := name[1 : len(name)-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			if key, err = jsontext.AppendUnquote(nil, name); err != nil {
				return syntaxFault(err, len(body))
			}
		}
		value, err := d.read(body)
		if err != nil {
			return syntaxFault(err, len(body))
		}
		into.members = append(into.members, Member{key, value})
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return syntaxFault(err, len(body))
	}
	if _, err := d.dec.ReadToken(); err != io.EOF {
		return []problem.Field{{Loc: []string{"body"}, Msg: "the body has more data after its JSON value"}}
	}
	return nil
}

// syntaxFault converts the decoder's error to a field fault.
func syntaxFault(err error, size int) []problem.Field {
	f := problem.Field{Loc: []string{"body"}}
	var se *jsontext.SyntacticError
	switch {
	case size == 0 || errors.Is(err, io.EOF):
		f.Msg = "the body is empty; send a JSON object"
	case errors.Is(err, io.ErrUnexpectedEOF):
		f.Msg = "the JSON ends too early"
	case errors.As(err, &se):
		for tok := range se.JSONPointer.Tokens() {
			f.Loc = append(f.Loc, problem.Shorten(tok))
		}
		if errors.Is(err, jsontext.ErrDuplicateName) {
			f.Msg = "this name is there twice"
			break
		}
		f.Msg = fmt.Sprintf("not JSON at byte %d: %s", se.ByteOffset, strings.TrimPrefix(se.Err.Error(), "jsontext: "))
	default:
		f.Msg = "not JSON: " + err.Error()
	}
	return []problem.Field{f}
}

// kindName names the type of the JSON value that starts with c.
func kindName(c byte) string {
	switch c {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// maxJobID limits the bytes of an id that is recorded with the prediction.
const maxJobID = 255

// CheckJobID returns the fault of the id of a job or request, or "".
func CheckJobID(id string) string {
	switch {
	case len(id) > maxJobID:
		return "an id has at most " + strconv.Itoa(maxJobID) + " bytes, got " + strconv.Itoa(len(id))
	case strings.ContainsRune(id, 0):
		return "an id has no NUL characters"
	}
	return ""
}

// parseText reads an optional string member; null counts as absent.
func parseText(m Member) (string, *problem.Field) {
	switch m.Value[0] {
	case 'n':
		return "", nil
	case '"':
		s, err := unquoteJSON(m.Value)
		if err == nil {
			return s, nil
		}
	}
	return "", &problem.Field{Loc: []string{"body", problem.Shorten(string(m.Name))}, Msg: "expected a string, got " + kindName(m.Value[0])}
}

func unquoteJSON(v []byte) (string, error) {
	inner := v[1 : len(v)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), nil
	}
	raw, err := jsontext.AppendUnquote(nil, v)
	return string(raw), err
}
