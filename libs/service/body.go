package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service/listener"
)

// RequestTimeout answers a body that does not arrive in time.
var RequestTimeout = problem.Kind{Code: "request_timeout", Status: http.StatusRequestTimeout, Title: "Request body too slow"}

// ReadBody reads the whole body, within the route's limit. Its errors are
// problems: 413 for a body over the limit, 408 for one that is too slow.
func ReadBody(c echo.Context) ([]byte, error) {
	r := c.Request()
	if r.ContentLength == 0 {
		return nil, nil
	}
	var raw []byte
	var err error
	if r.ContentLength > 0 { // the middleware has checked it against the limit
		raw = make([]byte, r.ContentLength)
		_, err = io.ReadFull(r.Body, raw)
	} else {
		raw, err = io.ReadAll(r.Body)
	}
	switch {
	case err == nil:
		return raw, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, RequestTimeout.Errorf("The request body did not arrive within %s.", listener.BodyTime).WithCause(err)
	}
	return nil, BodyFault(err)
}

// BodyFault is the problem of a body that could not be read.
func BodyFault(err error) error {
	var tooLarge *http.MaxBytesError
	var coding *problem.Error // of DecodeBody
	if errors.As(err, &tooLarge) || errors.As(err, &coding) {
		return problem.From(err)
	}
	return problem.BadRequest.New("The request body ended early.").WithCause(err)
}

// DecodeJSON reads the body into dst. The error is a problem: 413, 415, or 422
// that names the field. Trailing data and repeated top-level keys are refused;
// strict refuses unknown fields, to which those in another case belong, and
// repeated keys at every depth as well.
func DecodeJSON(c echo.Context, dst any, strict bool) error {
	if err := checkMedia(c.Request()); err != nil {
		return err
	}
	raw, err := ReadBody(c)
	if err != nil {
		return err
	}
	return ParseJSON(raw, dst, strict)
}

// DecodeOptionalJSON is DecodeJSON for routes whose body is optional; without one, dst stays
// unchanged.
func DecodeOptionalJSON(c echo.Context, dst any, strict bool) error {
	raw, err := ReadBody(c)
	if err != nil || len(bytes.TrimSpace(raw)) == 0 {
		return err
	}
	if err := checkMedia(c.Request()); err != nil {
		return err
	}
	return ParseJSON(raw, dst, strict)
}

// checkMedia accepts JSON types. A request without a type passes unless a web
// page sent it: those three types a page may send anywhere without asking, and
// an open service on loopback must not obey them.
func checkMedia(r *http.Request) error {
	ct := r.Header.Get("Content-Type")
	if ct == "application/json" || (ct == "" && r.Header.Get("Origin") == "") {
		return nil
	}
	media, _, err := mime.ParseMediaType(ct)
	if err == nil && (media == "application/json" || strings.HasSuffix(media, "+json")) {
		return nil
	}
	return problem.UnsupportedMedia.New("Send the body as JSON, with the header Content-Type: application/json.")
}

// ParseJSON is DecodeJSON on bytes that were read already.
func ParseJSON(raw []byte, dst any, strict bool) error {
	if err := ParseForeignJSON(raw, dst, strict); err != nil {
		return err
	}
	return checkText(bytes.TrimSpace(raw))
}

// ParseForeignJSON is ParseJSON for documents whose sender cannot correct them, such as a forge's
// webhook: text that is not valid Unicode is read with U+FFFD in its place, so that one bad name
// does not lose a push.
func ParseForeignJSON(raw []byte, dst any, strict bool) error {
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 {
		return invalidBody("the body is empty; send a JSON object")
	}
	if trimmed[0] == 'n' && string(trimmed) == "null" {
		return invalidBody("the body is null; send a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(trimmed))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(dst); err != nil {
		return explainJSONError(err)
	}
	if int(d.InputOffset()) != len(trimmed) {
		return invalidBody(fmt.Sprintf("text follows the JSON value at byte %d", d.InputOffset()+1))
	}
	return checkKeys(trimmed, reflect.TypeOf(dst), strict)
}

// checkText refuses text that encoding/json would silently replace by U+FFFD: invalid UTF-8, and
// escapes of one half of a surrogate pair. The JSON is valid otherwise.
func checkText(raw []byte) error {
	if !utf8.Valid(raw) {
		return invalidBody("text is not UTF-8")
	}
	for i := bytes.IndexByte(raw, '\\'); i >= 0 && i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		first := escapedUnit(raw[i:])
		switch {
		case !utf16.IsSurrogate(first):
			i++ // the escaped character, which may be another backslash
		case utf16.DecodeRune(first, escapedUnit(raw[i+escapeLength:])) == utf8.RuneError:
			return invalidBody(fmt.Sprintf("text holds %s, one half of a surrogate pair without the other", raw[i:i+escapeLength]))
		default:
			i += 2*escapeLength - 1
		}
	}
	return nil
}

const escapeLength = len(`\u0000`)

// escapedUnit is the UTF-16 unit of the \u escape, four hex digits, that raw begins with, else 0.
func escapedUnit(raw []byte) rune {
	if len(raw) < escapeLength || raw[0] != '\\' || raw[1] != 'u' {
		return 0
	}
	unit, err := strconv.ParseUint(string(raw[2:escapeLength]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(unit)
}

func invalidBody(msg string) error { return invalidField([]string{"body"}, msg) }

func invalidField(loc []string, msg string) error {
	return problem.Validation.New(strings.Join(loc, ".") + ": " + msg + ".").WithErrors(problem.Field{Loc: loc, Msg: msg})
}

// explainJSONError makes an encoding/json error a 422 that names the place.
func explainJSONError(err error) error {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return invalidBody(fmt.Sprintf("not valid JSON at byte %d: %s", syntax.Offset, syntax.Error()))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return invalidBody("not valid JSON: it ends early")
	case errors.As(err, &typ):
		loc := []string{"body"}
		if typ.Field != "" {
			loc = append(loc, strings.Split(typ.Field, ".")...)
		}
		return invalidField(loc, fmt.Sprintf("must be %s, not %s", typeName(typ), typ.Value))
	}
	if quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		if name, uerr := strconv.Unquote(quoted); uerr == nil {
			return invalidField([]string{"body", name}, "unknown field")
		}
	}
	var p *problem.Error
	if errors.As(err, &p) { // from a type's own UnmarshalJSON
		return p
	}
	return invalidBody(err.Error())
}

func typeName(e *json.UnmarshalTypeError) string {
	t := e.Type
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number in range"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number, not negative, in range"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "another type"
}

// keySet looks through a short list first, which needs no allocation, and keeps
// a body of very many keys from costing their square.
type keySet struct {
	few  [16][]byte
	n    int
	many map[string]struct{}
}

// add reports whether key is new.
func (s *keySet) add(key []byte) bool {
	for _, k := range s.few[:s.n] {
		if bytes.Equal(k, key) {
			return false
		}
	}
	if s.n < len(s.few) {
		s.few[s.n] = key
		s.n++
		return true
	}
	if s.many == nil {
		s.many = make(map[string]struct{})
	}
	if _, have := s.many[string(key)]; have {
		return false
	}
	s.many[string(key)] = struct{}{}
	return true
}

// stringEnd is the index of the quote that ends the string beginning at i.
func stringEnd(raw []byte, i int) int {
	for i++; i < len(raw) && raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i
}
